"""Compare two servers of MongoDB's protocol on random operations.

    differential_client.py URI URI --cases N --seed N

Where the answers differ, `judge.py` takes the operation apart and asks again. Prints
`count KIND N` for what agreed, `EXCUSED KIND WHERE | CAUSE; CAUSE` for what has causes that were
verified, and `DIFFERS KIND WHERE | MESSAGE` for what has none. WHERE is `seed S case N`: the
operation N of a run with the seed S.
"""

import argparse

import bson
import pymongo
from pymongo.errors import OperationFailure

from draw import Draw
from judge import Difference, Judge, Unexplained
from questions import Answer, Question

# Documents of a round, and operations on them.
DOCUMENTS, OPERATIONS = 40, 250


class Server:
    """A collection, and another one for what is asked again."""

    def __init__(self, uri, name):
        options = bson.CodecOptions(tz_aware=True)
        self.client = pymongo.MongoClient(uri)
        database = self.client.get_database(name, options)
        self.first, self.second = database.c, database.again
        self.loaded = None

    def load(self, collection, documents):
        collection.delete_many({})
        if documents:
            collection.insert_many(documents)

    def answer(self, collection, operation):
        try:
            return Answer(run(collection, operation))
        except OperationFailure as error:
            return Answer(code=error.code, text=message(error))

    def ask(self, question):
        # Byte by byte: what was inserted last need not be inserted again.
        wanted = [bson.encode(document) for document in question.documents]
        if self.loaded != wanted:
            self.loaded = None
            self.load(self.second, question.documents)
            self.loaded = wanted
        if question.operation.kind == "update":
            self.loaded = None
        return self.answer(self.second, question.operation)


def message(error):
    """The text of an error, that of the write within it where there is one."""
    details = error.details or {}
    return details.get("errmsg") or str(error)


def run(collection, operation):
    spec = operation.spec
    if operation.kind == "find":
        cursor = collection.find(spec["filter"], spec["projection"])
        if spec["sort"]:
            cursor = cursor.sort(list(spec["sort"].items()))
        return list(cursor)
    if operation.kind == "aggregate":
        return list(collection.aggregate(spec["pipeline"]))
    done = collection.update_one(spec["filter"], spec["update"])
    return [done.matched_count, done.modified_count, list(collection.find().sort("_id", 1))]


class Round:
    """The same documents on both servers, then operations on both."""

    def __init__(self, servers, seed, counts):
        self.servers, self.seed, self.counts = servers, seed, counts
        self.draw = Draw(seed)
        self.judge = Judge(lambda question: [server.ask(question) for server in servers])
        self.original = [{"_id": i, **self.draw.document()} for i in range(DOCUMENTS)]
        self.refill()

    def refill(self):
        self.documents = self.original
        for server in self.servers:
            server.load(server.first, self.original)

    def operations(self, wanted):
        for number in range(1, wanted + 1):
            operation = self.draw.operation()
            answers = [server.answer(server.first, operation) for server in self.servers]
            if answers[0] == answers[1]:
                self.counts[operation.kind] = self.counts.get(operation.kind, 0) + 1
            else:
                where = f"{operation.kind} seed {self.seed} case {number}"
                self.differs(Difference(Question(self.documents, operation), *answers), where)
            if operation.kind == "update":
                if answers[0] != answers[1] or number % 10 == 0:
                    self.refill()
                elif answers[0].ok:
                    self.documents = answers[0].value[2]

    def differs(self, difference, where):
        try:
            causes = self.judge.judge(difference)
            print(f"EXCUSED {where} | {'; '.join(causes)}", flush=True)
            return
        except Unexplained as why:
            left = str(why)
        shown = short(difference)
        text = f"{difference.question.operation.spec!r} {shown} left {left}".replace("\n", " ")
        print(f"DIFFERS {where} | {self.judge.tried or 'no cause'} | {text}", flush=True)


def short(difference):
    """Both answers, or the first elements of them that differ."""
    ours, theirs = difference.ours, difference.theirs
    if ours.ok and theirs.ok:
        ours, theirs = first(ours.value, theirs.value)
    return f"ours {ours!r:.300} theirs {theirs!r:.300}"


def first(ours, theirs):
    if len(ours) != len(theirs):
        return f"{len(ours)}: {ours!r}", f"{len(theirs)}: {theirs!r}"
    for one, other in zip(ours, theirs):
        if Answer([one]) != Answer([other]):
            if isinstance(one, list) and isinstance(other, list):
                return first(one, other)
            return one, other
    return "the same", "the same"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ours")
    parser.add_argument("theirs")
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    # Several runs at once do not meet.
    name = f"differential{asked.seed}"
    servers = [Server(uri, name) for uri in (asked.ours, asked.theirs)]
    counts, left, seed = {}, asked.cases, asked.seed
    while 0 < left:
        Round(servers, seed, counts).operations(min(left, OPERATIONS))
        left -= OPERATIONS
        seed += 1
    for kind, count in sorted(counts.items()):
        print(f"count {kind} {count}")


if __name__ == "__main__":
    main()

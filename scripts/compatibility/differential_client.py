"""Compare two servers of MongoDB's protocol on random operations.

    differential_client.py URI URI --cases N --seed N

Prints `count KIND N` for what agreed and `DIFFERS KIND NAME | MESSAGE` for what did not, where NAME
begins with the operators that the case used, so that causes can be told apart.
"""

import argparse
import datetime
import random
import struct

import bson
import pymongo
from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo.errors import OperationFailure

FIELDS = ["a", "b", "c", "d"]
PATHS = FIELDS + ["a.b", "b.c", "c.0", "d.a.b", "a.0.b", "nothing"]
# Documents of a round, and operations on them.
DOCUMENTS, OPERATIONS = 40, 250


class Draw:
    """Random values and operations."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def pick(self, *choices):
        return self.rng.choice(choices)

    def number(self):
        rng = self.rng
        return self.pick(
            rng.randint(-3, 5),
            Int64(rng.randint(-3, 5)),
            float(rng.randint(-3, 5)),
            rng.randint(-3, 5) + 0.5,
            Decimal128(str(rng.randint(-3, 5))),
            Decimal128("1.50"),
            Int64(2**53 + rng.randint(0, 1)),
            float("nan"),
            -0.0,
            float("inf"),
        )

    def scalar(self):
        rng = self.rng
        if rng.random() < 0.5:
            return self.number()
        return self.pick(
            None,
            True,
            False,
            "",
            "a",
            "ab",
            "B",
            "é",
            datetime.datetime.fromtimestamp(rng.randint(-2, 2), datetime.UTC),
            ObjectId(bytes([rng.randint(0, 2)] * 12)),
            Binary(bytes([rng.randint(0, 2)])),
            Timestamp(rng.randint(1, 3), 1),
            MinKey(),
            MaxKey(),
            Regex("^a", "i"),
        )

    def value(self, depth=0):
        roll = self.rng.random()
        if depth < 3 and roll < 0.15:
            return [self.value(depth + 1) for _ in range(self.rng.randint(0, 3))]
        if depth < 3 and roll < 0.3:
            return self.document(depth + 1)
        return self.scalar()

    def document(self, depth=0):
        names = self.rng.sample(FIELDS, self.rng.randint(0, 3 if depth else 4))
        return {name: self.value(depth) for name in names}

    def path(self):
        return self.rng.choice(PATHS)

    # Filters.

    def condition(self, depth=0):
        """What a field must be."""
        rng = self.rng
        kind = self.pick(
            "plain", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$type",
            "$size", "$all", "$elemMatch", "$not", "$mod", "$regex", "$bitsAllSet", "two",
        )
        if kind == "plain":
            return self.value(1)
        if kind in ("$in", "$nin", "$all"):
            return {kind: [self.value(2) for _ in range(rng.randint(0, 3))]}
        if kind == "$exists":
            return {kind: self.pick(True, False)}
        if kind == "$type":
            return {kind: self.pick("number", "string", "array", "object", "null", 1, 16, 18, "date")}
        if kind == "$size":
            return {kind: rng.randint(0, 3)}
        if kind == "$elemMatch":
            if depth < 2 and rng.random() < 0.5:
                return {kind: self.filter(depth + 1)}
            return {kind: {self.pick("$gt", "$lte", "$ne"): self.scalar()}}
        if kind == "$not":
            return {kind: {self.pick("$gt", "$in", "$exists", "$size"): self.pick(1, [1, "a"], 0)}}
        if kind == "$mod":
            return {kind: [self.pick(2, 3, -2), self.pick(0, 1)]}
        if kind == "$regex":
            return {kind: self.pick("a", "^A", "b$", ".", "é"), "$options": self.pick("", "i")}
        if kind == "$bitsAllSet":
            return {self.pick(kind, "$bitsAnyClear"): self.pick(1, 2, [0, 1])}
        if kind == "two":
            return {"$gte": self.scalar(), self.pick("$lt", "$ne", "$lte"): self.scalar()}
        return {kind: self.value(2)}

    def filter(self, depth=0):
        parts = {}
        for _ in range(self.rng.randint(0 if depth == 0 else 1, 2)):
            if depth < 2 and self.rng.random() < 0.2:
                members = [self.filter(depth + 1) for _ in range(self.rng.randint(1, 2))]
                parts[self.pick("$and", "$or", "$nor")] = members
            elif depth == 0 and self.rng.random() < 0.1:
                parts["$expr"] = self.expression(1)
            else:
                parts[self.path()] = self.condition(depth)
        return parts

    def sort(self):
        paths = self.rng.sample(PATHS, self.rng.randint(0, 2))
        return [(path, self.pick(1, -1)) for path in paths] + [("_id", 1)]

    def projection(self):
        if self.rng.random() < 0.4:
            return None
        kept = self.pick(1, 0)
        paths = self.rng.sample(PATHS, self.rng.randint(1, 2))
        projection = {path: kept for path in paths}
        if self.rng.random() < 0.3:
            projection[self.pick("a", "c")] = {"$slice": self.pick(1, -1, [1, 1])}
        return projection

    # Updates.

    def update(self):
        rng = self.rng
        update = {}
        for _ in range(rng.randint(1, 2)):
            name = self.pick(
                "$set", "$unset", "$inc", "$mul", "$min", "$max", "$rename", "$push", "$pull",
                "$pullAll", "$addToSet", "$pop", "$bit", "$setOnInsert", "$currentDate",
            )
            path = self.path()
            operand = {
                "$set": self.value, "$unset": lambda: "", "$inc": self.number, "$mul": self.number,
                "$min": self.scalar, "$max": self.scalar, "$rename": lambda: self.pick("x", "d", "b.x"),
                "$push": self.pushed, "$pull": lambda: self.pick(self.value(1), {"$gt": self.scalar()}),
                "$pullAll": lambda: [self.value(2) for _ in range(2)],
                "$addToSet": lambda: self.pick(self.value(1), {"$each": [self.value(1), self.scalar()]}),
                "$pop": lambda: self.pick(1, -1),
                "$bit": lambda: {self.pick("and", "or", "xor"): self.pick(1, Int64(6))},
                "$setOnInsert": self.scalar,
                # The time differs; that it is a date does not.
                "$currentDate": None,
            }[name]
            if operand is None:
                continue
            update.setdefault(name, {})[path] = operand()
        return update or {"$set": {"a": 1}}

    def pushed(self):
        if self.rng.random() < 0.5:
            return self.value(1)
        pushed = {"$each": [self.value(2) for _ in range(self.rng.randint(0, 3))]}
        if self.rng.random() < 0.5:
            pushed["$slice"] = self.rng.randint(-3, 3)
        if self.rng.random() < 0.5:
            pushed["$sort"] = self.pick(1, -1, {"a": 1})
        if self.rng.random() < 0.3:
            pushed["$position"] = self.rng.randint(-2, 3)
        return pushed

    # Pipelines.

    def expression(self, depth=0):
        roll = self.rng.random()
        if 2 < depth or roll < 0.35:
            return "$" + self.rng.choice(PATHS)
        if roll < 0.5:
            value = self.scalar()
            return {"$literal": value}
        one = lambda: self.expression(depth + 1)
        return self.pick(
            lambda: {self.pick("$add", "$multiply", "$concat", "$and", "$or"): [one(), one()]},
            lambda: {self.pick("$subtract", "$divide", "$mod", "$cmp", "$eq", "$lt"): [one(), one()]},
            lambda: {self.pick("$abs", "$ceil", "$floor", "$trunc", "$not", "$type"): [one()]},
            lambda: {self.pick("$toString", "$toInt", "$toDouble", "$toBool", "$isNumber"): one()},
            lambda: {"$ifNull": [one(), one()]},
            lambda: {"$cond": [one(), one(), one()]},
            lambda: {self.pick("$size", "$isArray", "$reverseArray"): [one()]},
            lambda: {"$arrayElemAt": [one(), self.pick(0, -1, 1)]},
            lambda: {"$in": [one(), [one(), one()]]},
            lambda: {self.pick("$setUnion", "$setIntersection", "$concatArrays"): [one(), one()]},
            lambda: {"$filter": {"input": one(), "cond": {"$gt": ["$$this", one()]}}},
            lambda: {"$map": {"input": one(), "in": {"x": "$$this", "y": one()}}},
            lambda: {self.pick("$toUpper", "$strLenCP", "$toLower"): one()},
            lambda: {self.pick("$max", "$min", "$sum", "$avg"): [one(), one()]},
            lambda: {"$switch": {"branches": [{"case": one(), "then": one()}], "default": one()}},
            lambda: {"$mergeObjects": [one(), {"m": one()}]},
            lambda: {"$substrCP": [one(), 0, 1]},
        )()

    def stage(self):
        return self.pick(
            lambda: {"$match": self.filter()},
            lambda: {"$project": {"x": self.expression(), "a": 1}},
            lambda: {self.pick("$set", "$addFields"): {self.pick("x", "a.b", "c"): self.expression()}},
            lambda: {"$unset": self.pick("a", "b.c")},
            lambda: {"$unwind": {"path": "$" + self.pick("a", "b", "c", "d.a"),
                                 "preserveNullAndEmptyArrays": self.pick(True, False)}},
            lambda: {"$replaceRoot": {"newRoot": {"$mergeObjects": [{"_id": "$_id"}, {"v": self.expression()}]}}},
            lambda: {"$limit": self.rng.randint(1, 20)},
            lambda: {"$skip": self.rng.randint(0, 10)},
        )()

    def pipeline(self):
        stages = [{"$sort": {"_id": 1}}]
        stages += [self.stage() for _ in range(self.rng.randint(1, 3))]
        end = self.rng.random()
        if end < 0.3:
            sums = self.pick("$sum", "$avg", "$min", "$max", "$push", "$first", "$last")
            group = {"_id": self.expression(1), "n": {"$sum": 1}, "x": {sums: self.expression(1)}}
            # One order for both: groups come as the server likes.
            stages += [{"$group": group}, {"$sort": {"n": 1, "_id": 1, "x": 1}}]
        elif end < 0.4:
            stages += [{"$group": {"_id": None, "all": {"$addToSet": self.expression(1)}}},
                       {"$project": {"n": {"$size": "$all"}}}]
        elif end < 0.5:
            stages.append({"$count": "n"})
        return stages


def operators(value, found):
    """The operators of a case, in order of their appearance."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name.startswith("$") and name not in found:
                found.append(name)
            operators(inner, found)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            operators(inner, found)
    return found


def canonical(value):
    """Bytes that are equal for equal answers; every NaN is the same."""
    return bson.encode({"v": quiet(value)})


def quiet(value):
    if isinstance(value, dict):
        return {name: quiet(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [quiet(inner) for inner in value]
    if isinstance(value, float) and value != value:
        return struct.unpack("<d", struct.pack("<Q", 0x7FF8 << 48))[0]
    return value


def answer(run, collection):
    """What a server answers: documents, or the number of its error."""
    try:
        return "ok", run(collection)
    except OperationFailure as error:
        return "error", error.code


class Case:
    def __init__(self, kind, shown, run):
        self.kind, self.shown, self.run = kind, shown, run


def cases(draw):
    kind = draw.pick("find", "find", "update", "aggregate", "aggregate")
    if kind == "find":
        filter, sort, projection = draw.filter(), draw.sort(), draw.projection()

        def run(collection):
            return list(collection.find(filter, projection).sort(sort))

        return Case(kind, {"filter": filter, "sort": dict(sort), "projection": projection}, run)
    if kind == "aggregate":
        pipeline = draw.pipeline()
        return Case(kind, {"pipeline": pipeline}, lambda c: list(c.aggregate(pipeline)))
    filter, update = draw.filter(), draw.update()

    def run(collection):
        # One document, so that an error half-way leaves no question of order.
        done = collection.update_one({"$and": [{"_id": {"$lt": 10}}, filter]}, update)
        return [done.matched_count, done.modified_count, list(collection.find().sort("_id", 1))]

    return Case(kind, {"filter": filter, "update": update}, run)


def compare(ours, theirs, seed, wanted, counts):
    """One round: the same documents, then operations on both."""
    draw = Draw(seed)
    documents = [{"_id": i, **draw.document()} for i in range(DOCUMENTS)]
    options = bson.CodecOptions(tz_aware=True)
    both = [client.get_database("differential", options).c for client in (ours, theirs)]

    def refill():
        for collection in both:
            collection.drop()
            collection.insert_many(documents)

    refill()
    done = 0
    while done < min(wanted, OPERATIONS):
        case = cases(draw)
        done += 1
        answers = [answer(case.run, collection) for collection in both]
        same = answers[0][0] == answers[1][0]
        if same and answers[0][0] == "ok":
            same = canonical(answers[0][1]) == canonical(answers[1][1])
        if same:
            counts[case.kind] = counts.get(case.kind, 0) + 1
        else:
            tell(case, answers, f"seed {seed} case {done}")
        if case.kind == "update":
            refill() if answers[0] != answers[1] or done % 10 == 0 else None
    return done


def tell(case, answers, where):
    found = ",".join(operators(case.shown, [])) or "none"
    shown = [short(answer) for answer in answers]
    if answers[0][0] == answers[1][0] == "ok":
        shown = difference(answers[0][1], answers[1][1])
    text = f"{case.shown!r} ours {shown[0]} theirs {shown[1]}".replace("\n", " ")
    print(f"DIFFERS {case.kind} {found} {where} | {text}", flush=True)


def short(answer):
    return f"{answer[0]} {answer[1]!r}"[:200]


def difference(ours, theirs):
    """The first elements that differ."""
    if len(ours) != len(theirs):
        return [f"{len(ours)}: {ours!r}"[:300], f"{len(theirs)}: {theirs!r}"[:300]]
    for one, other in zip(ours, theirs):
        if canonical(one) != canonical(other):
            if isinstance(one, list) and isinstance(other, list):
                return difference(one, other)
            return [repr(one)[:300], repr(other)[:300]]
    return ["the same", "the same"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ours")
    parser.add_argument("theirs")
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    ours, theirs = (pymongo.MongoClient(uri) for uri in (asked.ours, asked.theirs))
    counts, left, seed = {}, asked.cases, asked.seed
    while 0 < left:
        left -= compare(ours, theirs, seed, left, counts)
        seed += 1
    for kind, count in sorted(counts.items()):
        print(f"count {kind} {count}")


if __name__ == "__main__":
    main()

"""How differences are judged, with two small models of servers in the place of real ones.

    python3 -m unittest discover --start-directory scripts/compatibility
"""

import unittest

import rules
from judge import COMPOSED, EARLY, Difference, Judge, Unexplained
from questions import Answer, Question, aggregate, find, update
from rules import MISSING


class Refusal(Exception):
    pass


class Model:
    """A server with few operators. Each fault is an argument."""

    def __init__(self, paths=True, elements=True, parallel=True, early=True, wrong=None):
        # Whether paths go through arrays, stages into elements, parallel arrays are refused, and
        # arguments are checked without documents.
        self.paths, self.elements, self.parallel, self.early = paths, elements, parallel, early
        # Changes what an operator gives: a planted fault.
        self.wrong = wrong or (lambda operator, value: value)

    def answer(self, question):
        documents = [dict(document) for document in question.documents]
        spec = question.operation.spec
        try:
            if question.operation.kind == "aggregate":
                for stage in spec["pipeline"]:
                    documents = self.stage(documents, *next(iter(stage.items())))
                return Answer(documents)
            found = self.filter(documents, spec["filter"])
            if question.operation.kind == "update":
                return self.update(documents, found[:1], spec["update"])
            return Answer([self.project(each, spec) for each in self.sort(found, spec["sort"])])
        except Refusal as refusal:
            return Answer(code=refusal.args[0], text=refusal.args[1])

    def project(self, document, spec):
        if not spec["projection"]:
            return document
        return {name: value for name, value in document.items() if name in spec["projection"]}

    def update(self, documents, found, change):
        for document in found:
            for name, value in change["$set"].items():
                document[name] = self.wrong("$set", value)
        return Answer([len(found), len(found), documents])

    def sort(self, documents, sort):
        if self.parallel and any(rules.parallel(document, list(sort)) for document in documents):
            raise Refusal(2, "cannot sort with keys that are parallel arrays")
        for path, order in reversed(sort.items()):
            key = lambda document: str(rules.at_path(document, path.split(".")))
            documents = sorted(documents, key=key, reverse=order < 0)
        return self.wrong("sort", documents)

    def filter(self, documents, filter):
        if self.early:
            self.check(filter)
        return self.wrong("filter", [each for each in documents if self.matches(each, filter)])

    def check(self, filter):
        for condition in filter.values():
            if isinstance(condition, dict) and condition.get("$gt") == "regex":
                raise Refusal(2, "Can't have RegEx as arg to predicate")

    def matches(self, document, filter):
        for path, condition in filter.items():
            if path == "$and":
                if not all(self.matches(document, member) for member in condition):
                    return False
                continue
            self.check({path: condition})
            value = document.get(path)
            if isinstance(condition, dict):
                if not (isinstance(value, int) and value > condition["$gt"]):
                    return False
            elif self.wrong("$eq", value) != condition:
                return False
        return True

    def stage(self, documents, name, spec):
        if name == "$sort":
            return documents
        if name == "$skip":
            return documents[spec:]
        if name == "$match":
            return self.filter(documents, spec)
        if name == "$unset":
            way = rules.without_path if self.elements else without_top
            return [way(document, spec.split(".")) for document in documents]
        if name == "$replaceWith":
            return [self.value(document, spec) for document in documents]
        [(path, expression)] = spec.items()
        way = rules.with_path if self.elements else with_top
        return [
            way(document, path.split("."), self.value(document, expression))
            for document in documents
        ]

    def value(self, document, expression):
        if isinstance(expression, str) and expression.startswith("$"):
            parts = expression[1:].split(".")
            if not self.paths and rules.through_array(document, parts):
                return MISSING
            return self.wrong("path", rules.at_path(document, parts))
        if isinstance(expression, dict) and "$add" in expression:
            values = [self.value(document, operand) for operand in expression["$add"]]
            if any(value is MISSING or value is None for value in values):
                return None
            if any(not isinstance(value, int) for value in values):
                raise Refusal(14, "no number")
            return self.wrong("$add", sum(values))
        if isinstance(expression, dict) and "$isArray" in expression:
            [operand] = expression["$isArray"]
            return self.wrong("$isArray", isinstance(self.value(document, operand), list))
        if isinstance(expression, dict):
            values = {name: self.value(document, each) for name, each in expression.items()}
            return {name: value for name, value in values.items() if value is not MISSING}
        return expression


def with_top(document, parts, value):
    """A `$set` that does not go into arrays."""
    if isinstance(document.get(parts[0]), list) and len(parts) > 1:
        return document
    return rules.with_path(document, parts, value)


def without_top(document, parts):
    if isinstance(document.get(parts[0]), list) and len(parts) > 1:
        return document
    return rules.without_path(document, parts)


DOCUMENTS = [
    {"_id": 0, "a": [{"b": 1}, {"b": 2}, 3], "c": 1},
    {"_id": 1, "a": {"b": 5}, "c": 2},
    {"_id": 2, "c": [4, 5]},
    {"_id": 3, "a": [], "c": [1]},
]


def judge(operation, ours, theirs, documents=DOCUMENTS):
    """The causes of a difference; it must be one."""
    question = Question(documents, operation)
    answers = [server.answer(question) for server in (ours, theirs)]
    assert answers[0] != answers[1], "no difference"
    return Judge(lambda asked: [ours.answer(asked), theirs.answer(asked)]).judge(
        Difference(question, *answers)
    )


def only(operator, change):
    """A fault of one operator."""
    return lambda name, value: change(value) if name == operator else value


class Judged(unittest.TestCase):
    def excused(self, causes, operation, ours, theirs):
        self.assertEqual(judge(operation, ours, theirs), causes)

    def left(self, operation, ours, theirs):
        with self.assertRaises(Unexplained):
            judge(operation, ours, theirs)

    def test_a_path_through_an_array(self):
        operation = aggregate([{"$sort": {"_id": 1}}, {"$set": {"x": "$a.b"}}])
        causes = ["paths through arrays in expressions give arrays"]
        self.excused(causes, operation, Model(), Model(paths=False))
        # The rule counts, and not who breaks it.
        self.left(operation, Model(paths=False), Model())

    def test_a_wrong_value_of_such_a_path_is_ours(self):
        operation = aggregate([{"$sort": {"_id": 1}}, {"$set": {"x": "$a.b"}}])
        for change in (
            lambda value: value[::-1] if isinstance(value, list) else value,
            lambda value: value or MISSING,
            lambda value: MISSING if value == 5 else value,
        ):
            self.left(operation, Model(wrong=only("path", change)), Model(paths=False))

    def test_a_wrong_answer_in_another_part_of_such_an_operation_is_ours(self):
        sums = {"$add": ["$_id", 1]}
        stages = [{"$sort": {"_id": 1}}, {"$set": {"x": "$a.b"}}, {"$set": {"y": sums}}]
        theirs = Model(paths=False)
        causes = ["paths through arrays in expressions give arrays"]
        self.excused(causes, aggregate(stages), Model(), theirs)
        self.left(aggregate(stages), Model(wrong=only("$add", lambda value: value + 1)), theirs)
        # Before the path, and around it.
        self.left(
            aggregate([stages[0], stages[2], stages[1]]),
            Model(wrong=only("$add", lambda value: value + 1)),
            theirs,
        )
        around = [{"$sort": {"_id": 1}}, {"$set": {"x": {"$isArray": ["$a.b"]}}}]
        self.excused(causes, aggregate(around), Model(), theirs)
        wrong = lambda value: False
        around[1] = {"$set": {"x": {"$isArray": ["$c"]}}}
        around.append({"$set": {"y": "$a.b"}})
        self.left(aggregate(around), Model(wrong=only("$isArray", wrong)), theirs)

    def test_stages_that_change_elements(self):
        causes = ["stages change every element of an array on the path"]
        for stage in ({"$set": {"a.b": "$c"}}, {"$unset": "a.b"}):
            operation = aggregate([{"$sort": {"_id": 1}}, stage])
            self.excused(causes, operation, Model(), Model(elements=False))
            self.left(operation, Model(elements=False), Model())
        operation = aggregate([{"$sort": {"_id": 1}}, {"$set": {"a.b": "$c"}}])
        wrong = Model(wrong=only("path", lambda value: 7 if value == 2 else value))
        self.left(operation, wrong, Model(elements=False))

    def test_a_sort_by_parallel_arrays(self):
        both = {"a": 1, "c": 1, "_id": 1}
        operation = find({}, both)
        causes = ["a sort by two arrays at once is refused"]
        self.excused(causes, operation, Model(), Model(parallel=False))
        # No document that is found has two arrays.
        class Hasty(Model):
            def sort(self, documents, sort):
                if 2 < len(sort):
                    raise Refusal(2, "cannot sort with keys that are parallel arrays")
                return super().sort(documents, sort)

        self.left(find({"c": 1}, both), Hasty(), Model())
        # Each sort alone must agree.
        wrong = Model(wrong=only("sort", lambda documents: documents[::-1]))
        self.left(operation, wrong, Model(parallel=False))

    def test_a_refusal_that_no_document_needs(self):
        # The first condition lets nothing through, so that a server that looks at documents only
        # does not come to the second one.
        operation = find({"c": 77, "a": {"$gt": "regex"}}, {"_id": 1})
        self.excused([EARLY], operation, Model(), Model(early=False))
        accepts = Model()
        accepts.check = lambda filter: None
        accepts.matches = lambda document, filter: False
        self.left(operation, Model(), accepts)

    def test_a_wrong_filter_is_ours(self):
        for operation in (find({"c": 1}, {"_id": 1}), update({"c": 1}, {"$set": {"a": 1}})):
            for operator, change in (
                ("$eq", lambda value: 0 if value == 1 else value),
                ("filter", lambda found: found[1:]),
            ):
                self.left(operation, Model(wrong=only(operator, change)), Model())

    def test_a_wrong_update_is_ours(self):
        operation = update({"c": 1}, {"$set": {"a": 1}})
        self.left(operation, Model(wrong=only("$set", lambda value: value + 1)), Model())

    def test_steps_that_the_other_server_confirms_one_by_one(self):
        class Hasty(Model):
            """Forgets a stage of a long pipeline."""

            def answer(self, question):
                spec = question.operation.spec
                if "$set" in str(spec) and 2 < str(spec).count("$s"):
                    spec = {"pipeline": spec["pipeline"][:-1]}
                operation = question.operation._replace(spec=spec)
                return super().answer(Question(question.documents, operation))

        operation = aggregate([{"$sort": {"_id": 1}}, {"$skip": 1}, {"$set": {"x": 1}}])
        self.excused([COMPOSED], operation, Model(), Hasty())


class Rules(unittest.TestCase):
    def test_paths(self):
        document = {"a": [{"b": 1}, 2, [{"b": 3}], {"c": 4}, {"b": [5]}], "d": {"0": 6}, "e": [7]}
        for path, expected in (
            ("a.b", [1, [5]]),
            ("a.x", []),
            ("a.0", []),
            ("d.0", 6),
            ("e.0", []),
            ("e", [7]),
        ):
            self.assertEqual(rules.at_path(document, path.split(".")), expected, path)
        self.assertIs(rules.at_path(document, ["x", "y"]), MISSING)
        self.assertIs(rules.at_path({"a": 1}, ["a", "b"]), MISSING)

    def test_set_and_unset(self):
        document = {"a": [1, {"b": 2, "c": 3}, [4]]}
        expected = {"a": [{"b": 9}, {"b": 9, "c": 3}, [{"b": 9}]]}
        self.assertEqual(rules.with_path(document, ["a", "b"], 9), expected)
        expected = {"a": [1, {"c": 3}, [4]]}
        self.assertEqual(rules.without_path(document, ["a", "b"]), expected)
        self.assertEqual(rules.with_path({"a": 1}, ["a", "b"], MISSING), {"a": {}})

    def test_parallel_arrays(self):
        for document, expected in (
            ({"a": [1], "b": [2]}, True),
            ({"a": [1], "b": 2}, False),
            ({"a": [], "b": [[]]}, True),
        ):
            self.assertEqual(rules.parallel(document, ["a", "b"]), expected, document)
        inner = {"a": [{"b": 1, "c": 2}]}
        self.assertFalse(rules.parallel(inner, ["a.b", "a.c"]))
        self.assertTrue(rules.parallel({"a": [{"b": [1], "c": [2]}]}, ["a.b", "a.c"]))
        self.assertFalse(rules.parallel(inner, ["a", "a.b"]))


if __name__ == "__main__":
    unittest.main()

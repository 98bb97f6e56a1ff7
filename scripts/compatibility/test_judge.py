"""How differences are judged, with two small models of servers in the place of real ones.

    python3 -m unittest discover --start-directory scripts/compatibility
"""

import datetime
import unittest

import causes
import common
import differential
import judge as judging
import rules
from causes import FirstOfEqual, FirstOperator, OnNothing, Sums, Unmodified
from judge import COMPOSED, EARLY, Difference, Judge, Unexplained
from kinds import Rebuilt, Refused
from questions import Answer, Question, aggregate, canonical, find, matching, update
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
    def excused(self, expected, operation, ours, theirs):
        self.assertEqual(judge(operation, ours, theirs), expected)

    def left(self, operation, ours, theirs):
        with self.assertRaises(Unexplained):
            judge(operation, ours, theirs)

    def test_a_path_through_an_array(self):
        operation = aggregate([{"$sort": {"_id": 1}}, {"$set": {"x": "$a.b"}}])
        expected = ["paths through arrays in expressions give arrays"]
        self.excused(expected, operation, Model(), Model(paths=False))
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
        expected = ["paths through arrays in expressions give arrays"]
        self.excused(expected, aggregate(stages), Model(), theirs)
        self.left(aggregate(stages), Model(wrong=only("$add", lambda value: value + 1)), theirs)
        # Before the path, and around it.
        self.left(
            aggregate([stages[0], stages[2], stages[1]]),
            Model(wrong=only("$add", lambda value: value + 1)),
            theirs,
        )
        around = [{"$sort": {"_id": 1}}, {"$set": {"x": {"$isArray": ["$a.b"]}}}]
        self.excused(expected, aggregate(around), Model(), theirs)
        wrong = lambda value: False
        around[1] = {"$set": {"x": {"$isArray": ["$c"]}}}
        around.append({"$set": {"y": "$a.b"}})
        self.left(aggregate(around), Model(wrong=only("$isArray", wrong)), theirs)

    def test_stages_that_change_elements(self):
        expected = ["stages change every element of an array on the path"]
        for stage in ({"$set": {"a.b": "$c"}}, {"$unset": "a.b"}):
            operation = aggregate([{"$sort": {"_id": 1}}, stage])
            self.excused(expected, operation, Model(), Model(elements=False))
            self.left(operation, Model(elements=False), Model())
        operation = aggregate([{"$sort": {"_id": 1}}, {"$set": {"a.b": "$c"}}])
        wrong = Model(wrong=only("path", lambda value: 7 if value == 2 else value))
        self.left(operation, wrong, Model(elements=False))

    def test_a_sort_by_parallel_arrays(self):
        both = {"a": 1, "c": 1, "_id": 1}
        operation = find({}, both)
        expected = ["a sort by two arrays at once is refused"]
        self.excused(expected, operation, Model(), Model(parallel=False))
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


def asked(pairs):
    """Both answers to each question in turn."""
    rest = iter(pairs)
    return lambda question: next(rest)


class Kinds(unittest.TestCase):
    """Each kind excuses what it claims, and nothing where one answer is another one."""

    def setUp(self):
        question = Question([{"_id": 0}], find({}))
        self.ours, self.theirs = Answer([1]), Answer([2])
        self.difference = Difference(question, self.ours, self.theirs, {})

    def verified(self, cause, *pairs, difference=None):
        difference = difference or self.difference
        if not cause.applies(difference):
            return False
        return cause.verify(difference, Judge(asked(pairs))) is not None

    def test_rebuilt(self):
        question = self.difference.question
        cause = Rebuilt("cause", lambda difference: (question, lambda found: [found[0] - 4]))
        five = Answer([5])
        self.assertTrue(self.verified(cause, (five, five)))
        # The reduced step must agree, and our answer must follow from it.
        self.assertFalse(self.verified(cause, (five, Answer([6]))))
        wrong = self.difference._replace(ours=Answer([9]))
        self.assertFalse(self.verified(cause, (five, five), difference=wrong))
        self.assertFalse(self.verified(Rebuilt("cause", lambda difference: None)))

    def test_refused(self):
        refusal = Answer(code=2, text="cannot do this")
        cause = lambda right: Refused(
            "cause", 2, "do this", lambda difference: right, lambda difference: [None]
        )
        refused = self.difference._replace(ours=refusal)
        same = (Answer([1]), Answer([1]))
        self.assertTrue(self.verified(cause(True), same, difference=refused))
        self.assertFalse(self.verified(cause(False), same, difference=refused))
        self.assertFalse(self.verified(cause(True), same))
        for other in (Answer(code=3, text="do this"), Answer(code=2, text="no")):
            wrong = self.difference._replace(ours=other)
            self.assertFalse(self.verified(cause(True), same, difference=wrong))
        apart = (Answer([1]), Answer([2]))
        self.assertFalse(self.verified(cause(True), apart, difference=refused))

    def test_a_condition_on_nothing(self):
        documents = [{"a": []}, {"a": [1]}, {"a": {"b": 1}}]
        parts = {"documents": documents, "path": "a.b", "condition": {"$ne": 1}}
        found = lambda *places: Answer([{"_id": place} for place in places])
        cause = OnNothing("cause")
        difference = Difference(matching(documents, {}), found(0, 1), found(), parts)
        # Of the others, and of arrays that hold nothing.
        self.assertTrue(
            self.verified(cause, (found(0, 1),) * 2, (found(0, 1, 2),) * 2, difference=difference)
        )
        self.assertFalse(
            self.verified(cause, (found(0, 1),) * 2, (found(2),) * 2, difference=difference)
        )
        # A difference in another document.
        wrong = difference._replace(ours=found(0, 1, 2))
        self.assertFalse(self.verified(cause, difference=wrong))

    def test_several_operators_that_fail(self):
        change = {"$inc": {"b": 1}, "$mul": {"a": 1}}
        one, other = Answer(code=1), Answer(code=2)
        question = Question([], update({}, change))
        cause = FirstOperator("cause")
        difference = Difference(question, one, other, {"update": change})
        self.assertTrue(self.verified(cause, (one, one), (other, other), difference=difference))
        self.assertFalse(self.verified(cause, (other, other), (one, one), difference=difference))
        fine = (Answer([1]), Answer([1]))
        self.assertFalse(self.verified(cause, (one, one), fine, difference=difference))

    def test_what_becomes_itself(self):
        documents = [{"_id": 0, "a": 1}]
        parts = {"document": documents[0], "update": {"$inc": {"a": 0}}}
        question = Question(documents, update({"_id": 0}, parts["update"]))
        ours, theirs = Answer([1, 0, documents]), Answer([1, 1, documents])
        cause = Unmodified("cause")
        difference = Difference(question, ours, theirs, parts)
        self.assertTrue(self.verified(cause, (ours, ours), difference=difference))
        self.assertFalse(self.verified(cause, (theirs, theirs), difference=difference))
        changed = Answer([1, 0, [{"_id": 0, "a": 2}]])
        for wrong in (theirs, changed):
            self.assertFalse(self.verified(cause, difference=difference._replace(ours=wrong)))

    def test_equal_values_of_other_types(self):
        group = {"$group": {"_id": "$a", "x": {"$min": "$b"}}}
        parts = {"stages": [group], "documents": []}
        values = Answer([{"_id": 1, "x": [3, 1.0, 1]}])
        question, theirs = Question([], aggregate([group])), Answer([{"_id": 1, "x": 1}])
        for ours, right in ((1.0, True), (3, False)):
            answer = Answer([{"_id": 1, "x": ours}])
            difference = Difference(question, answer, theirs, parts)
            cause = FirstOfEqual("cause")
            found = self.verified(cause, (values, values), difference=difference)
            self.assertEqual(found, right, ours)

    def test_sums(self):
        group = {"$group": {"_id": "$a", "x": {"$sum": "$b"}}}
        parts = {"stages": [group], "documents": []}
        cause = Sums("cause")
        values = Answer([{"_id": 1, "x": [0.1] * 10}])
        question = Question([], aggregate([group]))
        for ours, right in ((1.0, True), (1.1, False), (1, False)):
            answer = Answer([{"_id": 1, "x": ours}])
            difference = Difference(question, answer, Answer([]), parts)
            found = self.verified(cause, (values, values), difference=difference)
            self.assertEqual(found, right, ours)


class Tables(unittest.TestCase):
    def test_a_run_is_counted_by_causes_and_fails_with_one_unexplained_difference(self):
        output = """
count find 7
EXCUSED find seed 1 case 2 | one; other
EXCUSED find seed 1 case 3 | one
"""
        groups, table = differential.judged(output)
        self.assertEqual((groups["find"].executed, groups["find"].unexplained()), (9, []))
        self.assertEqual(table.rows, {"one": [2, 2, 0], "other": [1, 1, 0]})
        text = "DIFFERS find seed 1 case 4 | one | {'filter': {}} | ours 1"
        groups, table = differential.judged(output + text)
        groups["find"].explain()
        self.assertEqual(groups["find"].unexplained(), ["find seed 1 case 4"])
        self.assertEqual(table.rows["one"], [3, 2, 1])
        self.assertIn("| one | 3 | 2 | 1 |", str(table))


class Canonical(unittest.TestCase):
    def test_types_signs_and_order_count(self):
        for one, other in ((1, 1.0), (0.0, -0.0), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), (None, 0)):
            self.assertNotEqual(canonical(one), canonical(other))
        self.assertEqual(canonical([float("nan")]), canonical([float("nan")]))

    def test_dates_of_the_same_moment_are_the_same(self):
        class Zone(datetime.tzinfo):
            def utcoffset(self, _):
                return datetime.timedelta(0)

        moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        self.assertEqual(canonical(moment), canonical(moment.replace(tzinfo=Zone())))


class Documented(unittest.TestCase):
    def test_the_manual_names_each_cause_and_no_other(self):
        page = (common.HERE.parent.parent / "docs" / "compatibility.md").read_text()
        part = page.partition("These are the causes:")[2].partition("\n## ")[0]
        rows = [line.split(" | ")[0].removeprefix("| ") for line in part.strip().splitlines()]
        listed = {cause.name for cause in (*causes.STEPS, *causes.LEAVES, *causes.NODES)}
        self.assertEqual(set(rows[2:]), listed | set(judging.COMPOSED_CAUSES))


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

    def test_whether_a_path_comes_to_anything(self):
        for document, path, expected in (
            ({}, "a.b", True),
            ({"a": 1}, "a.b", True),
            ({"a": []}, "a.b", False),
            ({"a": []}, "a.0", False),
            ({"a": [1]}, "a.0", True),
            ({"a": [1]}, "a.1", False),
            ({"a": [1]}, "a.0.b", False),
            ({"a": [[]]}, "a.0.b", True),
            ({"a": [1, {}]}, "a.b", True),
            ({"a": [[{"b": 1}]]}, "a.b", False),
        ):
            self.assertEqual(rules.yields(document, path.split(".")), expected, (document, path))

    def test_equal_values(self):
        self.assertEqual(rules.same({"a": [1, 2.0]}), rules.same({"a": [1.0, 2]}))
        self.assertEqual(rules.same(float("nan")), rules.same(float("nan")))
        for one, other in (({"a": 1, "b": 1}, {"b": 1, "a": 1}), (True, 1), (None, 0), ("1", 1)):
            self.assertNotEqual(rules.same(one), rules.same(other))

    def test_sums(self):
        self.assertEqual(rules.total([1, 2, "x", True]), (3, "int", 2))
        self.assertEqual(rules.total([2**53, 1.0]), (2**53 + 1, "float", 2))
        self.assertTrue(rules.is_number(0.1, rules.exact(0.1), 15))
        self.assertFalse(rules.is_number(0.1, rules.exact(0.2), 15))
        self.assertTrue(rules.is_number(float("nan"), float("nan"), 15))

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

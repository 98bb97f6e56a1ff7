"""Whether a difference between two servers is excused: its parts are asked again, one by one.

An operation is taken apart into steps: the stages of a pipeline; the filter, sort and projection of
a find; the conditions of a filter; the operators of an expression. Each step is asked of both
servers, on the documents that our server's step before it gave, and

1. what our server answers to its steps must make up what it answered to the whole;
2. the other server must confirm each step, or a cause of `causes.py` must excuse it;
3. a cause judges by both answers to the step, never by the operation's text alone, and is
   verified by a reduced step on which both servers must agree.

So a wrong answer of ours is not hidden by another difference in the same operation. What cannot be
taken apart, or has a step without a cause, is not excused.
"""

import typing

import rules
from apart import (
    Held,
    Unexplained,
    apart,
    atom,
    canonical_all,
    canonical_set,
    compose,
    conditions,
    constant_alone,
    constants,
    differing,
    innermost,
    is_operators,
    leaves,
    orders,
    places,
    roots,
    shown,
    together,
    within,
)
from causes import LEAVES, NODES, STEPS
from questions import Answer, Question, aggregate, find, matching, stages, update
from rules import MISSING

# Causes that are found by taking apart alone.
COMPOSED = "its own steps, one by one, give our answer"
EARLY = "arguments are checked even where no document needs them"
CONSTANT = "constant expressions are computed before documents are read"
FIRST = "the first document that fails decides the error"
LEFT_OUT = "a condition is not computed for documents that another one leaves out"
UNNEEDED = "what no document that is left needs is not computed"
COMPOSED_CAUSES = (COMPOSED, EARLY, CONSTANT, FIRST, LEFT_OUT, UNNEEDED)


class Difference(typing.NamedTuple):
    """A question that two servers answer differently. `parts` is what the step consists of."""

    question: Question
    ours: Answer
    theirs: Answer
    parts: dict = {}


class Judge:
    """`ask` sends a question to both servers and returns both answers."""

    def __init__(self, ask):
        self.ask = ask
        # The cause that was tried last, for the table.
        self.tried = None
        # Whether the stages are in another order than they were asked in.
        self.ordered = False

    def judge(self, difference):
        """The names of the causes of a difference; raises `Unexplained`."""
        self.tried = None
        ways = {"aggregate": self.pipeline, "find": self.find, "update": self.update}
        found = ways[difference.question.operation.kind](difference)
        return sorted(set(found)) or [COMPOSED]

    def by_cause(self, causes, difference):
        """The names of the cause that excuses a difference, or none."""
        for cause in causes:
            if not cause.applies(difference):
                continue
            self.tried = cause.name
            found = cause.verify(difference, self)
            if found is not None:
                return [cause.name, *found]
        return None

    def step(self, causes, question, ours, parts=None, what=""):
        """The causes of one step, none where the other server confirms our answer."""
        answers = self.ask(question)
        if ours is not None and answers[0] != ours:
            raise Unexplained(f"our answer is not that of its steps: {what or question.operation}")
        if answers[0] == answers[1]:
            return []
        difference = Difference(question, *answers, parts or {})
        found = self.by_cause(causes, difference)
        if found is None:
            raise Unexplained(f"{what or question.operation}: {shown(question, answers)}"[:900])
        return found

    # Pipelines.

    def pipeline(self, difference):
        documents, operation = difference.question
        steps = together(operation.spec["pipeline"])
        if not difference.ours.ok:
            for step in steps:
                answer = self.ask(stages([], step))
                if answer[0] == difference.ours:
                    return self.refused(step, answer)
            shorter = self.first_failing(difference, self.pipeline)
            if shorter is not None:
                return shorter
        found, prefix = [], []
        for place, step in enumerate(steps):
            prefix += step
            last = place == len(steps) - 1
            whole = Question(documents, aggregate(prefix))
            ours = difference.ours if last else self.ask(whole)[0]
            if difference.ours.ok and not ours.ok:
                return found + self.unneeded(difference, steps, place, ours)
            into = documents if place == 0 else before
            alone = self.ask(stages(into, step))[0]
            if ours.ok and not alone.ok:
                return found + self.unneeded(difference, steps, place, alone)
            found += self.stage(into, step, ours)
            if not ours.ok:
                if ours != difference.ours:
                    return found + self.unneeded(difference, steps, place, ours)
                break
            before = ours.value
        return found

    def refused(self, step, answers):
        """Our server refuses a stage that no document needs."""
        if answers[1] == answers[0]:
            return [EARLY]
        [(name, spec)] = step[0].items()
        if name == "$match":
            return self.filter([{}], spec, answers[0])
        found = self.constant(spec, answers[0])
        if found is not None:
            return found
        difference = Difference(stages([], step), *answers, {"documents": [], "stages": step})
        found = self.by_cause(STEPS, difference)
        if found is None:
            raise Unexplained(f"{step} refused with {answers[0]!r}, theirs {answers[1]!r}"[:600])
        return found

    def constant(self, spec, error):
        """The causes of an error that a constant within an expression gives, none if none does."""
        for constant in constants(spec):
            alone = self.ask(constant_alone(constant))
            if alone[0] == error:
                beneath = [] if alone[1] == error else self.expression([{}], constant)[0]
                return [CONSTANT, *beneath]
        return None

    def first_failing(self, difference, judge):
        """Documents go through an operation one by one: the first one that fails decides the error.

        Asked of the documents up to that one only, both servers agree, or differ otherwise.
        """
        documents, operation = difference.question
        few, many = 0, len(documents)
        while few + 1 < many:
            middle = (few + many) // 2
            answer = self.ask(Question(documents[:middle], operation))[0]
            few, many = (few, middle) if answer == difference.ours else (middle, many)
        if many == len(documents) or not documents:
            return None
        question = Question(documents[:many], operation)
        answers = self.ask(question)
        if answers[0] != difference.ours:
            return None
        if answers[0] == answers[1]:
            return [FIRST]
        return judge(Difference(question, *answers))

    def unneeded(self, difference, steps, place, failed):
        """Our server does not compute a stage whose result no document needs.

        Verified by moving a later stage before it, or by leaving it out where only a number of
        documents is wanted: both servers agree on our answer.
        """
        documents = difference.question.documents
        ours_only = []
        single = [stage for step in steps for stage in apart(step)]
        for pipeline in orders(single):
            answers = self.ask(Question(documents, aggregate(pipeline)))
            if answers[0] == answers[1] == difference.ours:
                return [UNNEEDED]
            if answers[0] == difference.ours:
                ours_only.append(Difference(Question(documents, aggregate(pipeline)), *answers))
        # The other server differs there, too; but no further order is looked for then.
        for other in ours_only if not self.ordered else ():
            self.ordered = True
            try:
                return [UNNEEDED, *self.pipeline(other)]
            except Unexplained:
                continue
            finally:
                self.ordered = False
        raise Unexplained(f"no order of the stages gives our answer: {failed!r} {steps}"[:600])

    def stage(self, documents, step, ours):
        """One stage, or two that belong together."""
        question = stages(documents, step)
        answers = self.ask(question)
        if answers[0] != ours:
            raise Unexplained(f"our stage gives {answers[0]!r}, in its pipeline {ours!r}"[:600])
        if answers[1] == ours:
            return []
        difference = Difference(question, *answers, {"documents": documents, "stages": step})
        found = self.by_cause(STEPS, difference)
        if found is not None:
            return found
        if "$sort" in step[-1] and "$group" in step[0]:
            return self.grouped(documents, step, ours)
        [(name, spec)] = step[0].items()
        if name == "$match" and len(step) == 1:
            return self.filter(documents, spec, places(documents, ours))
        if name in ("$set", "$project", "$replaceWith", "$group"):
            return self.expressions(documents, step, ours)
        raise Unexplained(f"{step}: ours {ours!r} theirs {answers[1]!r}"[:600])

    def grouped(self, documents, step, ours):
        """Groups, which come in any order, and then their sort."""
        groups = self.ask(stages(documents, step[:1]))
        if not groups[0].ok:
            if groups[0] != ours:
                raise Unexplained(f"{step}: our groups give {groups[0]!r}, with a sort {ours!r}")
            return self.expressions(documents, step[:1], ours)
        found = []
        if canonical_set(groups[0]) != canonical_set(groups[1]):
            found += self.expressions(documents, step[:1], groups[0])
        order = step[1]["$sort"]
        placed = [
            {"_id": place, **{f"k{name}": value for name, value in group.items()}}
            for place, group in enumerate(groups[0].value)
        ]
        renamed = {f"k{name}": way for name, way in order.items()}
        question = Question(placed, find({}, renamed))
        answers = self.ask(question)
        whole = answers[0]
        if whole.ok:
            whole = Answer([groups[0].value[each["_id"]] for each in whole.value])
        if whole != ours:
            raise Unexplained(f"{step}: sorted apart {whole!r}, together {ours!r}"[:600])
        return found + self.step(STEPS, question, None, {"sort": renamed})

    # Expressions.

    def expressions(self, documents, step, ours):
        """A stage by the values of its expressions, which are put into fields."""
        found = []
        held = Held(documents)
        failed = None

        def put(expression):
            nonlocal failed
            if atom(expression):
                return expression
            inner, values = self.expression(documents, expression)
            found.extend(inner)
            if isinstance(values, Answer):
                failed = failed or values
                return expression
            return held.put(values)

        replaced = [roots(step[0], put), *step[1:]]
        if failed is not None:
            if failed != ours:
                raise Unexplained(f"{step}: its expression gives {failed!r}, the stage {ours!r}")
            return found
        if "$set" in replaced[0]:
            replaced.append({"$unset": "held"})
        parts = {"documents": held.documents, "stages": replaced}
        return found + self.step(STEPS, stages(held.documents, replaced), ours, parts)

    def values(self, documents, expression):
        """What an expression gives for each document, on our server; or its error."""
        answer = self.ask(stages(documents, [{"$replaceWith": {"v": expression}}]))[0]
        if not answer.ok:
            return answer
        return [document.get("v", MISSING) for document in answer.value]

    def expression(self, documents, expression):
        """The causes within an expression, and its values or its error on our server."""
        values = self.values(documents, expression)
        if isinstance(values, Answer):
            return self.failing(documents, expression, values), values
        found, operands = [], []

        def put(operand):
            if atom(operand):
                operands.append(operand)
                return operand
            inner, each = self.expression(documents, operand)
            found.extend(inner)
            if isinstance(each, Answer):
                # Not needed where it fails; whether that is so, the whole shows.
                each = self.one_by_one(documents, operand)
            operands.append(each)
            return held.put(each)

        held = Held([{} for _ in documents])
        if isinstance(expression, str):
            return self.path(documents, expression, values), values
        node = within(expression, put)
        question = stages(held.documents, [{"$replaceWith": {"v": node}}])
        ours = Answer([{} if value is MISSING else {"v": value} for value in values])
        parts = {"documents": held.documents, "node": node, "operands": operands, "values": values}
        return found + self.step(NODES, question, ours, parts, f"{node}"), values

    def path(self, documents, path, values):
        """A path of its own."""
        question = stages(documents, [{"$replaceWith": {"v": path}}])
        answers = self.ask(question)
        if answers[0] == answers[1]:
            return []
        rule = [rules.at_path(document, path[1:].split(".")) for document in documents]
        if path.startswith("$$") or canonical_all(rule) != canonical_all(values):
            raise Unexplained(f"the path {path} gives {values}, by the rule {rule}"[:600])
        return ["paths through arrays in expressions give arrays"]

    def one_by_one(self, documents, expression):
        values = []
        for document in documents:
            answer = self.values([document], expression)
            values.append(MISSING if isinstance(answer, Answer) else answer[0])
        return values

    def failing(self, documents, expression, error):
        """Where in an expression our server fails: both must fail there, or a cause says why."""
        for document in documents:
            alone = self.values([document], expression)
            if isinstance(alone, Answer):
                break
        else:
            raise Unexplained(f"{expression} fails with all documents and with none alone")
        if alone != error:
            raise Unexplained(f"{expression} fails with {alone!r} alone, with all by {error!r}")
        inner = []
        within(expression, lambda operand: inner.append(operand) or operand)
        held, found = Held([{}]), []
        for operand in inner:
            if not atom(operand):
                values = self.values([document], operand)
                if isinstance(values, Answer) and values == error:
                    return self.failing([document], operand, error)

        def put(operand):
            if atom(operand):
                return operand
            values = self.values([document], operand)
            if isinstance(values, Answer):
                values = [MISSING]
            else:
                found.extend(self.expression([document], operand)[0])
            return held.put(values)

        node = within(expression, put)
        question = stages(held.documents, [{"$replaceWith": {"v": node}}])
        parts = {"documents": held.documents, "node": node, "operands": [], "values": None}
        step = self.step(NODES, question, alone, parts, f"{node}")
        return found + (step or [COMPOSED])

    # Filters.

    def filter(self, documents, filter, ours):
        """A filter by its conditions; `ours` are the places of what is found, or an error."""
        found = []
        if isinstance(ours, Answer):
            for path, condition in innermost(filter):
                for these in ([{}], documents):
                    answers = self.ask(matching(these, {path: condition}))
                    if answers[0] == answers[1] == ours:
                        return [EARLY]
            for path, condition in leaves(filter):
                found = self.constant(condition, ours) if path == "$expr" else None
                if found is not None:
                    return found
                if self.ask(matching(documents, {path: condition}))[0] == ours:
                    return self.leaf(documents, path, condition)[0]
            raise Unexplained(f"{filter}: no condition alone gives {ours!r}")

        def holds(path, condition):
            causes, matched = self.leaf(documents, path, condition)
            if matched is None:
                return self.left_out(documents, path, condition, found)
            found.extend(causes)
            return matched

        total = compose(filter, set(range(len(documents))), holds)
        if total != set(ours):
            raise Unexplained(f"{filter}: found {ours}, by its conditions {sorted(total)}"[:600])
        return found

    def left_out(self, documents, path, condition, found):
        """What a condition finds that fails for documents that other conditions leave out."""
        good = [
            place
            for place, document in enumerate(documents)
            if self.ask(matching([document], {path: condition}))[0].ok
        ]
        causes, matched = self.leaf([documents[place] for place in good], path, condition)
        found.extend([*causes, LEFT_OUT])
        return {good[place] for place in matched}

    def leaf(self, documents, path, condition):
        """The causes of one condition, and the places that our server finds by it."""
        question = matching(documents, {path: condition})
        answers = self.ask(question)
        matched = {document["_id"] for document in answers[0].value} if answers[0].ok else None
        if answers[0] == answers[1]:
            return [], matched
        parts = {"documents": documents, "path": path, "condition": condition}
        difference = Difference(question, *answers, parts or {})
        found = self.by_cause(LEAVES, difference)
        if found is None and path == "$expr":
            found, values = self.expression(documents, condition)
            if not isinstance(values, Answer):
                held = Held([{} for _ in documents])
                name = held.put(values)
                again = self.ask(matching(held.documents, {"$expr": name}))
                if not answers[0] == again[0] == again[1]:
                    raise Unexplained(f"$expr of {values}: {again}"[:600])
            elif values != answers[0]:
                raise Unexplained(f"$expr {condition}: {values!r}")
        if found is None:
            shown = differing(documents, answers)
            raise Unexplained(f"filter {path!r}: {condition!r}: {shown}"[:900])
        return found, matched

    # Finds.

    def find(self, difference):
        documents, operation = difference.question
        parts = ("filter", "sort", "projection")
        filter, sort, projection = (operation.spec[part] for part in parts)
        ours = difference.ours
        if not ours.ok:
            shorter = self.first_failing(difference, self.find)
            if shorter is not None:
                return shorter
        matched = self.ask(matching(documents, filter))
        if not matched[0].ok:
            if matched[0] != ours:
                raise Unexplained(f"find fails with {ours!r}, its filter with {matched[0]!r}")
            return self.filter(documents, filter, ours)
        place = [document["_id"] for document in matched[0].value]
        found = [] if matched[0] == matched[1] else self.filter(documents, filter, place)
        chosen = [documents[each] for each in place]
        sorted_ones = Question(chosen, find({}, sort))
        answers = self.ask(sorted_ones)
        if not answers[0].ok:
            return found + self.step(STEPS, sorted_ones, ours, {"sort": sort})
        found += self.step(STEPS, sorted_ones, None, {"sort": sort})
        projected = Question(chosen, find({}, {"_id": 1}, projection))
        answers_projected = self.ask(projected)
        if answers_projected[0].ok:
            by_id = {document["_id"]: document for document in answers_projected[0].value}
            whole = Answer([by_id[document["_id"]] for document in answers[0].value])
            if whole != ours:
                raise Unexplained(f"our answer is not that of its steps: {whole!r}"[:600])
        return found + self.step(STEPS, projected, None, {"projection": projection})

    # Updates.

    def update(self, difference):
        documents, operation = difference.question
        filter, change = operation.spec["filter"], operation.spec["update"]
        ours = difference.ours
        for condition in change.get("$pull", {}).values():
            if not ours.ok and is_operators(condition):
                alone = self.ask(matching([{}], {"e": condition}))
                if alone[0] == alone[1] == ours:
                    return [EARLY]
        matched = self.ask(matching(documents, filter))
        if ours.ok and not matched[0].ok:
            # No document behind the one that is updated is looked at.
            for many in range(1, len(documents)):
                matched = self.ask(matching(documents[:many], filter))
                if not matched[0].ok or matched[0].value:
                    break
            documents = documents[:many]
        if not matched[0].ok:
            if matched[0] != ours:
                raise Unexplained(f"update gives {ours!r}, its filter {matched[0]!r}"[:600])
            return self.filter(documents, filter, ours)
        place = [document["_id"] for document in matched[0].value]
        found = [] if matched[0] == matched[1] else self.filter(documents, filter, place)
        one = {"_id": place[0]} if place else {"_id": -1}
        question = Question(difference.question.documents, update(one, change))
        parts = {"document": documents[place[0]] if place else None, "update": change}
        return found + self.step(STEPS, question, ours, parts)

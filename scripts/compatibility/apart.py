"""Taking operations, stages, expressions and filters apart, and showing what differs."""

from questions import canonical, stages
from rules import MISSING


class Unexplained(Exception):
    """No cause fits; the text says which step is left."""


def together(pipeline):
    """The stages, those in one list whose order or use is of the stage before."""
    steps = [pipeline[:1]]
    for place, stage in enumerate(pipeline[1:]):
        if "$group" in pipeline[place] and "$count" not in stage:
            steps[-1].append(stage)
        else:
            steps.append([stage])
    return steps


def apart(step):
    """The stages of a step, with a stage for each condition of a filter."""
    for stage in step:
        match = stage.get("$match")
        if match:
            yield from ({"$match": {path: condition}} for path, condition in match.items())
        else:
            yield stage


def orders(pipeline):
    """Pipelines that give the same by the rules of MongoDB's optimizer."""
    for place, stage in enumerate(pipeline):
        for before in range(place):
            if all(movable(stage, over) for over in pipeline[before:place]):
                yield [*pipeline[:before], stage, *pipeline[before:place], *pipeline[place + 1 :]]
        rest = pipeline[place + 1 :]
        if rest and "$limit" in stage and stage["$limit"] <= rest[0].get("$skip", 0):
            # Of which no document is left, wherever they stand.
            yield [stage, rest[0], *pipeline[:place], *rest[1:]]
        if counts(rest) and next(iter(stage)) in ONE_TO_ONE:
            yield pipeline[:place] + rest
        for changed in without_computed(stage, rest):
            yield [*pipeline[:place], *changed, *rest]


# Stages that give one document for each, in the same order.
ONE_TO_ONE = ("$set", "$project", "$unset", "$replaceWith")


def movable(stage, over):
    """Whether a stage may be moved before another one."""
    [(name, spec)], [(other, changed)] = stage.items(), over.items()
    if name in ("$limit", "$skip"):
        return other in ONE_TO_ONE
    if name == "$match" and other == "$project":
        return all(changed.get(path.split(".")[0]) == 1 for path in spec)
    if name != "$match" or other not in ("$match", "$set", "$unset", "$unwind", "$sort"):
        return False
    if other in ("$match", "$sort"):
        return True
    written = changed["path"][1:] if other == "$unwind" else changed
    names = [written] if isinstance(written, str) else list(written)
    first = {name.split(".")[0] for name in names}
    return not any(path.startswith("$") or path.split(".")[0] in first for path in spec)


def without_computed(stage, rest):
    """The stage without a field that is computed and that no stage behind it reads."""
    [(name, spec)] = stage.items()
    field = {"$set": None, "$project": "x", "$replaceWith": "v"}.get(name, "")
    if field == "":
        return
    field = field or next(iter(spec)).split(".")[0]
    hidden = False
    for later in rest:
        [(other, inner)] = later.items()
        hidden = other in ("$count", "$group", "$project", "$replaceWith")
        if reads(inner, field) or other in ("$match", "$sort") and any(
            path.split(".")[0] == field for path in inner
        ):
            return
        if hidden:
            break
    if hidden and name == "$set":
        yield []
    elif hidden:
        kept = {path: value for path, value in spec.items() if path != field}
        yield [{name: kept}]


def reads(expression, field):
    """Whether an expression has a path that begins with a field."""
    if isinstance(expression, dict):
        if "$literal" in expression:
            return False
        return any(reads(inner, field) for inner in expression.values())
    if isinstance(expression, list):
        return any(reads(inner, field) for inner in expression)
    return isinstance(expression, str) and expression.lstrip("$").split(".")[0] == field


def counts(rest):
    """Whether these stages want nothing of documents but their number."""
    names = [next(iter(stage)) for stage in rest]
    others = [name for name in names if name not in (*ONE_TO_ONE, "$skip", "$limit")]
    return others[:1] == ["$count"]


def atom(expression):
    """Whether an expression is a constant, a variable, or a field that holds an operand."""
    if isinstance(expression, str):
        return not expression.startswith("$") or expression.startswith(("$$", "$held."))
    if isinstance(expression, dict):
        return "$literal" in expression
    return not isinstance(expression, list)


class Held:
    """Documents to which values are added, in fields of their own."""

    def __init__(self, documents):
        self.documents = [dict(document) for document in documents]
        self.names = 0

    def put(self, values):
        """The path of a new field with a value for each document."""
        name, self.names = f"h{self.names}", self.names + 1
        for document, value in zip(self.documents, values):
            if value is not MISSING:
                document["held"] = {**document.get("held", {}), name: value}
        return f"$held.{name}"


def roots(stage, put):
    """A stage with its expressions replaced."""
    [(name, spec)] = stage.items()
    if name == "$replaceWith":
        return {name: {field: put(value) for field, value in spec.items()}}
    if name == "$group":
        changed = {"_id": put(spec["_id"])}
        for field, accumulator in spec.items():
            if field != "_id":
                [(operator, operand)] = accumulator.items()
                changed[field] = {operator: put(operand)}
        return {name: changed}
    return {name: {field: put(value) for field, value in spec.items()}}


def within(expression, put):
    """An operator with its operands replaced."""
    [(name, operand)] = expression.items()
    if name == "$filter":
        [(compare, (this, value))] = operand["cond"].items()
        return {name: {"input": put(operand["input"]), "cond": {compare: [this, put(value)]}}}
    if name == "$map":
        inner = {field: put(value) for field, value in operand["in"].items()}
        return {name: {"input": put(operand["input"]), "in": inner}}
    if name == "$switch":
        branches = [
            {"case": put(branch["case"]), "then": put(branch["then"])}
            for branch in operand["branches"]
        ]
        return {name: {"branches": branches, "default": put(operand["default"])}}
    if name == "$in":
        value, members = operand
        return {name: [put(value), [put(member) for member in members]]}
    if name == "$mergeObjects":
        value, other = operand
        return {name: [put(value), {field: put(inner) for field, inner in other.items()}]}
    if isinstance(operand, list):
        return {name: [put(each) for each in operand]}
    return {name: put(operand)}


def leaves(filter):
    """The conditions of a filter, each on one path with one operator."""
    for path, condition in filter.items():
        if path in ("$and", "$or", "$nor"):
            for member in condition:
                yield from leaves(member)
        else:
            yield from ((path, one) for one in conditions(path, condition))


def innermost(filter):
    """The conditions of a filter and those within them, each on its own."""
    for path, condition in leaves(filter):
        yield path, condition
        inner = condition if isinstance(condition, dict) else {}
        if isinstance(inner.get("$not"), dict):
            yield from innermost({path: inner["$not"]})
        match = inner.get("$elemMatch")
        if isinstance(match, dict):
            yield from innermost({path: match} if is_operators(match) and not any(
                name in match for name in ("$and", "$or", "$nor")) else match)


def constants(expression):
    """The operators without a path or a variable in them, the innermost first."""
    if isinstance(expression, dict):
        if "$literal" in expression:
            return
        for inner in expression.values():
            yield from constants(inner)
        if all(name.startswith("$") for name in expression) and not has_path(expression):
            yield expression
    elif isinstance(expression, list):
        for inner in expression:
            yield from constants(inner)


def has_path(expression):
    if isinstance(expression, dict):
        return "$literal" not in expression and any(map(has_path, expression.values()))
    if isinstance(expression, list):
        return any(map(has_path, expression))
    return isinstance(expression, str) and expression.startswith("$")


def constant_alone(expression):
    return stages([{}], [{"$replaceWith": {"v": expression}}])


def conditions(path, condition):
    if path == "$expr" or not is_operators(condition) or "$regex" in condition:
        return [condition]
    return [{name: operand} for name, operand in condition.items()]


def is_operators(condition):
    return isinstance(condition, dict) and bool(condition) and next(iter(condition)).startswith("$")


def compose(filter, everything, holds):
    """What a filter finds, from what its conditions find."""
    total = set(everything)
    for path, condition in filter.items():
        if path in ("$and", "$or", "$nor"):
            each = [compose(member, everything, holds) for member in condition]
            if path == "$and":
                total &= set.intersection(*each)
            elif path == "$or":
                total &= set.union(*each)
            else:
                total -= set.union(*each)
        else:
            for one in conditions(path, condition):
                total &= holds(path, one)
    return total


def places(documents, answer):
    """The places of the documents that a stage has let through in their order."""
    if not answer.ok:
        return answer
    found, place = [], 0
    texts = [canonical(document) for document in documents]
    for document in answer.value:
        wanted = canonical(document)
        while place < len(texts) and texts[place] != wanted:
            place += 1
        if place == len(texts):
            raise Unexplained("a filter gives what was not put in")
        found.append(place)
        place += 1
    return found


def canonical_set(answer):
    """An answer whose order does not count."""
    return sorted(map(repr, map(canonical, answer.value))) if answer.ok else repr(answer)


def canonical_all(values):
    return [value if value is MISSING else canonical(value) for value in values]


def shown(question, answers):
    """Both answers; of lists, one for each document, those that differ first."""
    ours, theirs = answers
    if not (ours.ok and theirs.ok) or len(ours.value) != len(theirs.value):
        return f"ours {ours!r:.300} theirs {theirs!r:.300}"
    for place, (one, other) in enumerate(zip(ours.value, theirs.value)):
        if canonical(one) != canonical(other):
            same = len(question.documents) == len(ours.value)
            document = question.documents[place] if same else ""
            return f"{document} ours {one!r:.300} theirs {other!r:.300}"
    return ""


def differing(documents, answers):
    """Both answers to a condition, and the first documents that only one of them holds."""
    if not (answers[0].ok and answers[1].ok):
        return f"ours {answers[0]!r} theirs {answers[1]!r}"
    ours, theirs = ({document["_id"] for document in answer.value} for answer in answers)
    only = [("ours", ours - theirs), ("theirs", theirs - ours)]
    return "; ".join(
        f"only {who}: {documents[each]}" for who, of in only for each in sorted(of)[:2]
    )

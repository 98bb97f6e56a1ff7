"""Operations, the documents they are sent to, and answers.

Nothing here needs a driver: values are compared by the names of their types and their text, so the
rules by which differences are judged can be tested without one.
"""

import typing


class Operation(typing.NamedTuple):
    kind: str
    spec: dict


def find(filter, sort=None, projection=None):
    return Operation("find", {"filter": filter, "sort": sort or {}, "projection": projection})


def aggregate(pipeline):
    return Operation("aggregate", {"pipeline": pipeline})


def update(filter, change):
    """Of one document; the answer holds the counts and the collection afterwards."""
    return Operation("update", {"filter": filter, "update": change})


class Question(typing.NamedTuple):
    """An operation on a collection that holds these documents, which have `_id`s in order."""

    documents: list
    operation: Operation


def stages(documents, pipeline):
    """A pipeline on documents that a stage before it has given: `_id`s may miss or repeat."""
    wrapped = [{"_id": place, "d": document} for place, document in enumerate(documents)]
    return Question(wrapped, aggregate([{"$sort": {"_id": 1}}, {"$replaceWith": "$d"}, *pipeline]))


def matching(documents, filter):
    """The places of the documents that a filter finds, as the `_id`s of the answer."""
    placed = [{**document, "_id": place} for place, document in enumerate(documents)]
    return Question(placed, find(filter, {"_id": 1}, {"_id": 1}))


class Answer:
    """What a server answers: a list, or the code and the text of an error."""

    def __init__(self, value=None, code=None, text=""):
        self.value, self.code, self.text = value, code, text
        self.ok = value is not None

    def __eq__(self, other):
        if self.ok != other.ok:
            return False
        if self.ok:
            return canonical(self.value) == canonical(other.value)
        return self.code == other.code

    def __repr__(self):
        return f"ok {self.value!r}" if self.ok else f"error {self.code} {self.text}"


def canonical(value):
    """What is equal for equal values: types, signs of zeros and the order of fields count."""
    if isinstance(value, dict):
        return "document", tuple((name, canonical(inner)) for name, inner in value.items())
    if isinstance(value, (list, tuple)):
        return "array", tuple(canonical(inner) for inner in value)
    return scalar(value)


def scalar(value):
    """The type and the text of a value, the same for what is sent and what a driver returns."""
    name = type(value).__name__
    if name == "Binary" and value.subtype == 0:
        return "bytes", repr(bytes(value))
    if name == "Regex":
        return name, f"{value.pattern!r} {int(value.flags)}"
    if name == "datetime":
        return name, value.isoformat()
    return name, repr(value)

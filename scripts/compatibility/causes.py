"""What is known of the other server: where it differs from MongoDB, and how that is verified.

A cause excuses a difference only as its kind (`kinds.py`) says: by both answers, and by a reduced
step on which both servers agree. `docs/compatibility.md` has MongoDB's rule for each.
"""

import rules
from kinds import Alike, Rebuilt, Refused
from questions import Question, canonical, find, matching, stages, update

PATHS = "paths through arrays in expressions give arrays"
ELEMENTS = "stages change every element of an array on the path"
PARALLEL = "a sort by two arrays at once is refused"


def held(documents, expression):
    """An expression whose paths through arrays are replaced by fields that hold their values.

    None where no document has an array on such a path.
    """
    changed = [dict(document) for document in documents]
    names = {}

    def put(value):
        if isinstance(value, dict):
            if "$literal" in value:
                return value
            return {name: put(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [put(inner) for inner in value]
        if not isinstance(value, str) or value[:1] != "$" or value[:2] == "$$" or "." not in value:
            return value
        parts = value[1:].split(".")
        if not any(rules.through_array(document, parts) for document in documents):
            return value
        if value not in names:
            names[value] = f"p{len(names)}"
            for document, original in zip(changed, documents):
                found = rules.at_path(original, parts)
                if found is not rules.MISSING:
                    document.setdefault("paths", {})[names[value]] = found
        return f"$paths.{names[value]}"

    replaced = put(expression)
    return (changed, replaced) if names else None


def stage_by_paths(difference):
    """A stage, with the values of paths through arrays in fields of their own."""
    if "stages" not in (difference.parts or {}):
        return None
    name = next(iter(difference.parts["stages"][0]))
    if name in ("$match", "$unset", "$unwind", "$sort"):
        return None
    step = difference.parts["stages"]
    made = held(difference.parts["documents"], step[0])
    if made is None:
        return None
    documents, stage = made
    keeps = [{"$unset": "paths"}] if name == "$set" else []
    return stages(documents, [stage, *keeps, *step[1:]]), lambda value: value


def leaf_by_paths(difference):
    """A condition `$expr`, likewise."""
    parts = difference.parts
    if parts.get("path") != "$expr":
        return None
    made = held(parts["documents"], parts["condition"])
    if made is None:
        return None
    return matching(made[0], {"$expr": made[1]}), lambda value: value


def set_by_elements(difference):
    """`$set` of a path, from the values that it sets."""
    parts = difference.parts
    step = (parts or {}).get("stages", [{}])[0]
    if "$set" not in step or len(parts["stages"]) > 1 or not parts["documents"]:
        return None
    [(path, value)] = step["$set"].items()
    if "." not in path:
        return None
    names = path.split(".")

    def rebuild(found):
        values = [each.get("v", rules.MISSING) for each in found]
        return [
            rules.with_path(document, names, value)
            for document, value in zip(parts["documents"], values)
        ]

    documents, value = held(parts["documents"], value) or (parts["documents"], value)
    return stages(documents, [{"$replaceWith": {"v": value}}]), rebuild


def unset_by_elements(difference):
    """`$unset` of a path: each element of an array on it loses the field."""
    parts = difference.parts
    step = (parts or {}).get("stages", [{}])[0]
    if "$unset" not in step or len(parts["stages"]) > 1 or "." not in step["$unset"]:
        return None
    names = step["$unset"].split(".")
    if not any(rules.through_array(document, names) for document in parts["documents"]):
        return None

    plain = [each for each in parts["documents"] if not rules.through_array(each, names)]

    def rebuild(found):
        rest = iter(found)
        return [
            rules.without_path(document, names)
            if rules.through_array(document, names)
            else next(rest)
            for document in parts["documents"]
        ]

    return stages(plain, [step]), rebuild


def sort_is_parallel(difference):
    sort = (difference.parts or {}).get("sort")
    if not sort:
        return False
    documents = difference.question.documents
    return any(rules.parallel(document, list(sort)) for document in documents)


def sort_by_each(difference):
    """The same documents, sorted by each of the paths alone."""
    documents = difference.question.documents
    for path, order in difference.parts["sort"].items():
        yield Question(documents, find({}, {path: order, "_id": 1}))


# Nodes: one operator, whose operands are fields `$held.hN` or constants.


def value_of(operand, document):
    """The value of an operand, for a document that holds it."""
    if isinstance(operand, dict) and "$literal" in operand:
        return operand["$literal"]
    if isinstance(operand, str) and operand.startswith("$"):
        return rules.at_path(document, operand[1:].split("."))
    return operand


def node_of(difference, *names):
    """The operator and the operands, if it is one of these."""
    [(name, operands)] = difference.parts["node"].items()
    return operands if name in names else None


def ask_node(documents, node):
    return stages(documents, [{"$replaceWith": {"v": node}}])


def is_nullish(value):
    return value is rules.MISSING or value is None


def kind_of(value):
    return type(value).__name__


NUMBERS = ("int", "Int64", "float", "Decimal128")
# The error of MongoDB for an input that is no array.
NO_ARRAY = {"$map": 16883, "$filter": 28651}


def input_is_no_array(difference):
    """Both servers refuse an input that is no array, the other one with no error of its own."""
    [(name, operands)] = difference.parts["node"].items()
    if name not in NO_ARRAY or difference.ours.code != NO_ARRAY[name] or difference.theirs.ok:
        return False
    if "Rust server" not in difference.theirs.text:
        return False
    found = [value_of(operands["input"], each) for each in difference.parts["documents"]]
    return not is_nullish(found[0]) and not isinstance(found[0], list)


def input_is_empty(difference):
    [(name, operands)] = difference.parts["node"].items()
    yield ask_node(difference.parts["documents"], {name: {**operands, "input": []}})


def merges_no_document(difference):
    operands = node_of(difference, "$mergeObjects")
    if operands is None:
        return False
    found = value_of(operands[0], difference.parts["documents"][0])
    return not is_nullish(found) and not isinstance(found, dict)


def merge_a_document(difference):
    operands = node_of(difference, "$mergeObjects")
    yield ask_node(difference.parts["documents"], {"$mergeObjects": [{}, operands[1]]})


def wrong_before_null(difference):
    """An operand of the wrong type comes before one that is null, which the other server sees."""
    operands = node_of(difference, "$add", "$multiply")
    if operands is None or not difference.theirs.ok:
        return False
    found = [value_of(operand, difference.parts["documents"][0]) for operand in operands]
    types = NUMBERS + (("datetime",) if "$add" in difference.parts["node"] else ())
    return kind_of(found[0]) not in types and not is_nullish(found[0]) and is_nullish(found[1])


def wrong_before_one(difference):
    [(name, operands)] = difference.parts["node"].items()
    yield ask_node(difference.parts["documents"], {name: [operands[0], 1]})


def replaced(difference, operands, instead):
    """The documents, in which operands that are missing hold another value."""
    documents = []
    for document in difference.parts["documents"]:
        values = [value_of(operand, document) for operand in operands]
        holder = dict(document.get("held", {}))
        for operand, value in zip(operands, values):
            if value is rules.MISSING:
                holder[operand.rpartition(".")[2]] = instead(values)
        documents.append({"held": holder})
    return documents


def missing_of_comparison(difference):
    """What is missing sorts after the least key and before null: the least key is put there.

    Where the other operand is the least key itself, null is.
    """
    node, operands = difference.parts["node"], node_of(difference, "$cmp", "$eq", "$lt")
    if node_of(difference, "$filter"):
        filter = node_of(difference, "$filter")
        [bound] = [each for each in filter["cond"]["$gt"] if each != "$$this"]
        operands = [bound]
    if operands is None:
        return None
    documents = difference.parts["documents"]
    if not any(value_of(each, document) is rules.MISSING for each in operands for document in documents):
        return None
    from bson import MinKey

    def instead(values):
        return None if any(kind_of(value) == "MinKey" for value in values) else MinKey()

    return ask_node(replaced(difference, operands, instead), node), lambda found: found


def missing_of_in(difference):
    """What is missing equals no member: a text that no member is is put there."""
    operands = node_of(difference, "$in")
    if operands is None:
        return None
    documents = difference.parts["documents"]
    value = operands[0]
    if not any(value_of(value, document) is rules.MISSING for document in documents):
        return None
    changed = replaced(difference, [value], lambda values: "no member")
    return ask_node(changed, difference.parts["node"]), lambda found: found


# Groups.


def pushed(difference, accumulator):
    """The groups with the values themselves, in the place of what is made of them."""
    step = (difference.parts or {}).get("stages", [{}])[0]
    if "$group" not in step:
        return None
    names = [name for name, spec in step["$group"].items() if name != "_id" and accumulator in spec]
    if not names or not (difference.ours.ok and names != ["n"]):
        return None
    name = names[-1]
    operand = step["$group"][name][accumulator]
    changed = {**step["$group"], name: {"$push": operand}}
    return name, stages(difference.parts["documents"], [{"$group": changed}])


class Sums(Rebuilt):
    """Both answers are the same but for sums, and ours are those of the values, added exactly."""

    def applies(self, difference):
        return self.accumulator(difference) is not None

    def accumulator(self, difference):
        for accumulator in ("$sum", "$avg"):
            made = pushed(difference, accumulator)
            if made is not None:
                return accumulator, *made
        return None

    def verify(self, difference, judge):
        accumulator, name, question = self.accumulator(difference)
        groups = [list_of(answer) for answer in judge.ask(question)]
        if None in groups or groups[0].keys() != groups[1].keys():
            return None
        if any(canonical(groups[0][key]) != canonical(groups[1][key]) for key in groups[0]):
            return None
        found = list_of(difference.ours)
        if found is None or found.keys() != groups[0].keys():
            return None
        right = all(
            self.right(accumulator, found[key].get(name), group.get(name, []))
            and canonical({**found[key], name: 0}) == canonical({**group, name: 0})
            for key, group in groups[0].items()
        )
        return [] if right else None

    def right(self, accumulator, value, values):
        expected, widest, count = rules.total(values)
        digits = 34 if widest == "Decimal128" else 15
        if accumulator == "$avg":
            if not count:
                return value is None
            expected = expected / count
            widest = widest if widest == "Decimal128" else "float"
        elif widest in ("int", "Int64") and not -(2**63) <= expected < 2**63:
            widest = "float"
        elif widest == "int" and not -(2**31) <= expected < 2**31:
            widest = "Int64"
        return kind_of(value) == widest and rules.is_number(value, expected, digits)


def list_of(answer):
    """Groups by what they are grouped by; none of an error."""
    return {repr(canonical(group.get("_id"))): group for group in answer.value} if answer.ok else None


def set_of_values(difference):
    """A set has no two equal members, and what is missing is none."""
    step = (difference.parts or {}).get("stages", [{}])
    if "$addToSet" not in str(step[0]) or "$group" not in step[0] or len(step) != 2:
        return None
    operand = step[0]["$group"]["all"]["$addToSet"]
    question = stages(difference.parts["documents"], [{"$group": {"_id": None, "all": {"$push": operand}}}])

    def rebuild(found):
        return [{"_id": None, "n": len({rules.same(value) for value in each["all"]})} for each in found]

    return question, rebuild


# Conditions of filters.


def empty_on_path(document, parts):
    """Whether a number of a path meets an array without elements."""
    value = document
    for place, name in enumerate(parts):
        if isinstance(value, list):
            return name.isdigit() and not value
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return False


def leaf_on_empty(difference):
    """A number in a path, of an array without elements: as a name, of which nothing is found."""
    parts = difference.parts
    names = parts["path"].split(".")
    empty = [
        place
        for place, document in enumerate(parts["documents"])
        if empty_on_path(document, names)
    ]
    if not empty:
        return None
    # The documents in question become ones whose empty array has a name behind it.
    number = next(place for place, name in enumerate(names) if name.isdigit())
    named = ".".join(["empty", *("x" for _ in names[number:])])
    plain = [
        {} if place in empty else document for place, document in enumerate(parts["documents"])
    ]
    held = [
        {"empty": []} if place in empty else {} for place, _ in enumerate(parts["documents"])
    ]
    return (plain, held, empty, named)


class OnEmpty(Rebuilt):
    """A condition is asked twice: of the documents without such arrays, and of such arrays."""

    def applies(self, difference):
        made = leaf_on_empty(difference)
        if made is None or not (difference.ours.ok and difference.theirs.ok):
            return False
        ours, theirs = (
            {document["_id"] for document in answer.value}
            for answer in (difference.ours, difference.theirs)
        )
        return (ours ^ theirs) <= set(made[2])

    def verify(self, difference, judge):
        plain, held, empty, named = leaf_on_empty(difference)
        parts, found = difference.parts, set()
        for documents, path, places in (
            (plain, parts["path"], set(range(len(plain))) - set(empty)),
            (held, named, set(empty)),
        ):
            ours, theirs = judge.ask(matching(documents, {path: parts["condition"]}))
            if ours != theirs or not ours.ok:
                return None
            found |= {document["_id"] for document in ours.value} & places
        return [] if found == {document["_id"] for document in difference.ours.value} else None


WHOLE = ("$mod", "$regex", "$bitsAllSet", "$bitsAnyClear")


def array_taken_whole(difference):
    """A number in a path takes an element that is an array whole: one more array around it.

    None of these conditions holds of an array, and the other server looks into one array only.
    """
    parts = difference.parts
    names, condition = parts["path"].split("."), parts["condition"]
    if not (names[-1].isdigit() and isinstance(condition, dict) and set(condition) & set(WHOLE)):
        return None
    place = int(names[-1])
    changed, found = [], False
    for document in parts["documents"]:
        holder = rules.at_path(document, names[:-1])
        inside = isinstance(holder, list) and place < len(holder)
        if inside and isinstance(holder[place], list):
            found = True
            holder = [*holder[:place], [holder[place]], *holder[place + 1 :]]
            document = rules.with_path(document, names[:-1], holder)
        changed.append(document)
    return (matching(changed, {parts["path"]: condition}), lambda value: value) if found else None


def logical_in_element(difference):
    """`$elemMatch` with a logical operator only, which a condition that always holds goes before."""
    condition = difference.parts["condition"]
    inner = condition.get("$elemMatch") if isinstance(condition, dict) else None
    if not inner or next(iter(inner)) not in ("$and", "$or", "$nor") or difference.theirs.ok:
        return None
    if "unknown operator" not in difference.theirs.text:
        return None
    changed = {"$elemMatch": {"no such field": {"$exists": False}, **inner}}
    documents = difference.parts["documents"]
    return matching(documents, {difference.parts["path"]: changed}), lambda found: found


WHOLES = []
STEPS = [
    Rebuilt(PATHS, stage_by_paths),
    Rebuilt(ELEMENTS, set_by_elements),
    Rebuilt(ELEMENTS, unset_by_elements),
    Sums("sums are exact, and decimals keep their digits", None),
    Rebuilt("equal members of a set are one, and what is missing is none", set_of_values),
    Refused(PARALLEL, 2, "parallel arrays", sort_is_parallel, sort_by_each),
]
LEAVES = [
    Rebuilt(PATHS, leaf_by_paths),
    OnEmpty("a number in a path finds nothing in an empty array", None),
    Rebuilt("a number in a path takes an array whole", array_taken_whole),
    Rebuilt("`$elemMatch` takes logical operators", logical_in_element),
]
NODES = [
    Refused("an input that is no array has an error of its own", None, "must be an array not",
            input_is_no_array, input_is_empty),
    Refused("`$mergeObjects` refuses arrays", 40400, "requires object inputs",
            merges_no_document, merge_a_document),
    Refused("a wrong type is refused before what is missing makes null", 14, "only supports",
            wrong_before_null, wrong_before_one),
    Rebuilt("what is missing sorts between the least key and null", missing_of_comparison),
    Rebuilt("what is missing is not null for `$in`", missing_of_in),
]

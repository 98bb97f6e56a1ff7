"""What is known of the other server: where it differs from MongoDB, and how that is verified.

A cause excuses a difference only as its kind (`kinds.py`) says: by both answers, and by a reduced
step on which both servers agree. `docs/compatibility.md` has MongoDB's rule for each.
"""

import rules
from kinds import Cause, Rebuilt, Refused
from questions import Answer, Question, canonical, find, matching, stages, update

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
    if "$set" not in step or not parts["documents"]:
        return None
    if parts["stages"][1:] not in ([], [{"$unset": "held"}]):
        return None
    [(path, value)] = step["$set"].items()
    if "." not in path:
        return None
    names = path.split(".")

    def rebuild(found):
        values = [each.get("v", rules.MISSING) for each in found]
        documents = parts["documents"]
        if parts["stages"][1:]:
            documents = [rules.without_path(document, ["held"]) for document in documents]
        return [
            rules.with_path(document, names, value) for document, value in zip(documents, values)
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


class Parallel(Refused):
    """The same documents, sorted by each of the paths alone, are asked of both servers."""

    def __init__(self, name):
        super().__init__(name, 2, "parallel arrays", sort_is_parallel, None)

    def verify(self, difference, judge):
        found = []
        for path, order in difference.parts["sort"].items():
            sort = {path: order, "_id": 1}
            question = Question(difference.question.documents, find({}, sort))
            if path != "_id":
                found += judge.step(STEPS, question, None, {"sort": sort})
        return found


def sort_of_empty(difference):
    """A sort by the number of an element that is an empty array, as a field of that name."""
    sort = (difference.parts or {}).get("sort", {})
    paths = [path for path in sort if path.split(".")[-1].isdigit()]
    if not paths:
        return None
    from bson import MinKey

    changed, found, renamed, kinds = [], False, {}, set()
    for document in difference.question.documents:
        again = dict(document)
        for place, path in enumerate(paths):
            *names, number = path.split(".")
            holder = rules.at_path(document, names)
            renamed[path] = f"sort{place}.{number}"
            if holder is not rules.MISSING:
                empty = isinstance(holder, list) and holder[int(number) :][:1] == [[]]
                found = found or empty
                again[f"sort{place}"] = {number: []} if empty else holder
                if ".".join(names) in sort and isinstance(holder, list):
                    # Not parallel to the array itself: the least key is in the same place.
                    element = holder[int(number)] if int(number) < len(holder) else None
                    kinds.add(kind_of(element) if element else "empty")
                    again[f"sort{place}"] = {number: MinKey() if empty else element}
        changed.append(again)
    if not found or kinds & {"MinKey", "list"}:
        return None
    originals = {document["_id"]: document for document in difference.question.documents}
    sort = {renamed.get(path, path): order for path, order in sort.items()}
    question = Question(changed, find({}, sort))
    return question, lambda answer: [originals[document["_id"]] for document in answer]


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


def number_of_binary(difference):
    operand = node_of(difference, "$toInt", "$toDouble")
    if operand is None:
        return False
    found = value_of(operand, difference.parts["documents"][0])
    return kind_of(found) in ("bytes", "Binary")


def number_of_text(difference):
    yield ask_node([{}], {next(iter(difference.parts["node"])): {"$literal": "1"}})


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


def spread(difference, operands, change):
    """Documents with the values of operands, after a change of them, and the paths to these."""
    documents = []
    for document in difference.parts["documents"]:
        values = change([value_of(operand, document) for operand in operands])
        held = {f"v{at}": each for at, each in enumerate(values) if each is not rules.MISSING}
        documents.append({"held": held})
    return documents, [f"$held.v{at}" for at, _ in enumerate(operands)]


KEYS = ("MinKey", "MaxKey")


def named_keys(value):
    """The value with the least and the greatest key as texts, which equal themselves as well."""
    if isinstance(value, dict):
        return {name: named_keys(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [named_keys(inner) for inner in value]
    return f"key {kind_of(value)}" if kind_of(value) in KEYS else value


def comparable(values):
    """Two values in the same order as before, of which none is missing and not both are one key.

    What is missing comes after the least key and before null.
    """
    from bson import MinKey

    one, other = values
    missing = [value is rules.MISSING for value in values]
    if all(missing) or kind_of(one) == kind_of(other) and kind_of(one) in KEYS:
        return [0, 0]
    if any(missing):
        least = "MinKey" in map(kind_of, values)
        below = None if least else MinKey()
        return [below if value is rules.MISSING else value for value in values]
    return values


def comparison_by_order(difference):
    """A comparison with what is missing, or of a key with itself."""
    operands = node_of(difference, "$cmp", "$eq", "$lt")
    if operands is None:
        return None
    name = next(iter(difference.parts["node"]))

    def change(values):
        values = comparable(values)
        return [named_keys(value) for value in values] if name == "$eq" else values

    documents, paths = spread(difference, operands, change)
    return ask_node(documents, {name: paths}), lambda found: found


def filter_by_order(difference):
    """`$filter` by what is missing: by the least key, which all others are greater than, too."""
    operands = node_of(difference, "$filter")
    if operands is None:
        return None
    from bson import MinKey

    [bound] = [each for each in operands["cond"]["$gt"] if each != "$$this"]

    def least(values):
        return [values[0], MinKey() if values[1] is rules.MISSING else values[1]]

    documents, paths = spread(difference, [operands["input"], bound], least)
    node = {"$filter": {"input": paths[0], "cond": {"$gt": ["$$this", paths[1]]}}}
    return ask_node(documents, node), lambda found: found


def in_by_equality(difference):
    """`$in` as a comparison with each member.

    A value that is missing equals none, a member that is missing is null, a key equals itself.
    """
    operands = node_of(difference, "$in")
    if operands is None:
        return None

    def change(values):
        values = ["no member" if values[0] is rules.MISSING else values[0], *values[1:]]
        values = [None if value is rules.MISSING else value for value in values]
        return [named_keys(value) for value in values]

    documents, paths = spread(difference, [operands[0], *operands[1]], change)
    either = {"$or": [{"$eq": [paths[0], member]} for member in paths[1:]]}
    return ask_node(documents, either), lambda found: found


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


class Sums(Cause):
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


class FirstOfEqual(Cause):
    """`$min` and `$max` keep the first one of equal values of different types."""

    def applies(self, difference):
        return self.pushed(difference) is not None

    def pushed(self, difference):
        return pushed(difference, "$min") or pushed(difference, "$max")

    def verify(self, difference, judge):
        name, question = self.pushed(difference)
        groups = [list_of(answer) for answer in judge.ask(question)]
        found, theirs = list_of(difference.ours), list_of(difference.theirs)
        if None in groups or theirs is None or groups[0].keys() != found.keys():
            return None
        for key, group in groups[0].items():
            if canonical(group) != canonical(groups[1].get(key)) or key not in theirs:
                return None
            value, other = (each[key].get(name) for each in (found, theirs))
            equal = [each for each in group[name] if rules.same(each) == rules.same(value)]
            if rules.same(value) != rules.same(other):
                return None
            if equal and canonical(equal[0]) != canonical(value):
                return None
            if canonical({**found[key], name: 0}) != canonical({**theirs[key], name: 0}):
                return None
        return []


def list_of(answer):
    """Groups by what they are grouped by; none of an error."""
    if not answer.ok:
        return None
    return {repr(canonical(group.get("_id"))): group for group in answer.value}


def set_of_values(difference):
    """A set has no two equal members, and what is missing is none."""
    step = (difference.parts or {}).get("stages", [{}])
    if "$addToSet" not in str(step[0]) or "$group" not in step[0] or len(step) != 2:
        return None
    operand = step[0]["$group"]["all"]["$addToSet"]
    group = {"$group": {"_id": None, "all": {"$push": operand}}}
    question = stages(difference.parts["documents"], [group])

    def rebuild(found):
        sets = [{rules.same(value) for value in each["all"]} for each in found]
        return [{"_id": None, "n": len(each)} for each in sets]

    return question, rebuild


# Conditions of filters.


def leaf_on_nothing(difference):
    """The documents in which a path comes to nothing, in two questions.

    One has the other documents as they are, the other one an empty array for each of these, of
    which a name behind it finds nothing either.
    """
    parts = difference.parts
    names = parts["path"].split(".")
    nothing = {
        place
        for place, document in enumerate(parts["documents"])
        if not rules.yields(document, names)
    }
    if not nothing:
        return None
    everything = list(enumerate(parts["documents"]))
    plain = [{} if place in nothing else document for place, document in everything]
    empty = [{"empty": []} if place in nothing else {} for place, _ in everything]
    rest = set(range(len(plain))) - nothing
    return nothing, ((plain, parts["path"], rest), (empty, "empty.x", nothing))


def found_places(answer):
    return {document["_id"] for document in answer.value}


class OnNothing(Cause):
    """A condition is asked twice, by `leaf_on_nothing`; the differences are of its documents."""

    def applies(self, difference):
        made = leaf_on_nothing(difference)
        if made is None or not (difference.ours.ok and difference.theirs.ok):
            return False
        return found_places(difference.ours) ^ found_places(difference.theirs) <= made[0]

    def verify(self, difference, judge):
        found = set()
        for documents, path, places in leaf_on_nothing(difference)[1]:
            ours, theirs = judge.ask(matching(documents, {path: difference.parts["condition"]}))
            if ours != theirs or not ours.ok:
                return None
            found |= found_places(ours) & places
        return [] if found == found_places(difference.ours) else None


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


def zero_without_sign(difference):
    """Bits of a decimal that is a negative zero: those of zero."""
    condition = difference.parts["condition"]
    if not isinstance(condition, dict) or not next(iter(condition), "").startswith("$bits"):
        return None
    changed = [without_signs(document) for document in difference.parts["documents"]]
    if canonical(changed) == canonical(difference.parts["documents"]):
        return None
    return matching(changed, {difference.parts["path"]: condition}), lambda found: found


def without_signs(value):
    if isinstance(value, dict):
        return {name: without_signs(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_signs(inner) for inner in value]
    return 0 if kind_of(value) == "Decimal128" and rules.exact(value) == 0 else value


def elements_as_documents(difference):
    """`$elemMatch` of arrays in arrays, as the documents they are in BSON.

    A condition that always holds goes before a logical operator, which the other server does not
    take as the first one.
    """
    condition = difference.parts["condition"]
    inner = condition.get("$elemMatch") if isinstance(condition, dict) else None
    if not inner:
        return None
    first = next(iter(inner))
    if first.startswith("$") and first not in ("$and", "$or", "$nor"):
        return None
    names = difference.parts["path"].split(".")
    changed = [elements_changed(document, names) for document in difference.parts["documents"]]
    again = {"$elemMatch": {"no such field": {"$exists": False}, **inner}}
    return matching(changed, {difference.parts["path"]: again}), lambda found: found


def elements_changed(value, names):
    """The value with the arrays in arrays at a path, or on it, as documents."""
    if isinstance(value, list):
        if not names:
            return [rules.as_document(each) if isinstance(each, list) else each for each in value]
        if names[0].isdigit():
            return [
                elements_changed(each, names if isinstance(each, dict) else names[1:])
                if isinstance(each, dict) or str(place) == names[0]
                else each
                for place, each in enumerate(value)
            ]
        return [elements_changed(each, names) if isinstance(each, dict) else each for each in value]
    if not isinstance(value, dict) or not names or names[0] not in value:
        return value
    return {**value, names[0]: elements_changed(value[names[0]], names[1:])}


# Updates.


def rename_through_scalar(difference):
    """`$rename` from a path that goes on behind what is neither a document nor an array."""
    parts = difference.parts or {}
    change = parts.get("update", {}).get("$rename", {})
    return any(blocked(parts["document"], path.split(".")) for path in change)


PULLS = ("$pop", "$pull", "$pullAll")


def pull_through_scalar(difference):
    """An operator that creates nothing, on a path that could not be created either."""
    parts = difference.parts or {}
    paths = [path for name in PULLS for path in parts.get("update", {}).get(name, {})]
    return parts.get("document") and any(
        blocked(parts["document"], path.split(".")) for path in paths
    )


def without_pulls(difference):
    yield without_operators(difference, PULLS)


def without_operators(difference, names):
    change = difference.parts["update"]
    rest = {name: spec for name, spec in change.items() if name not in names}
    filter = difference.question.operation.spec["filter"]
    return Question(difference.question.documents, update(filter, rest or {"$set": {"x": 1}}))


def blocked(value, parts):
    """Whether a path of an update meets what has nothing in it, before its end."""
    for name in parts:
        if isinstance(value, list):
            if not name.isdigit():
                return True
            value = value[int(name)] if int(name) < len(value) else rules.MISSING
        elif isinstance(value, dict):
            value = value.get(name, rules.MISSING)
        else:
            return value is not rules.MISSING
    return False


def without_rename(difference):
    yield without_operators(difference, ("$rename",))


def without_insert(difference):
    """`$setOnInsert` does nothing to a document that exists, whatever its path."""
    change = (difference.parts or {}).get("update", {})
    if "$setOnInsert" not in change or difference.parts["document"] is None:
        return None
    rest = {name: spec for name, spec in change.items() if name != "$setOnInsert"}
    if not rest:
        return None
    operation = difference.question.operation
    question = Question(difference.question.documents, update(operation.spec["filter"], rest))
    return question, lambda found: found


class Unmodified(Cause):
    """Both leave the document as it is, which ours does not count as modified.

    `$set` of each field of the document to its own value is not counted either, by both servers.
    """

    def applies(self, difference):
        ours, theirs = difference.ours, difference.theirs
        parts = difference.parts or {}
        if not (parts.get("update") and parts["document"] and ours.ok and theirs.ok):
            return False
        same = canonical(ours.value[2]) == canonical(difference.question.documents)
        return same and ours.value[1] == 0 and Answer(theirs.value[2]) == Answer(ours.value[2])

    def verify(self, difference, judge):
        filter = difference.question.operation.spec["filter"]
        again = {name: each for name, each in difference.parts["document"].items() if name != "_id"}
        question = Question(difference.question.documents, update(filter, {"$set": again}))
        ours, theirs = judge.ask(question)
        return [] if ours == theirs == difference.ours else None


def zero_is_set(difference):
    """`$inc` by a negative zero of what is missing, as `$set` of it."""
    parts = difference.parts or {}
    change = parts.get("update", {}).get("$inc")
    if not change or parts["document"] is None:
        return None
    zeros = {
        path: value
        for path, value in change.items()
        if repr(value) == "-0.0"
        and rules.at_path(parts["document"], path.split(".")) is rules.MISSING
        and not rules.through_array(parts["document"], path.split("."))
    }
    if not zeros:
        return None
    changed = {name: spec for name, spec in parts["update"].items() if name != "$inc"}
    rest = {path: value for path, value in change.items() if path not in zeros}
    if rest:
        changed["$inc"] = rest
    changed["$set"] = {**changed.get("$set", {}), **zeros}
    operation = difference.question.operation
    question = Question(difference.question.documents, update(operation.spec["filter"], changed))
    return question, lambda found: found


class FirstOperator(Cause):
    """Several operators fail: that of the least path decides the error, which it has alone."""

    def applies(self, difference):
        change = (difference.parts or {}).get("update")
        return change is not None and not difference.ours.ok and not difference.theirs.ok

    def verify(self, difference, judge):
        change = difference.parts["update"]
        filter = difference.question.operation.spec["filter"]
        each = [(path, name) for name, spec in change.items() for path in spec]
        failed = []
        for path, name in sorted(each):
            alone = update(filter, {name: {path: change[name][path]}})
            ours, theirs = judge.ask(Question(difference.question.documents, alone))
            if ours != theirs:
                return None
            if not ours.ok:
                failed.append(ours)
        if len(failed) < 2 or failed[0] != difference.ours:
            return None
        return [] if any(error == difference.theirs for error in failed) else None


STEPS = [
    Rebuilt(PATHS, stage_by_paths),
    Rebuilt(ELEMENTS, set_by_elements),
    Rebuilt(ELEMENTS, unset_by_elements),
    Rebuilt("a negative zero keeps its sign", zero_is_set),
    Refused("a `$rename` from where a path cannot go is refused", 28, "to traverse the element",
            rename_through_scalar, without_rename),
    Refused("`$pop` and `$pull` want a path that could be created", 28, "to traverse the element",
            pull_through_scalar, without_pulls),
    Rebuilt("`$setOnInsert` does nothing to documents that exist", without_insert),
    Unmodified("what becomes itself is not modified"),
    FirstOperator("of several operators that fail the first one decides the error"),
    Sums("sums are exact, and decimals keep their digits"),
    FirstOfEqual("`$min` and `$max` keep the first one of equal values"),
    Rebuilt("equal members of a set are one, and what is missing is none", set_of_values),
    Parallel(PARALLEL),
    Rebuilt("an empty array sorts before null, by its number, too", sort_of_empty),
]
LEAVES = [
    Rebuilt(PATHS, leaf_by_paths),
    OnNothing("elements that are no documents have no fields, not even missing ones"),
    Rebuilt("a number in a path takes an array whole", array_taken_whole),
    Rebuilt("a negative zero of a decimal has no bits", zero_without_sign),
    Rebuilt("`$elemMatch` takes logical operators, and arrays as documents", elements_as_documents),
]
NODES = [
    Refused("binary data become numbers in MongoDB 8.1 and later", 241,
            "conversion from binData to", number_of_binary, number_of_text),
    Refused("an input that is no array has an error of its own", None, "must be an array not",
            input_is_no_array, input_is_empty),
    Refused("`$mergeObjects` refuses arrays", 40400, "requires object inputs",
            merges_no_document, merge_a_document),
    Refused("a wrong type is refused before what is missing makes null", 14, "only supports",
            wrong_before_null, wrong_before_one),
    Rebuilt("what is missing sorts between the least key and null", comparison_by_order),
    Rebuilt("what is missing sorts between the least key and null", filter_by_order),
    Rebuilt("`$in` compares as `$eq` does, and what is missing is not null", in_by_equality),
]

"""Rules of MongoDB, written down once more, by which differences are judged.

They are those that the other server breaks. Each is as short as its sentence in the manual, and is
written without a look at the server's own code.
"""


import decimal
import fractions
import math

from questions import scalar


class Missing:
    def __repr__(self):
        return "missing"


MISSING = Missing()


def at_path(document, parts):
    """The value of the path `$a.b` of an expression: through an array, the array of what is found.

    Elements that are no documents give nothing, and a number is the name of a field.
    """
    value = document.get(parts[0], MISSING)
    rest = parts[1:]
    if not rest or value is MISSING:
        return value
    if isinstance(value, dict):
        return at_path(value, rest)
    if isinstance(value, list):
        found = (at_path(element, rest) for element in value if isinstance(element, dict))
        return [element for element in found if element is not MISSING]
    return MISSING


def through_array(document, parts):
    """Whether an array is on the way along a path, before its end."""
    value = document.get(parts[0], MISSING)
    if len(parts) == 1:
        return False
    if isinstance(value, dict):
        return through_array(value, parts[1:])
    return isinstance(value, list)


def with_path(document, parts, value):
    """The document with a value at a path, as `$set` and `$addFields` write it.

    An array on the way is entered, each element becomes a document that holds the value, and so
    does a scalar on the way. A missing value removes the field.
    """
    changed = dict(document)
    name, rest = parts[0], parts[1:]
    if rest:
        changed[name] = with_inner(changed.get(name), rest, value)
    elif value is MISSING:
        changed.pop(name, None)
    else:
        changed[name] = value
    return changed


def with_inner(holder, parts, value):
    if isinstance(holder, list):
        return [with_inner(element, parts, value) for element in holder]
    return with_path(holder if isinstance(holder, dict) else {}, parts, value)


def without_path(document, parts):
    """The document without what is at a path, as `$unset` leaves it: arrays are entered."""
    changed = dict(document)
    name, rest = parts[0], parts[1:]
    if not rest:
        changed.pop(name, None)
    elif name in changed:
        changed[name] = without_inner(changed[name], rest)
    return changed


def without_inner(holder, parts):
    if isinstance(holder, list):
        return [without_inner(element, parts) for element in holder]
    return without_path(holder, parts) if isinstance(holder, dict) else holder


def arrays_on(document, parts):
    """The prefixes of a path at which a document has arrays, the path itself included.

    A number behind an array takes one element of it.
    """
    found, value = [], document
    for depth, name in enumerate(parts):
        if isinstance(value, dict):
            value = value.get(name, MISSING)
        elif isinstance(value, list) and name.isdigit():
            value = value[int(name)] if int(name) < len(value) else MISSING
        elif isinstance(value, list):
            inner = [element for element in value if isinstance(element, dict)]
            for element in inner:
                found += [parts[:depth] + rest for rest in arrays_on(element, parts[depth:])]
            return found
        if isinstance(value, list):
            found.append(parts[: depth + 1])
    return found


def parallel(document, paths):
    """Whether a sort by these paths meets two arrays of which neither holds the other."""
    each = [arrays_on(document, path.split(".")) for path in paths]
    for place, ones in enumerate(each):
        for others in each[place + 1 :]:
            for one in ones:
                for other in others:
                    short = min(len(one), len(other))
                    if one[:short] != other[:short]:
                        return True
    return False


def yields(document, parts):
    """Whether the path of a condition comes to anything in a document, a missing field included.

    Elements of arrays on the path that are no documents have no fields, not even missing ones.
    """
    value = document
    for place, name in enumerate(parts):
        if isinstance(value, list):
            rest = parts[place:]
            return any(yields_in(index, element, rest) for index, element in enumerate(value))
        if not isinstance(value, dict) or name not in value:
            return True
        value = value[name]
    return True


def yields_in(index, element, parts):
    if isinstance(element, dict):
        return yields(element, parts)
    if str(index) != parts[0]:
        return False
    if len(parts) == 1:
        return True
    if isinstance(element, list):
        return yields(as_document(element), parts[1:])
    return False


def as_document(array):
    """An array as the document that it is in BSON."""
    return {str(place): element for place, element in enumerate(array)}


# Numbers.


def exact(value):
    """A finite number as a fraction; the others as themselves, and none for what is no number."""
    if type(value).__name__ == "Decimal128":
        value = value.to_decimal()
        if not value.is_finite():
            return float(value)
        return fractions.Fraction(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return fractions.Fraction(value) if math.isfinite(value) else value


def same(value):
    """What is equal for values that are equal to MongoDB: numbers of all types are one type."""
    number = exact(value)
    if number is not None:
        return "number", "nan" if number != number else number
    if isinstance(value, dict):
        return "document", tuple((name, same(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return "array", tuple(same(inner) for inner in value)
    return scalar(value)


def total(values):
    """The sum of the numbers among values: its exact value, and the widest of their types."""
    names = [type(value).__name__ for value in values if exact(value) is not None]
    numbers = [exact(value) for value in values if exact(value) is not None]
    widest = next((name for name in ("Decimal128", "float", "Int64") if name in names), "int")
    odd = [number for number in numbers if isinstance(number, float)]
    return (sum(odd) if odd else sum(numbers, fractions.Fraction(0))), widest, len(numbers)


def is_number(value, expected, digits):
    """Whether a value is the number nearest to an expected one, or one of the two beside it."""
    found = exact(value)
    if found is None or isinstance(found, float) or isinstance(expected, float):
        same_kind = isinstance(found, float) and isinstance(expected, float)
        return same_kind and (found == expected or (found != found and expected != expected))
    with decimal.localcontext() as context:
        context.prec = digits
        error = abs(found - expected)
        return error <= abs(expected) * fractions.Fraction(1, 10 ** (digits - 1))

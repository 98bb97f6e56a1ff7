"""Random documents, filters, sorts, projections, updates and pipelines."""

import datetime
import random

from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

from questions import aggregate, find, update

FIELDS = ["a", "b", "c", "d"]
PATHS = FIELDS + ["a.b", "b.c", "c.0", "d.a.b", "a.0.b", "nothing"]


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
            "\u00e9",
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
            names = ("number", "string", "array", "object", "null", "date")
            return {kind: self.pick(*names, 1, 16, 18)}
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
            return {kind: self.pick("a", "^A", "b$", ".", "\u00e9"), "$options": self.pick("", "i")}
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
                "$min": self.scalar, "$max": self.scalar,
                "$rename": lambda: self.pick("x", "d", "b.x"),
                "$push": self.pushed,
                "$pull": lambda: self.pick(self.value(1), {"$gt": self.scalar()}),
                "$pullAll": lambda: [self.value(2) for _ in range(2)],
                "$addToSet": lambda: self.pick(self.value(1), {"$each": [self.value(1), 1]}),
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
            lambda: {self.pick("$subtract", "$divide", "$mod"): [one(), one()]},
            lambda: {self.pick("$cmp", "$eq", "$lt"): [one(), one()]},
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
            lambda: {"$set": {self.pick("x", "a.b", "c"): self.expression()}},
            lambda: {"$unset": self.pick("a", "b.c")},
            lambda: {"$unwind": {"path": "$" + self.pick("a", "b", "c", "d.a"),
                                 "preserveNullAndEmptyArrays": self.pick(True, False)}},
            lambda: {"$replaceWith": {"_id": "$_id", "v": self.expression()}},
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

    # Operations.

    def operation(self):
        kind = self.pick("find", "find", "update", "aggregate", "aggregate")
        if kind == "find":
            filter, sort, projection = self.filter(), self.sort(), self.projection()
            return find(filter, dict(sort), projection)
        if kind == "aggregate":
            return aggregate(self.pipeline())
        filter, change = self.filter(), self.update()
        # One document, so that an error half-way leaves no question of order.
        return update({"$and": [{"_id": {"$lt": 10}}, filter]}, change)

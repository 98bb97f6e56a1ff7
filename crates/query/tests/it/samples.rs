//! A valid operand for every operator that does not take plain arguments by position;
//! [`super::extremes`] replaces the numbers in it.

use bson::{Bson, DateTime, Document, bson, doc};

fn date() -> Bson {
    Bson::DateTime(DateTime::from_millis(1_700_000_000_000))
}

/// Operands of expressions.
pub(crate) fn expressions() -> Vec<(&'static str, Bson)> {
    let mut all = dates();
    let words = [
        (
            "$median",
            bson!({"input": [1, 2, 3], "method": "approximate"}),
        ),
        (
            "$percentile",
            bson!({"input": [1, 2, 3], "method": "approximate", "p": [0.5, 1]}),
        ),
        ("$cond", bson!({"if": 1, "then": 2, "else": 3})),
        (
            "$switch",
            bson!({"branches": [{"case": 1, "then": 2}], "default": 3}),
        ),
        ("$convert", bson!({"input": 1, "to": "int", "onError": 2})),
        ("$convert", bson!({"input": 1.5, "to": "long"})),
        ("$convert", bson!({"input": 1_i64, "to": "date"})),
        ("$convert", bson!({"input": 1, "to": "decimal"})),
        ("$convert", bson!({"input": 1, "to": 16})),
        ("$literal", bson!(1)),
        ("$const", bson!(1)),
        (
            "$let",
            bson!({"vars": {"v": 1}, "in": {"$add": ["$$v", 1]}}),
        ),
        (
            "$map",
            bson!({"input": [1, 2], "as": "v", "in": {"$add": ["$$v", 1]}}),
        ),
        (
            "$filter",
            bson!({"input": [1, 2], "cond": true, "limit": 1}),
        ),
        (
            "$reduce",
            bson!({"input": [1, 2], "initialValue": 0, "in": {"$add": ["$$this", "$$value"]}}),
        ),
        ("$getField", bson!({"field": "a", "input": {"a": 1}})),
        (
            "$setField",
            bson!({"field": "a", "input": {"a": 1}, "value": 2}),
        ),
        ("$unsetField", bson!({"field": "a", "input": {"a": 1}})),
        ("$firstN", bson!({"input": [1, 2, 3], "n": 2})),
        ("$lastN", bson!({"input": [1, 2, 3], "n": 2})),
        ("$maxN", bson!({"input": [1, 2, 3], "n": 2})),
        ("$minN", bson!({"input": [1, 2, 3], "n": 2})),
        ("$regexMatch", bson!({"input": "abc", "regex": "b"})),
        ("$regexFind", bson!({"input": "abc", "regex": "b"})),
        ("$regexFindAll", bson!({"input": "abc", "regex": "b"})),
        ("$sortArray", bson!({"input": [3, 1], "sortBy": 1})),
        (
            "$sortArray",
            bson!({"input": [{"a": 1}], "sortBy": {"a": -1}}),
        ),
        (
            "$replaceOne",
            bson!({"input": "abc", "find": "b", "replacement": "x"}),
        ),
        (
            "$replaceAll",
            bson!({"input": "abc", "find": "b", "replacement": "x"}),
        ),
        ("$trim", bson!({"input": " a "})),
        ("$ltrim", bson!({"input": " a ", "chars": " "})),
        ("$rtrim", bson!({"input": " a "})),
        (
            "$zip",
            bson!({"inputs": [[1, 2], [3]], "useLongestLength": true, "defaults": [8, 9]}),
        ),
        ("$rand", bson!({})),
        ("$arrayToObject", bson!([[["a", 1]]])),
        ("$setIsSubset", bson!([[1], [1, 2]])),
        ("$toObjectId", bson!("0123456789abcdef01234567")),
        ("$toUUID", bson!("01234567-89ab-cdef-0123-456789abcdef")),
        ("$toDate", bson!("2024-01-01")),
        ("$toInt", bson!("12")),
        ("$toLong", bson!("12")),
        ("$toDouble", bson!("12")),
        ("$toDecimal", bson!("12")),
        ("$acos", bson!(0.5)),
        ("$asin", bson!(0.5)),
        ("$atanh", bson!(0.5)),
        ("$indexOfArray", bson!([[1, 2, 3], 2, 0, 3])),
        ("$indexOfBytes", bson!(["abc", "b", 0, 3])),
        ("$indexOfCP", bson!(["abc", "b", 0, 3])),
        ("$substrBytes", bson!(["abc", 1, 1])),
        ("$slice", bson!([[1, 2, 3], 1, 2])),
        ("$range", bson!([0, 10, 2])),
        ("$meta", bson!("indexKey")),
    ];
    all.extend(words);
    all
}

fn dates() -> Vec<(&'static str, Bson)> {
    let mut all = Vec::new();
    for unit in [
        "year",
        "quarter",
        "month",
        "week",
        "day",
        "hour",
        "minute",
        "second",
        "millisecond",
    ] {
        let add = bson!({"startDate": date(), "unit": unit, "amount": 2, "timezone": "+02:00"});
        all.push(("$dateAdd", add.clone()));
        all.push(("$dateSubtract", add));
        all.push((
            "$dateDiff",
            bson!({"startDate": date(), "endDate": date(), "unit": unit}),
        ));
        all.push((
            "$dateTrunc",
            bson!({"date": date(), "unit": unit, "binSize": 2, "timezone": "Europe/Paris"}),
        ));
    }
    all.extend([
        (
            "$dateToString",
            bson!({"date": date(), "format": "%Y-%m-%dT%H:%M:%S.%L %G %V %u %j %U %w %z %Z"}),
        ),
        ("$dateToParts", bson!({"date": date(), "iso8601": true})),
        (
            "$dateToParts",
            bson!({"date": date(), "timezone": "Europe/Paris"}),
        ),
        (
            "$dateFromParts",
            bson!({"year": 2024, "month": 2, "day": 3, "hour": 4, "minute": 5, "second": 6,
                "millisecond": 7, "timezone": "Europe/Paris"}),
        ),
        (
            "$dateFromParts",
            bson!({"isoWeekYear": 2024, "isoWeek": 2, "isoDayOfWeek": 3, "hour": 4}),
        ),
        ("$dateFromString", bson!({"dateString": "2024-02-03"})),
        (
            "$dateFromString",
            bson!({"dateString": "2024 100", "format": "%Y %j"}),
        ),
    ]);
    for name in [
        "$year",
        "$dayOfYear",
        "$week",
        "$isoWeek",
        "$isoWeekYear",
        "$hour",
    ] {
        all.push((name, bson!({"date": date(), "timezone": "Europe/Paris"})));
    }
    all
}

/// Operands of accumulators and window functions, over documents with the fields `a` and `t`.
pub(crate) fn accumulators() -> Vec<(&'static str, Bson)> {
    vec![
        ("$firstN", bson!({"input": "$a", "n": 2})),
        ("$lastN", bson!({"input": "$a", "n": 2})),
        ("$maxN", bson!({"input": "$a", "n": 2})),
        ("$minN", bson!({"input": "$a", "n": 2})),
        ("$top", bson!({"output": "$a", "sortBy": {"a": 1}})),
        ("$bottom", bson!({"output": "$a", "sortBy": {"a": 1}})),
        ("$topN", bson!({"output": "$a", "sortBy": {"a": 1}, "n": 2})),
        (
            "$bottomN",
            bson!({"output": "$a", "sortBy": {"a": 1}, "n": 2}),
        ),
        ("$median", bson!({"input": "$a", "method": "approximate"})),
        (
            "$percentile",
            bson!({"input": "$a", "method": "approximate", "p": [0.5]}),
        ),
        ("$count", bson!({})),
        ("$mergeObjects", bson!({"x": "$a"})),
        ("$concatArrays", bson!(["$a"])),
        ("$setUnion", bson!(["$a"])),
        ("$derivative", bson!({"input": "$a"})),
        ("$integral", bson!({"input": "$a"})),
        ("$derivative", bson!({"input": "$a", "unit": "hour"})),
        ("$expMovingAvg", bson!({"input": "$a", "N": 2})),
        ("$expMovingAvg", bson!({"input": "$a", "alpha": 0.5})),
        ("$shift", bson!({"output": "$a", "by": 1, "default": 2})),
        ("$covariancePop", bson!(["$a", 1])),
        ("$covarianceSamp", bson!(["$a", 1])),
        ("$rank", bson!({})),
        ("$denseRank", bson!({})),
        ("$documentNumber", bson!({})),
        ("$linearFill", bson!("$b")),
        ("$locf", bson!("$b")),
        ("$minMaxScaler", bson!({"input": "$a", "min": 0, "max": 1})),
    ]
}

/// Operands of stages.
pub(crate) fn stages() -> Vec<(&'static str, Bson)> {
    vec![
        ("$addFields", bson!({"x": 1})),
        (
            "$bucket",
            bson!({"groupBy": "$_id", "boundaries": [0, 5, 10], "default": 11}),
        ),
        ("$bucketAuto", bson!({"groupBy": "$_id", "buckets": 3})),
        (
            "$bucketAuto",
            bson!({"groupBy": "$_id", "buckets": 3, "granularity": "R5"}),
        ),
        (
            "$bucketAuto",
            bson!({"groupBy": "$_id", "buckets": 3, "granularity": "POWERSOF2"}),
        ),
        ("$collStats", bson!({"count": {}})),
        ("$count", bson!("n")),
        (
            "$densify",
            bson!({"field": "n", "range": {"step": 1, "bounds": [0, 10]}}),
        ),
        (
            "$densify",
            bson!({"field": "n", "range": {"step": 1, "bounds": "full"}}),
        ),
        (
            "$densify",
            bson!({"field": "t", "range": {"step": 1, "unit": "day",
                "bounds": [DateTime::from_millis(0), DateTime::from_millis(864_000_000)]}}),
        ),
        ("$documents", bson!([{"a": 1}])),
        ("$facet", bson!({"x": [{"$limit": 1}]})),
        (
            "$fill",
            bson!({"sortBy": {"n": 1}, "output": {"b": {"method": "linear"}}}),
        ),
        (
            "$graphLookup",
            bson!({"from": "c", "startWith": 1, "connectFromField": "n", "connectToField": "_id",
                "as": "x", "maxDepth": 2}),
        ),
        ("$group", bson!({"_id": 1, "x": {"$sum": 1}})),
        ("$limit", bson!(3)),
        (
            "$lookup",
            bson!({"from": "c", "localField": "n", "foreignField": "_id", "as": "x",
                "pipeline": [{"$limit": 2}]}),
        ),
        ("$match", bson!({"n": {"$gt": 1}})),
        ("$merge", bson!("c")),
        ("$out", bson!("c")),
        ("$project", bson!({"x": 1})),
        ("$redact", bson!("$$KEEP")),
        ("$replaceRoot", bson!({"newRoot": {"x": 1}})),
        ("$replaceWith", bson!({"x": 1})),
        ("$sample", bson!({"size": 3})),
        ("$set", bson!({"x": 1})),
        (
            "$setWindowFields",
            bson!({"sortBy": {"n": 1},
                "output": {"x": {"$sum": "$n", "window": {"documents": [-1, 1]}}}}),
        ),
        (
            "$setWindowFields",
            bson!({"sortBy": {"n": 1},
                "output": {"x": {"$sum": "$n", "window": {"range": [-1, 1]}}}}),
        ),
        (
            "$setWindowFields",
            bson!({"sortBy": {"t": 1},
                "output": {"x": {"$sum": "$n", "window": {"range": [-1, 1], "unit": "hour"}}}}),
        ),
        ("$skip", bson!(3)),
        ("$sort", bson!({"n": 1})),
        ("$sortByCount", bson!("$n")),
        (
            "$unionWith",
            bson!({"coll": "c", "pipeline": [{"$skip": 1}]}),
        ),
        ("$unset", bson!("n")),
        ("$unwind", bson!({"path": "$l", "includeArrayIndex": "i"})),
        ("$indexStats", bson!({})),
        ("$planCacheStats", bson!({})),
        ("$listSessions", bson!({})),
        ("$listLocalSessions", bson!({})),
        ("$currentOp", bson!({})),
        ("$listCatalog", bson!({})),
    ]
}

/// Filters, each with the operator that it tests.
pub(crate) fn filters() -> Vec<(&'static str, Document)> {
    let mut all = vec![
        ("$mod", doc! {"a": {"$mod": [4, 1]}}),
        ("$size", doc! {"a": {"$size": 2}}),
        ("$type", doc! {"a": {"$type": 16}}),
        ("$type", doc! {"a": {"$type": [1, 2]}}),
        ("$in", doc! {"a": {"$in": [1, 2]}}),
        ("$nin", doc! {"a": {"$nin": [1, 2]}}),
        ("$all", doc! {"a": {"$all": [1, 2]}}),
        ("$exists", doc! {"a": {"$exists": 1}}),
        ("$elemMatch", doc! {"a": {"$elemMatch": {"$gt": 1}}}),
        ("$not", doc! {"a": {"$not": {"$gt": 1}}}),
        ("$and", doc! {"$and": [{"a": 1}]}),
        ("$or", doc! {"$or": [{"a": 1}]}),
        ("$nor", doc! {"$nor": [{"a": 1}]}),
        ("$expr", doc! {"$expr": {"$gt": ["$a", 1]}}),
        ("$comment", doc! {"a": 1, "$comment": 1}),
        ("$regex", doc! {"a": {"$regex": "x", "$options": "i"}}),
        ("$sampleRate", doc! {"$sampleRate": 0.5}),
        ("$alwaysTrue", doc! {"$alwaysTrue": 1}),
        ("$alwaysFalse", doc! {"$alwaysFalse": 1}),
        (
            "$jsonSchema",
            doc! {"$jsonSchema": {"minProperties": 1, "maxProperties": 2, "properties": {"a": {
            "minimum": 1, "maximum": 2, "multipleOf": 3, "minLength": 1, "maxLength": 2,
            "minItems": 1, "maxItems": 2}}}},
        ),
    ];
    for name in ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"] {
        all.push((name, doc! {"a": {name: 1}}));
    }
    for name in [
        "$bitsAllClear",
        "$bitsAllSet",
        "$bitsAnyClear",
        "$bitsAnySet",
    ] {
        all.push((name, doc! {"a": {name: 5}}));
        all.push((name, doc! {"a": {name: [1, 5]}}));
    }
    all
}

/// Updates, each with the operator that it tests.
pub(crate) fn updates() -> Vec<(&'static str, Document)> {
    let mut all = vec![
        ("$bit", doc! {"$bit": {"a": {"and": 5}}}),
        ("$bit", doc! {"$bit": {"a": {"xor": 5}}}),
        ("$pop", doc! {"$pop": {"l": 1}}),
        ("$pull", doc! {"$pull": {"l": {"$gt": 1}}}),
        ("$pullAll", doc! {"$pullAll": {"l": [1]}}),
        ("$addToSet", doc! {"$addToSet": {"l": {"$each": [1, 2]}}}),
        (
            "$push",
            doc! {"$push": {"l": {"$each": [1, 2], "$position": 1, "$slice": 2, "$sort": 1}}},
        ),
        ("$currentDate", doc! {"$currentDate": {"x": true}}),
        ("$rename", doc! {"$rename": {"a": "z"}}),
        ("$unset", doc! {"$unset": {"a": 1}}),
        ("$setOnInsert", doc! {"$setOnInsert": {"x": 1}}),
        ("$set", doc! {"$set": {"l.3": 1}}),
    ];
    for name in ["$inc", "$mul", "$min", "$max"] {
        all.push((name, doc! {name: {"a": 1}}));
    }
    all
}

//! For each operator of expressions, an expression that would take too long or too much memory, or
//! the reason why there is none.

use bson::{Bson, Document, bson};
use query::Result;
use query::expr::{Env, Expr, Scope, Variables};
use query::vocabulary;

use super::Entry::{self, Bounded, Grows, Works};
use super::{ALONE, complete, large, limited, stopped};

const SCALAR: &str = "it reads scalars and gives one";
const ARGUMENTS: &str = "it reads its arguments, whose number the request bounds, and gives one";
const ONE: &str = "it gives a value that is there, without a copy";
const DATE: &str = "it reads and gives a date, a number or an object of a few of them";

/// An expression for an array of two thousand copies of `of`.
fn copies(of: Bson) -> Bson {
    bson!({"$map": {"input": {"$range": [0, 2_000]}, "in": of}})
}

fn entries() -> Vec<(&'static str, Entry)> {
    let mut all = strings();
    all.extend(arrays());
    all.extend(objects());
    all.extend(bounded());
    all
}

fn strings() -> Vec<(&'static str, Entry)> {
    let long = bson!({"input": "$s", "find": "a", "replacement": "bbbbbbbb"});
    let by = |name: &str, operand: Bson| {
        Bson::Document([(name.to_owned(), operand)].into_iter().collect())
    };
    vec![
        (
            "$concat",
            Grows(
                bson!({"$reduce": {"input": {"$range": [0, 40]}, "initialValue": "ab",
            "in": {"$concat": ["$$value", "$$value"]}}}),
            ),
        ),
        ("$toLower", Grows(copies(bson!({"$toLower": "$p"})))),
        ("$toUpper", Grows(copies(bson!({"$toUpper": "$p"})))),
        ("$strcasecmp", Grows(bson!({"$strcasecmp": ["$s", "$s"]}))),
        ("$strLenBytes", Works(bson!({"$strLenBytes": "$s"}))),
        ("$strLenCP", Works(bson!({"$strLenCP": "$s"}))),
        ("$substr", Grows(copies(bson!({"$substr": ["$p", 0, -1]})))),
        (
            "$substrBytes",
            Grows(copies(bson!({"$substrBytes": ["$p", 0, -1]}))),
        ),
        (
            "$substrCP",
            Grows(copies(bson!({"$substrCP": ["$p", 0, 60_000]}))),
        ),
        ("$split", Grows(bson!({"$split": ["$s", "a"]}))),
        (
            "$indexOfBytes",
            Works(bson!({"$indexOfBytes": ["$s", "b"]})),
        ),
        ("$indexOfCP", Works(bson!({"$indexOfCP": ["$s", "b"]}))),
        (
            "$replaceOne",
            Grows(copies(bson!({"$replaceOne": {"input": "$p", "find": "a",
            "replacement": "$p"}}))),
        ),
        ("$replaceAll", Grows(by("$replaceAll", long))),
        (
            "$trim",
            Grows(bson!({"$trim": {"input": "$s", "chars": "$s"}})),
        ),
        (
            "$ltrim",
            Grows(bson!({"$ltrim": {"input": "$s", "chars": "$s"}})),
        ),
        (
            "$rtrim",
            Grows(bson!({"$rtrim": {"input": "$s", "chars": "$s"}})),
        ),
        (
            "$regexMatch",
            Works(bson!({"$regexMatch": {"input": "$s", "regex": "b$"}})),
        ),
        (
            "$regexFind",
            Works(bson!({"$regexFind": {"input": "$s", "regex": "b$"}})),
        ),
        (
            "$regexFindAll",
            Grows(bson!({"$regexFindAll": {"input": "$p", "regex": "(a)"}})),
        ),
        (
            "$convert",
            Grows(copies(bson!({"$convert": {"input": "$p", "to": "binData",
            "format": "utf8"}}))),
        ),
        ("$toString", Grows(copies(bson!({"$toString": 12.5})))),
        (
            "$dateToString",
            Grows(bson!({"$dateToString": {"date": {"$toDate": 0},
            "format": {"$reduce": {"input": {"$range": [0, 24]}, "initialValue": "%B",
            "in": {"$concat": ["$$value", "$$value"]}}}}})),
        ),
        (
            "$dateFromString",
            Works(bson!({"$dateFromString": {"dateString": "$s", "onError": 0}})),
        ),
        ("$binarySize", Bounded(SCALAR)),
    ]
}

fn arrays() -> Vec<(&'static str, Entry)> {
    let doubled = bson!({"$concatArrays": ["$$value", "$$value"]});
    vec![
        ("$range", Grows(bson!({"$range": [0, 200_000]}))),
        (
            "$concatArrays",
            Grows(bson!({"$reduce": {"input": {"$range": [0, 40]},
            "initialValue": [1], "in": doubled}})),
        ),
        ("$slice", Grows(copies(bson!({"$slice": ["$a", 3_000]})))),
        (
            "$reverseArray",
            Grows(copies(bson!({"$reverseArray": "$a"}))),
        ),
        ("$in", Works(bson!({"$in": [-1, "$a"]}))),
        ("$indexOfArray", Works(bson!({"$indexOfArray": ["$a", -1]}))),
        ("$map", Grows(copies(bson!("$a")))),
        (
            "$filter",
            Grows(bson!({"$filter": {"input": {"$range": [0, 200_000]}, "cond": true}})),
        ),
        (
            "$reduce",
            Grows(
                bson!({"$reduce": {"input": {"$range": [0, 60]}, "initialValue": [1],
            "in": ["$$value", "$$value"]}}),
            ),
        ),
        (
            "$let",
            Grows(bson!({"$let": {"vars": {"x": ["$a", "$a", "$a"]},
            "in": ["$$x", "$$x", "$$x", "$$x", "$$x", "$$x"]}})),
        ),
        (
            "$zip",
            Grows(bson!({"$zip": {"inputs": ["$a", "$a", "$d", "$d", "$d", "$d", "$d", "$d"]}})),
        ),
        (
            "$sortArray",
            Grows(bson!({"$sortArray": {"input": "$d", "sortBy": {"k": 1}}})),
        ),
        ("$setUnion", Grows(bson!({"$setUnion": ["$d", "$e", "$a"]}))),
        (
            "$setIntersection",
            Grows(bson!({"$setIntersection": ["$d", "$d"]})),
        ),
        (
            "$setDifference",
            Grows(bson!({"$setDifference": ["$d", "$a"]})),
        ),
        ("$setEquals", Grows(bson!({"$setEquals": ["$d", "$d"]}))),
        ("$setIsSubset", Grows(bson!({"$setIsSubset": ["$d", "$d"]}))),
        ("$anyElementTrue", Works(bson!({"$anyElementTrue": "$n"}))),
        ("$allElementsTrue", Works(bson!({"$allElementsTrue": "$a"}))),
        (
            "$firstN",
            Grows(copies(bson!({"$firstN": {"n": 3_000, "input": "$a"}}))),
        ),
        (
            "$lastN",
            Grows(copies(bson!({"$lastN": {"n": 3_000, "input": "$a"}}))),
        ),
        (
            "$minN",
            Grows(copies(bson!({"$minN": {"n": 3_000, "input": "$a"}}))),
        ),
        (
            "$maxN",
            Grows(copies(bson!({"$maxN": {"n": 3_000, "input": "$a"}}))),
        ),
        ("$sum", Works(bson!({"$sum": "$a"}))),
        ("$avg", Works(bson!({"$avg": "$a"}))),
        ("$min", Works(bson!({"$min": "$a"}))),
        ("$max", Works(bson!({"$max": "$a"}))),
        ("$stdDevPop", Works(bson!({"$stdDevPop": "$a"}))),
        ("$stdDevSamp", Works(bson!({"$stdDevSamp": "$a"}))),
        (
            "$median",
            Works(bson!({"$median": {"input": "$a", "method": "approximate"}})),
        ),
        (
            "$percentile",
            Grows(
                bson!({"$percentile": {"input": "$a", "method": "approximate",
            "p": copies(bson!(0.5))}}),
            ),
        ),
    ]
}

fn objects() -> Vec<(&'static str, Entry)> {
    vec![
        (
            "$mergeObjects",
            Grows(copies(bson!({"$mergeObjects": ["$o", "$o"]}))),
        ),
        (
            "$objectToArray",
            Grows(copies(bson!({"$objectToArray": "$o"}))),
        ),
        (
            "$arrayToObject",
            Grows(copies(bson!({"$arrayToObject": "$e"}))),
        ),
        (
            "$setField",
            Grows(copies(
                bson!({"$setField": {"field": "x", "input": "$o", "value": 1}}),
            )),
        ),
        (
            "$unsetField",
            Grows(copies(
                bson!({"$unsetField": {"field": "f1", "input": "$o"}}),
            )),
        ),
        (
            "$toHashedIndexKey",
            Grows(bson!({"$toHashedIndexKey": "$$ROOT"})),
        ),
        ("$bsonSize", Grows(bson!({"$bsonSize": "$$ROOT"}))),
        ("$eq", Works(copies(bson!({"$eq": ["$a", "$a"]})))),
        ("$ne", Works(copies(bson!({"$ne": ["$a", "$a"]})))),
        ("$cmp", Works(copies(bson!({"$cmp": ["$a", "$a"]})))),
        ("$gt", Works(copies(bson!({"$gt": ["$a", "$a"]})))),
        ("$gte", Works(copies(bson!({"$gte": ["$a", "$a"]})))),
        ("$lt", Works(copies(bson!({"$lt": ["$a", "$a"]})))),
        ("$lte", Works(copies(bson!({"$lte": ["$a", "$a"]})))),
    ]
}

fn bounded() -> Vec<(&'static str, Entry)> {
    let scalars = [
        "$abs",
        "$ceil",
        "$floor",
        "$sqrt",
        "$exp",
        "$ln",
        "$log10",
        "$log",
        "$pow",
        "$round",
        "$trunc",
        "$isNumber",
        "$subtract",
        "$divide",
        "$mod",
        "$bitNot",
        "$not",
        "$sin",
        "$cos",
        "$tan",
        "$asin",
        "$acos",
        "$atan",
        "$sinh",
        "$cosh",
        "$tanh",
        "$asinh",
        "$acosh",
        "$atanh",
        "$atan2",
        "$degreesToRadians",
        "$radiansToDegrees",
        "$rand",
        "$meta",
        "$toBool",
        "$toDouble",
        "$toInt",
        "$toLong",
        "$toDecimal",
        "$toObjectId",
        "$toUUID",
        "$type",
        "$isArray",
        "$size",
        "$tsSecond",
        "$tsIncrement",
    ];
    let arguments = [
        "$add",
        "$multiply",
        "$and",
        "$or",
        "$bitAnd",
        "$bitOr",
        "$bitXor",
    ];
    let one = [
        "$arrayElemAt",
        "$first",
        "$last",
        "$cond",
        "$ifNull",
        "$switch",
        "$getField",
        "$literal",
        "$const",
    ];
    let dates = [
        "$toDate",
        "$year",
        "$month",
        "$dayOfMonth",
        "$dayOfYear",
        "$dayOfWeek",
        "$week",
        "$hour",
        "$minute",
        "$second",
        "$millisecond",
        "$isoWeek",
        "$isoWeekYear",
        "$isoDayOfWeek",
        "$dateAdd",
        "$dateSubtract",
        "$dateDiff",
        "$dateFromParts",
        "$dateToParts",
        "$dateTrunc",
    ];
    let all = [
        (scalars.as_slice(), SCALAR),
        (arguments.as_slice(), ARGUMENTS),
        (one.as_slice(), ONE),
        (dates.as_slice(), DATE),
    ];
    let all = all.into_iter();
    all.flat_map(|(names, why)| names.iter().map(move |name| (*name, Bounded(why))))
        .collect()
}

fn evaluate(expr: &Expr, document: &Document) -> Result<Option<Bson>> {
    expr.evaluate(&Env::new(document, &Variables::default()))
}

#[test]
fn every_operator_has_its_entry() {
    complete(&vocabulary::expressions(), &entries());
    for (name, entry) in entries() {
        if let Bounded(why) = entry {
            assert!(!why.is_empty(), "{name}");
        }
    }
}

/// M1, by what the allocator counts.
#[test]
fn operators_stay_within_the_memory_limit() {
    let _alone = ALONE.lock();
    let document = large();
    for (name, entry) in entries() {
        let (form, grows) = match entry {
            Grows(form) => (form, true),
            Works(form) => (form, false),
            Bounded(_) => continue,
        };
        let expr = Expr::parse(&form, &Scope::new()).unwrap();
        // The value is dropped before the next form is evaluated.
        let outcome = limited(name, || evaluate(&expr, &document)).map(drop);
        if !grows {
            continue;
        }
        let often = bson!({"$map": {"input": {"$range": [0, 20]}, "in": form}});
        let expr = Expr::parse(&often, &Scope::new()).unwrap();
        let again = limited(name, || evaluate(&expr, &document)).map(drop);
        assert!(outcome.is_ok() || again.is_err(), "{name}");
    }
}

#[test]
fn operators_end_when_interrupted() {
    let _alone = ALONE.lock();
    let document = large();
    for (name, entry) in entries() {
        let (Grows(form) | Works(form)) = entry else {
            continue;
        };
        // Evaluated often, so that even a form that takes few steps reaches a check of the watch.
        let often = bson!({"$map": {"input": {"$range": [0, 2_000]}, "in": {"$size": [[form]]}}});
        let expr = Expr::parse(&often, &Scope::new()).unwrap();
        stopped(name, || evaluate(&expr, &document));
    }
}

#[test]
fn constants_are_not_computed_beyond_the_limits_while_they_are_parsed() {
    let _alone = ALONE.lock();
    let range = bson!({"$range": [0, 100_000_000]});
    let parse = |form: &Bson| Expr::parse(form, &Scope::new());
    assert!(limited("a constant range", || parse(&range)).is_ok());
    let many: Vec<Bson> = (0..1_000).map(|_| bson!({"$range": [0, 10_000]})).collect();
    assert!(limited("many constant ranges", || parse(&Bson::Array(many))).is_ok());
    let size = bson!({"$size": {"$range": [0, 700_000]}});
    stopped("a constant", || {
        parse(&size).and_then(|expr| evaluate(&expr, &Document::new()))
    });
}

//! Pipelines over documents, and their results.

mod join;
mod repeated;
mod sort_key;
mod spill;

use bson::{Bson, Document, bson, doc};

use super::harness::{Memory, parse};
use crate::{Code, Result};

fn documents(list: &Bson) -> Vec<Document> {
    let values = list.as_array().unwrap().iter();
    values
        .map(|value| value.as_document().unwrap().clone())
        .collect()
}

fn run(memory: &mut Memory, stages: &Bson, over: &Bson) -> Result<Vec<Document>> {
    memory.run(parse(stages)?, &documents(over))
}

fn shown(found: &[Document]) -> Vec<String> {
    found.iter().map(Document::to_string).collect()
}

/// Checks that the pipeline returns `expected`, in this order, both as given and optimized.
fn check_with(memory: &mut Memory, stages: Bson, over: Bson, expected: Bson) {
    let expected = shown(&documents(&expected));
    let found = run(memory, &stages, &over).map(|found| shown(&found));
    assert_eq!(found, Ok(expected.clone()), "{stages}");
    let optimized = parse(&stages).unwrap().optimize();
    let found = memory
        .run(optimized, &documents(&over))
        .map(|found| shown(&found));
    assert_eq!(found, Ok(expected), "optimized {stages}");
}

fn check(stages: Bson, over: Bson, expected: Bson) {
    check_with(&mut Memory::default(), stages, over, expected);
}

fn fails(stages: Bson, over: Bson, code: i32) {
    let error = run(&mut Memory::default(), &stages, &over).unwrap_err();
    assert_eq!(error.code, Code(code), "{stages}: {error}");
}

fn numbers() -> Bson {
    bson!([{"_id": 1, "a": 3}, {"_id": 2, "a": 1}, {"_id": 3, "a": 2}, {"_id": 4, "a": 1}])
}

#[test]
fn simple_stages() {
    check(
        bson!([{"$match": {"a": 1}}]),
        numbers(),
        bson!([{"_id": 2, "a": 1}, {"_id": 4, "a": 1}]),
    );
    check(
        bson!([{"$skip": 1}, {"$limit": 2}, {"$project": {"a": 1, "_id": 0}}]),
        numbers(),
        bson!([{"a": 1}, {"a": 2}]),
    );
    check(bson!([{"$skip": 9}]), numbers(), bson!([]));
    check(
        bson!([{"$match": {"a": {"$gt": 1}}}, {"$count": "n"}]),
        numbers(),
        bson!([{"n": 2}]),
    );
    check(
        bson!([{"$match": {"a": 9}}, {"$count": "n"}]),
        numbers(),
        bson!([]),
    );
    check(
        bson!([{"$limit": 1}, {"$set": {"b": {"$multiply": ["$a", 2]}}}, {"$unset": ["_id"]}]),
        numbers(),
        bson!([{"a": 3, "b": 6}]),
    );
    check(
        bson!([{"$limit": 1}, {"$replaceRoot": {"newRoot": {"x": "$a"}}}]),
        numbers(),
        bson!([{"x": 3}]),
    );
    fails(bson!([{"$replaceWith": "$a"}]), numbers(), 40_228);
    check(
        bson!([{"$documents": [{"a": 1}, {"a": {"$add": [1, 1]}}]}]),
        bson!([]),
        bson!([{"a": 1}, {"a": 2}]),
    );
    fails(bson!([{"$documents": 1}]), bson!([]), 5_858_203);
    check(
        bson!([{"$indexStats": {}}]),
        bson!([]),
        bson!([{"name": "$indexStats"}]),
    );
}

#[test]
fn redact_descends_and_prunes() {
    check(
        bson!([{"$redact": {"$cond": [{"$gt": ["$level", 3]}, "$$PRUNE", "$$DESCEND"]}}]),
        bson!([
            {"level": 1, "x": {"level": 5, "y": 1}, "z": [{"level": 2}, {"level": 4}, 7]},
            {"level": 4},
        ]),
        bson!([{"level": 1, "z": [{"level": 2}, 7]}]),
    );
    check(
        bson!([{"$redact": "$$KEEP"}]),
        bson!([{"a": {"b": 1}}]),
        bson!([{"a": {"b": 1}}]),
    );
    fails(bson!([{"$redact": "x"}]), bson!([{}]), 17_053);
}

#[test]
fn sorts_are_stable() {
    check(
        bson!([{"$sort": {"a": 1}}]),
        numbers(),
        bson!([{"_id": 2, "a": 1}, {"_id": 4, "a": 1}, {"_id": 3, "a": 2}, {"_id": 1, "a": 3}]),
    );
    check(
        bson!([{"$sort": {"a": -1, "_id": -1}}, {"$skip": 1}, {"$limit": 2}]),
        numbers(),
        bson!([{"_id": 3, "a": 2}, {"_id": 4, "a": 1}]),
    );
    check(
        bson!([{"$sort": {"a": 1}}, {"$limit": 2}]),
        numbers(),
        bson!([{"_id": 2, "a": 1}, {"_id": 4, "a": 1}]),
    );
}

#[test]
fn unwind_takes_arrays_apart() {
    let over = bson!([
        {"_id": 1, "a": [7, 8], "b": 1},
        {"_id": 2, "a": []},
        {"_id": 3, "a": null},
        {"_id": 4},
        {"_id": 5, "a": 9},
    ]);
    check(
        bson!([{"$unwind": "$a"}]),
        over.clone(),
        bson!([{"_id": 1, "a": 7, "b": 1}, {"_id": 1, "a": 8, "b": 1}, {"_id": 5, "a": 9}]),
    );
    check(
        bson!([{"$unwind": {
            "path": "$a", "preserveNullAndEmptyArrays": true, "includeArrayIndex": "i",
        }}]),
        over,
        bson!([
            {"_id": 1, "a": 7, "b": 1, "i": 0i64},
            {"_id": 1, "a": 8, "b": 1, "i": 1i64},
            {"_id": 2, "i": null},
            {"_id": 3, "a": null, "i": null},
            {"_id": 4, "i": null},
            {"_id": 5, "a": 9, "i": null},
        ]),
    );
    check(
        bson!([{"$unwind": "$a.b"}]),
        bson!([{"a": {"x": 1, "b": [1, 2]}}, {"a": [{"b": [1]}]}]),
        bson!([{"a": {"x": 1, "b": 1}}, {"a": {"x": 1, "b": 2}}]),
    );
}

#[test]
fn groups_gather() {
    check(
        bson!([{"$group": {"_id": "$a", "n": {"$sum": 1}, "ids": {"$push": "$_id"}}}]),
        numbers(),
        bson!([
            {"_id": 3, "n": 1, "ids": [1]},
            {"_id": 1, "n": 2, "ids": [2, 4]},
            {"_id": 2, "n": 1, "ids": [3]},
        ]),
    );
    check(
        bson!([{"$group": {
            "_id": null, "s": {"$sum": "$a"}, "avg": {"$avg": "$a"}, "first": {"$first": "$_id"},
        }}]),
        numbers(),
        bson!([{"_id": null, "s": 7, "avg": 1.75, "first": 1}]),
    );
    check(
        bson!([{"$group": {"_id": null, "n": {"$sum": 1}}}]),
        bson!([]),
        bson!([]),
    );
    // Equal numbers of different types form one group; a missing key is null.
    check(
        bson!([{"$group": {"_id": "$a", "n": {"$sum": 1}}}]),
        bson!([{"a": 1}, {"a": 1.0}, {"a": 1i64}, {}, {"a": null}]),
        bson!([{"_id": 1, "n": 3}, {"_id": null, "n": 2}]),
    );
    check(
        bson!([{"$group": {"_id": {"x": "$a", "y": "$b"}}}]),
        bson!([{"a": 1, "b": 2}, {"a": 1}]),
        bson!([{"_id": {"x": 1, "y": 2}}, {"_id": {"x": 1}}]),
    );
    check(
        bson!([{"$sortByCount": "$a"}, {"$limit": 1}]),
        numbers(),
        bson!([{"_id": 1, "count": 2}]),
    );
}

#[test]
fn buckets_divide() {
    check(
        bson!([{"$bucket": {"groupBy": "$a", "boundaries": [0, 2, 3], "default": "other"}}]),
        numbers(),
        bson!([{"_id": 0, "count": 2}, {"_id": 2, "count": 1}, {"_id": "other", "count": 1}]),
    );
    fails(
        bson!([{"$bucket": {"groupBy": "$a", "boundaries": [0, 2]}}]),
        numbers(),
        40_066,
    );
    check(
        bson!([{"$bucketAuto": {"groupBy": "$a", "buckets": 2}}]),
        numbers(),
        bson!([
            {"_id": {"min": 1, "max": 2}, "count": 2},
            {"_id": {"min": 2, "max": 3}, "count": 2},
        ]),
    );
    check(
        bson!([{"$bucketAuto": {
            "groupBy": "$a", "buckets": 2, "output": {"m": {"$max": "$_id"}},
        }}]),
        bson!([{"_id": 1, "a": 1}, {"_id": 2, "a": 1}, {"_id": 3, "a": 1}, {"_id": 4, "a": 5}]),
        bson!([{"_id": {"min": 1, "max": 5}, "m": 3}, {"_id": {"min": 5, "max": 5}, "m": 4}]),
    );
    check(
        bson!([{"$bucketAuto": {"groupBy": "$a", "buckets": 2, "granularity": "POWERSOF2"}}]),
        numbers(),
        bson!([
            {"_id": {"min": 0.5, "max": 2.0}, "count": 2},
            {"_id": {"min": 2.0, "max": 4.0}, "count": 2},
        ]),
    );
    check(
        bson!([{"$bucketAuto": {"groupBy": "$a", "buckets": 3}}]),
        bson!([]),
        bson!([]),
    );
    fails(
        bson!([{"$bucketAuto": {"groupBy": "$a", "buckets": 1, "granularity": "R5"}}]),
        bson!([{"a": "x"}]),
        40_258,
    );
}

#[test]
fn samples_are_parts() {
    let over: Vec<Document> = (0..100).map(|n| doc! {"_id": n}).collect();
    let mut memory = Memory::default();
    let found = memory
        .run(parse(&bson!([{"$sample": {"size": 10}}])).unwrap(), &over)
        .unwrap();
    assert_eq!(found.len(), 10);
    let mut ids: Vec<i32> = found.iter().map(|d| d.get_i32("_id").unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10);
    let found = memory
        .run(parse(&bson!([{"$sample": {"size": 1000}}])).unwrap(), &over)
        .unwrap();
    assert_eq!(found.len(), 100);
}

#[test]
fn results_are_written() {
    let mut memory = Memory::default();
    let found = run(
        &mut memory,
        &bson!([{"$match": {"a": 1}}, {"$out": "t"}]),
        &numbers(),
    );
    assert_eq!(found, Ok(vec![]));
    assert_eq!(memory.collections["t"].len(), 2);
    let stages = bson!([
        {"$set": {"b": 1}},
        {"$merge": {"into": "t", "whenMatched": "merge", "whenNotMatched": "insert"}},
    ]);
    assert_eq!(run(&mut memory, &stages, &numbers()), Ok(vec![]));
    assert_eq!(memory.collections["t"].len(), 4);
    assert_eq!(memory.collections["t"][0], doc! {"_id": 2, "a": 1, "b": 1});
}

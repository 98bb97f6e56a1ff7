//! Pipelines over documents, and their results.

use bson::{Bson, Document, RawArrayBuf, RawBson, RawDocumentBuf, bson, doc};

use super::harness::{Memory, parse};
use crate::pipeline::Pipeline;
use crate::settings::Settings;
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

fn stock() -> Memory {
    let documents = bson!([
        {"_id": 1, "sku": "a", "n": 5},
        {"_id": 2, "sku": "b", "n": 6},
        {"_id": 3, "sku": null, "n": 7},
        {"_id": 4, "n": 8},
    ]);
    Memory::with("stock", self::documents(&documents))
}

#[test]
fn lookup_finds_equal_values() {
    let lookup = bson!({"$lookup": {
        "from": "stock", "localField": "item", "foreignField": "sku", "as": "found",
    }});
    check_with(
        &mut stock(),
        bson!([lookup.clone(), {"$set": {"found": "$found._id"}}]),
        bson!([{"item": "a"}, {"item": ["a", "b"]}, {}, {"item": []}, {"item": "z"}]),
        bson!([
            {"item": "a", "found": [1]},
            {"item": ["a", "b"], "found": [1, 2]},
            {"found": [3, 4]},
            {"item": [], "found": []},
            {"item": "z", "found": []},
        ]),
    );
    check_with(
        &mut stock(),
        bson!([
            lookup.clone(),
            {"$unwind": {"path": "$found", "includeArrayIndex": "i"}},
            {"$unset": "found.sku"},
        ]),
        bson!([{"item": ["a", "b"]}, {"item": "z"}]),
        bson!([
            {"item": ["a", "b"], "found": {"_id": 1, "n": 5}, "i": 0i64},
            {"item": ["a", "b"], "found": {"_id": 2, "n": 6}, "i": 1i64},
        ]),
    );
    check_with(
        &mut stock(),
        bson!([lookup, {"$unwind": {"path": "$found", "preserveNullAndEmptyArrays": true}}]),
        bson!([{"item": "z"}]),
        bson!([{"item": "z"}]),
    );
}

#[test]
fn lookup_runs_pipelines() {
    check_with(
        &mut stock(),
        bson!([{"$lookup": {
            "from": "stock",
            "let": {"least": "$n"},
            "pipeline": [
                {"$match": {"$expr": {"$gt": ["$n", "$$least"]}}},
                {"$project": {"n": 1, "_id": 0}},
            ],
            "as": "more",
        }}]),
        bson!([{"n": 6}, {"n": 9}]),
        bson!([{"n": 6, "more": [{"n": 7}, {"n": 8}]}, {"n": 9, "more": []}]),
    );
    check_with(
        &mut stock(),
        bson!([{"$lookup": {"from": "stock", "pipeline": [{"$count": "n"}], "as": "all"}}]),
        bson!([{"_id": 1}, {"_id": 2}]),
        bson!([{"_id": 1, "all": [{"n": 4}]}, {"_id": 2, "all": [{"n": 4}]}]),
    );
    check_with(
        &mut stock(),
        bson!([{"$lookup": {
            "from": "stock", "localField": "item", "foreignField": "sku",
            "pipeline": [{"$project": {"n": 1}}], "as": "found",
        }}]),
        bson!([{"item": "b"}]),
        bson!([{"item": "b", "found": [{"_id": 2, "n": 6}]}]),
    );
    check(
        bson!([{"$lookup": {"pipeline": [{"$documents": [{"x": 1}]}], "as": "d"}}]),
        bson!([{"_id": 1}]),
        bson!([{"_id": 1, "d": [{"x": 1}]}]),
    );
}

#[test]
fn variables_of_a_lookup_reach_filters_beside_equal_fields() {
    check_with(
        &mut stock(),
        bson!([{"$lookup": {
            "from": "stock", "localField": "item", "foreignField": "sku",
            "let": {"least": "$n"},
            "pipeline": [
                {"$match": {"$expr": {"$gte": ["$n", "$$least"]}}},
                {"$project": {"_id": 1}},
            ],
            "as": "found",
        }}]),
        bson!([{"item": ["a", "b"], "n": 6}, {"item": ["a", "b"], "n": 1}, {"item": "a", "n": 6}]),
        bson!([
            {"item": ["a", "b"], "n": 6, "found": [{"_id": 2}]},
            {"item": ["a", "b"], "n": 1, "found": [{"_id": 1}, {"_id": 2}]},
            {"item": "a", "n": 6, "found": []},
        ]),
    );
}

/// `{name: value, name: value, ..}`; names may repeat.
fn repeated(fields: &[(&str, Bson)]) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    for (name, value) in fields {
        let name = bson::raw::CString::try_from(*name).unwrap();
        document.append(name, RawBson::try_from(value.clone()).unwrap());
    }
    document
}

fn stage_of(name: &str, spec: impl Into<RawBson>) -> RawDocumentBuf {
    let mut stage = RawDocumentBuf::new();
    stage.append(bson::raw::CString::try_from(name).unwrap(), spec.into());
    stage
}

fn raw_pipeline(stages: &[RawDocumentBuf]) -> RawArrayBuf {
    stages.iter().cloned().collect()
}

#[test]
fn every_condition_on_a_field_that_is_repeated_counts() {
    // The stock has `n` from 5 to 8. An owned document keeps only the second condition, and 5 and 6
    // would match, too.
    let filter = repeated(&[("n", bson!({"$gt": 6})), ("n", bson!({"$lt": 8}))]);
    let matching = stage_of("$match", filter.clone());
    let inner = raw_pipeline(std::slice::from_ref(&matching));
    let spec = |fields: &[(&str, &str)], last: (&str, RawBson)| {
        let mut spec = RawDocumentBuf::new();
        for (name, text) in fields {
            spec.append(bson::raw::CString::try_from(*name).unwrap(), *text);
        }
        spec.append(bson::raw::CString::try_from(last.0).unwrap(), last.1);
        spec
    };
    let pipeline = || ("pipeline", RawBson::Array(inner.clone()));
    let lookup = spec(&[("from", "stock"), ("as", "found")], pipeline());
    let graph = spec(
        &[
            ("from", "stock"),
            ("startWith", "$start"),
            ("connectFromField", "none"),
            ("connectToField", "kind"),
            ("as", "found"),
        ],
        ("restrictSearchWithMatch", RawBson::Document(filter)),
    );
    let counted = |stages: &[RawDocumentBuf], over: Bson| {
        let pipeline = Pipeline::parse_raw(&raw_pipeline(stages), &Settings::default()).unwrap();
        let documents = bson!([
            {"_id": 1, "n": 5, "kind": 1}, {"_id": 2, "n": 6, "kind": 1},
            {"_id": 3, "n": 7, "kind": 1}, {"_id": 4, "n": 8, "kind": 1},
        ]);
        let mut memory = Memory::with("stock", self::documents(&documents));
        let over = if over == Bson::Null { documents } else { over };
        let found = memory.run(pipeline, &self::documents(&over)).unwrap();
        found
            .iter()
            .map(Document::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let seven = doc! {"_id": 3, "n": 7, "kind": 1}.to_string();
    assert_eq!(counted(&[matching], Bson::Null), seven);
    let facet = spec(&[], ("f", RawBson::Array(inner.clone())));
    let found = counted(&[stage_of("$facet", facet)], Bson::Null);
    assert_eq!(
        found,
        doc! {"f": [{"_id": 3, "n": 7, "kind": 1}]}.to_string()
    );
    let union = spec(&[("coll", "stock")], pipeline());
    assert_eq!(counted(&[stage_of("$unionWith", union)], bson!([])), seven);
    for stage in [stage_of("$lookup", lookup), stage_of("$graphLookup", graph)] {
        let found = counted(&[stage], bson!([{"start": 1}]));
        let one = doc! {"start": 1, "found": [{"_id": 3, "n": 7, "kind": 1}]};
        assert_eq!(found, one.to_string());
    }
}

#[test]
fn options_of_stages_are_given_once() {
    for stage in ["$lookup", "$graphLookup", "$unionWith"] {
        let spec = repeated(&[
            ("from", bson!("a")),
            ("as", bson!("x")),
            ("from", bson!("b")),
        ]);
        let stages = raw_pipeline(&[stage_of(stage, spec)]);
        let error = Pipeline::parse_raw(&stages, &Settings::default()).unwrap_err();
        assert_eq!(error.code, Code(40_413), "{stage}: {error}");
    }
}

#[test]
fn graph_lookup_walks() {
    let people = bson!([
        {"_id": 1, "name": "a", "to": "b"},
        {"_id": 2, "name": "b", "to": ["c", "d"]},
        {"_id": 3, "name": "c", "to": "a"},
        {"_id": 4, "name": "d"},
    ]);
    let mut memory = Memory::with("people", documents(&people));
    let graph = |extra: Document| {
        let mut spec = doc! {
            "from": "people", "startWith": "$start", "connectFromField": "to",
            "connectToField": "name", "as": "reached",
        };
        spec.extend(extra);
        bson!([{"$graphLookup": spec}, {"$set": {"reached": {"$map": {
            "input": "$reached", "in": ["$$this._id", {"$ifNull": ["$$this.depth", "none"]}],
        }}}}])
    };
    check_with(
        &mut memory,
        graph(doc! {"depthField": "depth"}),
        bson!([{"start": "a"}]),
        bson!([{"start": "a", "reached": [[1, 0i64], [2, 1i64], [3, 2i64], [4, 2i64]]}]),
    );
    check_with(
        &mut memory,
        graph(doc! {"maxDepth": 1}),
        bson!([{"start": "a"}]),
        bson!([{"start": "a", "reached": [[1, "none"], [2, "none"]]}]),
    );
    check_with(
        &mut memory,
        graph(doc! {"restrictSearchWithMatch": {"_id": {"$lt": 4}}, "depthField": "depth"}),
        bson!([{"start": ["b"]}]),
        bson!([{"start": ["b"], "reached": [[2, 0i64], [3, 1i64], [1, 2i64]]}]),
    );
}

#[test]
fn unions_and_facets() {
    check_with(
        &mut stock(),
        bson!([{"$unionWith": {"coll": "stock", "pipeline": [{"$match": {"n": 5}}]}}]),
        bson!([{"_id": 0}]),
        bson!([{"_id": 0}, {"_id": 1, "sku": "a", "n": 5}]),
    );
    check(
        bson!([{"$unionWith": {"pipeline": [{"$documents": [{"x": 1}]}]}}]),
        bson!([{"_id": 0}]),
        bson!([{"_id": 0}, {"x": 1}]),
    );
    check(
        bson!([{"$facet": {
            "n": [{"$count": "n"}],
            "top": [{"$sort": {"a": -1}}, {"$limit": 1}],
            "none": [{"$match": {"a": 99}}],
        }}]),
        numbers(),
        bson!([{"n": [{"n": 4}], "top": [{"_id": 1, "a": 3}], "none": []}]),
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

/// Documents with long texts, `count` of them, in `groups` groups.
fn many(count: i32, groups: i32) -> Vec<Document> {
    let text = "x".repeat(100);
    let document = |n: i32| doc! {"_id": n, "g": (n * 7919) % groups, "t": text.as_str()};
    (0..count).map(document).collect()
}

#[test]
fn large_sorts_spill_and_stay_stable() {
    let over = many(2000, 50);
    for stages in [
        bson!([{"$sort": {"g": 1}}]),
        bson!([{"$sort": {"g": -1, "_id": -1}}]),
        bson!([{"$sort": {"g": 1}}, {"$limit": 700}]),
        bson!([{"$bucketAuto": {
            "groupBy": "$g", "buckets": 7, "output": {"ids": {"$push": "$_id"}},
        }}]),
    ] {
        let pipeline = || parse(&stages).unwrap().optimize();
        let expected = Memory::default().run(pipeline(), &over).unwrap();
        let mut small = Memory {
            limit: Some(50_000),
            ..Memory::default()
        };
        let found = small.run(pipeline(), &over).unwrap();
        assert!(small.spills > 3, "{stages} spilled {} times", small.spills);
        assert_eq!(found, expected, "O2: stable: {stages}");
    }
    let stages = parse(&bson!([{"$sort": {"g": 1}}])).unwrap();
    let mut small = Memory {
        limit: Some(20_000),
        no_disk: true,
        ..Memory::default()
    };
    assert_eq!(small.run(stages, &over).unwrap_err().code, Code(292));
    // A sort with a small limit does not spill.
    let stages = parse(&bson!([{"$sort": {"g": 1}}, {"$limit": 5}]))
        .unwrap()
        .optimize();
    let mut small = Memory {
        limit: Some(20_000),
        no_disk: true,
        ..Memory::default()
    };
    assert_eq!(small.run(stages, &over).map(|found| found.len()), Ok(5));
    assert_eq!(small.spills, 0);
}

#[test]
fn large_groups_spill() {
    let over = many(5000, 3000);
    let stages = bson!([
        {"$group": {
            "_id": "$g", "n": {"$sum": 1}, "first": {"$first": "$_id"}, "last": {"$last": "$_id"},
        }},
        {"$sort": {"_id": 1}},
    ]);
    let expected = Memory::default()
        .run(parse(&stages).unwrap(), &over)
        .unwrap();
    assert_eq!(expected.len(), 3000);
    for limit in [600_000, 60_000, 20_000] {
        let mut small = Memory {
            limit: Some(limit),
            ..Memory::default()
        };
        let found = small.run(parse(&stages).unwrap(), &over).unwrap();
        assert!(small.spills > 10, "{limit}: {}", small.spills);
        assert_eq!(found, expected, "{limit}");
    }
    let mut small = Memory {
        limit: Some(60_000),
        no_disk: true,
        ..Memory::default()
    };
    assert_eq!(
        small.run(parse(&stages).unwrap(), &over).unwrap_err().code,
        Code(292)
    );
    // A single group that grows too large cannot be divided.
    let stages = parse(&bson!([{"$group": {"_id": null, "t": {"$push": "$t"}}}])).unwrap();
    let mut small = Memory {
        limit: Some(60_000),
        ..Memory::default()
    };
    assert_eq!(small.run(stages, &over).unwrap_err().code, Code(146));
}

#[test]
fn large_facets_spill() {
    let over = many(500, 5);
    let stages = bson!([{"$facet": {
        "a": [{"$count": "n"}],
        "b": [{"$group": {"_id": "$g"}}, {"$sort": {"_id": 1}}],
    }}]);
    let expected = Memory::default()
        .run(parse(&stages).unwrap(), &over)
        .unwrap();
    let mut small = Memory {
        limit: Some(20_000),
        ..Memory::default()
    };
    let found = small.run(parse(&stages).unwrap(), &over).unwrap();
    assert_eq!(small.spills, 2);
    assert_eq!(found, expected);
}

#[test]
fn what_takes_rows_apart_or_adds_to_them_keeps_the_key_of_the_sort() {
    let mut memory = Memory::with(
        "other",
        vec![doc! {"_id": 7, "b": 1}, doc! {"_id": 8, "b": 1}],
    );
    let over = bson!([
        {"_id": 1, "a": 2, "x": [1, 2]},
        {"_id": 2, "a": 1, "x": 1},
        {"_id": 3, "a": 3, "x": []},
        {"_id": 4, "a": 4}
    ]);
    let key = || bson!({"$project": {"_id": 1, "k": {"$meta": "sortKey"}}});
    let sort = || bson!({"$sort": {"a": 1}});
    let whole = bson!([
        {"_id": 2, "k": [1]}, {"_id": 1, "k": [2]}, {"_id": 3, "k": [3]}, {"_id": 4, "k": [4]}
    ]);
    // An array of two elements, a value that is not an array, and a document without a value.
    let parts = bson!([
        {"_id": 2, "k": [1]}, {"_id": 1, "k": [2]}, {"_id": 1, "k": [2]}, {"_id": 3, "k": [3]},
        {"_id": 4, "k": [4]}
    ]);
    let unwind =
        |path: &str| bson!({"$unwind": {"path": path, "preserveNullAndEmptyArrays": true}});
    let stages = bson!([sort(), unwind("$x"), key()]);
    check_with(&mut memory, stages, over.clone(), parts);
    let lookup = bson!({"$lookup": {
        "from": "other", "localField": "x", "foreignField": "b", "as": "o"
    }});
    let graph = bson!({"$graphLookup": {
        "from": "other", "startWith": "$x", "connectFromField": "none", "connectToField": "b",
        "as": "o"
    }});
    let found = bson!([
        {"_id": 2, "k": [1]}, {"_id": 2, "k": [1]}, {"_id": 1, "k": [2]}, {"_id": 1, "k": [2]},
        {"_id": 3, "k": [3]}, {"_id": 4, "k": [4]}
    ]);
    for join in [lookup, graph] {
        let stages = bson!([sort(), join.clone(), key()]);
        check_with(&mut memory, stages, over.clone(), whole.clone());
        let stages = bson!([sort(), join, unwind("$o"), key()]);
        check_with(&mut memory, stages, over.clone(), found.clone());
    }
}

#[test]
fn stages_that_part_and_order_rows_set_their_sort_key() {
    let key = || bson!({"$project": {"_id": 1, "k": {"$meta": "sortKey"}}});
    let over = || {
        bson!([
            {"_id": 1, "p": "y", "a": 3}, {"_id": 2, "p": "x", "a": 1}, {"_id": 3, "p": "x", "a": 2}
        ])
    };
    let sorted = |stage: Bson, expected: Bson| {
        let sort = bson!({"$sort": {"_id": -1}});
        check(bson!([sort, stage, key()]), over(), expected);
    };
    let n = || bson!({"n": {"$sum": 1}});
    sorted(
        bson!({"$setWindowFields": {"output": n()}}),
        bson!([{"_id": 3, "k": [3]}, {"_id": 2, "k": [2]}, {"_id": 1, "k": [1]}]),
    );
    let parted = bson!([
        {"_id": 2, "k": ["x", 1]}, {"_id": 3, "k": ["x", 2]}, {"_id": 1, "k": ["y", 3]}
    ]);
    // A field of `partitionBy` does not order documents within a partition.
    for order in [bson!({"a": 1}), bson!({"p": -1, "a": 1})] {
        let stage = bson!({"$setWindowFields": {
            "partitionBy": "$p", "sortBy": order, "output": n()
        }});
        sorted(stage, parted.clone());
    }
    let fill = bson!({"$fill": {"sortBy": {"a": 1}, "output": {"z": {"method": "locf"}}}});
    let by_a = bson!([{"_id": 2, "k": [1]}, {"_id": 3, "k": [2]}, {"_id": 1, "k": [3]}]);
    sorted(fill, by_a);
    let fill = bson!({"$fill": {"output": {"z": {"value": 1}}}});
    sorted(
        fill,
        bson!([{"_id": 3, "k": [3]}, {"_id": 2, "k": [2]}, {"_id": 1, "k": [1]}]),
    );
    let densify = bson!({"$densify": {
        "field": "a", "partitionByFields": ["p"], "range": {"step": 1, "bounds": [2, 4]}
    }});
    let made = bson!([
        {"_id": 2, "k": ["x", 1]}, {"_id": 3, "k": ["x", 2]}, {}, {}, {"_id": 1, "k": ["y", 3]}
    ]);
    sorted(densify, made);
}

#[test]
fn the_key_of_a_sort_is_refused_where_it_is_not_known() {
    let key = || bson!({"$meta": "sortKey"});
    let sort = || bson!({"$sort": {"a": 1}});
    for stage in [
        bson!({"$group": {"_id": null, "k": {"$push": key()}}}),
        bson!({"$group": {"_id": key()}}),
        bson!({"$bucketAuto": {"groupBy": "$a", "buckets": 1, "output": {"k": {"$push": key()}}}}),
        bson!({"$match": {"$expr": {"$eq": [key(), [1]]}}}),
        bson!({"$lookup": {"from": "b", "let": {"k": key()}, "pipeline": [], "as": "o"}}),
        bson!({"$merge": {"into": "b", "let": {"k": key()}}}),
        bson!({"$setWindowFields": {"output": {"k": {"$push": key()}}}}),
    ] {
        fails(bson!([sort(), stage]), numbers(), 168);
    }
    let shown = || bson!({"$project": {"_id": 0, "a": 1, "k": key()}});
    fails(
        bson!([sort(), {"$facet": {"f": [shown(), sort()]}}]),
        numbers(),
        17_308,
    );
    let stages = bson!([{"$facet": {"f": [sort(), shown(), {"$limit": 1}]}}]);
    check(stages, numbers(), bson!([{"f": [{"a": 1, "k": [1]}]}]));
    for stage in [
        bson!({"$set": {"k": key()}}),
        bson!({"$replaceWith": {"k": key()}}),
        bson!({"$replaceRoot": {"newRoot": {"k": key()}}}),
    ] {
        let stages = bson!([sort(), {"$limit": 1}, stage, {"$project": {"_id": 0, "k": 1}}]);
        check(stages, numbers(), bson!([{"k": [1]}]));
    }
}

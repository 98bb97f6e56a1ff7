//! Pipelines that read other collections, and facets.

use bson::{Document, bson, doc};

use super::{check, check_with, documents, numbers};
use crate::execute::harness::Memory;

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

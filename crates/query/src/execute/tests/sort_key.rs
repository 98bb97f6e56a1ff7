//! The key by which a document was sorted.

use bson::{Bson, bson, doc};

use super::{check, check_with, fails, numbers};
use crate::execute::harness::Memory;

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

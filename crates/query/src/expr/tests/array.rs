//! Arrays and sets.

use bson::{Bson, bson, doc};

use super::{check, refuse};

#[test]
fn elements_and_slices() {
    let d = doc! { "a": [1, 2, 3], "n": null, "o": {} };
    check(
        doc! { "$arrayElemAt": ["$a", -1] },
        d.clone(),
        Bson::Int32(3),
    );
    check(doc! { "$arrayElemAt": ["$a", 3] }, d.clone(), None);
    check(doc! { "$arrayElemAt": ["$a", -4] }, d.clone(), None);
    check(doc! { "$arrayElemAt": ["$n", 0] }, d.clone(), Bson::Null);
    check(doc! { "$first": "$a" }, d.clone(), Bson::Int32(1));
    check(doc! { "$last": [[]] }, d.clone(), None);
    check(doc! { "$slice": ["$a", 2] }, d.clone(), bson!([1, 2]));
    check(doc! { "$slice": ["$a", -2] }, d.clone(), bson!([2, 3]));
    check(doc! { "$slice": ["$a", 1, 5] }, d.clone(), bson!([2, 3]));
    check(doc! { "$slice": ["$a", -9, 2] }, d.clone(), bson!([1, 2]));
    check(doc! { "$size": "$a" }, d.clone(), Bson::Int32(3));
    check(doc! { "$reverseArray": "$a" }, d.clone(), bson!([3, 2, 1]));
    check(doc! { "$isArray": ["$a"] }, d.clone(), Bson::Boolean(true));
    check(
        doc! { "$concatArrays": ["$a", [4]] },
        d.clone(),
        bson!([1, 2, 3, 4]),
    );
    refuse(
        doc! { "$arrayElemAt": ["$o", 0] },
        d.clone(),
        28_689,
        "but is object",
    );
    refuse(
        doc! { "$arrayElemAt": ["$a", 1.5] },
        d.clone(),
        28_691,
        "32-bit integer: 1.5",
    );
    refuse(
        doc! { "$slice": ["$a", 1, 0] },
        d.clone(),
        28_729,
        "must be positive: 0",
    );
    refuse(
        doc! { "$size": "$x" },
        d.clone(),
        17_124,
        "was of type: missing",
    );
    refuse(
        doc! { "$concatArrays": ["$a", 1] },
        d,
        28_664,
        "only supports arrays, not int",
    );
}

#[test]
fn searches_and_ranges() {
    let d = doc! { "a": [1, 2.0, "x", 2] };
    check(
        doc! { "$in": [2_i64, "$a"] },
        d.clone(),
        Bson::Boolean(true),
    );
    check(
        doc! { "$indexOfArray": ["$a", 2] },
        d.clone(),
        Bson::Int32(1),
    );
    check(
        doc! { "$indexOfArray": ["$a", 2, 2] },
        d.clone(),
        Bson::Int32(3),
    );
    check(
        doc! { "$indexOfArray": ["$a", 2, 2, 3] },
        d.clone(),
        Bson::Int32(-1),
    );
    check(doc! { "$range": [0, 7, 3] }, d.clone(), bson!([0, 3, 6]));
    check(doc! { "$range": [5, 0, -2] }, d.clone(), bson!([5, 3, 1]));
    check(doc! { "$range": [5, 0] }, d.clone(), bson!([]));
    refuse(
        doc! { "$in": [1, "$x"] },
        d.clone(),
        40_081,
        "found: missing",
    );
    refuse(
        doc! { "$range": [0, 1, 0] },
        d.clone(),
        34_449,
        "non-zero step",
    );
    refuse(
        doc! { "$range": ["a", 1] },
        d.clone(),
        34_443,
        "numeric starting value",
    );
    refuse(doc! { "$range": [0, i32::MAX] }, d, 146, "too much memory");
}

#[test]
fn functions_over_elements() {
    let d = doc! { "a": [3, 1, 2], "k": 10 };
    let map = doc! { "$map": { "input": "$a", "as": "x", "in": { "$add": ["$$x", "$k"] } } };
    check(map, d.clone(), bson!([13, 11, 12]));
    let map = doc! { "$map": { "input": "$a", "in": "$$this.x" } };
    check(map, d.clone(), bson!([null, null, null]));
    let filter = |limit: Bson| {
        doc! { "$filter": {
        "input": "$a", "cond": { "$gt": ["$$this", 1] }, "limit": limit } }
    };
    check(filter(Bson::Null), d.clone(), bson!([3, 2]));
    check(filter(bson!(1)), d.clone(), bson!([3]));
    refuse(filter(bson!(0)), d.clone(), 327_392, "greater than 0");
    let reduce = doc! { "$reduce": { "input": "$a", "initialValue": "",
    "in": { "$concat": ["$$value", { "$toString": "$$this" }] } } };
    check(reduce, d.clone(), bson!("312"));
    refuse(
        doc! { "$map": { "input": 1, "in": 1 } },
        d.clone(),
        16_883,
        "array not int",
    );
    refuse(
        doc! { "$filter": { "input": [], "as": "x" } },
        d.clone(),
        28_650,
        "Missing 'cond'",
    );
    refuse(
        doc! { "$reduce": { "input": [] } },
        d.clone(),
        40_078,
        "'initialValue'",
    );
    refuse(
        doc! { "$map": { "input": [], "in": "$$that" } },
        d,
        17_276,
        "that",
    );
}

#[test]
fn reduced_values_nest_no_deeper_than_expressions() {
    let nest = |count: i32| {
        doc! { "$size": { "$reduce": {
        "input": { "$range": [0, count] }, "initialValue": [], "in": [["$$value"]] } } }
    };
    check(nest(50), doc! {}, Bson::Int32(1));
    refuse(nest(100_000), doc! {}, 15, "maximum nesting depth");
}

#[test]
fn sorting_and_ranking() {
    let d = doc! { "a": [3, "x", 1, null], "o": [{ "v": 2, "n": 1 }, { "v": 1, "n": 2 },
    { "v": 2, "n": 3 }] };
    let sort = |by: Bson| doc! { "$sortArray": { "input": "$a", "sortBy": by } };
    check(sort(bson!(1)), d.clone(), bson!([null, 1, 3, "x"]));
    check(sort(bson!(-1)), d.clone(), bson!(["x", 3, 1, null]));
    refuse(sort(bson!(2)), d.clone(), 2_942_506, "either 1 or -1");
    let by = doc! { "$map": { "in": "$$this.n", "input":
    { "$sortArray": { "input": "$o", "sortBy": { "v": -1, "n": -1 } } } } };
    check(by, d.clone(), bson!([3, 1, 2]));
    let n = |op: &str, n: i32| doc! { op: { "n": n, "input": "$a" } };
    check(n("$firstN", 2), d.clone(), bson!([3, "x"]));
    check(n("$lastN", 2), d.clone(), bson!([1, null]));
    check(n("$maxN", 2), d.clone(), bson!(["x", 3]));
    check(n("$minN", 9), d.clone(), bson!([1, 3, "x"]));
    refuse(
        n("$minN", 0),
        d,
        5_787_908,
        "must be greater than 0, found 0",
    );
}

#[test]
fn zipping() {
    let d = doc! { "a": [1, 2], "b": [3], "n": null };
    check(
        doc! { "$zip": { "inputs": ["$a", "$b"] } },
        d.clone(),
        bson!([[1, 3]]),
    );
    let longest = doc! { "$zip": { "inputs": ["$a", "$b"], "useLongestLength": true } };
    check(longest, d.clone(), bson!([[1, 3], [2, null]]));
    let defaults = |list: Bson| {
        doc! { "$zip": {
        "inputs": ["$a", "$b"], "useLongestLength": true, "defaults": list } }
    };
    check(defaults(bson!([8, 9])), d.clone(), bson!([[1, 3], [2, 9]]));
    refuse(defaults(bson!([8])), d.clone(), 34_467, "same length");
    check(
        doc! { "$zip": { "inputs": ["$a", "$n"] } },
        d.clone(),
        Bson::Null,
    );
    refuse(doc! { "$zip": { "inputs": [1] } }, d, 34_468, "non-array");
}

#[test]
fn sets() {
    let d = doc! { "a": [3, 1, 1], "b": [1.0, 2] };
    check(
        doc! { "$setUnion": ["$a", "$b"] },
        d.clone(),
        bson!([1, 2, 3]),
    );
    check(
        doc! { "$setIntersection": ["$a", "$b"] },
        d.clone(),
        bson!([1]),
    );
    check(
        doc! { "$setDifference": ["$a", "$b"] },
        d.clone(),
        bson!([3]),
    );
    check(
        doc! { "$setEquals": ["$a", [1, 3], [3, 3, 1]] },
        d.clone(),
        Bson::Boolean(true),
    );
    check(
        doc! { "$setIsSubset": [[1], "$a"] },
        d.clone(),
        Bson::Boolean(true),
    );
    check(
        doc! { "$anyElementTrue": [[0, null, "x"]] },
        d.clone(),
        Bson::Boolean(true),
    );
    check(
        doc! { "$allElementsTrue": [[]] },
        d.clone(),
        Bson::Boolean(true),
    );
    check(doc! { "$setUnion": ["$a", null] }, d.clone(), Bson::Null);
    refuse(
        doc! { "$setUnion": ["$a", 1] },
        d.clone(),
        17_043,
        "One argument is of type: int",
    );
    refuse(
        doc! { "$setEquals": ["$a"] },
        d.clone(),
        17_045,
        "at least two arguments had: 1",
    );
    refuse(
        doc! { "$setIsSubset": ["$a", 1] },
        d,
        17_042,
        "Second argument is of type: int",
    );
}

#[test]
fn accumulators_as_expressions() {
    let d = doc! { "a": [1, 2.5, "x", null], "b": 4 };
    check(doc! { "$sum": "$a" }, d.clone(), Bson::Double(3.5));
    check(doc! { "$sum": ["$a", "$b"] }, d.clone(), Bson::Int32(4));
    check(doc! { "$avg": "$a" }, d.clone(), Bson::Double(1.75));
    check(doc! { "$max": "$a" }, d.clone(), bson!("x"));
    check(doc! { "$min": ["$b", 5, null] }, d.clone(), Bson::Int32(4));
    check(
        doc! { "$stdDevPop": [[2, 4]] },
        d.clone(),
        Bson::Double(1.0),
    );
    check(doc! { "$stdDevSamp": "$b" }, d.clone(), Bson::Null);
    let median = doc! { "$median": { "input": [5, 1, 3], "method": "approximate" } };
    check(median, d.clone(), Bson::Double(3.0));
    let p = doc! { "$percentile": { "input": "$a", "method": "approximate", "p": [0.5, 1] } };
    check(p, d, bson!([1.0, 2.5]));
}

#[test]
fn sort_array_refuses_orders_of_no_fields() {
    let sort = |by: Bson| bson!({"$sortArray": {"input": [1], "sortBy": by}});
    refuse(sort(bson!({})), doc! {}, 2_942_505, "sort pattern is empty");
    refuse(sort(bson!({"a": 2})), doc! {}, 2_942_505, "must be 1");
    refuse(sort(bson!("a")), doc! {}, 2_942_507, "use 1/-1");
}

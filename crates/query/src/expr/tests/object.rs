//! Objects: merging, fields with dots and dollars, arrays of pairs.

use bson::{Bson, bson, doc};

use super::{check, refuse};

#[test]
fn literals_leave_out_what_is_missing() {
    check(
        doc! { "a": "$x", "b": "$n", "c": { "d": "$x" } },
        doc! { "n": null },
        bson!({ "b": null, "c": {} }),
    );
    check(bson!(["$x", 1]), doc! {}, bson!([null, 1]));
    check(doc! { "$literal": "$x" }, doc! {}, bson!("$x"));
    check(doc! {}, doc! {}, bson!({}));
}

#[test]
fn merging() {
    let d = doc! { "a": { "x": 1, "y": 2 }, "b": { "y": 3 }, "n": null };
    check(
        doc! { "$mergeObjects": ["$a", "$n", "$b"] },
        d.clone(),
        bson!({ "x": 1, "y": 3 }),
    );
    refuse(
        doc! { "$mergeObjects": ["$a", 5] },
        d,
        40_400,
        "input 5 is of type int",
    );
}

#[test]
fn pairs() {
    let d = doc! { "o": { "a": 1, "b": [2] } };
    check(
        doc! { "$objectToArray": "$o" },
        d.clone(),
        bson!([{ "k": "a", "v": 1 }, { "k": "b", "v": [2] }]),
    );
    check(
        doc! { "$arrayToObject": [[["a", 1], ["a", 2]]] },
        d.clone(),
        bson!({ "a": 2 }),
    );
    check(
        doc! { "$arrayToObject": [[{ "k": "a", "v": 1 }]] },
        d.clone(),
        bson!({ "a": 1 }),
    );
    check(doc! { "$arrayToObject": "$x" }, d.clone(), Bson::Null);
    refuse(
        doc! { "$arrayToObject": [[["a"]]] },
        d.clone(),
        40_397,
        "array of size: 1",
    );
    refuse(
        doc! { "$arrayToObject": [[[1, 1]]] },
        d.clone(),
        40_395,
        "Found key type: int",
    );
    refuse(
        doc! { "$arrayToObject": [[{ "k": "a" }]] },
        d.clone(),
        40_392,
        "number of keys:1",
    );
    refuse(
        doc! { "$arrayToObject": [[1]] },
        d.clone(),
        40_398,
        "Unrecognised",
    );
    let mixed = doc! { "$arrayToObject": [[["a", 1], { "k": "a", "v": 1 }]] };
    refuse(mixed, d.clone(), 40_396, "now found: object");
    refuse(doc! { "$objectToArray": 1 }, d, 40_390, "found: int");
}

#[test]
fn fields_by_any_name() {
    let d = doc! { "a.b": 1, "$c": 2, "o": { "x.y": 3 }, "n": null, "i": 1 };
    check(doc! { "$getField": "a.b" }, d.clone(), Bson::Int32(1));
    check(
        doc! { "$getField": { "$literal": "$c" } },
        d.clone(),
        Bson::Int32(2),
    );
    let get = |input: &str| doc! { "$getField": { "field": "x.y", "input": input } };
    check(get("$o"), d.clone(), Bson::Int32(3));
    check(get("$n"), d.clone(), Bson::Null);
    check(get("$i"), d.clone(), None);
    check(get("$zzz"), d.clone(), None);
    refuse(doc! { "$getField": 5 }, d.clone(), 5_654_602, "but got int");
    let set = |value: Bson| doc! { "$setField": { "field": "x.y", "input": "$o", "value": value } };
    check(set(bson!(4)), d.clone(), bson!({ "x.y": 4 }));
    check(set(bson!("$$REMOVE")), d.clone(), bson!({}));
    let unset = doc! { "$unsetField": { "field": "x.y", "input": "$o" } };
    check(unset, d.clone(), bson!({}));
    refuse(
        doc! { "$setField": { "field": "a", "input": 1, "value": 1 } },
        d.clone(),
        4_161_105,
        "'input' to evaluate to type Object",
    );
    check(doc! { "$bsonSize": "$o" }, d.clone(), Bson::Int32(14));
    check(doc! { "$binarySize": "caf\u{e9}" }, d, Bson::Int32(5));
}

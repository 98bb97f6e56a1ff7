//! Boolean operators, comparison and conditions.

use bson::{Bson, bson, doc};

use super::{check, refuse};

#[test]
fn truth() {
    let d = doc! { "z": 0, "n": null, "s": "", "f": 0.0 };
    check(doc! { "$and": [] }, d.clone(), Bson::Boolean(true));
    check(doc! { "$or": [] }, d.clone(), Bson::Boolean(false));
    check(doc! { "$and": ["$s", 1] }, d.clone(), Bson::Boolean(true));
    check(
        doc! { "$or": ["$z", "$n", "$x", "$f", false] },
        d.clone(),
        Bson::Boolean(false),
    );
    check(doc! { "$not": ["$x"] }, d.clone(), Bson::Boolean(true));
    // Arguments after the one that decides are not evaluated.
    check(
        doc! { "$and": ["$z", { "$divide": [1, "$z"] }] },
        d,
        Bson::Boolean(false),
    );
}

#[test]
fn order_crosses_types() {
    let d = doc! { "n": null, "i": 5 };
    check(doc! { "$lt": ["$x", "$n"] }, d.clone(), Bson::Boolean(true));
    check(
        doc! { "$eq": ["$x", null] },
        d.clone(),
        Bson::Boolean(false),
    );
    check(doc! { "$gt": ["a", "$i"] }, d.clone(), Bson::Boolean(true));
    check(doc! { "$eq": ["$i", 5.0] }, d.clone(), Bson::Boolean(true));
    check(doc! { "$cmp": [[1], { "a": 1 }] }, d, Bson::Int32(1));
}

#[test]
fn choice() {
    let d = doc! { "a": 5, "n": null };
    check(doc! { "$cond": ["$a", "y", "n"] }, d.clone(), bson!("y"));
    let cond = doc! { "$cond": { "if": "$x", "then": 1, "else": "$$REMOVE" } };
    check(cond, d.clone(), None);
    check(
        doc! { "$ifNull": ["$x", "$n", 3] },
        d.clone(),
        Bson::Int32(3),
    );
    check(doc! { "$ifNull": ["$n", "$x"] }, d.clone(), None);
    refuse(
        doc! { "$ifNull": [1] },
        d.clone(),
        1_257_300,
        "$ifNull needs at least two arguments, had: 1",
    );
    refuse(
        doc! { "$cond": [1, 2] },
        d.clone(),
        16_020,
        "exactly 3 arguments. 2 were",
    );
    refuse(
        doc! { "$cond": { "if": 1, "then": 2 } },
        d.clone(),
        17_080,
        "'else'",
    );
    let switch = |otherwise: Option<i32>| {
        let mut spec = doc! { "branches": [
            { "case": { "$gt": ["$a", 9] }, "then": "big" },
            { "case": "$x", "then": "odd" },
        ] };
        if let Some(otherwise) = otherwise {
            spec.insert("default", otherwise);
        }
        doc! { "$switch": spec }
    };
    check(switch(Some(7)), d.clone(), Bson::Int32(7));
    refuse(
        switch(None),
        d.clone(),
        40_066,
        "could not find a matching branch",
    );
    refuse(
        doc! { "$switch": { "branches": [] } },
        d.clone(),
        40_068,
        "at least one branch",
    );
    refuse(
        doc! { "$switch": { "branches": [{ "case": 1 }] } },
        d,
        40_065,
        "'then'",
    );
}

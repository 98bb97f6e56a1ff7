//! Replacements, and operators on fields.

use super::*;

#[test]
fn replacement_keeps_the_id_in_front() {
    check(
        bson!({"b": 1}),
        doc! {"a": 1, "_id": 5},
        doc! {"_id": 5, "b": 1},
    );
    check(
        bson!({"b": 1, "_id": 5}),
        doc! {"_id": 5},
        doc! {"_id": 5, "b": 1},
    );
    check(
        bson!({"b": 1, "_id": 5.0}),
        doc! {"_id": 5},
        doc! {"_id": 5, "b": 1},
    );
    check(bson!({}), doc! {"_id": 5, "a": 1}, doc! {"_id": 5});
    let message = "found to have been altered to _id: 6";
    fails(bson!({"_id": 6}), doc! {"_id": 5}, 66, message);
    fails(
        bson!({"a": 1, "$b": 1}),
        doc! {"_id": 5},
        52,
        "'$b' in '$b' is not allowed",
    );
}

#[test]
fn set_creates_in_the_order_of_names_and_keeps_places() {
    check(
        bson!({"$set": {"z": 1, "b": 2, "a": 3}}),
        doc! {"_id": 1, "b": 0},
        doc! {"_id": 1, "b": 2, "a": 3, "z": 1},
    );
    check(
        bson!({"$set": {"a.10": 1, "a.9": 2}}),
        doc! {"_id": 1},
        doc! {"_id": 1, "a": {"9": 2, "10": 1}},
    );
    check(
        bson!({"$set": {"a.b.c": 1}}),
        doc! {},
        doc! {"a": {"b": {"c": 1}}},
    );
    check(
        bson!({"$set": {"a.1.b": 1}}),
        doc! {"a": [{}, {}]},
        doc! {"a": [{}, {"b": 1}]},
    );
    check(
        bson!({"$set": {"a.3": 1}}),
        doc! {"a": [0]},
        doc! {"a": [0, null, null, 1]},
    );
    check(bson!({"$set": {"a": 1.0}}), doc! {"a": 1}, doc! {"a": 1.0});
    check(
        bson!({"$set": {"a": {"y": 1, "x": 2}}}),
        doc! {"a": {"x": 2, "y": 1}},
        doc! {"a": {"y": 1, "x": 2}},
    );
    unchanged(bson!({"$set": {"a": 1}}), doc! {"a": 1});
    unchanged(bson!({"$set": {}}), doc! {"a": 1});
    fails(
        bson!({"$set": {"a.b": 1}}),
        doc! {"a": 5},
        28,
        "Cannot create field 'b' in element {a: 5}",
    );
    fails(
        bson!({"$set": {"a.b": 1}}),
        doc! {"a": [1, 2]},
        28,
        "Cannot create field 'b' in element {a: [ 1, 2 ]}",
    );
    fails(
        bson!({"$set": {"a.2000000": 1}}),
        doc! {"a": []},
        51,
        "backfill",
    );
    fails(
        bson!({"$set": {"_id": 2}}),
        doc! {"_id": 1},
        66,
        "immutable field '_id'",
    );
    fails(
        bson!({"$unset": {"_id": 2}}),
        doc! {"_id": 1},
        66,
        "immutable field '_id'",
    );
}

#[test]
fn set_on_insert_waits_for_the_insert() {
    let update = parse(
        &bson!({"$set": {"b": 1}, "$setOnInsert": {"a": 2, "_id": 7}}),
        &[],
    )
    .unwrap();
    assert_eq!(update.apply(&doc! {"b": 1}, &at()), Ok(None));
    let found = update.apply(&doc! {}, &at().inserting()).unwrap().unwrap();
    assert_eq!(text(&found), text(&doc! {"_id": 7, "a": 2, "b": 1}));
}

#[test]
fn unset_removes_fields_and_empties_elements() {
    check(
        bson!({"$unset": {"a.b": ""}}),
        doc! {"a": {"b": 1, "c": 2}},
        doc! {"a": {"c": 2}},
    );
    check(
        bson!({"$unset": {"a.0": 1}}),
        doc! {"a": [1, 2]},
        doc! {"a": [null, 2]},
    );
    unchanged(bson!({"$unset": {"a.b.c": 1}}), doc! {"a": 5});
    unchanged(bson!({"$unset": {"x.y": 1}}), doc! {"a": 5});
    unchanged(bson!({"$unset": {"a.7": 1}}), doc! {"a": [5]});
}

#[test]
fn arithmetic_keeps_and_widens_types() {
    check(bson!({"$inc": {"a": 2}}), doc! {"a": 1}, doc! {"a": 3});
    check(
        bson!({"$inc": {"a": 2i64}}),
        doc! {"a": 1},
        doc! {"a": 3i64},
    );
    check(bson!({"$inc": {"a": 0.5}}), doc! {"a": 1}, doc! {"a": 1.5});
    check(
        bson!({"$inc": {"a": 1}}),
        doc! {"a": i32::MAX},
        doc! {"a": 2_147_483_648i64},
    );
    check(bson!({"$inc": {"a.b": 1}}), doc! {}, doc! {"a": {"b": 1}});
    unchanged(bson!({"$inc": {"a": 0}}), doc! {"a": 1});
    check(bson!({"$mul": {"a": 2.5}}), doc! {"a": 2}, doc! {"a": 5.0});
    check(bson!({"$mul": {"a": 2i64}}), doc! {}, doc! {"a": 0i64});
    check(bson!({"$mul": {"a": 2}}), doc! {}, doc! {"a": 0});
    // A product with the same value and type leaves the number unchanged, including the sign of a
    // zero.
    unchanged(bson!({"$mul": {"a": -0.0}}), doc! {"a": -0.0});
    unchanged(bson!({"$mul": {"a": -1.0}}), doc! {"a": 0.0});
    check(
        bson!({"$mul": {"a": 1i64}}),
        doc! {"a": 2},
        doc! {"a": 2i64},
    );
    fails(
        bson!({"$inc": {"a": 1i64}}),
        doc! {"_id": 1, "a": i64::MAX},
        2,
        "Failed to apply $inc operations to current value ((NumberLong)9223372036854775807) for \
         document {_id: 1}",
    );
    fails(
        bson!({"$inc": {"a": "x"}}),
        doc! {},
        14,
        "Cannot increment with non-numeric argument: {a: \"x\"}",
    );
    fails(
        bson!({"$inc": {"a": 1}}),
        doc! {"_id": 1, "a": "x"},
        14,
        "Cannot apply $inc to a value of non-numeric type. {_id: 1} has the field 'a' of \
         non-numeric type string",
    );
    fails(
        bson!({"$mul": {"a": null}}),
        doc! {},
        14,
        "Cannot multiply with non-numeric argument: {a: null}",
    );
}

#[test]
fn bits_combine_integers() {
    check(
        bson!({"$bit": {"a": {"and": 6, "or": 8}}}),
        doc! {"a": 3},
        doc! {"a": 10},
    );
    check(
        bson!({"$bit": {"a": {"xor": 1i64}}}),
        doc! {"a": 3},
        doc! {"a": 2i64},
    );
    check(bson!({"$bit": {"a": {"or": 5}}}), doc! {}, doc! {"a": 5});
    unchanged(bson!({"$bit": {"a": {"and": 3}}}), doc! {"a": 3});
    fails(
        bson!({"$bit": {"a": {"and": 3}}}),
        doc! {"a": 1.5},
        2,
        "non-integral type",
    );
    fails(
        bson!({"$bit": {"a": {"nor": 3}}}),
        doc! {},
        2,
        "only supports 'and', 'or', and 'xor', not 'nor'",
    );
    fails(
        bson!({"$bit": {"a": {"or": 1.0}}}),
        doc! {},
        2,
        "must be an Integer",
    );
    fails(
        bson!({"$bit": {"a": {}}}),
        doc! {},
        2,
        "at least one bitwise operation",
    );
}

#[test]
fn bounds_compare_across_types() {
    check(bson!({"$min": {"a": 1}}), doc! {"a": 2}, doc! {"a": 1});
    unchanged(bson!({"$min": {"a": 2}}), doc! {"a": 2.0});
    check(bson!({"$max": {"a": "x"}}), doc! {"a": 2}, doc! {"a": "x"});
    unchanged(bson!({"$max": {"a": 5}}), doc! {"a": "x"});
    check(bson!({"$max": {"a": 5}}), doc! {}, doc! {"a": 5});
    check(
        bson!({"$min": {"a": null}}),
        doc! {"a": 5},
        doc! {"a": null},
    );
}

#[test]
fn current_date_is_that_of_the_operation() {
    let now = DateTime::from_millis(1_700_000_000_000);
    let stamp = Timestamp {
        time: 1_700_000_000,
        increment: 1,
    };
    check(
        bson!({"$currentDate": {"a": true}}),
        doc! {},
        doc! {"a": now},
    );
    check(
        bson!({"$currentDate": {"a": {"$type": "date"}}}),
        doc! {"a": 1},
        doc! {"a": now},
    );
    check(
        bson!({"$currentDate": {"a": {"$type": "timestamp"}}}),
        doc! {},
        doc! {"a": stamp},
    );
    fails(
        bson!({"$currentDate": {"a": 1}}),
        doc! {},
        2,
        "int is not valid type for $currentDate",
    );
    fails(
        bson!({"$currentDate": {"a": {"$type": "x"}}}),
        doc! {},
        2,
        "required to be 'date' or 'timestamp'",
    );
    fails(
        bson!({"$currentDate": {"a": {"x": 1}}}),
        doc! {},
        2,
        "Unrecognized $currentDate option: x",
    );
}

#[test]
fn rename_moves_values() {
    check(
        bson!({"$rename": {"a": "b"}}),
        doc! {"a": 1, "c": 2},
        doc! {"c": 2, "b": 1},
    );
    check(
        bson!({"$rename": {"a": "b.c"}}),
        doc! {"a": 1},
        doc! {"b": {"c": 1}},
    );
    check(
        bson!({"$rename": {"a": "b"}}),
        doc! {"b": 9, "a": 1},
        doc! {"b": 1},
    );
    check(
        bson!({"$rename": {"a": "b"}}),
        doc! {"b": 1, "a": 1},
        doc! {"b": 1},
    );
    unchanged(bson!({"$rename": {"x": "b"}}), doc! {"b": 9});
    fails(
        bson!({"$rename": {"a": "a"}}),
        doc! {},
        2,
        "source and target field for $rename must differ",
    );
    fails(
        bson!({"$rename": {"a": "a.b"}}),
        doc! {},
        2,
        "must not be on the same path",
    );
    fails(
        bson!({"$rename": {"a": 1}}),
        doc! {},
        2,
        "'to' field for $rename must be a string: a: 1",
    );
    fails(
        bson!({"$rename": {"a.0": "b"}}),
        doc! {"a": [1]},
        2,
        "source field cannot be an array element",
    );
    unchanged(bson!({"$rename": {"a.0.b": "c"}}), doc! {"a": [{"x": 1}]});
    unchanged(bson!({"$rename": {"a.3": "c"}}), doc! {"a": [1]});
    unchanged(bson!({"$rename": {"x": "b.c"}}), doc! {"b": 5});
    fails(
        bson!({"$rename": {"a": "b.c"}}),
        doc! {"a": 1, "b": 5},
        28,
        "Cannot create field 'c' in element {b: 5}",
    );
    fails(
        bson!({"$rename": {"a.b": "c"}}),
        doc! {"a": [{"b": 1}]},
        28,
        "cannot use the part (a of a.b) to traverse the element ({a: [ { b: 1 } ]})",
    );
    fails(
        bson!({"$rename": {"a.0.b.z": "c"}}),
        doc! {"a": [{"b": "hello"}]},
        28,
        "cannot use the part (b of a.0.b.z) to traverse the element ({b: \"hello\"})",
    );
    fails(
        bson!({"$rename": {"b": "a.3"}}),
        doc! {"a": [1], "b": 1},
        2,
        "destination field cannot be an array",
    );
    // The source is checked before the destination.
    fails(
        bson!({"$rename": {"a.0": "b.x"}}),
        doc! {"a": [1], "b": 1},
        2,
        "source field cannot be an array element",
    );
    for target in ["a.x", "a.x.y", "a.x.0"] {
        fails(
            bson!({"$rename": {"b": target}}),
            doc! {"a": [1], "b": 1},
            2,
            "has an array field called 'a'",
        );
    }
    fails(
        bson!({"$rename": {"b": "a.0"}}),
        doc! {"a": [1], "b": 1},
        2,
        "destination field cannot be an array",
    );
    fails(
        bson!({"$rename": {"a.$": "b"}}),
        doc! {},
        2,
        "may not be dynamic",
    );
}

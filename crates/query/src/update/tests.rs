//! Tests of updates, by tables.

use bson::{Bson, DateTime, Document, RawDocumentBuf, Timestamp, bson, doc};

use super::{Position, Update, upsert_base};
use crate::filter::Filter;
use crate::settings::Settings;
use crate::{Code, Error, Result};

fn at() -> Position {
    Position::at(DateTime::from_millis(1_700_000_000_000))
}

fn parse(update: &Bson, filters: &[Document]) -> Result<Update> {
    let filters: Vec<RawDocumentBuf> = filters
        .iter()
        .map(|filter| RawDocumentBuf::try_from(filter).unwrap())
        .collect();
    let holder = RawDocumentBuf::try_from(&doc! { "u": update.clone() }).unwrap();
    let spec = holder.get("u").unwrap().unwrap();
    Update::parse(spec, &filters, &Settings::default())
}

fn apply(update: Bson, document: Document) -> Result<Option<Document>> {
    parse(&update, &[])?.apply(&document, &at())
}

/// The text of the result tells types and the order of fields apart, which equality does not.
fn text(document: &Document) -> String {
    document.to_string()
}

fn check(update: Bson, document: Document, expected: Document) {
    let result = apply(update.clone(), document.clone());
    let shown = result.map(|found| found.map(|found| text(&found)));
    assert_eq!(shown, Ok(Some(text(&expected))), "{update} on {document}");
}

fn unchanged(update: Bson, document: Document) {
    let result = apply(update.clone(), document.clone());
    assert_eq!(result, Ok(None), "{update} on {document}");
}

fn fails(update: Bson, document: Document, code: i32, message: &str) {
    match apply(update.clone(), document.clone()) {
        Err(error) => {
            assert_eq!(error.code, Code(code), "{update} on {document}: {error}");
            assert!(error.message.contains(message), "{update}: {error}");
        }
        Ok(found) => panic!("{update} on {document} gave {found:?}"),
    }
}

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
    unchanged(bson!({"a": 1}), doc! {"_id": 5, "a": 1});
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

#[test]
fn push_inserts_sorts_and_cuts() {
    check(bson!({"$push": {"a": 1}}), doc! {}, doc! {"a": [1]});
    check(
        bson!({"$push": {"a": [1]}}),
        doc! {"a": [0]},
        doc! {"a": [0, [1]]},
    );
    check(
        bson!({"$push": {"a": {"$each": [3, 4]}}}),
        doc! {"a": [1]},
        doc! {"a": [1, 3, 4]},
    );
    check(
        bson!({"$push": {"a": {"$each": [9], "$position": 1}}}),
        doc! {"a": [1, 2]},
        doc! {"a": [1, 9, 2]},
    );
    check(
        bson!({"$push": {"a": {"$each": [9], "$position": -1}}}),
        doc! {"a": [1, 2]},
        doc! {"a": [1, 9, 2]},
    );
    check(
        bson!({"$push": {"a": {"$each": [0], "$slice": -2}}}),
        doc! {"a": [1, 2]},
        doc! {"a": [2, 0]},
    );
    check(
        bson!({"$push": {"a": {"$each": [0], "$sort": 1, "$slice": 2}}}),
        doc! {"a": [2, 1]},
        doc! {"a": [0, 1]},
    );
    check(
        bson!({"$push": {"a": {"$each": [{"x": 1, "y": 2}], "$sort": {"x": 1, "y": -1}}}}),
        doc! {"a": [{"x": 2}, {"x": 1, "y": 1}, 5]},
        doc! {"a": [5, {"x": 1, "y": 2}, {"x": 1, "y": 1}, {"x": 2}]},
    );
    check(
        bson!({"$push": {"a": {"$each": []}}}),
        doc! {},
        doc! {"a": []},
    );
    unchanged(bson!({"$push": {"a": {"$each": []}}}), doc! {"a": [1]});
    fails(
        bson!({"$push": {"a": 1}}),
        doc! {"_id": 1, "a": 2},
        2,
        "The field 'a' must be an array but is of type int in document {_id: 1}",
    );
    fails(
        bson!({"$push": {"a": {"$each": 1}}}),
        doc! {},
        2,
        "must be an array but it was of type: int",
    );
    fails(
        bson!({"$push": {"a": {"$each": [], "$x": 1}}}),
        doc! {},
        2,
        "Unrecognized clause in $push: $x",
    );
    fails(
        bson!({"$push": {"a": {"$each": [], "$sort": 2}}}),
        doc! {},
        2,
        "either 1 or -1",
    );
    fails(
        bson!({"$push": {"a": {"$each": [], "$slice": "x"}}}),
        doc! {},
        2,
        "$slice must be an integer",
    );
}

#[test]
fn sets_grow_by_what_is_new() {
    check(
        bson!({"$addToSet": {"a": 2}}),
        doc! {"a": [1]},
        doc! {"a": [1, 2]},
    );
    unchanged(bson!({"$addToSet": {"a": 1.0}}), doc! {"a": [1]});
    check(
        bson!({"$addToSet": {"a": {"$each": [1, 3, 3]}}}),
        doc! {"a": [1]},
        doc! {"a": [1, 3]},
    );
    check(
        bson!({"$addToSet": {"a": {"$each": []}}}),
        doc! {},
        doc! {"a": []},
    );
    fails(
        bson!({"$addToSet": {"a": 1}}),
        doc! {"a": 5},
        2,
        "non-array type int",
    );
    fails(
        bson!({"$addToSet": {"a": {"$each": 1}}}),
        doc! {},
        14,
        "must be an array",
    );
}

#[test]
fn elements_leave_arrays() {
    check(
        bson!({"$pop": {"a": 1}}),
        doc! {"a": [1, 2]},
        doc! {"a": [1]},
    );
    check(
        bson!({"$pop": {"a": -1}}),
        doc! {"a": [1, 2]},
        doc! {"a": [2]},
    );
    unchanged(bson!({"$pop": {"a": 1}}), doc! {"a": []});
    unchanged(bson!({"$pop": {"a": 1}}), doc! {});
    fails(
        bson!({"$pop": {"a": 2}}),
        doc! {},
        9,
        "$pop expects 1 or -1, found: 2",
    );
    fails(
        bson!({"$pop": {"a": 1}}),
        doc! {"a": 1},
        14,
        "non-array type 'int'",
    );
    check(
        bson!({"$pull": {"a": 1}}),
        doc! {"a": [1, 2, 1.0]},
        doc! {"a": [2]},
    );
    check(
        bson!({"$pull": {"a": {"$gte": 2}}}),
        doc! {"a": [1, 2, 3]},
        doc! {"a": [1]},
    );
    check(
        bson!({"$pull": {"a": {"$in": [1, 3]}}}),
        doc! {"a": [1, 2, 3]},
        doc! {"a": [2]},
    );
    check(
        bson!({"$pull": {"a": {"x": 1}}}),
        doc! {"a": [{"x": 1, "y": 2}, {"x": 2}, 1]},
        doc! {"a": [{"x": 2}, 1]},
    );
    check(
        bson!({"$pull": {"a": {"$or": [{"x": 1}, {"x": 2}]}}}),
        doc! {"a": [{"x": 1}, {"x": 2}, {"x": 3}]},
        doc! {"a": [{"x": 3}]},
    );
    check(
        bson!({"$pull": {"a": (bson::Regex { pattern: cstr("^b"), options: cstr("") })}}),
        doc! {"a": ["abc", "bcd"]},
        doc! {"a": ["abc"]},
    );
    unchanged(bson!({"$pull": {"a": 9}}), doc! {"a": [1]});
    unchanged(bson!({"$pull": {"a": 9}}), doc! {});
    fails(
        bson!({"$pull": {"a": 9}}),
        doc! {"a": 9},
        2,
        "Cannot apply $pull to a non-array value",
    );
    check(
        bson!({"$pullAll": {"a": [1, 3]}}),
        doc! {"a": [1, 2, 3]},
        doc! {"a": [2]},
    );
    fails(
        bson!({"$pullAll": {"a": 1}}),
        doc! {},
        2,
        "$pullAll requires an array argument but was given a int",
    );
}

fn cstr(text: &str) -> bson::raw::CString {
    text.to_owned().try_into().unwrap()
}

#[test]
fn operators_are_known_and_apart() {
    fails(
        bson!({"$foo": {"a": 1}}),
        doc! {},
        9,
        "Unknown modifier: $foo. Expected",
    );
    fails(
        bson!({"$set": 5}),
        doc! {},
        9,
        "Modifiers operate on fields but we found type int instead",
    );
    let conflict = "Updating the path 'a' would create a conflict at 'a'";
    fails(
        bson!({"$set": {"a": 1}, "$inc": {"a": 1}}),
        doc! {},
        40,
        conflict,
    );
    let conflict = "Updating the path 'a.b' would create a conflict at 'a'";
    fails(
        bson!({"$set": {"a": 1}, "$inc": {"a.b": 1}}),
        doc! {},
        40,
        conflict,
    );
    let conflict = "Updating the path 'a' would create a conflict at 'a'";
    fails(
        bson!({"$set": {"a.b": 1}, "$inc": {"a": 1}}),
        doc! {},
        40,
        conflict,
    );
    fails(
        bson!({"$rename": {"a": "b"}, "$set": {"b": 1}}),
        doc! {},
        40,
        "at 'b'",
    );
    fails(
        bson!({"$set": {"": 1}}),
        doc! {},
        56,
        "An empty update path is not valid.",
    );
    fails(
        bson!({"$set": {"a..b": 1}}),
        doc! {},
        56,
        "contains an empty field name",
    );
    fails(bson!({"$set": {"$a": 1}}), doc! {}, 52, "'$a'");
    fails(
        bson!({"$set": {"$": 1}}),
        doc! {},
        2,
        "in the first position",
    );
    fails(
        bson!({"$set": {"a.$.b.$": 1}}),
        doc! {},
        2,
        "Too many positional",
    );
}

#[test]
fn the_positional_operator_is_the_matched_element() {
    let update = parse(&bson!({"$set": {"a.$.x": 1}}), &[]).unwrap();
    assert!(update.needs_match());
    let document = doc! {"a": [{}, {"x": 0}]};
    let position = at().with_array_index(Some(1));
    let found = update.apply(&document, &position).unwrap().unwrap();
    assert_eq!(found, doc! {"a": [{}, {"x": 1}]});
    let message = "The positional operator did not find the match needed from the query.";
    assert_eq!(
        update.apply(&document, &at()),
        Err(Error::bad_value(message))
    );
    let update = parse(&bson!({"$set": {"a.$": 1, "a.1": 2}}), &[]).unwrap();
    assert_eq!(
        update.apply(&document, &position).unwrap_err().code,
        Code(40)
    );
}

#[test]
fn array_filters_choose_elements() {
    let case = |update: Bson, filters: &[Document], document: Document| {
        parse(&update, filters)?.apply(&document, &at())
    };
    assert_eq!(
        case(bson!({"$inc": {"a.$[]": 1}}), &[], doc! {"a": [1, 2]}),
        Ok(Some(doc! {"a": [2, 3]}))
    );
    assert_eq!(
        case(
            bson!({"$set": {"a.$[i]": 0}}),
            &[doc! {"i": {"$gt": 1}}],
            doc! {"a": [1, 2]}
        ),
        Ok(Some(doc! {"a": [1, 0]}))
    );
    assert_eq!(
        case(
            bson!({"$set": {"a.$[i].b.$[j].c": 0}}),
            &[doc! {"i.k": 1}, doc! {"j.m": {"$lt": 3}}],
            doc! {"a": [{"k": 1, "b": [{"m": 2}, {"m": 4}]}, {"k": 2, "b": [{"m": 2}]}]},
        ),
        Ok(Some(
            doc! {"a": [{"k": 1, "b": [{"m": 2, "c": 0}, {"m": 4}]}, {"k": 2, "b": [{"m": 2}]}]}
        ))
    );
    assert_eq!(
        case(
            bson!({"$inc": {"a.$[].$[]": 1}}),
            &[],
            doc! {"a": [[1, 2], [3]]}
        ),
        Ok(Some(doc! {"a": [[2, 3], [4]]}))
    );
    let refused = |update: Bson, filters: &[Document], code: i32, message: &str| {
        let error = case(update, filters, doc! {"a": [1], "s": 1}).unwrap_err();
        assert_eq!(error.code, Code(code), "{error}");
        assert!(error.message.contains(message), "{error}");
    };
    let zero = bson!({"$set": {"a.$[i]": 0}});
    refused(
        zero.clone(),
        &[],
        2,
        "No array filter found for identifier 'i' in path 'a.$[i]'",
    );
    refused(
        zero.clone(),
        &[doc! {"i": 1}, doc! {"j": 1}],
        9,
        "identifier 'j' was not used",
    );
    refused(
        zero.clone(),
        &[doc! {"i": 1}, doc! {"i": 2}],
        9,
        "same top-level field name i",
    );
    refused(
        zero.clone(),
        &[doc! {}],
        9,
        "without a top-level field name",
    );
    refused(
        zero.clone(),
        &[doc! {"I": 1}],
        2,
        "beginning with a lowercase letter, found 'I'",
    );
    refused(zero, &[doc! {"i": 1, "j": 1}], 9, "found 'i' and 'j'");
    refused(
        bson!({"$set": {"s.$[]": 0}}),
        &[],
        2,
        "Cannot apply array updates to non-array element s: 1",
    );
    refused(
        bson!({"$set": {"x.$[]": 0}}),
        &[],
        2,
        "The path 'x' must exist in the document",
    );
    refused(
        bson!({"$set": {"a.$[]": 0, "a.$[i]": 1}}),
        &[doc! {"i": 1}],
        40,
        "would create a conflict at 'a.0'",
    );
}

#[test]
fn pipelines_compute() {
    check(
        bson!([{"$set": {"b": {"$add": ["$a", 1]}}}, {"$unset": "a"}]),
        doc! {"_id": 1, "a": 1},
        doc! {"_id": 1, "b": 2},
    );
    check(
        bson!([{"$replaceWith": {"x": "$a"}}]),
        doc! {"_id": 1, "a": 1},
        doc! {"_id": 1, "x": 1},
    );
    check(
        bson!([{"$project": {"a": 1}}]),
        doc! {"_id": 1, "a": 1, "b": 2},
        doc! {"_id": 1, "a": 1},
    );
    unchanged(bson!([{"$set": {"a": 1}}]), doc! {"_id": 1, "a": 1});
    fails(
        bson!([{"$set": {"_id": 2}}]),
        doc! {"_id": 1},
        66,
        "altered to _id: 2",
    );
    fails(
        bson!([{"$match": {"a": 1}}]),
        doc! {},
        72,
        "$match is not allowed to be used within an update",
    );
    fails(
        bson!([{"$foo": 1}]),
        doc! {},
        40_324,
        "Unrecognized pipeline stage name: '$foo'",
    );
}

#[test]
fn upserts_begin_with_equalities() {
    let base = |filter: Document| {
        let raw = RawDocumentBuf::try_from(&filter).unwrap();
        upsert_base(&Filter::parse(&raw, &Settings::default()).unwrap())
    };
    let ok = |filter: Document, expected: Document| {
        assert_eq!(
            base(filter.clone()).map(|d| text(&d)),
            Ok(text(&expected)),
            "{filter}"
        );
    };
    ok(
        doc! {"a": 1, "_id": 2, "b": {"$gt": 1}},
        doc! {"_id": 2, "a": 1},
    );
    ok(
        doc! {"a.b": 1, "a.c": {"$eq": 2}},
        doc! {"a": {"b": 1, "c": 2}},
    );
    ok(
        doc! {"$and": [{"a": 1}, {"b": {"$in": [2]}}]},
        doc! {"a": 1, "b": 2},
    );
    ok(doc! {"$or": [{"a": 1}]}, doc! {"a": 1});
    ok(doc! {"$or": [{"a": 1}, {"a": 2}]}, doc! {});
    ok(doc! {"a": {"$in": [1, 2]}}, doc! {});
    assert_eq!(
        base(doc! {"a": 1, "$and": [{"a": 1}]}).unwrap_err().code,
        Code(54)
    );
    assert_eq!(base(doc! {"a": 1, "a.b": 1}).unwrap_err().code, Code(54));
}

#[test]
fn touched_paths_are_known() {
    let update = parse(&bson!({"$set": {"a.0.b": 1}, "$rename": {"x": "y"}}), &[]).unwrap();
    for (path, touched) in [
        ("a", true),
        ("a.b", true),
        ("a.b.c", true),
        ("a.c", false),
        ("x", true),
        ("y.z", true),
        ("z", false),
    ] {
        assert_eq!(update.touches(path), touched, "{path}");
    }
    assert!(parse(&bson!({"a": 1}), &[]).unwrap().touches("z"));
}

#[test]
fn random_bytes_of_updates_fail_cleanly() {
    let operands = [
        bson!(1),
        bson!("x"),
        bson!({}),
        bson!([]),
        bson!({"$each": [1]}),
        bson!(null),
    ];
    let paths = [
        "a", "a.b", "a.$", "a.$[]", "a.$[x].b", "a.0", "_id", "", ".", "$", "a.b.c.d",
    ];
    let names = [
        "$set",
        "$unset",
        "$inc",
        "$mul",
        "$min",
        "$max",
        "$push",
        "$pull",
        "$pullAll",
        "$pop",
        "$addToSet",
        "$bit",
        "$rename",
        "$currentDate",
        "$setOnInsert",
    ];
    let documents = [
        doc! {},
        doc! {"a": 1},
        doc! {"a": [1, {"b": 2}]},
        doc! {"a": {"b": [1]}},
    ];
    for name in names {
        for path in paths {
            for operand in &operands {
                let update = bson!({ name: { path: operand.clone() } });
                for document in &documents {
                    // Whatever comes of it, it is no panic, and what changes differs.
                    if let Ok(Some(next)) = apply(update.clone(), document.clone()) {
                        assert!(!super::identical(&next, document), "{update} on {document}");
                    }
                }
            }
        }
    }
}

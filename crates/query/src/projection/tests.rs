//! Tests of projections, by tables.

use bson::raw::CString;
use bson::{Bson, Document, RawBsonRef, RawDocumentBuf, doc};

use super::Projection;
use crate::expr::Variables;
use crate::filter::{Details, Filter};
use crate::path::Path;
use crate::settings::Settings;
use crate::sort::Sort;
use crate::update::{Position, Update};
use crate::{Code, Result};

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

fn parse(spec: &Document) -> Result<Projection> {
    let everything = Filter::everything();
    Projection::parse(&raw(spec), &Settings::default(), Some(&everything))
}

fn apply(spec: &Document, document: &Document) -> Result<Document> {
    let found = parse(spec)?.apply(&raw(document), None)?;
    Ok(Document::try_from(&found)?)
}

fn check(spec: Document, document: Document, expected: Document) {
    let found = apply(&spec, &document).map(|found| found.to_string());
    assert_eq!(found, Ok(expected.to_string()), "{spec} of {document}");
    // The result on an owned document is the same as on bytes.
    let projection = parse(&spec).unwrap();
    let tree = projection.apply_document(document.clone(), &Variables::default());
    assert_eq!(
        tree.map(|d| d.to_string()),
        Ok(expected.to_string()),
        "{spec} of {document}"
    );
}

fn fails(spec: Document, code: i32) {
    match parse(&spec) {
        Err(error) => assert_eq!(error.code, Code(code), "{spec}: {error}"),
        Ok(_) => panic!("{spec} was accepted"),
    }
}

#[test]
fn inclusion_keeps_the_order_of_the_document() {
    let document = doc! {"b": 1, "_id": 5, "a": {"x": 1, "y": 2}, "c": 3};
    check(
        doc! {"c": 1, "b": true},
        document.clone(),
        doc! {"b": 1, "_id": 5, "c": 3},
    );
    check(doc! {"c": 1, "_id": 0}, document.clone(), doc! {"c": 3});
    check(doc! {"_id": 1}, document.clone(), doc! {"_id": 5});
    check(
        doc! {"a.y": 1},
        document.clone(),
        doc! {"_id": 5, "a": {"y": 2}},
    );
    check(
        doc! {"a": {"y": 1}},
        document.clone(),
        doc! {"_id": 5, "a": {"y": 2}},
    );
    check(doc! {"b.x": 1}, document.clone(), doc! {"_id": 5});
    check(doc! {}, document.clone(), document);
}

#[test]
fn exclusion_keeps_the_rest() {
    let document = doc! {"_id": 5, "a": {"x": 1, "y": 2}, "c": 3};
    check(
        doc! {"c": 0},
        document.clone(),
        doc! {"_id": 5, "a": {"x": 1, "y": 2}},
    );
    check(
        doc! {"_id": 0},
        document.clone(),
        doc! {"a": {"x": 1, "y": 2}, "c": 3},
    );
    check(
        doc! {"_id": 1, "c": 0},
        document.clone(),
        doc! {"_id": 5, "a": {"x": 1, "y": 2}},
    );
    check(
        doc! {"a.x": 0, "_id": 0},
        document.clone(),
        doc! {"a": {"y": 2}, "c": 3},
    );
    check(doc! {"c.x": 0}, document.clone(), document);
}

#[test]
fn arrays_are_entered() {
    let document = doc! {"a": [1, {"x": 1, "y": 2}, [{"x": 3, "y": 4}, 5], {}]};
    check(
        doc! {"a.x": 1},
        document.clone(),
        doc! {"a": [{"x": 1}, [{"x": 3}], {}]},
    );
    check(
        doc! {"a.x": 0},
        document,
        doc! {"a": [1, {"y": 2}, [{"y": 4}, 5], {}]},
    );
}

#[test]
fn computed_fields_come_last() {
    let document = doc! {"_id": 1, "a": 2, "b": [{"x": 1}, 7]};
    check(
        doc! {"a": {"$add": ["$a", 1]}, "b": 1},
        document.clone(),
        doc! {"_id": 1, "b": [{"x": 1}, 7], "a": 3},
    );
    check(
        doc! {"n": "$a", "m": "text"},
        document.clone(),
        doc! {"_id": 1, "n": 2, "m": "text"},
    );
    check(doc! {"n": "$missing"}, document.clone(), doc! {"_id": 1});
    check(
        doc! {"b.y": "$a"},
        document.clone(),
        doc! {"_id": 1, "b": [{"y": 2}, {"y": 2}]},
    );
    check(
        doc! {"b.y": "$a", "b.x": 1},
        document.clone(),
        doc! {"_id": 1, "b": [{"x": 1, "y": 2}, {"y": 2}]},
    );
    check(doc! {"_id": "$a"}, document, doc! {"_id": 2});
}

#[test]
fn slices_cut() {
    let document = doc! {"a": [1, 2, 3, 4], "b": 1};
    check(
        doc! {"a": {"$slice": 2}},
        document.clone(),
        doc! {"a": [1, 2], "b": 1},
    );
    check(
        doc! {"a": {"$slice": -3}},
        document.clone(),
        doc! {"a": [2, 3, 4], "b": 1},
    );
    check(
        doc! {"a": {"$slice": [1, 2]}},
        document.clone(),
        doc! {"a": [2, 3], "b": 1},
    );
    check(
        doc! {"a": {"$slice": [-3, 2]}},
        document.clone(),
        doc! {"a": [2, 3], "b": 1},
    );
    check(
        doc! {"a": {"$slice": [9, 2]}},
        document.clone(),
        doc! {"a": [], "b": 1},
    );
    check(
        doc! {"a": {"$slice": 1}, "b": 0},
        document.clone(),
        doc! {"a": [1]},
    );
    check(
        doc! {"a": {"$slice": 1}, "_id": 1},
        document.clone(),
        doc! {"a": [1]},
    );
    check(
        doc! {"b": {"$slice": 1}},
        document.clone(),
        document.clone(),
    );
    check(
        doc! {"a": {"$slice": ["$a", 1]}},
        document.clone(),
        doc! {"a": [1]},
    );
    fails(doc! {"a": {"$slice": [1, 0]}}, 28_724);
    let nested = doc! {"a": [{"b": [1, 2]}, {"b": [3, 4]}]};
    check(
        doc! {"a.b": {"$slice": 1}},
        nested,
        doc! {"a": [{"b": [1]}, {"b": [3]}]},
    );
}

#[test]
fn elem_match_gives_the_first() {
    let document = doc! {"_id": 1, "a": [{"x": 1}, {"x": 2, "y": 1}, {"x": 2}], "n": [1, 5, 9]};
    let spec = doc! {"a": {"$elemMatch": {"x": 2}}};
    check(
        spec,
        document.clone(),
        doc! {"_id": 1, "a": [{"x": 2, "y": 1}]},
    );
    check(
        doc! {"n": {"$elemMatch": {"$gt": 3}}},
        document.clone(),
        doc! {"_id": 1, "n": [5]},
    );
    check(
        doc! {"n": {"$elemMatch": {"$gt": 30}}},
        document.clone(),
        doc! {"_id": 1},
    );
    check(
        doc! {"a": 0, "n": {"$elemMatch": {"$gt": 3}}},
        document,
        doc! {"_id": 1, "n": [5]},
    );
    fails(doc! {"a.b": {"$elemMatch": {"x": 2}}}, 31_275);
    fails(doc! {"a": {"$elemMatch": 2}}, 31_274);
}

#[test]
fn slices_keep_the_other_fields_and_elem_match_drops_them() {
    let document = doc! {"_id": 1, "a": [1, 2], "n": [1, 5], "b": 3};
    let (slice, element) = (doc! {"$slice": 1}, doc! {"$elemMatch": {"$gt": 3}});
    for (spec, expected) in [
        (
            doc! {"a": &slice},
            doc! {"_id": 1, "a": [1], "n": [1, 5], "b": 3},
        ),
        (
            doc! {"_id": 0, "a": &slice},
            doc! {"a": [1], "n": [1, 5], "b": 3},
        ),
        (doc! {"_id": 1, "a": &slice}, doc! {"_id": 1, "a": [1]}),
        (doc! {"n": &element}, doc! {"_id": 1, "n": [5]}),
        (doc! {"_id": 0, "n": &element}, doc! {"n": [5]}),
        (
            doc! {"a": &slice, "n": &element},
            doc! {"_id": 1, "a": [1], "n": [5], "b": 3},
        ),
        (
            doc! {"_id": 0, "n": &element, "a": &slice},
            doc! {"a": [1], "n": [5], "b": 3},
        ),
        (
            doc! {"_id": 1, "n": &element, "a": &slice},
            doc! {"_id": 1, "a": [1], "n": [5]},
        ),
    ] {
        check(spec, document.clone(), expected);
    }
}

#[test]
fn elem_match_finds_what_the_filter_finds() {
    let document = doc! {"a": [[1, 2], {"0": 3}, [4, [5]], {"b": [{"c": 7}, {"c": 8}]}]};
    for (condition, expected) in [
        (doc! {"0": 1}, doc! {"a": [[1, 2]]}),
        (doc! {"0": 3}, doc! {"a": [{"0": 3}]}),
        (doc! {"1.0": 5}, doc! {"a": [[4, [5]]]}),
        (doc! {"1": {"$gte": 2, "$lt": 3}}, doc! {"a": [[1, 2]]}),
        (doc! {"b.1.c": 8}, doc! {"a": [{"b": [{"c": 7}, {"c": 8}]}]}),
        (doc! {"b.2.c": 8}, doc! {}),
        (doc! {"$size": 2}, doc! {"a": [[1, 2]]}),
        (doc! {"$or": [{"1": 2}, {"0": 3}]}, doc! {"a": [[1, 2]]}),
    ] {
        check(
            doc! {"a": {"$elemMatch": condition}},
            document.clone(),
            expected,
        );
    }
}

#[test]
fn elem_match_keeps_every_condition_on_a_field() {
    let mut condition = RawDocumentBuf::new();
    for (operator, limit) in [("$gt", 1), ("$lt", 3)] {
        let test = raw(&doc! {operator: limit});
        condition.append(bson::raw::cstr!("x"), test);
    }
    let mut operator = RawDocumentBuf::new();
    operator.append(bson::raw::cstr!("$elemMatch"), condition);
    let mut spec = RawDocumentBuf::new();
    spec.append(bson::raw::cstr!("a"), operator);
    let projection = Projection::parse(&spec, &Settings::default(), None).unwrap();
    let document = raw(&doc! {"a": [{"x": 1}, {"x": 2}, {"x": 3}]});
    let found = projection.apply(&document, None).unwrap();
    assert_eq!(Document::try_from(found).unwrap(), doc! {"a": [{"x": 2}]});
    spec.append(bson::raw::cstr!("a"), 1);
    let error = Projection::parse(&spec, &Settings::default(), None).unwrap_err();
    assert_eq!(error.code, Code(31_250));
}

#[test]
fn the_positional_operator_gives_the_matched_element() {
    let projection = parse(&doc! {"a.$": 1}).unwrap();
    assert!(projection.needs_match());
    let document = raw(&doc! {"_id": 1, "a": [4, 5, 6], "b": 1});
    let details = Details {
        array_index: Some(1),
    };
    let found = projection.apply(&document, Some(&details)).unwrap();
    assert_eq!(
        Document::try_from(&found).unwrap(),
        doc! {"_id": 1, "a": [5]}
    );
    assert_eq!(
        projection.apply(&document, None).unwrap_err().code,
        Code(51_246)
    );
    let nested = parse(&doc! {"a.b.$": 1}).unwrap();
    let document = raw(&doc! {"a": {"b": [{"x": 1}, {"x": 2}]}, "c": 1});
    let found = nested.apply(&document, Some(&details)).unwrap();
    assert_eq!(
        Document::try_from(&found).unwrap(),
        doc! {"a": {"b": [{"x": 2}]}}
    );
    fails(doc! {"a.$": 1, "b.$": 1}, 31_276);
    fails(doc! {"b": 0, "a.$": 1}, 31_395);
    fails(doc! {"a.$": 1, "b": {"$elemMatch": {"x": 1}}}, 31_255);
}

#[test]
fn a_collision_names_what_follows_the_first_part_of_its_path() {
    for (spec, message) in [
        (
            doc! {"size": 1, "size.uom": 1},
            "Path collision at size.uom remaining portion uom",
        ),
        (
            doc! {"a.b": 1, "a.b.c.d": 1},
            "Path collision at a.b.c.d remaining portion b.c.d",
        ),
    ] {
        assert_eq!(parse(&spec).unwrap_err().message, message);
    }
}

#[test]
fn contradictions_are_refused() {
    fails(doc! {"a": 1, "b": 0}, 31_254);
    fails(doc! {"a": 0, "b": 1}, 31_253);
    fails(doc! {"a": 0, "b": "$c"}, 31_252);
    fails(doc! {"a": 1, "a.b": 1}, 31_249);
    fails(doc! {"a.b": 1, "a": 1}, 31_250);
    fails(doc! {"a": {}}, 51_270);
    fails(doc! {"": 1}, 40_352);
    fails(doc! {"a..b": 1}, 15_998);
    fails(doc! {"a": {"$foo": 1}}, 168);
    fails(doc! {"a": {"$meta": "textScore"}}, 40_218);
    fails(doc! {"a": {"$meta": "x"}}, 17_308);
    // A field with `$meta` does not determine whether the projection includes or excludes.
    let sorted = |spec: &Document| {
        let projection = parse(spec).unwrap();
        assert!(projection.reads_sort_key());
        let sort = Sort::parse(&raw(&doc! {"a": 1, "b": -1})).unwrap();
        let document = raw(&doc! {"_id": 1, "a": [3, 2], "c": 4});
        let key = sort.key(&document, None).unwrap();
        let shown = projection.apply_sorted(&document, None, &key).unwrap();
        Document::try_from(shown).unwrap()
    };
    let key = doc! {"$meta": "sortKey"};
    assert_eq!(
        sorted(&doc! {"k": key.clone()}),
        doc! {"_id": 1, "a": [3, 2], "c": 4, "k": [2, Bson::Null]}
    );
    assert_eq!(
        sorted(&doc! {"_id": 0, "c": 1, "k": key.clone()}),
        doc! {"c": 4, "k": [2, Bson::Null]}
    );
    assert_eq!(
        sorted(&doc! {"a": 0, "k": key}),
        doc! {"_id": 1, "c": 4, "k": [2, Bson::Null]}
    );
    let error = Projection::parse_stage(&doc! {"a": 1, "b": 0}, &Settings::default()).unwrap_err();
    assert_eq!(
        error.message,
        "Invalid $project :: caused by :: Cannot do exclusion on field b in inclusion projection"
    );
}

#[test]
fn what_is_needed_and_kept_is_known() {
    let project = parse(&doc! {"a.b": 1, "n": {"$add": ["$x.y", 1]}}).unwrap();
    let fields: Vec<String> = project
        .required_fields()
        .unwrap()
        .iter()
        .map(Path::to_string)
        .collect();
    assert_eq!(fields, ["_id", "a.b", "x.y"]);
    assert!(parse(&doc! {"a": 0}).unwrap().required_fields().is_none());
    // A value is computed into every element of an array, so the array's path is read as well.
    let nested = parse(&doc! {"a.b.c": "$x", "_id": 0}).unwrap();
    let fields = nested.required_fields().unwrap();
    assert_eq!(
        fields,
        [Path::parse("a.b").unwrap(), Path::parse("x").unwrap()]
    );
    let kept =
        |spec: Document, path: &str| parse(&spec).unwrap().preserves(&Path::parse(path).unwrap());
    assert!(kept(doc! {"a.b": 1}, "a.b"));
    assert!(kept(doc! {"a.b": 1}, "a.b.c"));
    assert!(kept(doc! {"a.b": 1}, "_id"));
    assert!(!kept(doc! {"a.b": 1}, "a"));
    assert!(!kept(doc! {"a.b": 1}, "c"));
    assert!(!kept(doc! {"a": "$b"}, "a"));
    assert!(kept(doc! {"a": 0}, "b"));
    assert!(!kept(doc! {"a.b": 0}, "a.0.b"));
    assert!(!kept(doc! {"a.b": 0}, "a"));
    let add = Projection::parse_add_fields(&doc! {"a.x": 1}, &Settings::default()).unwrap();
    assert!(!add.preserves(&Path::parse("a.b").unwrap()));
    assert!(add.preserves(&Path::parse("b").unwrap()));
}

#[test]
fn slice_does_not_enter_arrays_in_arrays() {
    check(
        doc! {"a.b": {"$slice": 1}},
        doc! {"a": [{"b": [1, 2]}, [{"b": [1, 2]}], [[{"b": [1, 2]}]]]},
        doc! {"a": [{"b": [1]}, [{"b": [1, 2]}], [[{"b": [1, 2]}]]]},
    );
    // An included field next to `$slice` removes other fields from arrays in arrays, too.
    check(
        doc! {"a.b": {"$slice": 1}, "a.c": 1},
        doc! {"a": [[{"b": [1, 2], "c": 1, "d": 1}]]},
        doc! {"a": [[{"b": [1, 2], "c": 1}]]},
    );
}

/// A document with two fields `name`, which an owned document cannot have.
fn twice(name: &str, one: impl Into<Bson>, two: impl Into<Bson>) -> RawDocumentBuf {
    let other = "~".repeat(name.len());
    let document = doc! {name: one.into(), other.as_str(): two.into()};
    let mut bytes = raw(&document).into_bytes();
    let at = bytes
        .windows(name.len())
        .position(|window| window == other.as_bytes())
        .unwrap();
    bytes[at..at + name.len()].copy_from_slice(name.as_bytes());
    RawDocumentBuf::from_bytes(bytes).unwrap()
}

/// A document whose only field, `outer`, holds `inner`.
fn inside(outer: &str, inner: &RawDocumentBuf) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    document.append(CString::try_from(outer).unwrap(), inner.clone());
    document
}

#[test]
fn paths_given_twice_are_refused() {
    let collide = "Path collision at a";
    let error = Projection::parse(&twice("a", 1, 1), &Settings::default(), None).unwrap_err();
    assert_eq!((error.code.0, &*error.message), (31_250, collide));
}

#[test]
fn an_update_names_each_path_once_even_if_an_operator_occurs_twice() {
    let update = |update: &RawDocumentBuf| {
        let update = Update::parse(RawBsonRef::Document(update), &[], &Settings::default())?;
        update.apply(&doc! {"_id": 1}, &Position::default())
    };
    let error = update(&inside("$set", &twice("a", 1, 2))).unwrap_err();
    assert_eq!(error.code.0, 40, "{error}");
    let both = twice("$set", doc! {"a": 1}, doc! {"a": 2});
    assert_eq!(update(&both).unwrap_err().code.0, 40);
    let both = twice("$set", doc! {"a": 1}, doc! {"b": 2});
    let wanted = doc! {"_id": 1, "a": 1, "b": 2};
    assert_eq!(update(&both).unwrap(), Some(wanted));
}

//! Specifications that are refused, and the order of known documents.

use std::cmp::Ordering;

use bson::{Bson, Document, RawDocumentBuf, doc};

use super::Sort;

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

/// Checks that a sort by `spec` returns `expected` in this order, whatever the input order.
fn check(spec: Document, expected: &[Document]) {
    let sort = Sort::parse(&raw(&spec)).unwrap();
    let keys: Vec<_> = expected
        .iter()
        .map(|document| sort.key(&raw(document), None).unwrap())
        .collect();
    for (i, a) in keys.iter().enumerate() {
        for (j, b) in keys.iter().enumerate() {
            assert_eq!(
                a.cmp(b),
                i.cmp(&j),
                "{} and {} by {spec}",
                expected[i],
                expected[j]
            );
        }
    }
}

fn key(spec: Document, document: Document) -> Vec<Bson> {
    let sort = Sort::parse(&raw(&spec)).unwrap();
    sort.key(&raw(&document), None).unwrap().values().to_vec()
}

#[test]
fn types_directions_and_arrays() {
    check(
        doc! {"a": 1},
        &[
            doc! {"a": []},
            doc! {},
            doc! {"a": [7, 1]},
            doc! {"a": 2},
            doc! {"a": "x"},
        ],
    );
    check(
        doc! {"a": -1},
        &[
            doc! {"a": "x"},
            doc! {"a": [7, 1]},
            doc! {"a": 2},
            doc! {},
            doc! {"a": []},
        ],
    );
    check(
        doc! {"a": 1, "b": -1},
        &[
            doc! {"a": 1, "b": 2},
            doc! {"a": 1, "b": 1},
            doc! {"a": 2, "b": 5},
        ],
    );
}

#[test]
fn fields_below_one_array_come_from_one_element() {
    let document = doc! {"a": [{"x": 1, "y": 2}, {"x": 1, "y": 9}, {"x": 2, "y": 99}, 5]};
    let expected = [Bson::Null, Bson::Null];
    assert_eq!(key(doc! {"a.x": 1, "a.y": -1}, document.clone()), expected);
    let expected = [Bson::Int32(2), Bson::Int32(99)];
    assert_eq!(key(doc! {"a.x": -1, "a.y": 1}, document), expected);
    assert_eq!(key(doc! {"a.1": 1}, doc! {"a": [9, 4]}), [Bson::Int32(4)]);
    assert_eq!(
        key(doc! {"a.0.b": 1}, doc! {"a": [{"b": 3}]}),
        [Bson::Int32(3)]
    );
    assert_eq!(key(doc! {"a.b": 1}, doc! {"a": []}), [Bson::Null]);
    assert_eq!(
        key(doc! {"a": 1}, doc! {"a": [[3], [1]]}),
        [Bson::Array(vec![Bson::Int32(1)])]
    );
}

#[test]
fn an_array_that_a_number_of_the_path_names_is_taken_whole() {
    let whole = |spec: Document| key(spec, doc! {"a": [[3, 1], 2]});
    let expected = [Bson::Array(vec![Bson::Int32(3), Bson::Int32(1)])];
    assert_eq!(whole(doc! {"a.0": 1}), expected);
    assert_eq!(whole(doc! {"a.0": -1}), expected);
    assert_eq!(whole(doc! {"a.0.1": 1}), [Bson::Int32(1)]);
    assert_eq!(key(doc! {"a.0": 1}, doc! {"a": [[]]}), [Bson::Undefined]);
    // An array selected by its index sorts as an array, not by its elements.
    check(
        doc! {"a.0": 1},
        &[doc! {"a": [5]}, doc! {"a": ["x"]}, doc! {"a": [[1]]}],
    );
    // A longer path enters the selected element, and also an array in a field of a selected
    // document.
    let document = doc! {"a": [[{"b": 3}, {"b": 2}]], "c": [{"d": [5, 4]}]};
    let spec = doc! {"a.0.b": 1};
    assert_eq!(key(spec, document.clone()), [Bson::Int32(2)]);
    assert_eq!(key(doc! {"c.0.d": 1}, document), [Bson::Int32(4)]);
}

#[test]
fn parallel_arrays_are_refused() {
    let sort = Sort::parse(&raw(&doc! {"a": 1, "b": 1})).unwrap();
    let error = sort
        .key(&raw(&doc! {"a": [1, 2], "b": [1, 2]}), None)
        .unwrap_err();
    assert_eq!(error.code.0, 2);
}

#[test]
fn a_number_in_a_path_goes_through_its_array_as_names_do() {
    let both = doc! {"a.0.b": 1, "a.b": 1};
    // One path selects an element of the array, the other path enters the array.
    let document = doc! {"a": [[{"b": 3}], {"b": 5}]};
    let expected = [Bson::Int32(3), Bson::Null];
    assert_eq!(key(both, document), expected);
    for (spec, document, code) in [
        (doc! {"a": 1, "c.0": 1}, doc! {"a": [1], "c": [5]}, 2),
        (doc! {"a.0": 1}, doc! {"a": [1, {"0": 2}]}, 16_746),
    ] {
        let sort = Sort::parse(&raw(&spec)).unwrap();
        let error = sort.key(&raw(&document), None).unwrap_err();
        assert_eq!(error.code.0, code, "{spec}");
    }
}

#[test]
fn bad_specifications_are_refused() {
    for (spec, code) in [
        (doc! {"a": 2}, 15975),
        (doc! {"a": "x"}, 15974),
        (doc! {"": 1}, 40352),
        (doc! {"$a": 1}, 16410),
        (doc! {"a.": 1}, 40353),
        (doc! {"a..b": 1}, 15998),
        (doc! {"a": {"$meta": "textScore"}}, 2),
        (doc! {"a": {"x": 1}}, 17312),
    ] {
        let error = Sort::parse(&raw(&spec)).unwrap_err();
        assert_eq!(error.code.0, code, "{spec}");
    }
    let sort = Sort::parse(&raw(&doc! {"a": -1.0, "b": 1_i64})).unwrap();
    assert_eq!(sort.to_document(), doc! {"a": -1, "b": 1});
}

#[test]
fn strings_sort_by_collation() {
    use crate::collation::{Collation, Collator};
    let collator = Collator::new(Collation::of_locale("en")).unwrap();
    let sort = Sort::parse(&raw(&doc! {"a": 1})).unwrap();
    let key = |text: &str| {
        sort.key(&raw(&doc! {"a": {"n": [text]}}), Some(&collator))
            .unwrap()
    };
    assert_eq!(key("a").cmp(&key("B")), Ordering::Less);
    let plain = |text: &str| sort.key(&raw(&doc! {"a": text}), None).unwrap();
    assert_eq!(plain("a").cmp(&plain("B")), Ordering::Greater);
}

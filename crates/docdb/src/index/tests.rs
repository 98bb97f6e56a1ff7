//! Keys of documents, case by case.

use bson::{Bson, Document, RawDocumentBuf, doc};
use query::Code;

use super::*;
use crate::key::decode;

fn keys(pattern: Document, document: Document) -> Vec<Vec<Bson>> {
    keys_of(doc! { "key": pattern }, document).unwrap().0
}

fn keys_of(spec: Document, document: Document) -> query::Result<(Vec<Vec<Bson>>, Vec<u32>)> {
    let spec = IndexSpec::parse(&spec).unwrap();
    let maker = KeyMaker::new(&spec, None, 1000).unwrap();
    let mut set = KeySet::new();
    let raw = RawDocumentBuf::try_from(&document).unwrap();
    maker.keys(&raw, &mut set)?;
    let wildcard = spec.key.keys().any(|k| k.ends_with("$**"));
    let mut directions: Vec<bool> = spec
        .fields()
        .unwrap()
        .iter()
        .map(|(_, kind)| *kind == FieldKind::Descending)
        .collect();
    if wildcard {
        directions.push(false);
    }
    let decoded = set.keys().map(|key| {
        let (values, _) = decode(key.bytes, key.type_bits, directions.clone()).unwrap();
        values
            .into_iter()
            .map(|v| Bson::try_from(v).unwrap())
            .collect()
    });
    Ok((decoded.collect(), set.multikey().to_vec()))
}

fn ints(values: &[i32]) -> Vec<Vec<Bson>> {
    values.iter().map(|v| vec![Bson::Int32(*v)]).collect()
}

#[test]
fn missing_fields_are_null() {
    let wanted = vec![vec![Bson::Int32(1), Bson::Null]];
    assert_eq!(keys(doc! { "a": 1, "b": -1 }, doc! { "a": 1 }), wanted);
    assert_eq!(keys(doc! { "a.b": 1 }, doc! { "a": 5 }), [[Bson::Null]]);
}

/// `keys`: K1. What a buffer held before has no part in the keys.
#[test]
fn keys_depend_on_the_document_alone() {
    let spec = IndexSpec::parse(&doc! { "key": { "a": 1, "b": -1 } }).unwrap();
    let maker = KeyMaker::new(&spec, None, 40).unwrap();
    let documents = [
        doc! { "a": [1, 2, 3], "b": "x" },
        doc! { "b": 1 },
        doc! { "a": "k".repeat(100), "b": [1.5, 2] },
        doc! {},
    ];
    let made = |set: &mut KeySet, document: &Document| -> Vec<(Vec<u8>, Vec<u8>)> {
        let raw = RawDocumentBuf::try_from(document).unwrap();
        maker.keys(&raw, set).unwrap();
        let keys = set.keys();
        keys.map(|key| (key.bytes.to_vec(), key.type_bits.to_vec()))
            .collect()
    };
    let mut reused = KeySet::new();
    for _ in 0..2 {
        for document in documents.iter().chain(documents.iter().rev()) {
            let fresh = made(&mut KeySet::new(), document);
            assert_eq!(made(&mut reused, document), fresh, "{document}");
        }
    }
}

/// `keys`: K2.
#[test]
fn arrays_multiply_keys() {
    let pattern = || doc! { "a": 1 };
    assert_eq!(keys(pattern(), doc! { "a": [3, 1, 3] }), ints(&[1, 3]));
    assert_eq!(keys(pattern(), doc! { "a": [] }), [[Bson::Undefined]]);
    assert_eq!(
        keys(pattern(), doc! { "a": [[1, 2]] }),
        [[Bson::Array(vec![1.into(), 2.into()])]]
    );
    let deep = || doc! { "a.b": 1 };
    assert_eq!(
        keys(deep(), doc! { "a": [{ "b": 2 }, { "b": [3, 4] }] }),
        ints(&[2, 3, 4])
    );
    assert_eq!(keys(deep(), doc! { "a": [] }), [[Bson::Null]]);
    assert_eq!(keys(deep(), doc! { "a": [[{ "b": 1 }]] }), [[Bson::Null]]);
    assert_eq!(keys(doc! { "a.0": 1 }, doc! { "a": [7, 8] }), ints(&[7]));
    assert_eq!(
        keys(doc! { "a.1.b": 1 }, doc! { "a": [7, { "b": 9 }] }),
        ints(&[9])
    );
}

#[test]
fn an_array_that_a_number_of_the_path_names_is_taken_whole() {
    let spec = doc! { "key": { "a.0": 1 } };
    let (found, multikey) = keys_of(spec, doc! { "a": [[3, 1], 2] }).unwrap();
    assert_eq!(found, [[Bson::Array(vec![3.into(), 1.into()])]]);
    assert!(multikey.is_empty());
    let empty = doc! { "a": [[]] };
    assert_eq!(keys(doc! { "a.0": 1 }, empty), [[Bson::Undefined]]);
    // A longer path continues into the array, and into a field of a document that it names.
    let document = doc! { "a": [[{ "b": 3 }, { "b": 2 }]], "c": [{ "d": [5, 4] }] };
    let found = keys(doc! { "a.0.b": 1 }, document.clone());
    assert_eq!(found, ints(&[2, 3]));
    assert_eq!(keys(doc! { "c.0.d": 1 }, document), ints(&[4, 5]));
}

#[test]
fn a_number_in_a_path_goes_through_its_array_as_names_do() {
    let both = || doc! { "key": { "a.0.b": 1, "a.b": 1 } };
    // One path selects an element of the array, the other one continues into the array.
    let document = doc! { "a": [[{ "b": 3 }], { "b": 5 }] };
    let (found, multikey) = keys_of(both(), document).unwrap();
    let three = |value: Bson| vec![Bson::Int32(3), value];
    assert_eq!(found, [three(Bson::Null), three(Bson::Int32(5))]);
    assert_eq!(multikey, [0b10, 0b1]);
    let spec = doc! { "key": { "a": 1, "c.0": 1 } };
    let error = keys_of(spec, doc! { "a": [1], "c": [5] }).unwrap_err();
    assert_eq!(error.code, query::Code::CANNOT_INDEX_PARALLEL_ARRAYS);
}

#[test]
fn fields_go_through_one_array_together() {
    let found = keys(
        doc! { "a.b": 1, "a.c": 1, "d": 1 },
        doc! { "a": [{ "b": 1, "c": 2 }, { "b": 3 }], "d": 5 },
    );
    let wanted = vec![
        vec![Bson::Int32(1), Bson::Int32(2), Bson::Int32(5)],
        vec![Bson::Int32(3), Bson::Null, Bson::Int32(5)],
    ];
    assert_eq!(found, wanted);
}

#[test]
fn parallel_arrays_are_refused() {
    let spec = doc! { "key": { "a": 1, "b": 1 } };
    let error = keys_of(spec, doc! { "a": [1], "b": [2] }).unwrap_err();
    assert_eq!(error.code.0, 171);
    assert_eq!(error.message, "cannot index parallel arrays [b] [a]");
}

/// `keys`: K3.
#[test]
fn multikey_parts_are_told() {
    let spec = doc! { "key": { "x": 1, "a.b": 1 } };
    let (_, bits) = keys_of(spec.clone(), doc! { "a": [{ "b": [1] }] }).unwrap();
    assert_eq!(bits, [0, 0b11]);
    let (_, bits) = keys_of(spec, doc! { "a": { "b": 1 } }).unwrap();
    assert!(bits.is_empty());
}

#[test]
fn sparse_indexes_leave_out_who_has_no_field() {
    let spec = doc! { "key": { "a": 1, "b": 1 }, "sparse": true };
    assert!(keys_of(spec.clone(), doc! { "c": 1 }).unwrap().0.is_empty());
    assert_eq!(keys_of(spec, doc! { "b": Bson::Null }).unwrap().0.len(), 1);
}

#[test]
fn hashes_are_of_values_and_not_of_types() {
    let spec = doc! { "key": { "a": "hashed" } };
    let one = keys_of(spec.clone(), doc! { "a": 1 }).unwrap().0;
    assert_eq!(one, keys_of(spec.clone(), doc! { "a": 1.0 }).unwrap().0);
    assert_ne!(one, keys_of(spec.clone(), doc! { "a": 2 }).unwrap().0);
    assert_eq!(keys_of(spec, doc! { "a": [1] }).unwrap_err().code.0, 16766);
}

#[test]
fn wildcard_indexes_hold_paths_and_values() {
    let pair = |path: &str, value: Bson| vec![Bson::String(path.into()), value];
    let document = || doc! { "_id": 1, "a": { "b": [1, { "c": 2 }] }, "d": {}, "e": [] };
    let found = keys(doc! { "$**": 1 }, document());
    let wanted = vec![
        pair("a.b", 1.into()),
        pair("a.b.c", 2.into()),
        pair("d", Bson::Document(doc! {})),
        pair("e", Bson::Undefined),
    ];
    assert_eq!(found, wanted);
    let found = keys(doc! { "a.b.$**": 1 }, document());
    assert_eq!(found, wanted[..2]);
    let spec = doc! { "key": { "$**": 1 }, "wildcardProjection": { "a": 0, "e": 0 } };
    assert_eq!(keys_of(spec, document()).unwrap().0, wanted[2..3]);
}

#[test]
fn long_keys_are_cut_and_stay_different() {
    let spec = IndexSpec::parse(&doc! { "key": { "a": 1 } }).unwrap();
    let maker = KeyMaker::new(&spec, None, 100).unwrap();
    let key = |text: String| {
        let mut set = KeySet::new();
        let raw = RawDocumentBuf::try_from(&doc! { "a": text }).unwrap();
        maker.keys(&raw, &mut set).unwrap();
        let key = set.keys().next().unwrap();
        (key.bytes.to_vec(), key.type_bits.to_vec())
    };
    let (a, bits) = key("x".repeat(500));
    let (b, _) = key("x".repeat(501));
    assert_eq!((a.len(), bits), (100, vec![CUT]));
    assert_ne!(a, b);
    assert_eq!(a[..84], b[..84]);
}

#[test]
fn bad_specifications_are_refused() {
    for (spec, code) in [
        (doc! { "key": {} }, 67),
        (doc! { "key": { "a": 0 } }, 67),
        (doc! { "key": { "a": true } }, 67),
        (doc! { "key": { "a": "text" } }, 67),
        (doc! { "key": { "a..b": 1 } }, 67),
        (doc! { "key": { "$a": 1 } }, 67),
        (doc! { "key": { "a": 1 }, "oops": 1 }, 197),
        (
            doc! { "key": { "a": 1, "b": 1 }, "expireAfterSeconds": 1 },
            67,
        ),
        (doc! { "key": { "a": 1 }, "expireAfterSeconds": -1 }, 67),
        (
            doc! { "key": { "a": 1 }, "sparse": true, "partialFilterExpression": {} },
            67,
        ),
        (doc! { "key": { "a": "hashed" }, "unique": true }, 16764),
        (doc! { "key": { "$**": 1 }, "unique": true }, 67),
        (
            doc! { "key": { "_id": 1 }, "name": "_id_", "sparse": true },
            197,
        ),
        (doc! { "name": "x" }, 9),
        (doc! { "key": { "a": 1 }, "name": 1 }, 14),
    ] {
        let error = IndexSpec::parse(&spec).unwrap_err();
        assert_eq!(error.code.0, code, "{spec}: {error}");
    }
}

#[test]
fn wildcards_stand_alone_or_behind_a_path_and_are_not_hashed() {
    for key in [
        doc! { ".$**": 1 },
        doc! { "a..$**": 1 },
        doc! { "a.$**.$**": 1 },
        doc! { "$**": "hashed" },
        doc! { "a.$**": "hashed" },
        doc! { "b": 1, "$**": "hashed" },
    ] {
        let error = IndexSpec::parse(&doc! { "key": key.clone(), "name": "i" }).unwrap_err();
        assert_eq!(error.code.0, 67, "{key}: {error}");
    }
    for key in [
        doc! { "$**": 1 },
        doc! { "a.b.$**": -1 },
        doc! { "a": "hashed" },
    ] {
        IndexSpec::parse(&doc! { "key": key.clone(), "name": "i" }).unwrap();
    }
}

/// Each key of a wildcard index repeats the path, and each key of an array the fields beside it:
/// the work for a document is bounded, and looks at the clock.
#[test]
fn the_work_for_the_keys_of_a_document_is_bounded() {
    let path = "p".repeat(1 << 20);
    let leaves: Document = (0..900).map(|at| (format!("f{at}"), at.into())).collect();
    let values: Vec<i32> = (0..900).collect();
    let mut nested = Document::new();
    nested.insert(path.clone(), leaves);
    for (key, document) in [
        (doc! { "$**": 1 }, nested),
        (doc! { "a": 1, "b": 1 }, doc! { "a": values, "b": path }),
    ] {
        let spec = IndexSpec::parse(&doc! { "key": key, "name": "i" }).unwrap();
        let maker = KeyMaker::new(&spec, None, 1000).unwrap();
        let raw = RawDocumentBuf::try_from(&document).unwrap();
        let mut set = KeySet::new();
        // A look for each 4 MiB of keys.
        let (done, _) = crate::looks::counted(2, || maker.keys(&raw, &mut set));
        assert_eq!(done.unwrap_err().code, Code::INTERRUPTED);
        assert!(set.len() < 20, "{} keys after the interruption", set.len());
        set.clear();
        const { assert!(keys::MADE_MAX < 900 << 20) };
        let error = maker.keys(&raw, &mut set).unwrap_err();
        assert_eq!(error.code, Code::CANNOT_CREATE_INDEX, "{error}");
    }
}

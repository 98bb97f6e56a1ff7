//! Properties of the order on random values, and known results.

use std::cmp::Ordering;

use bson::{Bson, RawBson, RawDocumentBuf, doc};
use stdx::Tape;

use super::{
    compare, compare_mixed, compare_raw, compare_raw_documents, compare_with, equivalence_key,
    equivalence_key_raw, random, truthy, type_name,
};
use crate::collation::{Collation, Collator};

const SEEDS: u64 = 4000;

fn raw(value: &Bson) -> RawBson {
    RawBson::try_from(value.clone()).unwrap()
}

#[test]
fn types_stand_in_their_order() {
    let id = bson::oid::ObjectId::from_bytes([0; 12]);
    let ascending = [
        Bson::MinKey,
        Bson::Undefined,
        Bson::Null,
        Bson::Double(f64::NAN),
        Bson::Int32(-5),
        Bson::Int64(7),
        Bson::from("a"),
        Bson::Document(doc! {}),
        Bson::Array(Vec::new()),
        Bson::Binary(bson::Binary {
            subtype: bson::spec::BinarySubtype::Generic,
            bytes: Vec::new(),
        }),
        Bson::ObjectId(id),
        Bson::Boolean(false),
        Bson::Boolean(true),
        Bson::DateTime(bson::DateTime::from_millis(-1)),
        Bson::Timestamp(bson::Timestamp {
            time: 0,
            increment: 0,
        }),
        Bson::JavaScriptCode(String::new()),
        Bson::MaxKey,
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(compare(a, b), i.cmp(&j), "{a} and {b}");
        }
    }
}

#[test]
fn documents_compare_type_then_name_then_value() {
    let order = |a: bson::Document, b: bson::Document| compare(&Bson::from(a), &Bson::from(b));
    assert_eq!(order(doc! {"b": 1}, doc! {"a": "x"}), Ordering::Less);
    assert_eq!(order(doc! {"b": 1}, doc! {"a": 2}), Ordering::Greater);
    assert_eq!(order(doc! {"a": 1}, doc! {"a": 1, "b": 1}), Ordering::Less);
    assert_eq!(order(doc! {"a": 1}, doc! {"a": 1.0}), Ordering::Equal);
}

#[test]
fn order_is_total_and_the_same_for_all_forms() {
    for seed in 0..SEEDS {
        let mut tape = Tape::from_seed(seed, 200);
        let values: Vec<Bson> = (0..3).map(|_| random::value(&mut tape, 2)).collect();
        let [a, b, c] = values.as_slice() else {
            unreachable!()
        };
        let order = compare(a, b);
        assert_eq!(order.reverse(), compare(b, a), "seed {seed}: {a} and {b}");
        assert_eq!(compare(a, a), Ordering::Equal, "seed {seed}: {a}");
        if order.is_le() && compare(b, c).is_le() {
            assert!(compare(a, c).is_le(), "seed {seed}: {a}, {b}, {c}");
        }
        let (x, y) = (raw(a), raw(b));
        let (x, y) = (x.as_raw_bson_ref(), y.as_raw_bson_ref());
        assert_eq!(compare_raw(x, y), order, "seed {seed}: {a} and {b}");
        assert_eq!(compare_mixed(x, b, None), order, "seed {seed}: {a} and {b}");
    }
}

#[test]
fn numbers_are_ordered_transitively() {
    for seed in 0..SEEDS {
        let mut tape = Tape::from_seed(seed, 60);
        let mut values: Vec<Bson> = (0..8).map(|_| random::number(&mut tape)).collect();
        values.sort_by(compare);
        for (i, a) in values.iter().enumerate() {
            for b in &values[i..] {
                assert!(compare(a, b).is_le(), "seed {seed}: {a} and {b}");
            }
        }
    }
}

#[test]
fn keys_are_equal_exactly_when_values_are() {
    let mut collation = Collation::of_locale("en");
    collation.strength = 1;
    let collator = Collator::new(collation).unwrap();
    for seed in 0..SEEDS {
        let mut tape = Tape::from_seed(seed, 120);
        let a = random::value(&mut tape, 1);
        let b = random::value(&mut tape, 1);
        for collator in [None, Some(&collator)] {
            let key = equivalence_key(&a, collator);
            assert_eq!(
                key == equivalence_key(&b, collator),
                compare_with(&a, &b, collator).is_eq(),
                "seed {seed}: {a} and {b}"
            );
            let mut same = Vec::new();
            equivalence_key_raw(raw(&a).as_raw_bson_ref(), collator, &mut same);
            assert_eq!(key, same, "seed {seed}: {a}");
        }
    }
}

#[test]
fn broken_bytes_do_not_panic() {
    for seed in 0..SEEDS {
        let mut tape = Tape::from_seed(seed, 200);
        let a = RawDocumentBuf::try_from(&random::document(&mut tape, 2)).unwrap();
        let mut bytes = a.as_bytes().to_vec();
        let at = usize::from(tape.byte()) % bytes.len();
        bytes[at] = tape.byte();
        let Ok(b) = RawDocumentBuf::from_bytes(bytes) else {
            continue;
        };
        let order = compare_raw_documents(&a, &b);
        assert_eq!(
            order.reverse(),
            compare_raw_documents(&b, &a),
            "seed {seed}"
        );
    }
}

#[test]
fn truth_and_names() {
    for (value, truth, name) in [
        (Bson::Null, false, "null"),
        (Bson::Undefined, false, "undefined"),
        (Bson::Boolean(false), false, "bool"),
        (Bson::Int32(0), false, "int"),
        (Bson::Double(-0.0), false, "double"),
        (Bson::Double(f64::NAN), true, "double"),
        (Bson::Decimal128("0E+3".parse().unwrap()), false, "decimal"),
        (Bson::from(""), true, "string"),
        (Bson::Array(Vec::new()), true, "array"),
    ] {
        assert_eq!((truthy(&value), type_name(&value)), (truth, name));
    }
}

//! Specifications that are accepted and refused, and known orders of words.

use std::cmp::Ordering;

use bson::{Document, RawDocumentBuf, doc};

use super::{Collation, Collator};
use crate::Result;

fn parse(spec: &Document) -> Result<Option<Collation>> {
    Collation::parse(&RawDocumentBuf::try_from(spec).unwrap())
}

fn collator(spec: &Document) -> Collator {
    Collator::new(parse(spec).unwrap().unwrap()).unwrap()
}

#[test]
fn a_full_specification_comes_back() {
    let full = parse(&doc! {"locale": "en"})
        .unwrap()
        .unwrap()
        .to_document();
    let expected = doc! {
        "locale": "en", "caseLevel": false, "caseFirst": "off", "strength": 3,
        "numericOrdering": false, "alternate": "non-ignorable", "maxVariable": "punct",
        "normalization": false, "backwards": false, "version": "57.1",
    };
    assert_eq!(full, expected);
    assert_eq!(parse(&full).unwrap().unwrap().to_document(), expected);
    assert_eq!(parse(&doc! {"locale": "simple"}).unwrap(), None);
    assert_eq!(parse(&doc! {}).unwrap(), None);
}

#[test]
fn bad_specifications_are_refused() {
    for (spec, code) in [
        (doc! {"strength": 2}, 40414),
        (doc! {"locale": 1}, 14),
        (doc! {"locale": "xx"}, 2),
        (doc! {"locale": "en@collation=nonsense"}, 2),
        (doc! {"locale": "EN"}, 2),
        (doc! {"locale": "en", "strength": 6}, 51024),
        (doc! {"locale": "en", "strength": "3"}, 14),
        (doc! {"locale": "en", "caseFirst": "x"}, 2),
        (doc! {"locale": "en", "caseLevel": 1}, 14),
        (doc! {"locale": "en", "nonsense": 1}, 40415),
        (doc! {"locale": "simple", "strength": 1}, 2),
    ] {
        let error = parse(&spec).unwrap_err();
        assert_eq!(error.code.0, code, "{spec}: {error}");
    }
}

#[test]
fn every_language_of_the_list_has_a_collator() {
    for locale in [
        "en",
        "en_US",
        "en_US_POSIX",
        "de@collation=phonebook",
        "zh_Hant",
        "fr_CA",
        "root",
        "zh@collation=stroke",
        "es@collation=traditional",
        "nb",
        "ceb",
        "pt_BR",
    ] {
        collator(&doc! {"locale": locale});
    }
}

#[test]
fn strength_and_friends() {
    let base = collator(&doc! {"locale": "en", "strength": 1});
    assert_eq!(base.compare("cafe", "CAF\u{c9}"), Ordering::Equal);
    let accents = collator(&doc! {"locale": "en", "strength": 2});
    assert_eq!(accents.compare("abc", "ABC"), Ordering::Equal);
    assert_eq!(accents.compare("cafe", "caf\u{e9}"), Ordering::Less);
    let plain = collator(&doc! {"locale": "en"});
    assert_eq!(plain.compare("a", "B"), Ordering::Less);
    assert_eq!(plain.compare("a", "A"), Ordering::Less);
    let upper = collator(&doc! {"locale": "en", "caseFirst": "upper"});
    assert_eq!(upper.compare("a", "A"), Ordering::Greater);
    let numeric = collator(&doc! {"locale": "en", "numericOrdering": true});
    assert_eq!(numeric.compare("a10", "a2"), Ordering::Greater);
    let shifted = collator(&doc! {"locale": "en", "alternate": "shifted", "strength": 2});
    assert_eq!(shifted.compare("a b", "ab"), Ordering::Equal);
    let phone = collator(&doc! {"locale": "de@collation=phonebook"});
    assert_eq!(phone.compare("\u{e4}", "ad"), Ordering::Greater);
    assert_eq!(phone.compare("\u{e4}", "af"), Ordering::Less);
}

#[test]
fn sort_keys_have_the_order_of_the_strings() {
    let words = [
        "",
        "a",
        "A",
        "ab",
        "a b",
        "\u{e4}",
        "B",
        "10",
        "9",
        "z",
        "caf\u{e9}",
        "cafe",
    ];
    for spec in [
        doc! {"locale": "en"},
        doc! {"locale": "sv", "strength": 1},
        doc! {"locale": "en", "numericOrdering": true, "strength": 2, "caseLevel": true},
        doc! {"locale": "fr_CA", "alternate": "shifted", "strength": 4},
    ] {
        let collator = collator(&spec);
        for a in words {
            for b in words {
                let keys = collator
                    .sort_key(a)
                    .unwrap()
                    .cmp(&collator.sort_key(b).unwrap());
                assert_eq!(keys, collator.compare(a, b), "{a} {b} {spec}");
            }
        }
    }
}

/// A key that cannot be charged must not make two values equal.
#[test]
fn keys_of_values_differ_whatever_memory_is_left() {
    use crate::meter::Meter;
    use crate::value::equivalence_key;
    let collator = collator(&doc! {"locale": "en"});
    let _entered = Meter::default().with_limit(100).enter();
    let [one, other] = ["x".repeat(1000), "y".repeat(1000)].map(bson::Bson::String);
    assert!(collator.sort_key(&"x".repeat(1000)).is_err());
    let key = equivalence_key(&one, Some(&collator));
    assert_ne!(key, equivalence_key(&other, Some(&collator)));
}

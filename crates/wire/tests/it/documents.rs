//! BSON that is accepted, and BSON that is refused.

use bson::{Bson, Document, RawDocument, doc};
use wire::{Error, validate};

use crate::raw;

fn every_type() -> Document {
    doc! {
        "double": 1.5, "string": "h\u{e9}", "document": {"a": {}}, "array": [1, [2]],
        "binary": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2] },
        "old": bson::Binary { subtype: bson::spec::BinarySubtype::BinaryOld, bytes: vec![1] },
        "undefined": Bson::Undefined, "oid": bson::oid::ObjectId::from_bytes([1; 12]),
        "bool": true, "date": bson::DateTime::from_millis(-1), "null": null,
        "regex": Bson::RegularExpression(bson::Regex {
            pattern: "^a".try_into().unwrap(), options: "i".try_into().unwrap(),
        }),
        "code": Bson::JavaScriptCode("f()".to_owned()),
        "scope": Bson::JavaScriptCodeWithScope(bson::JavaScriptCodeWithScope {
            code: "f()".to_owned(), scope: doc! {"x": 1},
        }),
        "symbol": Bson::Symbol("s".to_owned()), "int": 3,
        "stamp": bson::Timestamp { time: 1, increment: 2 }, "long": 4_i64,
        "decimal": "1.5".parse::<bson::Decimal128>().unwrap(),
        "min": Bson::MinKey, "max": Bson::MaxKey,
    }
}

fn nested(levels: usize) -> Document {
    (1..levels).fold(doc! {}, |inner, _| doc! {"a": inner})
}

#[test]
fn every_type_is_sound_and_its_length_is_told() {
    let mut bytes = raw(&every_type()).into_bytes();
    let length = bytes.len();
    bytes.extend_from_slice(b"more");
    assert_eq!(validate(&bytes), Ok(length));
}

#[test]
fn every_prefix_is_refused() {
    // W1.
    let bytes = raw(&every_type()).into_bytes();
    for end in 0..bytes.len() {
        assert!(validate(&bytes[..end]).is_err(), "{end} of {}", bytes.len());
    }
}

#[test]
fn a_changed_byte_is_refused_or_still_readable() {
    // W1.
    let bytes = raw(&every_type()).into_bytes();
    let mut refused = 0;
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xFF] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            match validate(&changed) {
                Ok(length) => {
                    let document = RawDocument::from_bytes(&changed[..length]).unwrap();
                    Document::try_from(document).unwrap();
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.closes(), "{error}");
                }
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn nesting_ends_at_its_limit() {
    let at = raw(&nested(200));
    assert_eq!(validate(at.as_bytes()), Ok(at.as_bytes().len()));
    let error = validate(raw(&nested(201)).as_bytes()).unwrap_err();
    assert_eq!((error.clone(), error.code()), (Error::Depth, 15));
}

#[test]
fn text_must_be_utf8() {
    let mut bytes = raw(&doc! {"abc": "defg"}).into_bytes();
    for at in [5, 13] {
        let kept = std::mem::replace(&mut bytes[at], 0xFF);
        assert_eq!(validate(&bytes).unwrap_err().code(), 22, "byte {at}");
        bytes[at] = kept;
    }
    assert!(validate(&bytes).is_ok());
}

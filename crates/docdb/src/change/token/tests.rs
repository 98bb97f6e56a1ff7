//! Tests of resume tokens: the layout of MongoDB, the order, damaged bytes.

use bson::oid::ObjectId;
use bson::{Bson, RawBson, Uuid, doc};
use stdx::Tape;

use super::*;

fn raw(document: &bson::Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

fn at(time: u32, increment: u32) -> Timestamp {
    Timestamp { time, increment }
}

fn event(uuid: &str) -> Event {
    Event {
        index: 0,
        invalidate: false,
        uuid: Some(Uuid::parse_str(uuid).unwrap()),
        fragment: None,
    }
}

fn parse(digits: &str) -> Result<Token> {
    Token::parse(&raw(&doc! {"_data": digits}))
}

/// The token's digits, which parse to the token (T2).
fn digits(token: &Token) -> String {
    let document = token.to_document();
    let parsed = Token::parse(&document).unwrap();
    assert_eq!(&parsed, token, "T2: {document:?}");
    assert_eq!(parsed.time(), token.time(), "T2: {document:?}");
    assert_eq!(parsed.stands_for(), token.stands_for(), "T2: {document:?}");
    document.get_str("_data").unwrap().to_owned()
}

/// Tokens as MongoDB 6 to 8 write them.
#[test]
fn tokens_have_mongodbs_layout() {
    let insert = Token::event(
        at(1_666_193_824, 1),
        event("ab1154ac-acd8-49a4-8c61-756d70d3b21f"),
        &raw(&doc! {
            "operationType": "insert",
            "documentKey": {"_id": ObjectId::parse_str("635019a078be67426d7cf4d2").unwrap()},
        }),
    );
    assert_eq!(
        digits(&insert.unwrap()),
        "82635019A0000000012B042C0100296E5A1004AB1154ACACD849A48C61756D70D3B21F463C6F70657261746\
         96F6E54797065003C696E736572740046646F63756D656E744B65790046645F69640064635019A078BE6742\
         6D7CF4D2000004"
    );
    let update = Token::event(
        at(1_700_267_321, 1),
        event("a7f55a5b-35bd-4c7d-b2cd-56c6cfea9c49"),
        &raw(&doc! {"operationType": "update", "documentKey": {"_id": "beer"}}),
    );
    assert_eq!(
        digits(&update.unwrap()),
        "8265580539000000012B042C0100296E5A1004A7F55A5B35BD4C7DB2CD56C6CFEA9C49463C6F70657261746\
         96F6E54797065003C7570646174650046646F63756D656E744B657900463C5F6964003C6265657200000004"
    );
    let dropped = Token::event(
        at(1_721_140_162, 5),
        Event {
            invalidate: true,
            ..event("413f85d5-b4cf-4680-aa4d-17641e9df22d")
        },
        &raw(&doc! {"operationType": "drop"}),
    );
    assert_eq!(
        digits(&dropped.unwrap()),
        "82669683C2000000052B042C0100296F5A1004413F85D5B4CF4680AA4D17641E9DF22D463C6F70657261746\
         96F6E54797065003C64726F70000004"
    );
    let mark = Token::mark(at(0x6A8C_8E64, 1));
    assert_eq!(digits(&mark), "826A8C8E64000000012B0429296E1404");
}

#[test]
fn tokens_of_version_1_are_read() {
    let mark = parse("82612F653E000000022B0229296E04").unwrap();
    assert_eq!(mark.time(), at(1_630_496_062, 2));
    assert_eq!(mark.stands_for(), None);
    let insert = parse(
        "82620b98e5000000022b022c0100296e5a1004437fb549cfdd45269dd59b9bf0eb354746645f69640064620b\
         98e564da118651c642000004",
    );
    let insert = insert.unwrap();
    assert_eq!(insert.time(), at(1_644_927_205, 2));
    let uuid = "437fb549-cfdd-4526-9dd5-9b9bf0eb3547";
    assert_eq!(insert.stands_for(), Some(&event(uuid)));
}

fn component(value: impl Into<Bson>) -> String {
    let value = RawBson::try_from(value.into()).unwrap();
    let mut writer = Writer::new();
    writer.value(value.as_raw_bson_ref()).unwrap();
    let bytes = writer.finish();
    let mut reader = Reader::new(&bytes);
    reader.pass_value().unwrap();
    assert!(reader.at_end(), "{value:?}");
    bytes
        .iter()
        .take(bytes.len() - 1)
        .map(|byte| format!("{byte:02X}"))
        .collect()
}

#[test]
fn numbers_have_mongodbs_form() {
    for (value, expected) in [
        (Bson::Int32(6), "2B0C"),
        (Bson::Int64(6), "2B0C"),
        (Bson::Double(6.0), "2B0C"),
        (Bson::Decimal128("6.0".parse().unwrap()), "2B0C"),
        (Bson::Int32(0), "29"),
        (Bson::Double(-0.0), "29"),
        (Bson::Int32(-1), "27FD"),
        (Bson::Int32(127), "2BFE"),
        (Bson::Int32(128), "2C0100"),
        (Bson::Int64(i64::MAX), "32FFFFFFFFFFFFFFFE"),
        (Bson::Double(f64::NAN), "1E"),
        (Bson::Double(f64::INFINITY), "33FFFFFFFFFFFFFFFF"),
        (Bson::Double(f64::NEG_INFINITY), "1F0000000000000000"),
        (Bson::Double(1.5), "2B0380000000000000"),
        (Bson::Double(-1.5), "27FC7FFFFFFFFFFFFF"),
        (Bson::Double(0.5), "2AFF80000000000000"),
        (Bson::Double(2e307), "337F78F63E7958E866"),
        (Bson::Double(-2e307), "1F808709C186A71799"),
        (Bson::Double(2e-307), "2A6083F43058818C1A"),
        (Bson::Double(-2e-307), "289F7C0BCFA77E73E5"),
    ] {
        assert_eq!(component(value.clone()), expected, "{value:?}");
    }
}

#[test]
fn other_values_have_mongodbs_form() {
    let binary = |length: usize| bson::Binary {
        subtype: bson::spec::BinarySubtype::Generic,
        bytes: vec![7; length],
    };
    for (value, expected) in [
        (Bson::from("a\0b"), "3C6100FF6200"),
        (Bson::from(doc! {"a": true}), "466E61006F00"),
        (Bson::Array(vec![1.into(), "x".into()]), "502B023C780000"),
        (Bson::Binary(binary(2)), "5A02000707"),
        (Bson::Null, "14"),
        (
            Bson::DateTime(bson::DateTime::from_millis(1)),
            "788000000000000001",
        ),
    ] {
        assert_eq!(component(value.clone()), expected, "{value:?}");
    }
    assert!(component(Bson::Binary(binary(254))).starts_with("5AFE0007"));
    assert!(component(Bson::Binary(binary(255))).starts_with("5AFF000000FF0007"));
}

/// Decimals that are no doubles: distinct, and passed over.
#[test]
fn decimals_are_distinguished() {
    let texts = [
        "0.1",
        "-0.1",
        "1.1",
        "1.100000000000000000000000000000001",
        "5.000000000000000000000000000000001",
        "12345678901234567.8",
        "9223372036854775807.5",
        "9223372036854775808.5",
        "1E+6000",
        "1E-6000",
        "-1E-6000",
        "1.7E-300",
    ];
    let mut seen: Vec<String> = texts
        .iter()
        .map(|text| component(Bson::Decimal128(text.parse().unwrap())))
        .collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), texts.len());
}

/// T1: the order of random positions is that of their bytes, and of their digits.
#[test]
fn tokens_are_ordered_by_time_and_position() {
    type Place = (Timestamp, Option<(i64, bool, Option<[u8; 16]>)>);
    let mut positions: Vec<(Place, Token)> = Vec::new();
    let identifier = raw(&doc! {"operationType": "insert", "documentKey": {"_id": 1}});
    for seed in 0..300 {
        let mut tape = Tape::from_seed(seed, 40);
        let edges = [0, 1, 2, 63, 64, 127, 128, 16_383, 16_384, 1 << 40];
        let time = at(tape.below(3), [0, 1, 255, 256, u32::MAX][tape.index(5)]);
        if tape.byte().is_multiple_of(4) {
            positions.push(((time, None), Token::mark(time)));
            continue;
        }
        let uuid = (!tape.byte().is_multiple_of(4)).then(|| [tape.byte() % 3; 16]);
        let event = Event {
            index: edges[tape.index(edges.len())],
            invalidate: tape.chance(64),
            uuid: uuid.map(Uuid::from_bytes),
            fragment: None,
        };
        let place = (time, Some((event.index, event.invalidate, uuid)));
        let token = Token::event(time, event, &identifier).unwrap();
        positions.push((place, token));
    }
    for (left, one) in &positions {
        for (right, other) in &positions {
            let expected = left.cmp(right);
            assert_eq!(one.cmp(other), expected, "T1: {left:?}, {right:?}");
            let (a, b) = (digits(one), digits(other));
            assert_eq!(a.cmp(&b), expected, "T1: {left:?}, {right:?}");
        }
    }
    let whole = Event {
        index: 0,
        invalidate: false,
        uuid: None,
        fragment: None,
    };
    let fragment = |number| {
        let event = Event {
            fragment: Some(number),
            ..whole.clone()
        };
        let token = Token::event(at(1, 1), event, &identifier).unwrap();
        digits(&token);
        token
    };
    assert!(fragment(0) < fragment(1) && fragment(1) < fragment(200));
}

#[test]
fn what_is_no_token_is_refused() {
    let refused = |document: &bson::Document, code: i32| {
        let error = Token::parse(&raw(document)).unwrap_err();
        assert_eq!(error.code.0, code, "{document}: {error}");
    };
    refused(&doc! {}, 40_647);
    refused(&doc! {"_data": 1}, 40_647);
    refused(&doc! {"_data": ""}, 40_649);
    refused(&doc! {"_data": "8"}, 9);
    refused(&doc! {"_data": "82GG"}, 9);
    refused(&doc! {"_data": "+1"}, 9);
    refused(&doc! {"_data": "82"}, 50_811);
    refused(&doc! {"_data": "826A8C8E64000000012B0629296E1404"}, 50_795);
    refused(&doc! {"_data": "826A8C8E64000000012B0427FD6E1404"}, 50_811);
    refused(
        &doc! {"_data": "826A8C8E64000000012B042927FD6E1404"},
        50_794,
    );
    // An integer in a longer form than it needs.
    refused(
        &doc! {"_data": "826A8C8E64000000012C000429296E1404"},
        50_811,
    );
    refused(
        &doc! {"_data": "826A8C8E64000000012B0429296E140404"},
        50_811,
    );
}

/// T3, T2: bytes that almost are a token.
#[test]
fn damaged_tokens_are_decoded_or_refused() {
    let id = doc! {
        "a": [1.5, -2, {"b": "x\0"}], "c": bson::DateTime::from_millis(5), "d": 1e-300,
        "e": Bson::Decimal128("0.1".parse().unwrap()), "r": bson::Regex {
            pattern: "a".to_owned().try_into().unwrap(),
            options: "i".to_owned().try_into().unwrap(),
        },
    };
    let identifier = raw(&doc! {"operationType": "insert", "documentKey": {"_id": id}});
    let some = Event {
        fragment: Some(3),
        ..event("ab1154ac-acd8-49a4-8c61-756d70d3b21f")
    };
    let sound = Token::event(at(5, 6), some, &identifier).unwrap();
    digits(&sound);
    let mut valid = 0;
    for seed in 0..20_000 {
        let mut tape = Tape::from_seed(seed, 24);
        let mut bytes = sound.bytes.clone();
        for _ in 0..1 + tape.byte() % 3 {
            let at = tape.index(bytes.len());
            match tape.byte() % 3 {
                0 => bytes[at] = tape.byte(),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, tape.byte()),
            }
        }
        bytes.truncate(bytes.len() - tape.index(3));
        if let Ok(token) = Token::from_bytes(bytes) {
            digits(&token);
            valid += 1;
        }
    }
    assert!(valid > 1_000, "{valid}");
    // Nesting that would exhaust a stack.
    let mut deep = sound.bytes.get(..31).unwrap().to_vec();
    deep.extend(vec![0x50; 1_000_000]);
    assert!(Token::from_bytes(deep).is_err());
}

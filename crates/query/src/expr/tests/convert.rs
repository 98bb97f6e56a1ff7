//! Conversions from each type to each type.

use std::str::FromStr as _;

use bson::oid::ObjectId;
use bson::{Binary, Bson, DateTime, Decimal128, Timestamp, bson, doc};

use super::{check, evaluate, refuse};

/// Checks the results of converting a value to each target type; `Err` for a refused conversion.
#[track_caller]
fn row(input: impl Into<Bson>, expected: [Option<Bson>; 8]) {
    let input = input.into();
    let types = [
        "double", "string", "objectId", "bool", "date", "int", "long", "decimal",
    ];
    for (name, expected) in types.into_iter().zip(expected) {
        let expr = doc! { "$convert": { "input": "$v", "to": name, "onError": "refused" } };
        let found = evaluate(expr, &doc! { "v": input.clone() });
        let expected = expected.unwrap_or_else(|| bson!("refused"));
        assert_eq!(found, Ok(Some(expected)), "{input} to {name}");
    }
}

fn decimal(text: &str) -> Option<Bson> {
    Some(Bson::Decimal128(Decimal128::from_str(text).unwrap()))
}

fn date(millis: i64) -> Option<Bson> {
    Some(Bson::DateTime(DateTime::from_millis(millis)))
}

#[test]
fn from_every_type() {
    let (yes, no) = (Some(Bson::Boolean(true)), Some(Bson::Boolean(false)));
    let text = |text: &str| Some(bson!(text));
    let (double, int, long) = (
        |x: f64| Some(Bson::Double(x)),
        |x: i32| Some(Bson::Int32(x)),
        |x: i64| Some(Bson::Int64(x)),
    );
    row(
        2.9,
        [
            double(2.9),
            text("2.9"),
            None,
            yes.clone(),
            date(2),
            int(2),
            long(2),
            decimal("2.90000000000000"),
        ],
    );
    row(
        0,
        [
            double(0.0),
            text("0"),
            None,
            no.clone(),
            None,
            int(0),
            long(0),
            decimal("0"),
        ],
    );
    row(
        5_000_000_000_i64,
        [
            double(5e9),
            text("5000000000"),
            None,
            yes.clone(),
            date(5_000_000_000),
            None,
            long(5_000_000_000),
            decimal("5000000000"),
        ],
    );
    row(
        true,
        [
            double(1.0),
            text("true"),
            None,
            yes.clone(),
            None,
            int(1),
            long(1),
            decimal("1"),
        ],
    );
    row(
        "12",
        [
            double(12.0),
            text("12"),
            None,
            yes.clone(),
            None,
            int(12),
            long(12),
            decimal("12"),
        ],
    );
    row(
        "1.5",
        [
            double(1.5),
            text("1.5"),
            None,
            yes.clone(),
            None,
            None,
            None,
            decimal("1.5"),
        ],
    );
    row(
        "x",
        [None, text("x"), None, yes.clone(), None, None, None, None],
    );
    row(
        "1970-01-02",
        [
            None,
            text("1970-01-02"),
            None,
            yes.clone(),
            date(86_400_000),
            None,
            None,
            None,
        ],
    );
    let id = ObjectId::parse_str("000000010000000000000000").unwrap();
    row(
        id,
        [
            None,
            text("000000010000000000000000"),
            Some(Bson::ObjectId(id)),
            yes.clone(),
            date(1000),
            None,
            None,
            None,
        ],
    );
    row(
        DateTime::from_millis(1500),
        [
            double(1500.0),
            text("1970-01-01T00:00:01.500Z"),
            None,
            yes.clone(),
            date(1500),
            None,
            long(1500),
            decimal("1500"),
        ],
    );
    row(
        Timestamp {
            time: 2,
            increment: 1,
        },
        [None, None, None, yes.clone(), date(2000), None, None, None],
    );
    row(
        doc! {},
        [None, None, None, yes.clone(), None, None, None, None],
    );
    row(bson!([]), [None, None, None, yes, None, None, None, None]);
}

#[test]
fn refusals_say_why() {
    let d = || doc! { "o": {} };
    refuse(
        doc! { "$toInt": "$o" },
        d(),
        241,
        "Unsupported conversion from object to int in $convert with no onError value",
    );
    refuse(
        doc! { "$toInt": "1.5" },
        d(),
        241,
        "Failed to parse number '1.5'",
    );
    refuse(
        doc! { "$toInt": 1e10 },
        d(),
        241,
        "Conversion would overflow target type",
    );
    refuse(
        doc! { "$toLong": f64::NAN },
        d(),
        241,
        "Attempt to convert NaN value to integer type",
    );
    refuse(
        doc! { "$toLong": f64::INFINITY },
        d(),
        241,
        "infinity value",
    );
    refuse(
        doc! { "$toInt": "0x1" },
        d(),
        241,
        "Illegal hexadecimal input",
    );
    refuse(
        doc! { "$toObjectId": "ab" },
        d(),
        241,
        "expected 24 but found 2",
    );
    refuse(doc! { "$toDate": 5 }, d(), 241, "from int to date");
    refuse(
        doc! { "$convert": { "input": 1, "to": "foo" } },
        d(),
        2,
        "Unknown type name: foo",
    );
    refuse(
        doc! { "$convert": { "input": 1, "to": [] } },
        d(),
        9,
        "must be a string or number",
    );
    refuse(
        doc! { "$convert": { "input": 1 } },
        d(),
        9,
        "Missing 'to' parameter",
    );
    refuse(
        doc! { "$convert": { "input": 1, "to": "regex" } },
        d(),
        241,
        "from int to regex",
    );
}

#[test]
fn nulls_and_types() {
    check(doc! { "$toInt": "$x" }, doc! {}, Bson::Null);
    let on_null = doc! { "$convert": { "input": "$x", "to": "int", "onNull": 7 } };
    check(on_null, doc! {}, Bson::Int32(7));
    check(
        doc! { "$convert": { "input": 1.5, "to": 16 } },
        doc! {},
        Bson::Int32(1),
    );
    check(
        doc! { "$convert": { "input": 1.5, "to": null } },
        doc! {},
        Bson::Null,
    );
    let nan = evaluate(doc! { "$toDouble": "NaN" }, &doc! {});
    assert!(nan.unwrap().unwrap().as_f64().unwrap().is_nan());
    check(doc! { "$type": "$x" }, doc! {}, bson!("missing"));
    check(doc! { "$type": 1_i64 }, doc! {}, bson!("long"));
    check(doc! { "$isNumber": "1" }, doc! {}, Bson::Boolean(false));
}

#[test]
fn binary_data() {
    let subtype = bson::spec::BinarySubtype::Generic;
    let binary = Bson::Binary(Binary {
        subtype,
        bytes: vec![0xab, 0xcd],
    });
    let to_text = |format: &str| {
        doc! { "$convert": {
        "input": "$b", "to": "string", "format": format } }
    };
    check(to_text("hex"), doc! { "b": binary.clone() }, bson!("ABCD"));
    check(
        to_text("base64"),
        doc! { "b": binary.clone() },
        bson!("q80="),
    );
    let from = doc! { "$convert": { "input": "abcd", "to": "binData", "format": "hex" } };
    check(from, doc! {}, binary);
    let uuid = "867dee52-c331-484e-92d1-c56479b8e67e";
    let there = doc! { "$convert": { "input": { "$toUUID": uuid }, "to": "string",
    "format": "uuid" } };
    check(there, doc! {}, bson!(uuid));
    refuse(
        doc! { "$toUUID": "x" },
        doc! {},
        241,
        "not in the given format",
    );
}

#[test]
fn decimals_out_of_range_are_refused() {
    for (text, why) in [
        ("1E+6145", "would overflow"),
        ("-9.99E6145", "would overflow"),
        ("1E-7000", "would underflow"),
        ("1x", "Failed to parse string to decimal"),
    ] {
        refuse(bson!({"$toDecimal": text}), doc! {}, 241, why);
        let caught = bson!({"$convert": {"input": text, "to": "decimal", "onError": "bad"}});
        check(caught, doc! {}, Bson::from("bad"));
    }
    let infinity = evaluate(bson!({"$toDecimal": "-Infinity"}), &doc! {}).unwrap();
    assert_eq!(infinity.unwrap().to_string(), "-Infinity");
}

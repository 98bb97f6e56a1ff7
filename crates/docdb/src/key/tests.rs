//! Tests of key strings with random values and with known cases.

use std::cmp::Ordering;

use bson::{Bson, Decimal128, RawBson};

use super::*;

fn encode(value: &Bson, descending: bool) -> Encoder {
    let mut encoder = Encoder::new();
    encoder.append_bson(value, descending, None).unwrap();
    encoder.end();
    encoder
}

fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse::<Decimal128>().unwrap())
}

/// Groups of equal values, ascending.
fn ladder() -> Vec<Vec<Bson>> {
    let two53 = 9_007_199_254_740_992_i64;
    vec![
        vec![Bson::MinKey],
        vec![Bson::Undefined],
        vec![Bson::Null],
        vec![Bson::Double(f64::NAN), decimal("NaN")],
        vec![Bson::Double(f64::NEG_INFINITY), decimal("-Infinity")],
        vec![decimal("-1E+6111")],
        vec![Bson::Double(-1e300)],
        vec![decimal("-9223372036854775809")],
        vec![
            Bson::Int64(i64::MIN),
            Bson::Double(-9_223_372_036_854_775_808.0),
        ],
        vec![Bson::Int64(i64::MIN + 1), decimal("-9223372036854775807")],
        vec![Bson::Int64(-two53 - 1)],
        vec![Bson::Int64(-two53), Bson::Double(-9_007_199_254_740_992.0)],
        vec![Bson::Double(-1.5), decimal("-1.50")],
        vec![Bson::Int32(-1), Bson::Int64(-1), Bson::Double(-1.0)],
        vec![decimal("-0.1")],
        vec![Bson::Double(-5e-324)],
        vec![decimal("-1E-6000")],
        vec![
            Bson::Int32(0),
            Bson::Double(-0.0),
            decimal("0E+3"),
            decimal("-0"),
        ],
        vec![decimal("1E-6000")],
        vec![Bson::Double(5e-324)],
        // The double nearest to 0.1 is a little above it.
        vec![decimal("0.1")],
        vec![Bson::Double(0.1)],
        vec![Bson::Double(0.5), decimal("0.50")],
        vec![Bson::Int32(1), Bson::Double(1.0), decimal("1.000")],
        vec![decimal("1.000000000000000000000000000000001")],
        vec![Bson::Double(1.0 + f64::EPSILON)],
        vec![Bson::Double(1.1_f64.next_down())],
        vec![decimal("1.1"), decimal("1.10")],
        vec![Bson::Double(1.1)],
        vec![Bson::Int32(127)],
        vec![Bson::Int32(128)],
        vec![Bson::Double(128.25)],
        vec![Bson::Int32(i32::MAX)],
        vec![Bson::Int64(1 << 31)],
        vec![Bson::Int64(two53), Bson::Double(9_007_199_254_740_992.0)],
        vec![decimal("9007199254740992.5")],
        vec![Bson::Int64(two53 + 1), decimal("9007199254740993")],
        vec![decimal("9007199254740993.5")],
        vec![
            Bson::Int64(two53 + 2),
            Bson::Double(9_007_199_254_740_994.0),
        ],
        vec![Bson::Int64(i64::MAX), decimal("9223372036854775807")],
        vec![decimal("9223372036854775807.5")],
        vec![
            decimal("9223372036854775808"),
            Bson::Double(9_223_372_036_854_775_808.0),
        ],
        vec![decimal("9223372036854775809")],
        vec![Bson::Double(f64::MAX)],
        vec![decimal("1E+309")],
        vec![decimal("1E+6111")],
        vec![Bson::Double(f64::INFINITY), decimal("Infinity")],
        vec![Bson::String(String::new()), Bson::Symbol(String::new())],
        vec![Bson::String("\0".into())],
        vec![Bson::String("\0\0".into())],
        vec![Bson::String("a".into()), Bson::Symbol("a".into())],
        vec![Bson::String("a\0".into())],
        vec![Bson::String("a\0b".into())],
        vec![Bson::String("ab".into())],
        vec![Bson::Document(bson::doc! {})],
        vec![Bson::Document(bson::doc! { "z": 1 })],
        // The type comes before the name.
        vec![Bson::Document(bson::doc! { "z": 1, "a": 1 })],
        vec![Bson::Document(bson::doc! { "a": "x" })],
        vec![Bson::Document(bson::doc! { "b": "a" })],
        vec![Bson::Array(vec![])],
        vec![
            Bson::Array(vec![Bson::Int32(1)]),
            Bson::Array(vec![Bson::Double(1.0)]),
        ],
        vec![Bson::Array(vec![Bson::Int32(1), Bson::Int32(0)])],
        vec![Bson::Array(vec![Bson::Array(vec![])])],
        vec![binary(5, &[9])],
        vec![binary(0, &[1, 2])],
        vec![binary(0, &[1, 3])],
        vec![binary(4, &[0, 0])],
        vec![Bson::ObjectId(bson::oid::ObjectId::from_bytes([0; 12]))],
        vec![Bson::ObjectId(bson::oid::ObjectId::from_bytes([9; 12]))],
        vec![Bson::Boolean(false)],
        vec![Bson::Boolean(true)],
        vec![Bson::DateTime(bson::DateTime::from_millis(-1))],
        vec![Bson::DateTime(bson::DateTime::from_millis(1))],
        vec![timestamp(1, 2)],
        vec![timestamp(u32::MAX, 0)],
        vec![regex("a", "")],
        vec![regex("a", "i")],
        vec![regex("b", "")],
        vec![Bson::JavaScriptCode("x".into())],
        vec![Bson::MaxKey],
    ]
}

fn binary(subtype: u8, bytes: &[u8]) -> Bson {
    Bson::Binary(bson::Binary {
        subtype: subtype.into(),
        bytes: bytes.to_vec(),
    })
}

fn timestamp(time: u32, increment: u32) -> Bson {
    Bson::Timestamp(bson::Timestamp { time, increment })
}

fn regex(pattern: &str, options: &str) -> Bson {
    Bson::RegularExpression(bson::Regex {
        pattern: pattern.try_into().unwrap(),
        options: options.try_into().unwrap(),
    })
}

/// `key`: I1.
#[test]
fn bytes_are_in_the_order_of_values() {
    let ladder = ladder();
    let flat: Vec<(usize, &Bson)> = ladder
        .iter()
        .enumerate()
        .flat_map(|(step, group)| group.iter().map(move |v| (step, v)))
        .collect();
    for (step, value) in &flat {
        for (other_step, other) in &flat {
            let wanted = step.cmp(other_step);
            let (a, b) = (encode(value, false), encode(other, false));
            assert_eq!(a.bytes().cmp(b.bytes()), wanted, "{value:?} {other:?}");
            let (a, b) = (encode(value, true), encode(other, true));
            assert_eq!(
                a.bytes().cmp(b.bytes()),
                wanted.reverse(),
                "{value:?} {other:?}"
            );
        }
    }
}

/// `key`: I3.
#[test]
fn descending_bytes_are_ascending_bytes_inverted() {
    for value in ladder().iter().flatten() {
        let component = |descending: bool| {
            let mut encoder = Encoder::new();
            encoder.append_bson(value, descending, None).unwrap();
            encoder.bytes().to_vec()
        };
        let inverted: Vec<u8> = component(false).iter().map(|byte| !byte).collect();
        assert_eq!(component(true), inverted, "{value:?}");
    }
}

/// `key`: I4.
#[test]
fn bytes_and_type_bits_give_the_values_back() {
    let values: Vec<Bson> = ladder().into_iter().flatten().collect();
    for descending in [false, true] {
        for value in &values {
            for other in [&values[0], &values[20], &values[50], value] {
                check_decode(value, other, descending);
            }
        }
    }
}

fn check_decode(value: &Bson, other: &Bson, descending: bool) {
    let mut encoder = Encoder::new();
    encoder.append_bson(value, descending, None).unwrap();
    encoder.append_bson(other, !descending, None).unwrap();
    encoder.end();
    let (decoded, read) = decode(
        encoder.bytes(),
        encoder.type_bits(),
        [descending, !descending],
    )
    .unwrap();
    assert_eq!(read, encoder.bytes().len());
    let wanted = [value, other].map(|v| format!("{:?}", RawBson::try_from(v.clone()).unwrap()));
    let found: Vec<String> = decoded.iter().map(|v| format!("{v:?}")).collect();
    assert_eq!(found, wanted);
}

/// `key`: I2.
#[test]
fn bounds_stand_around_what_continues_a_prefix() {
    let values: Vec<Bson> = ladder().into_iter().flatten().collect();
    for descending in [false, true] {
        for value in &values {
            let prefix = {
                let mut encoder = Encoder::new();
                encoder.append_bson(value, descending, None).unwrap();
                encoder.into_bytes()
            };
            let before = [&prefix[..], &[BEFORE]].concat();
            let after = [&prefix[..], &[AFTER]].concat();
            for other in &values {
                let key = encode(other, descending);
                let equal = encode(value, descending).bytes() == key.bytes();
                let within = before.as_slice() < key.bytes() && key.bytes() < after.as_slice();
                assert_eq!(within, equal, "{value:?} {other:?} {descending}");
            }
        }
    }
}

#[test]
fn random_doubles_and_decimals_are_in_order() {
    let seed = 20_261_122;
    let mut rng = stdx::Rng::new(seed);
    for round in 0..20_000 {
        let a = f64::from_bits(rng.next_u64());
        let b = if rng.chance(0.5) {
            f64::from_bits(rng.next_u64())
        } else {
            a.next_up()
        };
        if a.is_nan() || b.is_nan() {
            continue;
        }
        let wanted = a.partial_cmp(&b).unwrap();
        let found = encode(&Bson::Double(a), false)
            .bytes()
            .cmp(encode(&Bson::Double(b), false).bytes());
        assert_eq!(found, wanted, "seed {seed} round {round}: {a:e} {b:e}");
        // A decimal of 17 digits lies near its double; the exact digits say on which side.
        let text = format!("{a:.16e}");
        let key = encode(&decimal(&text), false);
        let exact = format!("{a:.800e}");
        let wanted = compare_text(&text, &exact);
        let found = key.bytes().cmp(encode(&Bson::Double(a), false).bytes());
        assert_eq!(found, wanted, "seed {seed} round {round}: {text}");
    }
}

/// Compare two numbers in scientific notation with equal digits before the point.
fn compare_text(a: &str, b: &str) -> Ordering {
    let split = |text: &str| {
        let (mantissa, exponent) = text.split_once('e').unwrap();
        let negative = mantissa.starts_with('-');
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let digits = digits.trim_end_matches('0').to_owned();
        (negative, exponent.parse::<i32>().unwrap(), digits)
    };
    let (a, b) = (split(a), split(b));
    assert_eq!(a.0, b.0);
    let magnitude = (a.1, &a.2).cmp(&(b.1, &b.2));
    if a.0 { magnitude.reverse() } else { magnitude }
}

#[test]
fn bytes_that_are_no_key_are_refused() {
    let seed = 7;
    let mut rng = stdx::Rng::new(seed);
    for _ in 0..20_000 {
        let mut bytes = vec![0; rng.index(40)];
        rng.fill(&mut bytes);
        // The bytes are random: decoding must end, with any result.
        drop(decode(&bytes, &[], [false, true]));
    }
    assert_eq!(decode(&[kind::ARRAY; 2000], &[], [false]), Err(Malformed));
}

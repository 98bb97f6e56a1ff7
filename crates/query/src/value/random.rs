//! Random values for property tests: few names and small ranges, so that values are often equal;
//! numbers near the edges of their types, so that comparing them exactly is hard.

use bson::spec::BinarySubtype;
use bson::{Bson, Document, oid::ObjectId};
use stdx::Tape;

const TEXTS: [&str; 8] = ["", "a", "b", "ab", "A", "\u{e9}", "10", "9"];

const DECIMALS: [&str; 18] = [
    "0",
    "-0",
    "1",
    "1.0",
    "1.10",
    "1.1",
    "0.1",
    "0.5",
    "-0.5",
    "1E+3",
    "9007199254740993",
    "9007199254740992.5",
    "9223372036854775808",
    "NaN",
    "Infinity",
    "-Infinity",
    "1E-6176",
    "0.1000000000000000055511151231257827",
];

const DOUBLES: [f64; 14] = [
    0.0,
    -0.0,
    1.0,
    0.1,
    0.5,
    -0.5,
    1000.0,
    9_007_199_254_740_992.0,
    9_223_372_036_854_775_808.0,
    -9_223_372_036_854_775_808.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    5e-324,
];

const LONGS: [i64; 8] = [
    0,
    1,
    -1,
    1000,
    9_007_199_254_740_992,
    9_007_199_254_740_993,
    i64::MAX,
    i64::MIN,
];

fn pick<T: Clone>(tape: &mut Tape, list: &[T]) -> T {
    list[usize::from(tape.byte()) % list.len()].clone()
}

pub(crate) fn name(tape: &mut Tape) -> &'static str {
    pick(tape, &["a", "b", "0", "1", "c"])
}

/// A number of any type.
pub(crate) fn number(tape: &mut Tape) -> Bson {
    match tape.byte() % 6 {
        0 => Bson::Int32(i32::from(tape.byte() % 4)),
        1 => Bson::Int64(pick(tape, &LONGS)),
        2 => Bson::Double(pick(tape, &DOUBLES)),
        3 => Bson::Decimal128(pick(tape, &DECIMALS).parse().unwrap()),
        // A decimal equal or close to a double.
        4 => {
            let double = pick(tape, &DOUBLES);
            let digits = usize::from(tape.byte() % 24);
            let text = format!("{double:.digits$e}").replace("inf", "Infinity");
            text.parse().map_or(Bson::Double(double), Bson::Decimal128)
        }
        _ => Bson::Double(f64::from(tape.byte()) / 8.0),
    }
}

/// A value of any type, nested at most `depth` levels.
pub(crate) fn value(tape: &mut Tape, depth: usize) -> Bson {
    match tape.byte() % if depth == 0 { 17 } else { 24 } {
        0 => Bson::Null,
        1..=5 => number(tape),
        6 | 7 => Bson::from(pick(tape, &TEXTS)),
        8 => Bson::Boolean(tape.byte() % 2 == 1),
        9 => Bson::DateTime(bson::DateTime::from_millis(pick(tape, &LONGS))),
        10 => Bson::Timestamp(bson::Timestamp {
            time: u32::from(tape.byte() % 2),
            increment: u32::from(tape.byte() % 2),
        }),
        11 => Bson::ObjectId(ObjectId::from_bytes([tape.byte() % 2; 12])),
        12 => Bson::Binary(bson::Binary {
            subtype: pick(tape, &[BinarySubtype::Generic, BinarySubtype::Uuid]),
            bytes: vec![tape.byte() % 2; usize::from(tape.byte() % 3)],
        }),
        13 => pick(tape, &[Bson::MinKey, Bson::MaxKey]),
        14 => Bson::RegularExpression(bson::Regex {
            pattern: pick(tape, &["a", "^b"]).to_owned().try_into().unwrap(),
            options: pick(tape, &["", "i"]).to_owned().try_into().unwrap(),
        }),
        15 => pick(
            tape,
            &[
                Bson::Symbol("a".to_owned()),
                Bson::Undefined,
                Bson::JavaScriptCode("a".to_owned()),
            ],
        ),
        16 => Bson::JavaScriptCodeWithScope(bson::JavaScriptCodeWithScope {
            code: pick(tape, &TEXTS).to_owned(),
            scope: document(tape, 0),
        }),
        17..=20 => Bson::Document(document(tape, depth - 1)),
        _ => {
            let length = usize::from(tape.byte() % 4);
            Bson::Array((0..length).map(|_| value(tape, depth - 1)).collect())
        }
    }
}

/// A document of up to four fields, nested at most `depth` levels below it.
pub(crate) fn document(tape: &mut Tape, depth: usize) -> Document {
    let length = tape.byte() % 5;
    (0..length)
        .map(|_| (name(tape).to_owned(), value(tape, depth)))
        .collect()
}

//! Random specifications: trees of known names, in places where they may or may not be valid.

use bson::{Bson, Document};
use stdx::Tape;

use super::words::{EXPRESSIONS, FIELDS, FILTERS, STAGES, UPDATES};

/// The kind of specification that a tree represents; one in eight of its names is of another kind.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Filter,
    Update,
    Expression,
    Stage,
    Plain,
}

const STRINGS: [&str; 22] = [
    "",
    "$a",
    "$a.b",
    "$$ROOT",
    "$$this",
    "$$value",
    "$$NOW",
    "$$x",
    "x",
    "abc",
    "^a(b|c)+",
    "(",
    "%Y-%m-%dT%H",
    "2024-02-30",
    "Europe/Paris",
    "day",
    "int",
    "array",
    "\u{e4}\u{1f600}",
    "-12.5e3",
    "current",
    "$missing.0.b",
];

fn pick<'a>(tape: &mut Tape, words: &[&'a str]) -> &'a str {
    words[tape.index(words.len())]
}

fn word(tape: &mut Tape, kind: Kind) -> &'static str {
    let kinds = [Kind::Filter, Kind::Update, Kind::Expression, Kind::Stage];
    let kind = if tape.chance(32) {
        kinds[tape.index(4)]
    } else {
        kind
    };
    let words = match kind {
        Kind::Filter => FILTERS,
        Kind::Update => UPDATES,
        Kind::Expression => EXPRESSIONS,
        Kind::Stage => STAGES,
        Kind::Plain => FIELDS,
    };
    pick(tape, words)
}

/// A scalar; integers are small, or at the edges of their types.
pub(crate) fn scalar(tape: &mut Tape) -> Bson {
    match tape.byte() % 16 {
        0..=3 => Bson::from(pick(tape, &STRINGS)),
        4 | 5 => Bson::Int32(i32::from(tape.byte() % 8) - 2),
        6 => Bson::Int64([0, 7, i64::MAX, i64::MIN, 1 << 53][tape.index(5)]),
        7 => Bson::Double([0.5, -0.0, f64::NAN, f64::INFINITY, 1e300, -1e19][tape.index(6)]),
        8 => Bson::Boolean(tape.chance(128)),
        9 => Bson::Null,
        10 => {
            let text = ["1.10", "NaN", "-Infinity", "1E+6111", "1E-6176", "0E+10"][tape.index(6)];
            Bson::Decimal128(text.parse().unwrap())
        }
        11 => {
            let millis = [0, -1, 1_700_000_000_000, i64::MAX, i64::MIN][tape.index(5)];
            Bson::DateTime(bson::DateTime::from_millis(millis))
        }
        12 => [Bson::MinKey, Bson::MaxKey, Bson::Undefined][tape.index(3)].clone(),
        13 => Bson::RegularExpression(bson::Regex {
            pattern: ["a", "(", "^\\d+"][tape.index(3)]
                .to_owned()
                .try_into()
                .unwrap(),
            options: ["", "i", "q"][tape.index(3)].to_owned().try_into().unwrap(),
        }),
        14 => Bson::ObjectId(bson::oid::ObjectId::from_bytes([tape.byte(); 12])),
        _ => Bson::Timestamp(bson::Timestamp {
            time: u32::from(tape.byte()),
            increment: u32::MAX,
        }),
    }
}

/// A value for a place in a specification of `kind`, nested at most `depth` levels.
pub(crate) fn value(tape: &mut Tape, kind: Kind, depth: usize) -> Bson {
    if depth == 0 || tape.is_empty() {
        return scalar(tape);
    }
    match tape.byte() % 8 {
        0..=2 => scalar(tape),
        3 | 4 => {
            let length = tape.byte() % 4;
            Bson::Array((0..length).map(|_| value(tape, kind, depth - 1)).collect())
        }
        5 => Bson::Document(fields(tape, kind, depth - 1)),
        _ => Bson::Document(operators(tape, kind, depth - 1)),
    }
}

/// A document of operators.
pub(crate) fn operators(tape: &mut Tape, kind: Kind, depth: usize) -> Document {
    let length = 1 + usize::from(tape.chance(64));
    (0..length)
        .map(|_| (word(tape, kind).to_owned(), inside(tape, kind, depth)))
        .collect()
}

/// The operand of an operator: often of the same kind again, often an expression.
fn inside(tape: &mut Tape, kind: Kind, depth: usize) -> Bson {
    let below = match kind {
        Kind::Stage | Kind::Update => [Kind::Expression, Kind::Plain, Kind::Filter][tape.index(3)],
        kind => kind,
    };
    if depth > 0 && tape.chance(128) {
        return Bson::Document(fields(tape, below, depth - 1));
    }
    value(tape, below, depth)
}

/// A document of named fields.
pub(crate) fn fields(tape: &mut Tape, kind: Kind, depth: usize) -> Document {
    let length = tape.byte() % 4;
    (0..length)
        .map(|_| (word(tape, Kind::Plain).to_owned(), value(tape, kind, depth)))
        .collect()
}

/// A document as it is stored in a collection.
pub(crate) fn stored(tape: &mut Tape) -> Document {
    let mut document = bson::doc! {"_id": i32::from(tape.byte())};
    for name in ["a", "b", "c"] {
        if tape.chance(192) {
            document.insert(name, plain(tape, 2));
        }
    }
    document
}

fn plain(tape: &mut Tape, depth: usize) -> Bson {
    match tape.byte() % 6 {
        0 if depth > 0 => {
            let names = ["a", "b", "0"];
            let length = tape.byte() % 3;
            let field = |tape: &mut Tape| (pick(tape, &names).to_owned(), plain(tape, depth - 1));
            Bson::Document((0..length).map(|_| field(tape)).collect())
        }
        1 | 2 if depth > 0 => {
            let length = tape.byte() % 4;
            Bson::Array((0..length).map(|_| plain(tape, depth - 1)).collect())
        }
        _ => scalar(tape),
    }
}

//! Documents, indexes and queries with values of about the maximum key length.

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};
use stdx::Rng;

use super::narrow::LIMIT;

pub(super) const FIELDS: [&str; 4] = ["a", "b", "c", "d"];
/// Number of values that a fixture draws from: few, so that some are equal and many have the same
/// truncated key.
const VALUES: usize = 14;

/// Short texts. Some continue others with a NUL, which must not be taken for the end of a value.
const SHORT: [&str; 10] = [
    "", "\0", "\0\0", "k", "k\0", "k\0k", "k\0\0", "kk", "K", "l",
];

/// The values that one fixture draws from.
pub(super) struct Pool {
    values: Vec<Bson>,
    /// Whether all values are short, so that no key is truncated.
    short: bool,
}

/// A text that equals most others up to near its end.
fn long(rng: &mut Rng, around: usize) -> String {
    let length = around.saturating_sub(20) + rng.index(41);
    let mut text = vec![b'k'; length];
    for _ in 0..rng.index(3) {
        let back = rng.index(length.min(30)) + 1;
        if let Some(letter) = text.get_mut(length - back) {
            *letter = *b"abKz\0".get(rng.index(5)).unwrap();
        }
    }
    if rng.chance(0.15) {
        text[0] = b'j';
    }
    String::from_utf8(text).unwrap()
}

fn number(rng: &mut Rng) -> Bson {
    let number = i32::try_from(rng.below(4)).unwrap();
    match rng.below(3) {
        0 => Bson::Int64(number.into()),
        1 => Bson::Double(f64::from(number) + 0.5),
        _ => Bson::Int32(number),
    }
}

/// A short text, or one whose key is about as long as the limit.
fn text(rng: &mut Rng) -> String {
    if rng.chance(0.6) {
        return SHORT[rng.index(SHORT.len())].to_owned();
    }
    // The key of one text has three bytes more: its type and two ends.
    let length = LIMIT - 3 + rng.index(3) - 1;
    let mut text = "k".repeat(length - rng.index(3));
    // A NUL takes two bytes of a key.
    text.push_str(&"\0".repeat(rng.index(3)));
    text
}

fn binary(bytes: Vec<u8>) -> Bson {
    let subtype = BinarySubtype::Generic;
    Bson::Binary(Binary { subtype, bytes })
}

fn value(rng: &mut Rng, around: usize) -> Bson {
    match rng.below(18) {
        0 => Bson::Null,
        1 => binary(long(rng, around).into_bytes()),
        2 => Bson::Document(doc! { "x": long(rng, around), "y": number(rng) }),
        3 | 4 => number(rng),
        5..8 => Bson::String(text(rng)),
        8 => Bson::JavaScriptCode(text(rng)),
        9 => Bson::JavaScriptCode(long(rng, around)),
        10 => Bson::Symbol(text(rng)),
        11 => binary(text(rng).into_bytes()),
        12 => Bson::Document(doc! { "x": text(rng) }),
        _ => Bson::String(long(rng, around)),
    }
}

/// A value; if `short`, one whose key is never truncated.
fn any(rng: &mut Rng, short: bool) -> Bson {
    let text = SHORT[rng.index(SHORT.len())].to_owned();
    match rng.below(8) {
        _ if !short => value(rng, LIMIT),
        0 => number(rng),
        1 => Bson::Symbol(text),
        2 => binary(text.into_bytes()),
        3 => Bson::JavaScriptCode(text),
        _ => Bson::String(text),
    }
}

impl Pool {
    pub(super) fn new(rng: &mut Rng) -> Pool {
        let short = rng.chance(0.2);
        let values = (0..VALUES).map(|_| any(rng, short)).collect();
        Pool { values, short }
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> Bson {
        match rng.chance(0.1) {
            true => any(rng, self.short),
            false => self.values[rng.index(VALUES)].clone(),
        }
    }

    fn some(&self, rng: &mut Rng) -> Bson {
        Bson::Array((0..rng.index(4)).map(|_| self.draw(rng)).collect())
    }
}

/// A document with a distinct `number`; only the field `arrays` may hold an array.
pub(super) fn document(
    rng: &mut Rng,
    pool: &Pool,
    (number, arrays, clustered): (i32, &str, bool),
) -> Document {
    let id = match rng.below(4) {
        3 if (0..10).contains(&number) => {
            Bson::String(format!("k{}", "\0".repeat(number.unsigned_abs() as usize)))
        }
        0 if clustered => Bson::String(format!("{}{number}", long(rng, 22).replace('K', "k"))),
        0 => Bson::String(format!("{}{number}", long(rng, LIMIT))),
        1 if !clustered => Bson::Document(doc! { "i": long(rng, LIMIT), "n": number }),
        _ => Bson::Int32(number),
    };
    let mut document = doc! { "_id": id, "n": number };
    for name in FIELDS {
        if rng.chance(0.8) {
            let value = match name == arrays && rng.chance(0.5) {
                true => pool.some(rng),
                false => pool.draw(rng),
            };
            document.insert(name, value);
        }
    }
    document
}

fn path(rng: &mut Rng) -> String {
    let top = FIELDS[rng.index(FIELDS.len())];
    match rng.below(8) {
        0 => format!("{top}.x"),
        1 => "_id".to_owned(),
        _ => top.to_owned(),
    }
}

pub(super) fn collation(rng: &mut Rng) -> Document {
    let strength = [1, 2, 3][rng.index(3)];
    doc! { "locale": "en", "strength": strength }
}

/// The specification of an index of any kind.
pub(super) fn index(rng: &mut Rng, pool: &Pool, name: &str) -> Document {
    let mut key = Document::new();
    if rng.chance(0.1) {
        key.insert(["$**", "a.$**", "b.$**"][rng.index(3)], 1);
        return doc! { "key": key, "name": name };
    }
    let hashed = rng.chance(0.15);
    for place in 0..=rng.index(3) {
        let kind = match rng.chance(0.6) {
            _ if hashed && place == 0 => Bson::from("hashed"),
            true => Bson::Int32(1),
            false => Bson::Int32(-1),
        };
        key.insert(path(rng), kind);
    }
    let mut index = doc! { "key": key, "name": name };
    match rng.below(10) {
        0 => drop(index.insert("sparse", true)),
        1 => {
            let test = match rng.chance(0.5) {
                true => doc! { "$exists": true },
                false => doc! { "$gt": pool.draw(rng) },
            };
            let mut partial = Document::new();
            partial.insert(FIELDS[rng.index(4)], test);
            index.insert("partialFilterExpression", partial);
        }
        2 if !hashed => drop(index.insert("unique", true)),
        _ => {}
    }
    if rng.chance(0.15) {
        index.insert("collation", collation(rng));
    }
    index
}

fn test(rng: &mut Rng, pool: &Pool, depth: u32) -> Bson {
    let value = pool.draw(rng);
    match rng.below(13) {
        0 => Bson::Document(doc! { "$gt": value }),
        1 => Bson::Document(doc! { "$gte": value }),
        2 => Bson::Document(doc! { "$lt": value }),
        3 => Bson::Document(doc! { "$lte": value }),
        4 | 5 => Bson::Document(doc! { "$gte": value, "$lte": pool.draw(rng) }),
        6 => Bson::Document(doc! { "$in": pool.some(rng) }),
        7 => Bson::Document(doc! { "$ne": value }),
        8 => Bson::Document(doc! { "$exists": rng.chance(0.5) }),
        9 => {
            let begin = "k".repeat(rng.index(LIMIT + 10));
            let end = ["", "\\x00", "K", "$"][rng.index(4)];
            Bson::Document(doc! { "$regex": format!("^{begin}{end}") })
        }
        10 if depth != 0 => match test(rng, pool, 0) {
            Bson::Document(inner) if inner.keys().any(|name| name.starts_with('$')) => {
                let name = ["$not", "$elemMatch"][rng.index(2)];
                let mut outer = Document::new();
                outer.insert(name, inner);
                Bson::Document(outer)
            }
            other => other,
        },
        _ => value,
    }
}

pub(super) fn filter(rng: &mut Rng, pool: &Pool, depth: u32) -> Document {
    let mut filter = Document::new();
    for _ in 0..rng.index(4) {
        filter.insert(path(rng), test(rng, pool, 1));
    }
    if depth != 0 && rng.chance(0.25) {
        let branches: Vec<Document> = (0..=rng.index(2))
            .map(|_| self::filter(rng, pool, depth - 1))
            .collect();
        filter.insert("$or", branches);
    }
    filter
}

pub(super) fn sort(rng: &mut Rng) -> Option<Document> {
    if rng.chance(0.3) {
        return None;
    }
    let mut sort = Document::new();
    for _ in 0..=rng.index(2) {
        sort.insert(path(rng), if rng.chance(0.5) { 1 } else { -1 });
    }
    Some(sort)
}

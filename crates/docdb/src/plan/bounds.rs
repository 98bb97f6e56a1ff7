//! Derives from one test of a filter the set of index values that a matching document must have.
//!
//! B1: complete. A document that passes the test has at least one key of the index field in the
//! set (missing fields have the key null, empty arrays the key undefined).
//! B2: `exact` means that a key in the set proves that the document passes, so that the test need
//! not be repeated.

use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document, Timestamp, oid::ObjectId};
use query::collation::Collator;
use query::filter::{In, Test};
use query::{Result, meter};

use super::effort::Effort;
use super::interval::{Interval, Intervals};

/// The properties of the index field that a test applies to.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The collation of the index, which orders the strings of the intervals.
    pub(crate) collator: Option<&'a Collator>,
    /// Whether the query compares strings as the index does.
    pub(crate) same_collation: bool,
    /// Whether any component of the field's path is an array in some document.
    pub(crate) multikey: bool,
}

/// A set of values, and whether it expresses the whole test.
#[derive(Debug, Clone)]
pub(crate) struct Bounded {
    /// The values.
    pub(crate) set: Intervals,
    /// B2.
    pub(crate) exact: bool,
}

impl Bounded {
    fn exact(set: Intervals) -> Bounded {
        Bounded { set, exact: true }
    }

    fn inexact(set: Intervals) -> Bounded {
        Bounded { set, exact: false }
    }

    /// All values; proves nothing.
    pub(crate) fn anything() -> Bounded {
        Bounded::inexact(Intervals::all())
    }
}

/// The set for `test`; `None` if the index cannot serve it.
///
/// # Errors
/// The operation must end.
pub(crate) fn bounds(
    test: &Test,
    place: Place<'_>,
    effort: &mut Effort,
) -> Result<Option<Bounded>> {
    Ok(match test {
        Test::Eq(value) => {
            effort.hold(2 * meter::size(value))?;
            equality(value, place, effort)?
        }
        Test::Ne(value) => {
            effort.hold(meter::size(value))?;
            negated(&[Test::Eq(value.clone())], place, effort)?
        }
        Test::Gt(value) => range(value, (Side::Above, false), place, effort)?,
        Test::Gte(value) => range(value, (Side::Above, true), place, effort)?,
        Test::Lt(value) => range(value, (Side::Below, false), place, effort)?,
        Test::Lte(value) => range(value, (Side::Below, true), place, effort)?,
        Test::In(list) => any_of(list, place, effort)?,
        Test::Exists(true) => Some(Bounded::anything()),
        Test::Exists(false) => Some(Bounded::inexact(nullish())),
        Test::Regex(regex) => Some(pattern(regex, place, effort)?),
        Test::Mod { .. } => Some(Bounded::inexact(numbers(place))),
        Test::ElemMatchValue(tests) => {
            conjunction(tests, place, effort)?.map(|all| Bounded::inexact(all.set))
        }
        Test::Not(tests) => negated(tests, place, effort)?,
        _ => Some(Bounded::anything()),
    })
}

/// The values of a list, and those that match one of its patterns.
fn any_of(list: &In, place: Place<'_>, effort: &mut Effort) -> Result<Option<Bounded>> {
    let mut all = Vec::with_capacity(list.values.len());
    let mut exact = true;
    for value in &list.values {
        effort.hold(2 * meter::size(value))?;
        let Some(one) = equality(value, place, effort)? else {
            return Ok(None);
        };
        exact &= one.exact;
        all.extend(one.set.into_list());
    }
    for regex in &list.regexes {
        let one = pattern(regex, place, effort)?;
        exact &= one.exact;
        all.extend(one.set.into_list());
    }
    Ok(Some(Bounded {
        set: Intervals::from_list(all, place.collator, effort)?,
        exact,
    }))
}

/// The values that pass all `tests`, which apply to the same value.
fn conjunction(tests: &[Test], place: Place<'_>, effort: &mut Effort) -> Result<Option<Bounded>> {
    let (mut sets, mut exact) = (Vec::with_capacity(tests.len()), true);
    for test in tests {
        let Some(one) = bounds(test, place, effort)? else {
            return Ok(None);
        };
        exact &= one.exact;
        sets.push(one.set);
    }
    Ok(Some(Bounded {
        set: Intervals::common(sets, place.collator, effort)?,
        exact,
    }))
}

/// The values that fail `tests`. A document that fails them has no key in the exact set, so the
/// complement is complete if the sets are exact. Several tests are complemented only for fields
/// without arrays, because different elements may pass different tests.
fn negated(tests: &[Test], place: Place<'_>, effort: &mut Effort) -> Result<Option<Bounded>> {
    if let [Test::Eq(value)] = tests
        && is_nullish(value)
    {
        // A null key may come from an element that is not a document, in which no field is missing.
        if place.multikey {
            return Ok(Some(Bounded::anything()));
        }
        let set = Intervals::point(Bson::Null).complement(place.collator, effort)?;
        return Ok(Some(Bounded::inexact(set)));
    }
    if place.multikey && 1 < tests.len() {
        return Ok(Some(Bounded::anything()));
    }
    let Some(inner) = conjunction(tests, place, effort)? else {
        return Ok(None);
    };
    if !inner.exact {
        return Ok(Some(Bounded::anything()));
    }
    // The complement contains null, which may stand for a missing field: such a document passes in
    // either case.
    Ok(Some(Bounded {
        set: inner.set.complement(place.collator, effort)?,
        exact: !place.multikey,
    }))
}

fn equality(value: &Bson, place: Place<'_>, effort: &mut Effort) -> Result<Option<Bounded>> {
    if !place.same_collation && is_collated(value) {
        return Ok(None);
    }
    let found = match value {
        value if is_nullish(value) => Bounded::inexact(nullish()),
        Bson::Array(items) => {
            let element = items.first().cloned().unwrap_or(Bson::Undefined);
            let element = Interval::point(element);
            effort.hold(element.bytes())?;
            let list = vec![Interval::point(value.clone()), element];
            Bounded::inexact(Intervals::from_list(list, place.collator, effort)?)
        }
        Bson::RegularExpression(_) => Bounded::inexact(Intervals::point(value.clone())),
        value => Bounded::exact(Intervals::point(value.clone())),
    };
    Ok(Some(found))
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Above,
    Below,
}

/// The values on one side of `value`, which they contain if the flag is true.
fn range(
    value: &Bson,
    (side, inclusive): (Side, bool),
    place: Place<'_>,
    effort: &mut Effort,
) -> Result<Option<Bounded>> {
    effort.hold(2 * meter::size(value))?;
    if !place.same_collation && is_collated(value) {
        return Ok(None);
    }
    if is_nullish(value) {
        let set = if inclusive {
            nullish()
        } else {
            Intervals::none()
        };
        return Ok(Some(Bounded::inexact(set)));
    }
    if is_nan(value) {
        return Ok(Some(Bounded::exact(if inclusive {
            Intervals::point(value.clone())
        } else {
            Intervals::none()
        })));
    }
    let Some(class) = class_of(value) else {
        return Ok(Some(Bounded::anything()));
    };
    let interval = match side {
        Side::Above => Interval::new(value.clone(), inclusive, class.high, class.high_inclusive),
        Side::Below => Interval::new(class.low, true, value.clone(), inclusive),
    };
    let set = Intervals::one(interval, place.collator);
    Ok(Some(Bounded::exact(set)))
}

/// The type bracket within which a comparison compares values.
struct Class {
    low: Bson,
    high: Bson,
    high_inclusive: bool,
}

impl Class {
    fn closed(low: Bson, high: Bson) -> Class {
        Class {
            low,
            high,
            high_inclusive: true,
        }
    }

    fn below(low: Bson, high: Bson) -> Class {
        Class {
            low,
            high,
            high_inclusive: false,
        }
    }
}

/// The bracket of `value`; `None` for types that only the filter compares.
fn class_of(value: &Bson) -> Option<Class> {
    Some(match value {
        Bson::Double(_) | Bson::Int32(_) | Bson::Int64(_) | Bson::Decimal128(_) => {
            Class::closed(Bson::Double(f64::NEG_INFINITY), Bson::Double(f64::INFINITY))
        }
        Bson::String(_) | Bson::Symbol(_) => strings(),
        Bson::Document(_) => Class::below(Bson::Document(Document::new()), no_array()),
        Bson::Binary(_) => {
            let least = Binary {
                subtype: BinarySubtype::Generic,
                bytes: Vec::new(),
            };
            let next = Bson::ObjectId(ObjectId::from_bytes([0; 12]));
            Class::below(Bson::Binary(least), next)
        }
        Bson::ObjectId(_) => Class::closed(
            Bson::ObjectId(ObjectId::from_bytes([0; 12])),
            Bson::ObjectId(ObjectId::from_bytes([0xff; 12])),
        ),
        Bson::Boolean(_) => Class::closed(Bson::Boolean(false), Bson::Boolean(true)),
        Bson::DateTime(_) => Class::closed(
            Bson::DateTime(DateTime::from_millis(i64::MIN)),
            Bson::DateTime(DateTime::from_millis(i64::MAX)),
        ),
        Bson::Timestamp(_) => Class::closed(
            Bson::Timestamp(Timestamp {
                time: 0,
                increment: 0,
            }),
            Bson::Timestamp(Timestamp {
                time: u32::MAX,
                increment: u32::MAX,
            }),
        ),
        _ => return None,
    })
}

fn no_array() -> Bson {
    Bson::Array(Vec::new())
}

fn strings() -> Class {
    Class::below(Bson::String(String::new()), Bson::Document(Document::new()))
}

/// All numbers, including NaN.
fn numbers(place: Place<'_>) -> Intervals {
    let interval = Interval::new(
        Bson::Double(f64::NAN),
        true,
        Bson::Double(f64::INFINITY),
        true,
    );
    Intervals::one(interval, place.collator)
}

/// The index values of null, a missing field and an empty array.
fn nullish() -> Intervals {
    Intervals::one(Interval::new(Bson::Undefined, true, Bson::Null, true), None)
}

/// Strings that start with the literal prefix of the pattern, and stored regular expressions.
fn pattern(regex: &query::regex::Regex, place: Place<'_>, effort: &mut Effort) -> Result<Bounded> {
    let class = strings();
    let mut interval = Interval::new(class.low, true, class.high, false);
    if place.collator.is_none()
        && let Some(prefix) = regex.prefix()
        && !prefix.is_empty()
    {
        if let Some(end) = after_prefix(&prefix) {
            interval.high = Bson::String(end);
        }
        interval.low = Bson::String(prefix);
    }
    // The next type whose smallest value can be expressed; the types in between are filtered out.
    let next_type = Bson::JavaScriptCode(String::new());
    let least = Bson::RegularExpression(bson::Regex {
        pattern: cstr!("").to_owned(),
        options: cstr!("").to_owned(),
    });
    let patterns = Interval::new(least, true, next_type, false);
    effort.hold(interval.bytes() + patterns.bytes())?;
    let list = vec![interval, patterns];
    Ok(Bounded::inexact(Intervals::from_list(
        list,
        place.collator,
        effort,
    )?))
}

/// The smallest string greater than every string with `prefix`; `None` if there is none.
fn after_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let mut next = u32::from(last) + 1;
        if (0xd800..0xe000).contains(&next) {
            next = 0xe000;
        }
        if let Some(next) = char::from_u32(next) {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// Whether `value` is equal to null in a filter.
pub(crate) fn is_nullish(value: &Bson) -> bool {
    matches!(value, Bson::Null | Bson::Undefined)
}

fn is_nan(value: &Bson) -> bool {
    match value {
        Bson::Double(double) => double.is_nan(),
        Bson::Decimal128(decimal) => decimal.to_string() == "NaN",
        _ => false,
    }
}

/// Whether a collation can change how `value` compares.
pub(crate) fn is_collated(value: &Bson) -> bool {
    match value {
        Bson::String(_) | Bson::Symbol(_) => true,
        Bson::Array(items) => items.iter().any(is_collated),
        Bson::Document(fields) => fields.values().any(is_collated),
        _ => false,
    }
}

/// Whether a document without the field can pass `test`; a sparse index may lack such a document.
/// True if unknown.
pub(crate) fn accepts_missing(test: &Test) -> bool {
    match test {
        Test::Eq(value)
        | Test::Gte(value)
        | Test::Lte(value)
        | Test::Gt(value)
        | Test::Lt(value) => is_nullish(value) || matches!(value, Bson::MinKey | Bson::MaxKey),
        Test::In(list) => list.values.iter().any(is_nullish),
        Test::Exists(exists) => !exists,
        Test::Regex(_)
        | Test::Mod { .. }
        | Test::Size(_)
        | Test::ElemMatchObject(_)
        | Test::ElemMatchValue(_) => false,
        _ => true,
    }
}

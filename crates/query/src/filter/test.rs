//! Evaluates a test on one value; an array is not entered.

use std::cmp::Ordering;

use bson::{Bson, RawBsonRef};

use crate::collation::Collator;
use crate::number::Number;
use crate::regex::Regex;
use crate::value::{compare_mixed, rank, rank_raw};
use crate::{Result, number};

/// The results of a comparison that pass a test.
#[derive(Clone, Copy)]
pub(super) struct Passing {
    less: bool,
    equal: bool,
    greater: bool,
}

pub(super) const EQ: Passing = Passing::new(false, true, false);
pub(super) const GT: Passing = Passing::new(false, false, true);
pub(super) const GTE: Passing = Passing::new(false, true, true);
pub(super) const LT: Passing = Passing::new(true, false, false);
pub(super) const LTE: Passing = Passing::new(true, true, false);

impl Passing {
    const fn new(less: bool, equal: bool, greater: bool) -> Passing {
        Passing {
            less,
            equal,
            greater,
        }
    }

    fn allows(self, order: Ordering) -> bool {
        match order {
            Ordering::Less => self.less,
            Ordering::Equal => self.equal,
            Ordering::Greater => self.greater,
        }
    }
}

/// Whether `value` compared to `with` passes. Values of different types never pass, except with
/// MinKey and MaxKey; a missing value is equal to null; NaN is equal only to itself.
pub(super) fn compares(
    passing: Passing,
    value: Option<RawBsonRef<'_>>,
    with: &Bson,
    collator: Option<&Collator>,
) -> bool {
    let Some(value) = value else {
        return match with {
            Bson::Null => passing.equal,
            other => beyond(passing, other),
        };
    };
    if let (Some(a), Some(b)) = (Number::from_raw(value), Number::from_bson(with)) {
        let order = number::compare(a, b);
        let nan = order != Ordering::Equal && (a.is_nan() || b.is_nan());
        return !nan && passing.allows(order);
    }
    if rank_raw(value) != rank(with) {
        return beyond(passing, with);
    }
    passing.allows(compare_mixed(value, with, collator))
}

/// Whether values of other types than `with` pass: only if `with` is MinKey or MaxKey.
fn beyond(passing: Passing, with: &Bson) -> bool {
    match with {
        Bson::MaxKey => passing.less,
        Bson::MinKey => passing.greater,
        _ => false,
    }
}

/// Whether `value` is text that `regex` matches, or the same regular expression.
pub(super) fn regex(regex: &Regex, value: RawBsonRef<'_>) -> Result<bool> {
    match value {
        RawBsonRef::String(text) | RawBsonRef::Symbol(text) => regex.is_match(text),
        RawBsonRef::RegularExpression(other) => {
            Ok(regex.pattern() == other.pattern.as_str()
                && regex.options() == other.options.as_str())
        }
        _ => Ok(false),
    }
}

/// Whether the integer part of a number, divided by `divisor`, leaves `remainder`.
pub(super) fn modulo(divisor: i64, remainder: i64, value: RawBsonRef<'_>) -> bool {
    let whole = Number::from_raw(value).and_then(Number::to_i64_truncated);
    whole.is_some_and(|whole| whole.wrapping_rem(divisor) == remainder)
}

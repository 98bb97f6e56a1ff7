//! The list of `$in`.

use std::cmp::Ordering;

use bson::{Bson, RawBsonRef};

use crate::collation::Collator;
use crate::regex::Regex;
use crate::value::{compare_mixed, compare_with};
use crate::{Result, meter};

/// Distinct values in their order, and patterns.
#[derive(Debug, Clone)]
pub struct In {
    /// The values, ascending under the filter's collation.
    pub values: Vec<Bson>,
    /// The patterns.
    pub regexes: Vec<Regex>,
    null: bool,
    /// The same values once more, where all are integers, in the same order.
    integers: Option<Vec<i64>>,
}

impl In {
    pub(super) fn new(
        values: Vec<Bson>,
        regexes: Vec<Regex>,
        collator: Option<&Collator>,
    ) -> Result<In> {
        let mut values = meter::sort_by(values, |a, b| compare_with(a, b, collator))?;
        let mut outcome = Ok(());
        values.dedup_by(|a, b| {
            if outcome.is_ok() {
                outcome = meter::step();
            }
            outcome.is_ok() && compare_with(a, b, collator) == Ordering::Equal
        });
        outcome?;
        Ok(In {
            null: values.contains(&Bson::Null),
            integers: values.iter().map(integer).collect(),
            values,
            regexes,
        })
    }

    /// Whether `value` is equal to a value of the list or matches one of its patterns. A missing
    /// value counts as null.
    pub(super) fn matches(
        &self,
        value: Option<RawBsonRef<'_>>,
        collator: Option<&Collator>,
    ) -> Result<bool> {
        let Some(value) = value else {
            return Ok(self.null);
        };
        if self.holds(value, collator) {
            return Ok(true);
        }
        for regex in &self.regexes {
            if super::test::regex(regex, value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a value of the list is equal to `value`.
    fn holds(&self, value: RawBsonRef<'_>, collator: Option<&Collator>) -> bool {
        // A comparison of integers alone takes a fifth of one that looks at types first.
        let integer = match value {
            RawBsonRef::Int32(number) => Some(i64::from(number)),
            RawBsonRef::Int64(number) => Some(number),
            _ => None,
        };
        if let (Some(integers), Some(integer)) = (&self.integers, integer) {
            return integers.binary_search(&integer).is_ok();
        }
        self.values
            .binary_search_by(|held| compare_mixed(value, held, collator).reverse())
            .is_ok()
    }
}

fn integer(value: &Bson) -> Option<i64> {
    match value {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        _ => None,
    }
}

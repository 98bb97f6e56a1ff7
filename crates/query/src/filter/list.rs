//! The list of `$in`.

use std::cmp::Ordering;

use bson::{Bson, RawBsonRef};

use crate::Result;
use crate::collation::Collator;
use crate::regex::Regex;
use crate::value::{compare_mixed, compare_with};

/// Distinct values in their order, and patterns.
#[derive(Debug, Clone)]
pub struct In {
    /// The values, ascending under the filter's collation.
    pub values: Vec<Bson>,
    /// The patterns.
    pub regexes: Vec<Regex>,
    null: bool,
}

impl In {
    pub(super) fn new(
        mut values: Vec<Bson>,
        regexes: Vec<Regex>,
        collator: Option<&Collator>,
    ) -> In {
        values.sort_by(|a, b| compare_with(a, b, collator));
        values.dedup_by(|a, b| compare_with(a, b, collator) == Ordering::Equal);
        In {
            null: values.contains(&Bson::Null),
            values,
            regexes,
        }
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
        let found = self
            .values
            .binary_search_by(|held| compare_mixed(value, held, collator).reverse());
        if found.is_ok() {
            return Ok(true);
        }
        for regex in &self.regexes {
            if super::test::regex(regex, value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

//! The least or the greatest value of a group.

use std::cmp::Ordering;

use bson::Bson;

use crate::collation::Collator;
use crate::value::compare_with;

/// The least or the greatest of the values that are neither null nor missing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extreme {
    value: Option<Bson>,
}

impl Extreme {
    /// Keeps `value` if its order to the value kept so far is `wanted`: `Less` for the least value,
    /// `Greater` for the greatest.
    pub(crate) fn add(&mut self, value: &Bson, wanted: Ordering, collator: Option<&Collator>) {
        if matches!(value, Bson::Null | Bson::Undefined) {
            return;
        }
        let better = match &self.value {
            None => true,
            Some(held) => compare_with(value, held, collator) == wanted,
        };
        if better {
            self.value = Some(value.clone());
        }
    }

    /// The kept value; null when there was none.
    pub(crate) fn finish(self) -> Bson {
        self.value.unwrap_or(Bson::Null)
    }

    /// The value kept so far.
    pub(crate) fn value(&self) -> Option<&Bson> {
        self.value.as_ref()
    }
}

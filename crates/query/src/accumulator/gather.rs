//! Lists of values: `$push`, `$addToSet`, `$firstN`, `$lastN`.

use std::collections::{HashSet, VecDeque};

use bson::Bson;

use crate::collation::Collator;
use crate::value::equivalence_key;

/// Distinct values in the order in which they came.
#[derive(Debug, Clone, Default)]
pub(super) struct Distinct {
    seen: HashSet<Vec<u8>>,
    values: Vec<Bson>,
}

impl Distinct {
    /// Adds a value unless an equal one exists. Returns whether it was new.
    pub(super) fn add(&mut self, value: Bson, collator: Option<&Collator>) -> bool {
        let new = self.seen.insert(equivalence_key(&value, collator));
        if new {
            self.values.push(value);
        }
        new
    }

    pub(super) fn into_values(self) -> Vec<Bson> {
        self.values
    }
}

/// The first or the last `limit` values.
#[derive(Debug, Clone)]
pub(super) struct Edge {
    limit: usize,
    last: bool,
    values: VecDeque<Bson>,
}

impl Edge {
    pub(super) fn new(limit: usize, last: bool) -> Edge {
        Edge {
            limit,
            last,
            values: VecDeque::new(),
        }
    }

    /// Whether the list would keep another value.
    pub(super) fn wants(&self) -> bool {
        self.last || self.values.len() < self.limit
    }

    /// Adds a value, and returns the value that is dropped for it: the oldest one, or the new one
    /// itself.
    pub(super) fn add(&mut self, value: Bson) -> Option<Bson> {
        if !self.wants() {
            return Some(value);
        }
        self.values.push_back(value);
        if self.values.len() > self.limit {
            return self.values.pop_front();
        }
        None
    }

    pub(super) fn into_values(self) -> Vec<Bson> {
        self.values.into()
    }
}

//! A number that many threads count up.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::long::long;

#[derive(Default, Debug)]
pub(crate) struct Counter(AtomicI64);

impl Counter {
    /// Count one.
    pub(crate) fn one(&self) {
        self.add(1);
    }

    /// Count `n`.
    pub(crate) fn add(&self, n: i64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Add a size.
    pub(crate) fn size(&self, n: usize) {
        self.add(long(n));
    }

    /// The count.
    pub(crate) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

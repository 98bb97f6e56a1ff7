//! Counters for statistics. Relaxed: they order nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often, and how long in all.
#[derive(Default)]
pub(crate) struct Wait {
    count: AtomicU64,
    micros: AtomicU64,
}

impl Wait {
    /// Count one wait.
    pub(crate) fn add(&self, time: Duration) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// How often, and how many microseconds in all.
    pub(crate) fn get(&self) -> (u64, u64) {
        (
            self.count.load(Ordering::Relaxed),
            self.micros.load(Ordering::Relaxed),
        )
    }
}

/// A number that only grows.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Add `n`.
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Add a time, in nanoseconds.
    pub(crate) fn add_nanos(&self, time: Duration) {
        self.add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The number.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

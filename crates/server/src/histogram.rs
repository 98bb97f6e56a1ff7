//! Durations of commands in buckets, from which Prometheus computes percentiles.
//!
//! - I1. Each duration is counted in exactly one bucket: the first whose bound is not below it, or
//!   the last one, which has no bound.
//!
//! No lock: each counter is atomic, and a reader may see a command in the buckets before it is in
//! the total time.

use std::time::Duration;

use crate::counter::Counter;
use crate::long::long;

/// Upper bounds of the buckets in microseconds. Reads of cached documents take some ten
/// microseconds, a sync of a disk some milliseconds; commands wait for a worker for up to 30 s.
pub(crate) const BOUNDS: [i64; 17] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000,
];

/// Number of buckets: the last one has no bound.
pub(crate) const BUCKETS: usize = BOUNDS.len() + 1;

/// Counts of durations.
#[derive(Default, Debug)]
pub(crate) struct Histogram {
    buckets: [Counter; BUCKETS],
    micros: Counter,
}

impl Histogram {
    /// Count a duration.
    pub(crate) fn record(&self, taken: Duration) {
        let micros = long(taken.as_micros());
        let at = BOUNDS.partition_point(|bound| *bound < micros);
        assert!(at < BUCKETS, "I1: there is a bucket for every duration");
        if let Some(bucket) = self.buckets.get(at) {
            bucket.one();
        }
        self.micros.add(micros);
    }

    /// Add the counts and the time of another one.
    pub(crate) fn include(&self, other: &Histogram) {
        for (bucket, count) in self.buckets.iter().zip(other.counts()) {
            bucket.add(count);
        }
        self.micros.add(other.micros());
    }

    /// The counts, bucket by bucket.
    pub(crate) fn counts(&self) -> [i64; BUCKETS] {
        self.buckets.each_ref().map(Counter::get)
    }

    /// Total time in microseconds.
    pub(crate) fn micros(&self) -> i64 {
        self.micros.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I1: durations on a bound, between two and beyond the last.
    #[test]
    fn each_duration_is_in_one_bucket() {
        let histogram = Histogram::default();
        for micros in [0, 100, 101, 30_000_000, 30_000_001] {
            histogram.record(Duration::from_micros(micros));
        }
        let counts = histogram.counts();
        assert_eq!(counts.iter().sum::<i64>(), 5);
        assert_eq!((counts[0], counts[1]), (2, 1));
        assert_eq!((counts[BUCKETS - 2], counts[BUCKETS - 1]), (1, 1));
        assert_eq!(histogram.micros(), 60_000_202);
    }
}

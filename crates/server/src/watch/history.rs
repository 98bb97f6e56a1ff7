//! Load, durations and waits of the last minutes, from counters that are read every few seconds.
//!
//! - Z2. At most [`KEPT`] points are kept.
//!
//! A point is what changed between two samples: counters only grow, so differences are never
//! negative.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::histogram::{BOUNDS, BUCKETS};

/// Maximum number of points: ten minutes at the default period.
const KEPT: usize = 120;

/// Counters at one time.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// When, for measuring.
    pub(crate) now: Instant,
    /// When, in milliseconds since 1970.
    pub(crate) at: i64,
    /// Durations by class.
    pub(crate) durations: Vec<(&'static str, [i64; BUCKETS])>,
    /// Waits by reason.
    pub(crate) stalls: BTreeMap<String, Stall>,
    /// Bytes whose background work is owed.
    pub(crate) debt: Option<u64>,
    /// Bytes that the engine wrote.
    pub(crate) written: u64,
}

/// Waits for one reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stall {
    pub(crate) count: u64,
    pub(crate) micros: u64,
}

/// What happened between two samples.
#[derive(Debug)]
pub(crate) struct Point(Arc<Value>);

/// The points, the last one at the end.
#[derive(Default)]
pub(crate) struct History {
    last: Option<Sample>,
    points: VecDeque<Point>,
}

impl History {
    /// Add a sample.
    pub(crate) fn add(&mut self, sample: Sample) {
        if let Some(before) = &self.last {
            self.points.push_back(Point::between(before, &sample));
        }
        self.last = Some(sample);
        while KEPT < self.points.len() {
            self.points.pop_front();
        }
        assert!(
            self.points.len() <= KEPT,
            "Z2: the number of points is bounded"
        );
    }

    /// The points as JSON, the oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<Value>> {
        let points = self.points.iter();
        points.map(|point| Arc::clone(&point.0)).collect()
    }
}

impl Point {
    fn between(before: &Sample, after: &Sample) -> Point {
        let seconds = after
            .now
            .saturating_duration_since(before.now)
            .as_secs_f64();
        // Two samples of one moment have no rate; a millisecond avoids the division by zero.
        let seconds = seconds.max(0.001);
        let mut classes = Map::new();
        for ((name, old), (_, new)) in before.durations.iter().zip(&after.durations) {
            let mut counts = [0; BUCKETS];
            for (count, (old, new)) in counts.iter_mut().zip(old.iter().zip(new)) {
                *count = (new - old).max(0);
            }
            #[expect(clippy::cast_precision_loss, reason = "a rate")]
            let rate = counts.iter().sum::<i64>() as f64 / seconds;
            let class = json!({
                "rate": rate,
                "p50": percentile(&counts, 0.5),
                "p99": percentile(&counts, 0.99),
            });
            classes.insert((*name).to_owned(), class);
        }
        let mut stalls = Map::new();
        for (reason, new) in &after.stalls {
            let old = before.stalls.get(reason).copied().unwrap_or_default();
            let count = new.count.saturating_sub(old.count);
            let micros = new.micros.saturating_sub(old.micros);
            if 0 < count || 0 < micros {
                stalls.insert(reason.clone(), json!({"count": count, "micros": micros}));
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let written = after.written.saturating_sub(before.written) as f64 / seconds;
        Point(Arc::new(json!({
            "at": after.at,
            "seconds": seconds,
            "classes": classes,
            "stalls": stalls,
            "debt": after.debt,
            "writtenRate": written,
        })))
    }
}

/// The duration in microseconds that a share (0 to 1) of the counted commands did not exceed,
/// interpolated within its bucket as Prometheus does; `None` without commands. In the last bucket
/// it is the largest bound.
#[expect(clippy::cast_precision_loss, reason = "an estimate between two bounds")]
fn percentile(counts: &[i64; BUCKETS], share: f64) -> Option<f64> {
    let total: i64 = counts.iter().sum();
    if total <= 0 {
        return None;
    }
    let wanted = share * total as f64;
    let (mut below, mut from) = (0.0, 0.0);
    for (count, bound) in counts.iter().zip(BOUNDS) {
        let (count, bound) = (*count as f64, bound as f64);
        if 0.0 < count && wanted <= below + count {
            return Some(from + (bound - from) * (wanted - below).max(0.0) / count);
        }
        (below, from) = (below + count, bound);
    }
    Some(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: i64, reads: i64) -> Sample {
        let mut counts = [0; BUCKETS];
        counts[1] = reads;
        let stall = Stall {
            count: reads.unsigned_abs(),
            micros: 1_000,
        };
        Sample {
            now: stdx::time::now(),
            at,
            durations: vec![("read", counts)],
            stalls: BTreeMap::from([("log_sync".to_owned(), stall)]),
            debt: Some(7),
            written: 0,
        }
    }

    /// Z2: of many samples the last points are kept, each a difference.
    #[test]
    fn points_are_differences_and_bounded() {
        let mut history = History::default();
        for at in 0..1_000 {
            history.add(sample(at, 10 * at));
        }
        let points = history.list();
        assert_eq!(points.len(), KEPT);
        let last = points.last().unwrap();
        assert_eq!(last["at"], 999);
        assert_eq!(last["classes"]["read"]["p50"], 175.0);
        assert_eq!(
            last["stalls"]["log_sync"],
            json!({"count": 10, "micros": 0})
        );
    }

    #[test]
    fn percentiles_are_interpolated_within_a_bucket() {
        let mut counts = [0; BUCKETS];
        assert_eq!(percentile(&counts, 0.5), None);
        counts[1] = 100;
        assert_eq!(percentile(&counts, 0.5), Some(175.0));
        counts[BUCKETS - 1] = 300;
        assert_eq!(percentile(&counts, 0.99), Some(30_000_000.0));
    }
}

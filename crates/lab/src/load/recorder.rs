//! Latency histograms (HDR), shared by the clients of a step.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use stdx::sync::Mutex;

use lab_report::record::Latency;

/// Maximum latency that a histogram holds, in microseconds: an hour. Longer latencies count as
/// this.
pub const HISTOGRAM_MAX_US: u64 = 3_600_000_000;

struct Histograms {
    step: Histogram<u64>,
    second: Histogram<u64>,
    interval: Histogram<u64>,
}

/// Records the latencies of one kind of operation, and the ages of the operations in progress.
pub struct Recorder {
    histograms: Mutex<Histograms>,
    /// For each client, the due time of its operation in progress: microseconds since `start`, plus
    /// 1; 0 if the client has no operation in progress.
    waiting: Vec<AtomicU64>,
    start: Instant,
}

/// An empty histogram.
#[must_use]
pub fn no_latencies() -> Histogram<u64> {
    empty()
}

fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, HISTOGRAM_MAX_US, 3).expect("the bounds are legal constants")
}

impl Recorder {
    /// A recorder for `clients` clients of a step that started at `start`.
    #[must_use]
    pub fn new(clients: u32, start: Instant) -> Recorder {
        let histograms = Histograms {
            step: empty(),
            second: empty(),
            interval: empty(),
        };
        let waiting = (0..clients).map(|_| AtomicU64::new(0)).collect();
        Recorder {
            histograms: Mutex::new(histograms),
            waiting,
            start,
        }
    }

    fn micros(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.start).as_micros()).unwrap_or(u64::MAX - 1)
    }

    /// An operation of `client` that was due at `due` starts.
    pub fn begin(&self, client: usize, due: Instant) {
        if let Some(slot) = self.waiting.get(client) {
            slot.store(self.micros(due) + 1, Ordering::Relaxed);
        }
    }

    /// The operation ended at `now`.
    pub fn end(&self, client: usize, due: Instant, now: Instant) {
        if let Some(slot) = self.waiting.get(client) {
            slot.store(0, Ordering::Relaxed);
        }
        let latency = now.saturating_duration_since(due);
        let micros = u64::try_from(latency.as_micros())
            .unwrap_or(HISTOGRAM_MAX_US)
            .max(1);
        let mut h = self.histograms.lock();
        h.step.saturating_record(micros);
        h.second.saturating_record(micros);
        h.interval.saturating_record(micros);
    }

    /// The age of the oldest operation in progress.
    #[must_use]
    pub fn oldest(&self, now: Instant) -> Option<Duration> {
        let due = self
            .waiting
            .iter()
            .map(|w| w.load(Ordering::Relaxed))
            .filter(|&w| w > 0)
            .min()?;
        Some(Duration::from_micros(
            self.micros(now).saturating_sub(due - 1),
        ))
    }

    /// Take the latencies since the last call, and reset them.
    pub fn take_second(&self) -> Histogram<u64> {
        std::mem::replace(&mut self.histograms.lock().second, empty())
    }

    /// Take the latencies since the end of the last interval, and reset them.
    pub fn take_interval(&self) -> Histogram<u64> {
        std::mem::replace(&mut self.histograms.lock().interval, empty())
    }

    /// All latencies of the step.
    #[must_use]
    pub fn step(&self) -> Histogram<u64> {
        self.histograms.lock().step.clone()
    }
}

/// The percentiles of a histogram of microseconds, in milliseconds.
#[must_use]
pub fn latency_of(histogram: &Histogram<u64>) -> Latency {
    if histogram.is_empty() {
        return Latency::default();
    }
    let ms = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
    Latency {
        count: histogram.len(),
        mean: histogram.mean() / 1e3,
        p50: ms(0.5),
        p90: ms(0.9),
        p99: ms(0.99),
        p999: ms(0.999),
        max: histogram.max() as f64 / 1e3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_counts_from_the_moment_it_was_due() {
        let start = stdx::time::now();
        let recorder = Recorder::new(2, start);
        let due = start + Duration::from_millis(10);
        recorder.begin(1, due);
        assert_eq!(
            recorder
                .oldest(start + Duration::from_millis(25))
                .unwrap()
                .as_millis(),
            15
        );
        recorder.end(1, due, start + Duration::from_millis(30));
        assert_eq!(recorder.oldest(start + Duration::from_millis(40)), None);
        let latency = latency_of(&recorder.step());
        assert_eq!(latency.count, 1);
        assert!((latency.max - 20.0).abs() < 0.1, "{latency:?}");
        assert_eq!(recorder.take_second().len(), 1);
        assert_eq!(recorder.take_second().len(), 0);
    }
}

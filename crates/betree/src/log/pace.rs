//! How fast the log is written, and how long commits should wait so that its buffers do not fill.
//!
//! ```text
//!  buffers filled   0 ........ 50 % ................................. 100 %
//!                   | nothing  | commits sleep, ever longer           | appends wait
//! ```
//!
//! Writes go to the page cache, mostly without waiting, so the buffers are nearly empty. Now and
//! then the file system makes a write wait, for a journal or for dirty pages; then they fill, and
//! the wait is spread over the commits that come meanwhile. No lock: relaxed atomics.

use std::time::Duration;
use stdx::sync::atomic::{AtomicU64, Ordering};

/// Commits wait when more than this fraction is filled.
const FREE: f64 = 0.5;
/// The time of shorter groups depends more on the call than on the device.
const SIGNIFICANT: u64 = 64 << 10;

/// The measured write rate.
#[derive(Default)]
pub(super) struct Pace {
    /// Bytes per second, smoothed; 0 before the first measurement.
    rate: AtomicU64,
}

impl Pace {
    /// Record that a group of `bytes` was written in `took`. Called by the writer only.
    pub(super) fn wrote(&self, bytes: u64, took: Duration) {
        if bytes < SIGNIFICANT {
            return;
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let new = bytes.saturating_mul(1_000_000) / micros;
        let old = self.rate.load(Ordering::Relaxed);
        let smooth = if old == 0 {
            new
        } else {
            (old / 8 * 7).saturating_add(new / 8)
        };
        self.rate.store(smooth.max(1), Ordering::Relaxed);
    }

    /// How long a commit of `bytes` should sleep when the share `filled` of the buffers waits to be
    /// written: nothing up to one half; the time to write `bytes` at three quarters; without bound
    /// towards the end, so that the end is not met.
    pub(super) fn delay(&self, bytes: usize, filled: f64) -> Duration {
        let rate = self.rate.load(Ordering::Relaxed);
        if filled <= FREE || rate == 0 {
            return Duration::ZERO;
        }
        let over = ((filled - FREE) / (1.0 - FREE)).min(0.99);
        Duration::from_secs_f64(bytes as f64 / rate as f64 * over / (1.0 - over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_without_a_step() {
        let pace = Pace::default();
        assert_eq!(pace.delay(1 << 20, 0.9), Duration::ZERO, "nothing is known");
        for _ in 0..100 {
            pace.wrote(1 << 20, Duration::from_millis(1));
        }
        assert_eq!(pace.delay(1 << 20, 0.5), Duration::ZERO);
        let mut last = Duration::ZERO;
        for percent in 51..=100 {
            let delay = pace.delay(1 << 20, f64::from(percent) / 100.0);
            assert!(last <= delay, "{percent} %");
            let step = delay - last;
            assert!(
                percent > 90 || step < Duration::from_millis(1),
                "{percent} %"
            );
            last = delay;
        }
        let half = pace.delay(1 << 20, 0.75);
        assert!(Duration::from_micros(900) < half && half < Duration::from_micros(1200));
    }
}

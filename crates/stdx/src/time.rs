//! The clock. Monotonic time for measuring, wall time for labels only.
#![expect(
    clippy::disallowed_methods,
    reason = "this module is what the ban points to"
)]

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The monotonic clock, for measuring.
#[must_use]
#[inline]
pub fn now() -> Instant {
    Instant::now()
}

/// The wall clock, for labels: time since 1970-01-01 UTC (zero if the clock is set before it).
#[must_use]
pub fn wall() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Block this thread for `duration`; see [`crate::blocking`].
pub fn sleep(duration: Duration) {
    crate::blocking::call(|| thread::sleep(duration));
}

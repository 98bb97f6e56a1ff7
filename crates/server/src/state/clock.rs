//! The logical clock of a replica set: seconds and a count, never the same twice.

use bson::{DateTime, Timestamp};
use stdx::sync::Mutex;

/// How far ahead of our clock a time from a client may be: MongoDB's `maxAcceptableLogicalClock
/// DriftSecs`, one year. Later ones are ignored, so that one client cannot use the clock up.
const DRIFT: u32 = 365 * 24 * 60 * 60;

/// The clock.
pub(crate) struct Clock(Mutex<Times>);

struct Times {
    cluster: Timestamp,
    operation: Timestamp,
}

/// Now, for labels, as dates are stored.
pub(crate) fn now() -> DateTime {
    let millis = i64::try_from(stdx::time::wall().as_millis()).unwrap_or(i64::MAX);
    DateTime::from_millis(millis)
}

fn seconds() -> u32 {
    u32::try_from(stdx::time::wall().as_secs()).unwrap_or(u32::MAX)
}

impl Clock {
    /// A clock that starts now.
    pub(crate) fn new() -> Clock {
        let now = Timestamp {
            time: seconds(),
            increment: 1,
        };
        Clock(Mutex::new(Times {
            cluster: now,
            operation: now,
        }))
    }

    /// The time of a write.
    pub(crate) fn tick(&self) -> Timestamp {
        let now = seconds();
        let mut times = self.0.lock();
        let last = times.cluster;
        let next = if last.time < now {
            Timestamp {
                time: now,
                increment: 1,
            }
        } else if last.increment < u32::MAX {
            Timestamp {
                increment: last.increment + 1,
                ..last
            }
        } else {
            Timestamp {
                time: last.time.saturating_add(1),
                increment: 1,
            }
        };
        times.cluster = next;
        times.operation = next;
        next
    }

    /// A client knows of a later time.
    pub(crate) fn advance(&self, to: Timestamp) {
        let mut times = self.0.lock();
        if times.cluster < to && to.time <= seconds().saturating_add(DRIFT) {
            times.cluster = to;
        }
    }

    /// The latest known time, and the time of the last write.
    pub(crate) fn times(&self) -> (Timestamp, Timestamp) {
        let times = self.0.lock();
        (times.cluster, times.operation)
    }
}

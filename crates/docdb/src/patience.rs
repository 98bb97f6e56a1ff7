//! Waiting for other threads: a waiter checks periodically whether it may continue.

use std::time::{Duration, Instant};

use query::{Result, meter};
use stdx::sync::{Condvar, MutexGuard};

/// Interval at which a waiter checks whether it may continue to wait.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// Checks that a waiter may continue to wait.
pub(crate) type Check<'c> = &'c dyn Fn() -> Result<()>;

/// The total time that a thread waits.
pub(crate) struct Patience {
    limit: Option<Duration>,
    deadline: Option<Instant>,
}

impl Patience {
    /// A wait of at most `limit` in total, starting with the first wait; endless without a limit.
    pub(crate) fn new(limit: Option<Duration>) -> Patience {
        let deadline = None;
        Patience { limit, deadline }
    }

    /// Wait for a change, for at most [`LOOK`]. Returns false when the limit is reached.
    ///
    /// # Errors
    /// Errors of `check`.
    pub(crate) fn wait<T>(
        &mut self,
        changed: &Condvar,
        state: &mut MutexGuard<'_, T>,
        check: Check<'_>,
    ) -> Result<bool> {
        check()?;
        let now = stdx::time::now();
        let mut until = now + LOOK;
        if let Some(limit) = self.limit {
            let deadline = *self.deadline.get_or_insert(now + limit);
            if deadline <= now {
                return Ok(false);
            }
            until = until.min(deadline);
        }
        meter::rest();
        changed.wait_until(state, until);
        Ok(true)
    }
}

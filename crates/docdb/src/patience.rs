//! Waiting for other threads: a waiter checks now and then whether it may continue.

use std::time::{Duration, Instant};

use query::{Result, meter};
use stdx::sync::{Condvar, MutexGuard};

/// How often a waiter checks whether it may continue to wait.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// Whether a waiter may continue to wait.
pub(crate) type Check<'c> = &'c dyn Fn() -> Result<()>;

/// How long a thread waits in total.
pub(crate) struct Patience {
    limit: Option<Duration>,
    deadline: Option<Instant>,
}

impl Patience {
    /// Without a limit it is endless. It begins with the first wait.
    pub(crate) fn new(limit: Option<Duration>) -> Patience {
        let deadline = None;
        Patience { limit, deadline }
    }

    /// Wait for a change, at most [`LOOK`]. False when it is over.
    ///
    /// # Errors
    /// What `check` says.
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

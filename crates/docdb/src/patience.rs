//! Waiting for others: now and then whoever waits looks whether it may go on.

use std::time::{Duration, Instant};

use query::Result;
use stdx::sync::{Condvar, MutexGuard};

/// How often who waits looks whether it may go on waiting.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// Whether who waits may go on waiting.
pub(crate) type Check<'c> = &'c dyn Fn() -> Result<()>;

/// How long somebody waits, all in all.
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
        changed.wait_until(state, until);
        Ok(true)
    }
}

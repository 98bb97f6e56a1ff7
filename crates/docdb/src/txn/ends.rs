//! The conditions that end an operation: its deadline, or a kill.

use std::sync::Arc;
use std::time::{Duration, Instant};

use query::meter::Watch;
use query::{Code, Error, Result};
use stdx::sync::atomic::{AtomicI32, Ordering};

/// The conditions that end an operation.
#[derive(Clone)]
pub(crate) struct Ends {
    pub(super) deadline: Option<Instant>,
    pub(super) killed: Arc<AtomicI32>,
}

impl Watch for Ends {
    fn check(&self) -> Result<()> {
        check(self.deadline, &self.killed)
    }

    fn left(&self) -> Option<Duration> {
        left(self.deadline)
    }
}

/// What is left until a deadline; `None` without one.
pub(super) fn left(deadline: Option<Instant>) -> Option<Duration> {
    deadline.map(|end| end.saturating_duration_since(stdx::time::now()))
}

/// Check that an operation may continue.
///
/// # Errors
/// The code that killed it; `MaxTimeMSExpired`.
pub(super) fn check(deadline: Option<Instant>, killed: &AtomicI32) -> Result<()> {
    let killed = killed.load(Ordering::Relaxed);
    if killed != 0 {
        return Err(Error::new(Code(killed), "operation was interrupted"));
    }
    if deadline.is_some_and(|deadline| deadline <= stdx::time::now()) {
        return Err(Error::new(
            Code::MAX_TIME_MS_EXPIRED,
            "operation exceeded time limit",
        ));
    }
    Ok(())
}

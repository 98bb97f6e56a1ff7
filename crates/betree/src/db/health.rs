//! Whether the store takes writes, and why not.
//!
//! - I1. After a failed sync nothing is ever acknowledged again: what is durable is unknown, and
//!   asking again proves nothing. The store stays readable; opening it again recovers what is.

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::plant::{Plant, planted};

/// The health of the store.
#[derive(Default)]
pub(crate) struct Health {
    closed: AtomicBool,
    poisoned: AtomicBool,
    /// The error that closed it for writes.
    cause: Mutex<Option<String>>,
    /// The last error of background work, until work succeeds again.
    trouble: Mutex<Option<(ErrorKind, String)>>,
    in_trouble: AtomicBool,
}

impl Health {
    /// Refuse if the store is closed.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(
                ErrorKind::Closed,
                "the store is closed; open it again",
            ));
        }
        Ok(())
    }

    /// Refuse if the store is closed, or closed for writes.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if !self.poisoned.load(Ordering::Acquire) {
            return Ok(());
        }
        let cause = self.cause.lock();
        let cause = cause.as_deref().unwrap_or("unknown");
        let message = format!("closed for writes since an error ({cause}); open the store again");
        Err(Error::new(ErrorKind::Closed, message))
    }

    /// Close for writes permanently (I1).
    pub(crate) fn poison(&self, error: &Error) {
        if planted(Plant::PoisonForgotten) {
            return;
        }
        let mut cause = self.cause.lock();
        if cause.is_none() {
            *cause = Some(error.to_string());
        }
        assert!(cause.is_some(), "the message says why");
        self.poisoned.store(true, Ordering::Release);
    }

    /// Whether an error has closed it for writes.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// Close. Returns false if it was already closed.
    pub(crate) fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }

    /// Record a failure of background work, which will be retried.
    pub(crate) fn worry(&self, error: &Error) {
        *self.trouble.lock() = Some((error.kind(), error.to_string()));
        self.in_trouble.store(true, Ordering::Release);
    }

    /// Record a success of background work.
    pub(crate) fn relax(&self) {
        if self.in_trouble.load(Ordering::Acquire) {
            *self.trouble.lock() = None;
            self.in_trouble.store(false, Ordering::Release);
        }
    }

    /// The error of background work, if it currently fails.
    pub(crate) fn trouble(&self) -> Option<Error> {
        if !self.in_trouble.load(Ordering::Acquire) {
            return None;
        }
        let trouble = self.trouble.lock();
        let (kind, message) = trouble.as_ref()?;
        let message = format!("memory is full and cannot be flushed: {message}");
        Some(Error::new(*kind, message))
    }
}

//! `fsync` with `lock`: blocks writes until it is released, so that the files can be copied.
//!
//! - F1. A write holds the gate shared while its command runs; the lock holds it exclusively. While
//!   a lock is held no write is under way, and none begins before it is released.
//! - F2. Locks are counted: the last unlock opens the gate.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use query::{Code, Error, Result};
use stdx::sync::{Mutex, spawn};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

/// The gate that writes pass, and the lock on it.
#[derive(Default)]
pub(crate) struct Freeze {
    gate: Arc<RwLock<()>>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    count: i64,
    /// Dropping it ends the thread that holds the gate.
    release: Option<Sender<()>>,
}

impl Freeze {
    /// Wait until writes are allowed. While the guard exists, no lock is granted.
    pub(crate) async fn writing(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.gate).read_owned().await
    }

    /// The number of locks.
    pub(crate) fn count(&self) -> i64 {
        self.held.lock().count
    }

    /// Lock, after running writes have ended. Returns the number of locks.
    ///
    /// # Errors
    /// `LockTimeout` when they take longer than `limit`.
    pub(crate) fn lock(&self, limit: Duration) -> Result<i64> {
        let mut held = self.held.lock();
        if held.count == 0 {
            held.release = Some(hold(&self.gate, limit)?);
        }
        held.count += 1;
        Ok(held.count)
    }

    /// Release one lock. Returns the number of locks left.
    ///
    /// # Errors
    /// `IllegalOperation` when there is none.
    pub(crate) fn unlock(&self) -> Result<i64> {
        let mut held = self.held.lock();
        if held.count == 0 {
            let message = "fsyncUnlock called when not locked";
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        held.count -= 1;
        if held.count == 0 {
            held.release = None;
        }
        Ok(held.count)
    }
}

/// Hold the gate exclusively on a separate thread: the lock outlives the command that took it.
fn hold(gate: &Arc<RwLock<()>>, limit: Duration) -> Result<Sender<()>> {
    let (release, released) = channel::<()>();
    let (send, locked) = channel();
    let gate = Arc::clone(gate);
    let started = spawn("fsync-lock", move || {
        let alone = gate.blocking_write();
        if send.send(()).is_ok() {
            // The receive ends when the sender is dropped: nothing is ever sent.
            let _: Result<(), _> = released.recv();
        }
        drop(alone);
    });
    started.map_err(|error| {
        let message = format!("no thread can be had: {error}");
        Error::new(Code::TEMPORARILY_UNAVAILABLE, message)
    })?;
    locked.recv_timeout(limit).map_err(|_| {
        let message = "Fsync lock timed out: writes under way took too long";
        Error::new(Code::LOCK_TIMEOUT, message)
    })?;
    Ok(release)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// F2: the last unlock opens the gate.
    #[test]
    fn locks_are_counted() {
        let freeze = Freeze::default();
        assert_eq!(freeze.lock(LONG).unwrap(), 1);
        assert_eq!(freeze.lock(LONG).unwrap(), 2);
        assert!(freeze.gate.try_read().is_err());
        assert_eq!(freeze.unlock().unwrap(), 1);
        assert!(freeze.gate.try_read().is_err());
        assert_eq!(freeze.unlock().unwrap(), 0);
        drop(freeze.gate.blocking_read());
        assert_eq!(freeze.unlock().unwrap_err().code, Code::ILLEGAL_OPERATION);
    }

    /// F1: no write is in progress while a lock is held.
    #[test]
    fn a_lock_waits_for_writes_and_gives_up() {
        let freeze = Freeze::default();
        let writing = freeze.gate.blocking_read();
        let refused = freeze.lock(Duration::from_millis(1)).unwrap_err();
        assert_eq!(refused.code, Code::LOCK_TIMEOUT);
        assert_eq!(freeze.count(), 0);
        drop(writing);
        // The thread that gave up locks the gate and releases it.
        assert_eq!(freeze.lock(LONG).unwrap(), 1);
    }
}

//! Locks and threads of the operating system.

use std::io;
use std::thread::Builder;
use std::time::{Duration, Instant};

pub use std::sync::atomic;
pub use std::thread::JoinHandle;

pub use parking_lot::{
    MappedRwLockReadGuard, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
    WaitTimeoutResult,
};

use crate::blocking;

/// How long the wait for a lock is no announced wait: several times what it costs to announce one.
const BRIEF: Duration = Duration::from_micros(200);

/// As `parking_lot::Condvar`; its waits are announced (see [`blocking`]).
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// A condition without waiters.
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar(parking_lot::Condvar::new())
    }

    /// Wait until notified.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        blocking::call(|| self.0.wait(guard));
    }

    /// Wait until notified, for at most `limit`.
    pub fn wait_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        limit: Duration,
    ) -> WaitTimeoutResult {
        blocking::call(|| self.0.wait_for(guard, limit))
    }

    /// Wait until notified, until `end` at the latest.
    pub fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        end: Instant,
    ) -> WaitTimeoutResult {
        blocking::call(|| self.0.wait_until(guard, end))
    }

    /// Wake one that waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wake all that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Lock a mutex that may be held during input or output: a long wait for it is announced (see
/// [`blocking`]).
#[inline]
pub fn lock_announced<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match blocking::is_handled() {
        false => mutex.lock(),
        true => mutex
            .try_lock_for(BRIEF)
            .unwrap_or_else(|| blocking::call(|| mutex.lock())),
    }
}

/// Start a thread with a name of at most 15 characters (Linux shows no more).
///
/// # Errors
/// The operating system's error when it cannot start a thread.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(body)
}

//! Locks of the `shuttle` crate with the interface of the real locks: no poisoning, guards that can
//! be released temporarily, waits with a timeout.
//!
//! - I1. A guard holds its lock, except inside [`MutexGuard::unlocked`] and the waits of a
//!   [`Condvar`], which borrow the guard exclusively.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

use shuttle::sync;
use shuttle::thread::Builder;

pub use shuttle::sync::atomic;
pub use shuttle::thread::JoinHandle;
pub use sync::{RwLockReadGuard, RwLockWriteGuard};

/// Start a thread of the `shuttle` run; the interface is that of the real `spawn`.
///
/// # Errors
/// None.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(body)
}

/// Lock a mutex. A run announces no waits.
pub fn lock_announced<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// As `parking_lot::Mutex`.
#[derive(Default)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// An unlocked mutex.
    #[track_caller]
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(sync::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Lock the mutex.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard {
            mutex: &self.0,
            held: Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Lock the mutex; `None` if it is locked.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let held = match self.0.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard {
            mutex: &self.0,
            held: Some(held),
        })
    }

    /// Whether a guard holds the lock.
    pub fn is_locked(&self) -> bool {
        self.try_lock().is_none()
    }

    /// The value; no lock is needed, because the reference is exclusive.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

/// As `parking_lot::MutexGuard`.
#[must_use = "a guard that is not kept unlocks at once"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a sync::Mutex<T>,
    held: Option<sync::MutexGuard<'a, T>>,
}

impl<T: ?Sized> MutexGuard<'_, T> {
    /// Release the lock while `body` runs.
    pub fn unlocked<R>(guard: &mut Self, body: impl FnOnce() -> R) -> R {
        drop(guard.held.take());
        let result = body();
        guard.held = Some(guard.mutex.lock().unwrap_or_else(PoisonError::into_inner));
        result
    }
}

impl<T: ?Sized> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MutexGuard")
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("I1: the lock is held")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("I1: the lock is held")
    }
}

/// As `parking_lot::RwLock`.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(sync::RwLock<T>);

impl<T> RwLock<T> {
    /// An unlocked lock.
    #[track_caller]
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(sync::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Lock for reading.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lock for writing.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As `parking_lot::Condvar`.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

/// How a wait with a timeout ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the timeout elapsed.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// A condition without waiters.
    #[must_use]
    #[track_caller]
    pub const fn new() -> Condvar {
        Condvar(sync::Condvar::new())
    }

    /// Wait until notified.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.held.take().expect("I1: the lock is held");
        let held = self.0.wait(held).unwrap_or_else(PoisonError::into_inner);
        guard.held = Some(held);
    }

    /// Wait until notified, or until the timeout. A `shuttle` run has no clock: whatever its
    /// length, the timeout elapses as soon as other threads had a chance to run. So a test finds
    /// code that relies on a notification although its wait has a timeout.
    pub fn wait_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        _limit: Duration,
    ) -> WaitTimeoutResult {
        MutexGuard::unlocked(guard, shuttle::thread::yield_now);
        WaitTimeoutResult(true)
    }

    /// Wake one waiting thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wake all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

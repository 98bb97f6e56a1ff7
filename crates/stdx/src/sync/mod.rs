//! Locks, atomics and threads for the whole workspace. They are defined in one place so that a
//! model checker can replace them, and so that the thread sanitizer works: it does not support the
//! standard library's locks.
//!
//! With the feature `shuttle` (for tests only) they are types of the `shuttle` crate: whenever one
//! is used, the scheduler of the test may switch to another thread. These types work only inside a
//! `shuttle` run.
//!
//! Statistics may use the atomics of the standard library, because no decision depends on them.

#[cfg(feature = "shuttle")]
mod model;
#[cfg(not(feature = "shuttle"))]
mod once;
#[cfg(not(feature = "shuttle"))]
mod real;

#[cfg(feature = "shuttle")]
pub use model::{
    Condvar, JoinHandle, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic,
    lock_announced, spawn,
};
#[cfg(not(feature = "shuttle"))]
pub use once::OnceLock;
#[cfg(not(feature = "shuttle"))]
pub use real::{
    Condvar, JoinHandle, MappedRwLockReadGuard, Mutex, MutexGuard, RwLock, RwLockReadGuard,
    RwLockWriteGuard, WaitTimeoutResult, atomic, lock_announced, spawn,
};
#[cfg(feature = "shuttle")]
pub use shuttle;
// The scheduler does not interrupt the thread that makes a value.
#[cfg(feature = "shuttle")]
pub use std::sync::OnceLock;

//! Locks, atomics and threads. The whole workspace uses those of this module, so that a model
//! checker can replace them in one place, and so that the thread sanitizer (which does not
//! understand the standard library's locks) sees locks it understands.
//!
//! With the feature `shuttle` (for tests only) they are those of the `shuttle` crate: at every use
//! of one, the test's scheduler may switch to another thread. They then work only inside a
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

//! Locks, atomics and threads. Every one in the workspace is from here, so that a model checker can
//! replace them in one place, and so that the thread sanitizer (which does not understand the
//! standard library's locks) sees locks it understands.
//!
//! With the feature `shuttle` (for tests only) they are those of the `shuttle` crate: every use of
//! one is a point at which the test's scheduler may switch to another thread. They then work inside
//! of a `shuttle` run only.
//!
//! Plain statistics may use the atomics of the standard library: nothing is decided by them.

#[cfg(feature = "shuttle")]
mod model;
#[cfg(not(feature = "shuttle"))]
mod once;
#[cfg(not(feature = "shuttle"))]
mod real;

#[cfg(feature = "shuttle")]
pub use model::{
    Condvar, JoinHandle, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic,
    spawn,
};
#[cfg(not(feature = "shuttle"))]
pub use once::OnceLock;
#[cfg(not(feature = "shuttle"))]
pub use real::{
    Condvar, JoinHandle, MappedRwLockReadGuard, Mutex, MutexGuard, RwLock, RwLockReadGuard,
    RwLockWriteGuard, atomic, spawn,
};
#[cfg(feature = "shuttle")]
pub use shuttle;
// Whoever makes a value is not interrupted by the scheduler.
#[cfg(feature = "shuttle")]
pub use std::sync::OnceLock;

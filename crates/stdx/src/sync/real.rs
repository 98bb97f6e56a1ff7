//! Locks and threads of the operating system.

use std::io;
use std::thread::Builder;

pub use std::sync::atomic;
pub use std::thread::JoinHandle;

pub use parking_lot::{
    Condvar, MappedRwLockReadGuard, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

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

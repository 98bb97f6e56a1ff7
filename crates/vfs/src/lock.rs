//! The lock of a directory: at most one process can open a store.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::directory::PRIVATE_FILE;

/// An exclusive lock of a directory (`flock` on the file [`DirLock::FILE`] in it), released when
/// dropped. If the process ends in any other way, the kernel releases the lock.
#[derive(Debug)]
pub struct DirLock {
    file: File,
}

impl DirLock {
    /// The name of the locked file.
    pub const FILE: &str = "LOCK";

    /// Take the lock; does not wait for it.
    ///
    /// # Errors
    /// `WouldBlock` if another handle holds the lock, in this or another process; otherwise an
    /// error of the operating system.
    pub fn acquire(directory: &Path) -> io::Result<DirLock> {
        let path = directory.join(DirLock::FILE);
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .mode(PRIVATE_FILE)
            .open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(DirLock { file })
    }
}

impl Drop for DirLock {
    /// The lock belongs to the open file, not to the descriptor, so closing the descriptor may not
    /// be enough: if another thread is just starting a process, that process has a copy of the
    /// descriptor until it executes its program, and holds the lock until then.
    fn drop(&mut self) {
        // If this fails, closing the descriptor releases the lock, possibly a moment later.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_taker_is_refused_until_the_first_lets_go() {
        let dir = tempfile::tempdir().unwrap();
        let first = DirLock::acquire(dir.path()).unwrap();
        let error = DirLock::acquire(dir.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(first);
        DirLock::acquire(dir.path()).unwrap();
    }

    #[test]
    fn a_copy_of_the_descriptor_in_a_process_that_is_being_started_does_not_keep_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = DirLock::acquire(dir.path()).unwrap();
        let copy = first.file.try_clone().unwrap();
        drop(first);
        DirLock::acquire(dir.path()).unwrap();
        drop(copy);
    }
}

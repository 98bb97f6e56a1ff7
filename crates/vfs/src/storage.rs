//! The storage interface of betree: files and directories as two traits, so that tests can replace
//! the real disk by a simulated one.
//!
//! Every call has a [`Site`]: the name of the place in the code that makes the call. Tests of
//! faults rely on every name being used only once; statistics count bytes by site.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A place in the code that does input or output: `log.write`, `run.read`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(pub &'static str);

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Create the file if it is missing; otherwise a missing file is the error `NotFound`.
    pub create: bool,
    /// Bypass the page cache of the operating system if the file system supports it. Reads and
    /// writes may still have any offset and length, but those of whole aligned 4 KiB blocks are the
    /// fastest.
    pub direct: bool,
}

/// An open file. Any number of threads may share it. Calls interrupted by a signal are repeated.
pub trait File: Send + Sync {
    /// Fill `buffer` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before the buffer is full; an error of the operating
    /// system.
    fn read_at(&self, site: Site, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// As [`File::read_at`], for random reads: a hint to the operating system not to read ahead.
    ///
    /// # Errors
    /// As [`File::read_at`].
    fn read_scattered_at(&self, site: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_at(site, buffer, offset)
    }

    /// Write `bytes` at `offset`; the file grows as needed. The write is durable after
    /// [`File::sync`].
    ///
    /// # Errors
    /// An error of the operating system; then it is unknown which bytes were written.
    fn write_at(&self, site: Site, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Make all writes and the length durable (`fdatasync`).
    ///
    /// # Errors
    /// An error of the operating system. Then it is unknown which writes are durable, and repeating
    /// the call does not help.
    fn sync(&self, site: Site) -> io::Result<()>;

    /// Truncate the file, or extend it with zeros.
    ///
    /// # Errors
    /// An error of the operating system.
    fn set_len(&self, site: Site, length: u64) -> io::Result<()>;

    /// Reserve space for `length` bytes from `offset` on, so that writes to them cannot fail for
    /// lack of space. The file is extended with zeros if necessary; existing content is kept.
    ///
    /// # Errors
    /// `StorageFull`; an error of the operating system.
    fn allocate(&self, site: Site, offset: u64, length: u64) -> io::Result<()>;

    /// The length of the file in bytes.
    ///
    /// # Errors
    /// An error of the operating system.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file is empty.
    ///
    /// # Errors
    /// An error of the operating system.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Whether all reads of this file so far came from the device and none from the page cache of
    /// the operating system. False if that is not known.
    fn reads_device(&self) -> bool {
        false
    }

    /// A hint to start writing these bytes to the device. It makes nothing durable.
    fn start_writeback(&self, _offset: u64, _length: u64) {}

    /// A hint that these bytes will not be read soon: the operating system need not cache them.
    fn forget(&self, _offset: u64, _length: u64) {}
}

/// A locked directory; dropping it unlocks it.
pub trait Held: Send + Sync {}

/// A file system and a clock.
pub trait Vfs: Send + Sync {
    /// Open a file for reading and writing.
    ///
    /// # Errors
    /// `NotFound`; an error of the operating system.
    fn open(&self, site: Site, path: &Path, how: Open) -> io::Result<Box<dyn File>>;

    /// Rename a file; an existing file with the new name is replaced. Durable after
    /// [`Vfs::sync_dir`].
    ///
    /// # Errors
    /// An error of the operating system.
    fn rename(&self, site: Site, from: &Path, to: &Path) -> io::Result<()>;

    /// Remove a file. Durable after [`Vfs::sync_dir`].
    ///
    /// # Errors
    /// An error of the operating system.
    fn remove(&self, site: Site, path: &Path) -> io::Result<()>;

    /// Create a directory and its parents, if missing.
    ///
    /// # Errors
    /// An error of the operating system.
    fn create_dir(&self, site: Site, directory: &Path) -> io::Result<()>;

    /// The names of the files in a directory, sorted; empty if the directory is missing.
    ///
    /// # Errors
    /// An error of the operating system.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// Make creations, renamings and removals in a directory durable.
    ///
    /// # Errors
    /// An error of the operating system.
    fn sync_dir(&self, site: Site, directory: &Path) -> io::Result<()>;

    /// Lock a directory exclusively for this handle.
    ///
    /// # Errors
    /// `WouldBlock` if another handle holds the lock, in this or another process.
    fn hold(&self, directory: &Path) -> io::Result<Box<dyn Held>>;

    /// The time since a fixed moment; never decreases.
    fn now(&self) -> Duration;

    /// Sleep for `duration`.
    fn sleep(&self, duration: Duration);

    /// A number that no other call returns, on any machine; used as the identity of a store. The
    /// real file system derives it from the clock, the process and random addresses; a simulated
    /// one derives it from its seed.
    fn unique(&self) -> u128 {
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let here = std::ptr::from_ref(self).cast::<()>() as usize;
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(&stdx::time::wall().as_nanos().to_le_bytes());
        bytes.extend_from_slice(&self.now().as_nanos().to_le_bytes());
        bytes.extend_from_slice(&here.to_le_bytes());
        bytes.extend_from_slice(&std::process::id().to_le_bytes());
        bytes.extend_from_slice(&CALLS.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        let high = stdx::hash::hash64_seeded(&bytes, 1);
        let low = stdx::hash::hash64_seeded(&bytes, 2);
        u128::from(high) << 64 | u128::from(low)
    }
}

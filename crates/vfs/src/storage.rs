//! Storage as betree sees it: files and directories behind two traits, so that a simulated disk can
//! replace the real one.
//!
//! Every call carries a [`Site`]: the name of the place in the code that makes it. Fault tests rely
//! on each name being used once; statistics count bytes by site.

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
    /// Create it when it is missing (else: `NotFound`).
    pub create: bool,
    /// Bypass the page cache of the operating system where the file system can. Reads and writes
    /// may then have any offset and length, but whole aligned 4 KiB blocks are the fast ones.
    pub direct: bool,
}

/// An open file. Shared by any number of threads. Interrupted calls are repeated inside.
pub trait File: Send + Sync {
    /// Fill `buffer` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends before; the operating system's.
    fn read_at(&self, site: Site, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// As [`File::read_at`], for random reads: the operating system should read these bytes only,
    /// without read-ahead.
    ///
    /// # Errors
    /// As [`File::read_at`].
    fn read_scattered_at(&self, site: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_at(site, buffer, offset)
    }

    /// Write all of `bytes` at `offset`; the file grows as needed. Durable after [`File::sync`].
    ///
    /// # Errors
    /// The operating system's; what has been written of `bytes` is then unknown.
    fn write_at(&self, site: Site, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Make all writes and the length durable (`fdatasync`).
    ///
    /// # Errors
    /// The operating system's. It is then unknown what is durable, and repeating the call does not
    /// change that.
    fn sync(&self, site: Site) -> io::Result<()>;

    /// Truncate or extend (with zeros).
    ///
    /// # Errors
    /// The operating system's.
    fn set_len(&self, site: Site, length: u64) -> io::Result<()>;

    /// Reserve the bytes from `offset` on so that writes there cannot run out of space; the file
    /// grows (with zeros) to hold them. Existing content is kept.
    ///
    /// # Errors
    /// `StorageFull`; the operating system's.
    fn allocate(&self, site: Site, offset: u64, length: u64) -> io::Result<()>;

    /// The length in bytes.
    ///
    /// # Errors
    /// The operating system's.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file is empty.
    ///
    /// # Errors
    /// The operating system's.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// A hint: begin to write these bytes to the device. Promises nothing.
    fn start_writeback(&self, _offset: u64, _length: u64) {}

    /// A hint: these bytes will not be read soon; the operating system need not cache them.
    fn forget(&self, _offset: u64, _length: u64) {}
}

/// A locked directory; dropping it unlocks it.
pub trait Held: Send + Sync {}

/// A file system and a clock.
pub trait Vfs: Send + Sync {
    /// Open a file for reading and writing.
    ///
    /// # Errors
    /// `NotFound`; the operating system's.
    fn open(&self, site: Site, path: &Path, how: Open) -> io::Result<Box<dyn File>>;

    /// Rename a file, replacing a file of the new name. Durable after [`Vfs::sync_dir`].
    ///
    /// # Errors
    /// The operating system's.
    fn rename(&self, site: Site, from: &Path, to: &Path) -> io::Result<()>;

    /// Remove a file. Durable after [`Vfs::sync_dir`].
    ///
    /// # Errors
    /// The operating system's.
    fn remove(&self, site: Site, path: &Path) -> io::Result<()>;

    /// Create a directory and its parents; fine when it exists.
    ///
    /// # Errors
    /// The operating system's.
    fn create_dir(&self, site: Site, directory: &Path) -> io::Result<()>;

    /// The names of the files in a directory, sorted; a directory that is missing has none.
    ///
    /// # Errors
    /// The operating system's.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// Make creations, renamings and removals in a directory durable.
    ///
    /// # Errors
    /// The operating system's.
    fn sync_dir(&self, site: Site, directory: &Path) -> io::Result<()>;

    /// Lock a directory exclusively for this handle.
    ///
    /// # Errors
    /// `WouldBlock` when another handle, of this process or another, holds it.
    fn hold(&self, directory: &Path) -> io::Result<Box<dyn Held>>;

    /// The time since some fixed moment; never goes back.
    fn now(&self) -> Duration;

    /// Sleep for `duration`.
    fn sleep(&self, duration: Duration);

    /// A number that differs from that of every other call, on any machine: the identity of a
    /// store. The real file system derives it from the clock, the process and random addresses, a
    /// simulated one from its seed.
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

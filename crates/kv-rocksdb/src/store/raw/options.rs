//! Options of single reads and writes.

use std::marker::PhantomData;
use std::ptr::NonNull;

use librocksdb_sys as ffi;

use super::{Snapshot, chars};

/// Whether a write uses the log, and whether it is synced.
pub(crate) struct WriteOptions(NonNull<ffi::rocksdb_writeoptions_t>);

// SAFETY: the options are plain data that nothing changes after `new`.
unsafe impl Send for WriteOptions {}
// SAFETY: as above.
unsafe impl Sync for WriteOptions {}

impl WriteOptions {
    /// `log`: the write goes to the log; `sync`: it is synced before it returns.
    pub(crate) fn new(log: bool, sync: bool) -> WriteOptions {
        // SAFETY: the constructor returns a fresh object; the setters only store into it.
        let raw = unsafe { ffi::rocksdb_writeoptions_create() };
        let options = NonNull::new(raw).expect("the constructor does not fail");
        // SAFETY: as above.
        unsafe {
            ffi::rocksdb_writeoptions_set_sync(raw, u8::from(sync && log));
            ffi::rocksdb_writeoptions_disable_WAL(raw, i32::from(!log));
        }
        WriteOptions(options)
    }

    pub(super) fn raw(&self) -> *mut ffi::rocksdb_writeoptions_t {
        self.0.as_ptr()
    }
}

impl Drop for WriteOptions {
    fn drop(&mut self) {
        // SAFETY: R1.
        unsafe { ffi::rocksdb_writeoptions_destroy(self.raw()) }
    }
}

/// Options of a read: the snapshot, whose lifetime is `'s`, and, for iterators, the bounds.
pub(crate) struct ReadOptions<'s> {
    raw: NonNull<ffi::rocksdb_readoptions_t>,
    lower: Option<Box<[u8]>>,
    upper: Option<Box<[u8]>>,
    snapshot: PhantomData<&'s ()>,
}

impl<'s> ReadOptions<'s> {
    /// Read what `snapshot` sees.
    pub(crate) fn at(snapshot: &'s Snapshot<'_>) -> ReadOptions<'s> {
        // SAFETY: `'s` keeps the snapshot while these options are used.
        unsafe { ReadOptions::at_raw(snapshot.raw()) }
    }

    /// Read the newest state.
    pub(crate) fn newest() -> ReadOptions<'s> {
        // SAFETY: the constructor returns a fresh object.
        let raw = unsafe { ffi::rocksdb_readoptions_create() };
        ReadOptions {
            raw: NonNull::new(raw).expect("the constructor does not fail"),
            lower: None,
            upper: None,
            snapshot: PhantomData,
        }
    }

    /// Read what `snapshot` sees.
    ///
    /// # Safety
    /// The snapshot stays for `'s`.
    pub(super) unsafe fn at_raw(snapshot: *const ffi::rocksdb_snapshot_t) -> ReadOptions<'s> {
        let options = ReadOptions::newest();
        // SAFETY: the call copies the pointer; the caller keeps what it points to.
        unsafe { ffi::rocksdb_readoptions_set_snapshot(options.raw(), snapshot) };
        options
    }

    /// Confine iterators to the keys from `lower` (inclusive) to `upper` (exclusive).
    pub(crate) fn bound(&mut self, lower: Option<Box<[u8]>>, upper: Option<Box<[u8]>>) {
        self.lower = lower;
        self.upper = upper;
        // SAFETY: RocksDB keeps pointers into the boxes, which live as long as these options and do
        // not move.
        unsafe {
            if let Some(key) = &self.lower {
                ffi::rocksdb_readoptions_set_iterate_lower_bound(self.raw(), chars(key), key.len());
            }
            if let Some(key) = &self.upper {
                ffi::rocksdb_readoptions_set_iterate_upper_bound(self.raw(), chars(key), key.len());
            }
        }
    }

    /// The inclusive lower bound.
    pub(crate) fn lower(&self) -> Option<&[u8]> {
        self.lower.as_deref()
    }

    /// The exclusive upper bound.
    pub(crate) fn upper(&self) -> Option<&[u8]> {
        self.upper.as_deref()
    }

    pub(super) fn raw(&self) -> *mut ffi::rocksdb_readoptions_t {
        self.raw.as_ptr()
    }
}

impl Drop for ReadOptions<'_> {
    fn drop(&mut self) {
        // SAFETY: R1.
        unsafe { ffi::rocksdb_readoptions_destroy(self.raw()) }
    }
}

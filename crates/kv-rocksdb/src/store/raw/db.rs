//! The open database, its column families (our trees), snapshots and pinned values.

use std::ffi::{CStr, CString, c_char, c_int};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use librocksdb_sys as ffi;
use rocksdb::{AsRawPtr, Options};

use super::{Iter, ReadOptions, Status, WriteBatch, WriteOptions, chars, check, take_string};

unsafe extern "C" {
    fn romanesco_compact(
        db: *mut ffi::rocksdb_t,
        family: *mut ffi::rocksdb_column_family_handle_t,
        from: *const c_char,
        from_len: usize,
        to: *const c_char,
        to_len: usize,
        cancelled: *mut std::ffi::c_void,
        error: *mut *mut c_char,
    );
}

/// An open database.
pub(crate) struct Db {
    transactional: NonNull<ffi::rocksdb_optimistictransactiondb_t>,
    base: NonNull<ffi::rocksdb_t>,
    /// The options with which the database was opened: it uses their logger until it is closed.
    _options: Options,
}

// SAFETY: RocksDB's database objects may be used from any thread, and from several at once.
unsafe impl Send for Db {}
// SAFETY: as above.
unsafe impl Sync for Db {}

impl Db {
    /// Open the database at `path` with all its families, among which must be `default`.
    pub(crate) fn open(
        path: &Path,
        options: &Options,
        families: &[(CString, &Options)],
    ) -> Result<(Arc<Db>, Vec<Family>), Status> {
        let path = c_path(path)?;
        let count = c_int::try_from(families.len())
            .map_err(|_| Status("Invalid argument: too many trees".to_owned()))?;
        let names: Vec<*const c_char> = families.iter().map(|(name, _)| name.as_ptr()).collect();
        // SAFETY: the options outlive the call.
        let raw_options: Vec<*const ffi::rocksdb_options_t> = families
            .iter()
            .map(|(_, options)| unsafe { options.as_raw_ptr() }.cast_const())
            .collect();
        let mut handles = vec![ptr::null_mut(); families.len()];
        // SAFETY: the three arrays have `count` elements, and everything outlives the call.
        let transactional = check(|e| unsafe {
            let occ = ffi::rocksdb_optimistictransactiondb_options_create();
            ffi::rocksdb_optimistictransactiondb_options_set_occ_lock_buckets(occ, LOCK_BUCKETS);
            let raw =
                ffi::rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
                    options.as_raw_ptr(),
                    occ,
                    path.as_ptr(),
                    count,
                    names.as_ptr(),
                    raw_options.as_ptr(),
                    handles.as_mut_ptr(),
                    e,
                );
            ffi::rocksdb_optimistictransactiondb_options_destroy(occ);
            raw
        })?;
        // SAFETY: the database was opened.
        let base = unsafe { ffi::rocksdb_optimistictransactiondb_get_base_db(transactional) };
        let db = Arc::new(Db {
            transactional: NonNull::new(transactional).expect("R1: opened without an error"),
            base: NonNull::new(base).expect("R1: the base is allocated"),
            _options: options.clone(),
        });
        let families = handles
            .into_iter()
            .map(|raw| Family::new(raw, &db))
            .collect();
        Ok((db, families))
    }

    /// The names of the families of the database at `path`.
    pub(crate) fn list(path: &Path, options: &Options) -> Result<Vec<Vec<u8>>, Status> {
        let path = c_path(path)?;
        let mut count = 0_usize;
        // SAFETY: the list has `count` terminated strings and is freed by its own function.
        check(|e| unsafe {
            let options = options.as_raw_ptr();
            let list = ffi::rocksdb_list_column_families(options, path.as_ptr(), &raw mut count, e);
            if list.is_null() {
                return Vec::new();
            }
            let names = slice::from_raw_parts(list, count)
                .iter()
                .map(|name| CStr::from_ptr(*name).to_bytes().to_vec())
                .collect();
            ffi::rocksdb_list_column_families_destroy(list, count);
            names
        })
    }

    pub(crate) fn create(self: &Arc<Db>, name: &CStr, options: &Options) -> Result<Family, Status> {
        // SAFETY: everything outlives the call.
        let raw = check(|e| unsafe {
            let options = options.as_raw_ptr();
            ffi::rocksdb_create_column_family(self.base(), options, name.as_ptr(), e)
        })?;
        Ok(Family::new(raw, self))
    }

    /// Drop a family: writers can no longer use it; readers that hold it continue.
    pub(crate) fn drop_family(&self, family: &Family) -> Result<(), Status> {
        // SAFETY: R1.
        check(|e| unsafe { ffi::rocksdb_drop_column_family(self.base(), family.raw(), e) })
    }

    /// An iterator over `family`.
    pub(crate) fn iter<'a>(&'a self, options: ReadOptions<'a>, family: &Family) -> Iter<'a> {
        // SAFETY: R2: `'a` keeps the database, the iterator keeps the family.
        unsafe {
            let raw = ffi::rocksdb_create_iterator_cf(self.base(), options.raw(), family.raw());
            Iter::new(raw, options, family.clone())
        }
    }

    /// Write a batch directly into the database, outside of transactions.
    pub(crate) fn write(&self, options: &WriteOptions, batch: &WriteBatch) -> Result<(), Status> {
        // SAFETY: R1.
        check(|e| unsafe { ffi::rocksdb_write(self.base(), options.raw(), batch.raw(), e) })
    }

    /// Write the memtables of `families` into files and wait for it.
    pub(crate) fn flush(&self, families: &[&Family]) -> Result<(), Status> {
        let mut handles: Vec<_> = families.iter().map(|family| family.raw()).collect();
        let count = c_int::try_from(handles.len())
            .map_err(|_| Status("Invalid argument: too many trees".to_owned()))?;
        // SAFETY: the array has `count` elements.
        check(|e| unsafe {
            let options = ffi::rocksdb_flushoptions_create();
            ffi::rocksdb_flushoptions_set_wait(options, 1);
            ffi::rocksdb_flush_cfs(self.base(), options, handles.as_mut_ptr(), count, e);
            ffi::rocksdb_flushoptions_destroy(options);
        })
    }

    pub(crate) fn sync_log(&self) -> Result<(), Status> {
        // SAFETY: R1.
        check(|e| unsafe { ffi::rocksdb_flush_wal(self.base(), 1, e) })
    }

    /// Flush, and wait until no flush and no compaction is due, for at most `micros` (not 0).
    pub(crate) fn wait_for_compact(&self, micros: u64) -> Result<(), Status> {
        // SAFETY: R1.
        check(|e| unsafe {
            let options = ffi::rocksdb_wait_for_compact_options_create();
            ffi::rocksdb_wait_for_compact_options_set_flush(options, 1);
            ffi::rocksdb_wait_for_compact_options_set_timeout(options, micros);
            ffi::rocksdb_wait_for_compact(self.base(), options, e);
            ffi::rocksdb_wait_for_compact_options_destroy(options);
        })
    }

    /// Compact the keys from `from` to `to`, both inclusive, until done or `cancelled`.
    pub(crate) fn compact(
        &self,
        family: &Family,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
        cancelled: &AtomicBool,
    ) -> Result<(), Status> {
        let bytes = |key: Option<&[u8]>| key.map_or((ptr::null(), 0), |k| (chars(k), k.len()));
        let ((from, from_len), (to, to_len)) = (bytes(from), bytes(to));
        // SAFETY: R1. An `AtomicBool` is a byte that is only accessed atomically, and the shim
        // accesses it so; it outlives the call.
        check(|e| unsafe {
            let flag = cancelled.as_ptr().cast();
            let (db, family) = (self.base(), family.raw());
            romanesco_compact(db, family, from, from_len, to, to_len, flag, e);
        })
    }

    /// Make a copy that can be opened, in the directory `path`, which must not exist.
    pub(crate) fn copy_to(&self, path: &Path) -> Result<(), Status> {
        let path = c_path(path)?;
        // SAFETY: R1; the checkpoint object is freed on every path.
        unsafe {
            let object = check(|e| ffi::rocksdb_checkpoint_object_create(self.base(), e))?;
            let result = check(|e| ffi::rocksdb_checkpoint_create(object, path.as_ptr(), 0, e));
            ffi::rocksdb_checkpoint_object_destroy(object);
            result
        }
    }

    /// Check the checksums of all live files.
    pub(crate) fn verify(&self) -> Result<(), Status> {
        // SAFETY: R1.
        check(|e| unsafe { ffi::rocksdb_verify_checksum(self.base(), e) })
    }

    /// The sequence number of the newest write.
    pub(crate) fn sequence(&self) -> u64 {
        // SAFETY: R1.
        unsafe { ffi::rocksdb_get_latest_sequence_number(self.base()) }
    }

    /// A property of the whole database that is a number.
    pub(crate) fn number(&self, name: &CStr) -> Option<u64> {
        let mut value = 0_u64;
        // SAFETY: R1.
        let found =
            unsafe { ffi::rocksdb_property_int(self.base(), name.as_ptr(), &raw mut value) };
        (found == 0).then_some(value)
    }

    /// A property of the whole database that is a text.
    pub(crate) fn text(&self, name: &CStr) -> Option<String> {
        // SAFETY: R1.
        let text = unsafe { ffi::rocksdb_property_value(self.base(), name.as_ptr()) };
        (!text.is_null()).then(|| take_string(text))
    }

    /// The live files of all families.
    pub(crate) fn live_files(&self) -> Vec<LiveFile> {
        // SAFETY: the indexes are below the count; strings are terminated and live as long as the
        // list.
        unsafe {
            let list = ffi::rocksdb_livefiles(self.base());
            let files = (0..ffi::rocksdb_livefiles_count(list))
                .map(|index| LiveFile {
                    family: string(ffi::rocksdb_livefiles_column_family_name(list, index)),
                    name: string(ffi::rocksdb_livefiles_name(list, index)),
                    level: ffi::rocksdb_livefiles_level(list, index),
                    size: ffi::rocksdb_livefiles_size(list, index),
                    entries: ffi::rocksdb_livefiles_entries(list, index),
                    deletions: ffi::rocksdb_livefiles_deletions(list, index),
                })
                .collect();
            ffi::rocksdb_livefiles_destroy(list);
            files
        }
    }

    pub(super) fn transactional(&self) -> *mut ffi::rocksdb_optimistictransactiondb_t {
        self.transactional.as_ptr()
    }

    fn base(&self) -> *mut ffi::rocksdb_t {
        self.base.as_ptr()
    }
}

/// Number of mutexes that committing transactions take by the hash of their keys: 40 bytes each, so
/// 1.3 MiB. RocksDB's default is a million: 40 MiB in addition to the cache. With 64 writers of ten
/// keys each, a fiftieth of these mutexes is in use.
const LOCK_BUCKETS: u32 = 1 << 15;

impl Drop for Db {
    fn drop(&mut self) {
        // SAFETY: R1, R2: no family, snapshot or transaction is left, because they all hold the
        // `Db`.
        unsafe {
            ffi::rocksdb_optimistictransactiondb_close_base_db(self.base());
            ffi::rocksdb_optimistictransactiondb_close(self.transactional());
        }
    }
}

/// A column family. While it is held its data stays readable, even when it has been dropped.
#[derive(Clone)]
pub(crate) struct Family(Arc<Handle>);

struct Handle {
    raw: NonNull<ffi::rocksdb_column_family_handle_t>,
    db: Arc<Db>,
}

// SAFETY: RocksDB's handles may be used from any thread, and from several at once.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Family {
    /// A property that is a number.
    pub(crate) fn number(&self, name: &CStr) -> Option<u64> {
        let mut value = 0_u64;
        // SAFETY: R1.
        let found = unsafe {
            let db = self.0.db.base();
            ffi::rocksdb_property_int_cf(db, self.raw(), name.as_ptr(), &raw mut value)
        };
        (found == 0).then_some(value)
    }

    /// A property that is a text.
    pub(crate) fn text(&self, name: &CStr) -> Option<String> {
        // SAFETY: R1.
        let text =
            unsafe { ffi::rocksdb_property_value_cf(self.0.db.base(), self.raw(), name.as_ptr()) };
        (!text.is_null()).then(|| take_string(text))
    }

    /// The database that the family belongs to.
    pub(crate) fn db(&self) -> &Db {
        &self.0.db
    }

    fn new(raw: *mut ffi::rocksdb_column_family_handle_t, db: &Arc<Db>) -> Family {
        Family(Arc::new(Handle {
            raw: NonNull::new(raw).expect("a family is made without an error"),
            db: Arc::clone(db),
        }))
    }

    pub(super) fn raw(&self) -> *mut ffi::rocksdb_column_family_handle_t {
        self.0.raw.as_ptr()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: R1; the database is still open.
        unsafe { ffi::rocksdb_column_family_handle_destroy(self.raw.as_ptr()) }
    }
}

/// A snapshot of the database.
pub(crate) struct Snapshot<'d> {
    raw: NonNull<ffi::rocksdb_snapshot_t>,
    /// Options that read the snapshot; used only while it exists.
    read: ReadOptions<'d>,
    db: &'d Db,
}

impl<'d> Snapshot<'d> {
    /// A snapshot of the current state.
    pub(crate) fn new(db: &'d Db) -> Snapshot<'d> {
        // SAFETY: R1.
        let raw = unsafe { ffi::rocksdb_create_snapshot(db.base()) }.cast_mut();
        let raw = NonNull::new(raw).expect("taking a snapshot does not fail");
        // SAFETY: the options are used only by this snapshot's methods.
        let read = unsafe { ReadOptions::at_raw(raw.as_ptr()) };
        Snapshot { raw, read, db }
    }

    /// Read `key`.
    pub(crate) fn get(&self, family: &Family, key: &[u8]) -> Result<Option<Pinned<'_>>, Status> {
        // SAFETY: R1, R2.
        let pinned = check(|e| unsafe {
            ffi::rocksdb_get_pinned_cf(
                self.db.base(),
                self.read.raw(),
                family.raw(),
                chars(key),
                key.len(),
                e,
            )
        })?;
        // SAFETY: RocksDB made it for us.
        Ok(unsafe { take_pinned(pinned) })
    }

    /// Read many keys of one family together; the results are in the order of the keys.
    pub(crate) fn get_many(
        &self,
        family: &Family,
        keys: &[&[u8]],
    ) -> Vec<Result<Option<Pinned<'_>>, Status>> {
        let pointers: Vec<*const c_char> = keys.iter().map(|key| chars(key)).collect();
        let lengths: Vec<usize> = keys.iter().map(|key| key.len()).collect();
        let mut values = vec![ptr::null_mut(); keys.len()];
        let mut errors = vec![ptr::null_mut(); keys.len()];
        // SAFETY: all arrays have as many elements as there are keys.
        unsafe {
            ffi::rocksdb_batched_multi_get_cf(
                self.db.base(),
                self.read.raw(),
                family.raw(),
                keys.len(),
                pointers.as_ptr(),
                lengths.as_ptr(),
                values.as_mut_ptr(),
                errors.as_mut_ptr(),
                false,
            );
        }
        values
            .into_iter()
            .zip(errors)
            .map(|(value, error)| {
                if !error.is_null() {
                    return Err(Status(take_string(error)));
                }
                // SAFETY: RocksDB made it for us.
                Ok(unsafe { take_pinned(value) })
            })
            .collect()
    }

    /// An iterator over `family` in this snapshot.
    pub(crate) fn iter<'a>(&'a self, options: ReadOptions<'a>, family: &Family) -> Iter<'a> {
        self.db.iter(options, family)
    }

    pub(super) fn raw(&self) -> *const ffi::rocksdb_snapshot_t {
        self.raw.as_ptr()
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        // SAFETY: R1.
        unsafe { ffi::rocksdb_release_snapshot(self.db.base(), self.raw()) }
    }
}

/// A value that RocksDB keeps in its memory.
pub(crate) struct Pinned<'d> {
    raw: NonNull<ffi::rocksdb_pinnableslice_t>,
    db: PhantomData<&'d ()>,
}

impl Pinned<'_> {
    /// The value.
    pub(crate) fn bytes(&self) -> &[u8] {
        let mut length = 0_usize;
        // SAFETY: the slice stays as long as the object.
        unsafe {
            let data = ffi::rocksdb_pinnableslice_value(self.raw.as_ptr(), &raw mut length);
            if data.is_null() || length == 0 {
                return b"";
            }
            slice::from_raw_parts(data.cast(), length)
        }
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        // SAFETY: R1.
        unsafe { ffi::rocksdb_pinnableslice_destroy(self.raw.as_ptr()) }
    }
}

/// Take ownership of the result of a read; null means that the key does not exist.
///
/// # Safety
/// `raw` came from RocksDB just now, or is null; `'d` does not outlive the database.
pub(super) unsafe fn take_pinned<'d>(raw: *mut ffi::rocksdb_pinnableslice_t) -> Option<Pinned<'d>> {
    NonNull::new(raw).map(|raw| Pinned {
        raw,
        db: PhantomData,
    })
}

/// A file of the database.
#[derive(Clone, Debug)]
pub(crate) struct LiveFile {
    pub(crate) family: String,
    /// The name, which begins with a slash.
    pub(crate) name: String,
    pub(crate) level: i32,
    /// The length in bytes.
    pub(crate) size: usize,
    /// Entries, including deletions.
    pub(crate) entries: u64,
    pub(crate) deletions: u64,
}

/// Copy a terminated string.
///
/// # Safety
/// `text` is terminated, or null.
unsafe fn string(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by the caller.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

fn c_path(path: &Path) -> Result<CString, Status> {
    CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|_| Status("Invalid argument: a path must not contain a zero byte".to_owned()))
}

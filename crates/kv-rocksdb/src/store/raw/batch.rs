//! Write batches.

use std::ptr::NonNull;

use librocksdb_sys as ffi;

use super::{Family, chars};

/// Changes that are written together.
pub(crate) struct WriteBatch(NonNull<ffi::rocksdb_writebatch_t>);

impl WriteBatch {
    /// An empty batch with room for `bytes`.
    pub(crate) fn with_capacity(bytes: usize) -> WriteBatch {
        // SAFETY: the constructor returns a fresh object; 0 is "no limit", "no checksums", "no
        // timestamps".
        let raw = unsafe { ffi::rocksdb_writebatch_create_with_params(bytes, 0, 0, 0) };
        WriteBatch(NonNull::new(raw).expect("the constructor does not fail"))
    }

    /// Set `key` to `value`.
    pub(crate) fn put(&mut self, family: &Family, key: &[u8], value: &[u8]) {
        // SAFETY: R1; the bytes are copied.
        unsafe {
            ffi::rocksdb_writebatch_put_cf(
                self.raw(),
                family.raw(),
                chars(key),
                key.len(),
                chars(value),
                value.len(),
            );
        }
    }

    /// Remove `key`.
    pub(crate) fn delete(&mut self, family: &Family, key: &[u8]) {
        // SAFETY: R1; the bytes are copied.
        unsafe {
            ffi::rocksdb_writebatch_delete_cf(self.raw(), family.raw(), chars(key), key.len());
        }
    }

    /// Remove the keys from `from` (inclusive) to `to` (exclusive).
    pub(crate) fn delete_range(&mut self, family: &Family, from: &[u8], to: &[u8]) {
        // SAFETY: R1; the bytes are copied.
        unsafe {
            ffi::rocksdb_writebatch_delete_range_cf(
                self.raw(),
                family.raw(),
                chars(from),
                from.len(),
                chars(to),
                to.len(),
            );
        }
    }

    pub(super) fn raw(&self) -> *mut ffi::rocksdb_writebatch_t {
        self.0.as_ptr()
    }
}

impl Drop for WriteBatch {
    fn drop(&mut self) {
        // SAFETY: R1.
        unsafe { ffi::rocksdb_writebatch_destroy(self.raw()) }
    }
}

//! Iterators.

use std::ffi::c_char;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;

use librocksdb_sys as ffi;

use super::{Family, ReadOptions, Status, chars, check};

/// An iterator over one family, confined to the bounds of its read options.
pub(crate) struct Iter<'a> {
    raw: NonNull<ffi::rocksdb_iterator_t>,
    /// Declared after `raw`: RocksDB refers to the options until the iterator is destroyed.
    options: ReadOptions<'a>,
    /// Declared after `raw`: RocksDB reads the number of the family's handle at every seek.
    _family: Family,
    source: PhantomData<&'a ()>,
}

impl<'a> Iter<'a> {
    /// # Safety
    /// `raw` is a fresh iterator made with `options`, and what it reads from stays for `'a`.
    pub(super) unsafe fn new(
        raw: *mut ffi::rocksdb_iterator_t,
        options: ReadOptions<'a>,
        family: Family,
    ) -> Iter<'a> {
        Iter {
            raw: NonNull::new(raw)
                .expect("RocksDB makes an iterator, if need be one with an error"),
            options,
            _family: family,
            source: PhantomData,
        }
    }

    pub(crate) fn options(&self) -> &ReadOptions<'a> {
        &self.options
    }

    /// Whether the iterator is at an entry.
    #[inline]
    pub(crate) fn valid(&self) -> bool {
        // SAFETY: R1.
        unsafe { ffi::rocksdb_iter_valid(self.raw.as_ptr()) != 0 }
    }

    /// The error that made the iterator invalid; success if it is valid or at the end.
    pub(crate) fn status(&self) -> Result<(), Status> {
        // SAFETY: R1.
        check(|e| unsafe { ffi::rocksdb_iter_get_error(self.raw.as_ptr(), e) })
    }

    /// Move to the first entry.
    pub(crate) fn seek_to_first(&mut self) {
        // SAFETY: R1.
        unsafe { ffi::rocksdb_iter_seek_to_first(self.raw.as_ptr()) }
    }

    /// Move to the last entry.
    pub(crate) fn seek_to_last(&mut self) {
        // SAFETY: R1.
        unsafe { ffi::rocksdb_iter_seek_to_last(self.raw.as_ptr()) }
    }

    /// Move to the first entry at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) {
        // SAFETY: R1; RocksDB does not keep the key.
        unsafe { ffi::rocksdb_iter_seek(self.raw.as_ptr(), chars(key), key.len()) }
    }

    /// Move to the last entry at or before `key`.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) {
        // SAFETY: R1; RocksDB does not keep the key.
        unsafe { ffi::rocksdb_iter_seek_for_prev(self.raw.as_ptr(), chars(key), key.len()) }
    }

    /// Move to the next entry. The iterator must be valid.
    #[inline]
    pub(crate) fn next(&mut self) {
        // SAFETY: R1; the caller saw it valid.
        unsafe { ffi::rocksdb_iter_next(self.raw.as_ptr()) }
    }

    /// Move to the previous entry. The iterator must be valid.
    #[inline]
    pub(crate) fn prev(&mut self) {
        // SAFETY: R1; the caller saw it valid.
        unsafe { ffi::rocksdb_iter_prev(self.raw.as_ptr()) }
    }

    /// The key; empty when the iterator is not valid.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        if !self.valid() {
            return b"";
        }
        self.part(ffi::rocksdb_iter_key)
    }

    /// The value; empty when the iterator is not valid.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        if !self.valid() {
            return b"";
        }
        self.part(ffi::rocksdb_iter_value)
    }

    fn part(
        &self,
        get: unsafe extern "C" fn(*const ffi::rocksdb_iterator_t, *mut usize) -> *const c_char,
    ) -> &[u8] {
        let mut length = 0_usize;
        // SAFETY: the iterator is valid, so RocksDB returns bytes that stay until it is moved,
        // which takes `&mut self`.
        unsafe {
            let data = get(self.raw.as_ptr(), ptr::from_mut(&mut length));
            if data.is_null() || length == 0 {
                return b"";
            }
            slice::from_raw_parts(data.cast(), length)
        }
    }
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        // SAFETY: R1.
        unsafe { ffi::rocksdb_iter_destroy(self.raw.as_ptr()) }
    }
}

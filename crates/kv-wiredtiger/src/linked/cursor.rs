//! A WiredTiger cursor.
//!
//! WiredTiger's rule for memory: the result of `get_key` and `get_value` is valid until the next
//! operation on the same cursor or the end of its transaction. Here a key or value borrows the
//! cursor, every operation needs exclusive access to it, and transactions end only when no walk is
//! open, so the borrow checker enforces the rule. In the other direction, WiredTiger keeps the
//! pointers given to `set_key` and `set_value` until the operation; here one call sets them and
//! does the operation, and if the operation fails, the cursor is reset, which drops the pointers.

use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::slice;

use super::connection::owned;
use super::error::{Called, Fault, check, check_found};
use super::sys::{self, call};

/// A cursor on a table or on one of the library's own sources (`metadata:`, `backup:`,
/// `statistics:`). The source determines which accessor applies.
pub(super) struct Cursor(NonNull<sys::WT_CURSOR>);

// SAFETY: a cursor may move between threads together with its session (manual, "Multithreading");
// the code that opened it promised that (`Session::open_cursor`).
unsafe impl Send for Cursor {}

impl Cursor {
    /// Take over a cursor.
    ///
    /// # Safety
    /// `raw` is open, no other code uses it, and it is dropped before its session.
    pub(super) unsafe fn new(raw: NonNull<sys::WT_CURSOR>) -> Cursor {
        Cursor(raw)
    }

    fn ptr(&self) -> *mut sys::WT_CURSOR {
        self.0.as_ptr()
    }

    /// Run `operate` with the key set; then reset the key, unless the cursor is at an entry.
    #[inline]
    fn with_key(
        &mut self,
        key: &[u8],
        operate: impl FnOnce(*mut sys::WT_CURSOR) -> c_int,
    ) -> c_int {
        let item = item(key);
        let cursor = self.ptr();
        // SAFETY: the table's key format is `u`, which takes one item; the bytes of the key live
        // until this function returns, and after that the cursor refers to its own memory or has
        // been reset.
        let set = unsafe { (*cursor).set_key };
        let set = set.expect("the library fills every method of a handle it gives out");
        // SAFETY: as above.
        unsafe { set(cursor, &raw const item) };
        let code = operate(cursor);
        if code != 0 {
            // The error of the operation is the one to return.
            let _ = self.reset();
        }
        code
    }

    /// Move to `key`. If it is absent, the cursor is reset and the result is false.
    #[inline]
    pub(super) fn search(&mut self, key: &[u8]) -> Called<bool> {
        // SAFETY: the cursor is open and its key is set.
        check_found(self.with_key(key, |cursor| unsafe { call!(cursor, search) }))
    }

    /// Move to `key` or, if it is absent, to a neighbour; returns the position of the found key
    /// relative to `key`. `None` if the tree is empty.
    pub(super) fn search_near(&mut self, key: &[u8]) -> Called<Option<Ordering>> {
        let mut exact: c_int = 0;
        // SAFETY: the cursor is open, its key is set, and `exact` outlives the call.
        let code = self.with_key(key, |cursor| unsafe {
            call!(cursor, search_near, &raw mut exact)
        });
        Ok(check_found(code)?.then(|| exact.cmp(&0)))
    }

    /// Write an entry and reset.
    pub(super) fn insert(&mut self, key: &[u8], value: &[u8]) -> Called<()> {
        let item = item(value);
        let code = self.with_key(key, |cursor| {
            // SAFETY: the table's value format is `u`, which takes one item, and the bytes of the
            // value live until the insert is done.
            let set = unsafe { (*cursor).set_value };
            let set = set.expect("the library fills every method of a handle it gives out");
            // SAFETY: as above.
            unsafe {
                set(cursor, &raw const item);
                call!(cursor, insert)
            }
        });
        check(code)?;
        self.reset()
    }

    /// Remove an entry and reset. Returns false if the entry was absent (on cursors opened with
    /// `overwrite=false`; on others the result is always true).
    pub(super) fn remove(&mut self, key: &[u8]) -> Called<bool> {
        // SAFETY: the cursor is open and its key is set.
        let found = check_found(self.with_key(key, |cursor| unsafe { call!(cursor, remove) }))?;
        if found {
            self.reset()?;
        }
        Ok(found)
    }

    /// Move to the next entry, or after a reset to the first. Returns false at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Called<bool> {
        // SAFETY: the cursor is open.
        check_found(unsafe { call!(self.ptr(), next) })
    }

    /// Move to the previous entry, or after a reset to the last. Returns false at the beginning.
    #[inline]
    pub(super) fn prev(&mut self) -> Called<bool> {
        // SAFETY: the cursor is open.
        check_found(unsafe { call!(self.ptr(), prev) })
    }

    /// Reset the position, which releases the memory it pins.
    #[inline]
    pub(super) fn reset(&mut self) -> Called<()> {
        // SAFETY: the cursor is open.
        check(unsafe { call!(self.ptr(), reset) })
    }

    /// The key of the current entry.
    #[inline]
    pub(super) fn key(&self) -> Called<&[u8]> {
        // SAFETY: the cursor is open; the method fills one item, as the format `u` requires.
        unsafe { self.read((*self.ptr()).get_key) }
    }

    /// The value of the current entry.
    #[inline]
    pub(super) fn value(&self) -> Called<&[u8]> {
        // SAFETY: as in `key`.
        unsafe { self.read((*self.ptr()).get_value) }
    }

    /// # Safety
    /// `get` is this cursor's `get_key` or `get_value`, for a format of one `u`.
    #[inline]
    unsafe fn read(
        &self,
        get: Option<unsafe extern "C" fn(*mut sys::WT_CURSOR, ...) -> c_int>,
    ) -> Called<&[u8]> {
        let get = get.expect("the library fills every method of a handle it gives out");
        let mut item = item(b"");
        // SAFETY: the caller's promise.
        check(unsafe { get(self.ptr(), &raw mut item) })?;
        if item.size == 0 {
            return Ok(b"");
        }
        // SAFETY: the library filled in a pointer to `size` bytes that stay until the next
        // operation on this cursor, which needs `&mut self`.
        Ok(unsafe { slice::from_raw_parts(item.data.cast::<u8>(), item.size) })
    }

    /// The key of a source whose key format is `S`.
    pub(super) fn text_key(&self) -> Called<String> {
        let mut text: *const c_char = ptr::null();
        // SAFETY: the format `S` fills one pointer to a text that ends in a zero byte.
        unsafe {
            let get = (*self.ptr())
                .get_key
                .ok_or_else(|| Fault::of(sys::EINVAL))?;
            check(get(self.ptr(), &raw mut text))?;
            Ok(owned(text))
        }
    }

    /// The value of a source whose value format is `S`.
    pub(super) fn text_value(&self) -> Called<String> {
        let mut text: *const c_char = ptr::null();
        // SAFETY: as in `text_key`.
        unsafe {
            let get = (*self.ptr())
                .get_value
                .ok_or_else(|| Fault::of(sys::EINVAL))?;
            check(get(self.ptr(), &raw mut text))?;
            Ok(owned(text))
        }
    }

    /// The statistic `id` of a `statistics:` source; 0 where the source does not have it.
    pub(super) fn statistic(&mut self, id: c_int) -> Called<u64> {
        let (mut name, mut print): (*const c_char, *const c_char) = (ptr::null(), ptr::null());
        let mut value: i64 = 0;
        // SAFETY: the key format of statistics is `i`, their value format `SSq`: one number in,
        // two texts and one 64-bit number out.
        unsafe {
            let cursor = self.ptr();
            let set = (*cursor).set_key.ok_or_else(|| Fault::of(sys::EINVAL))?;
            set(cursor, id);
            if !check_found(call!(cursor, search))? {
                return Ok(0);
            }
            let get = (*cursor).get_value.ok_or_else(|| Fault::of(sys::EINVAL))?;
            check(get(cursor, &raw mut name, &raw mut print, &raw mut value))?;
        }
        Ok(u64::try_from(value).unwrap_or(0))
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        // SAFETY: the cursor is open (it is dropped before its session) and is never used again. An
        // error needs no handling: the cursor is closed in any case.
        let _ = unsafe { call!(self.ptr(), close) };
    }
}

fn item(bytes: &[u8]) -> sys::WT_ITEM {
    sys::WT_ITEM {
        data: bytes.as_ptr().cast::<c_void>(),
        size: bytes.len(),
        mem: ptr::null_mut(),
        memsize: 0,
        flags: 0,
    }
}

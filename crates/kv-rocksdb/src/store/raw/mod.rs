//! A thin, safe layer over RocksDB's C interface and our shim: owners with destructors, borrows
//! with lifetimes, and errors as [`Status`].
//!
//! The crate `rocksdb` provides the options and the caches. It is not used for the store itself,
//! because its transactions have no untracked writes and fix the write options at the beginning,
//! and because it cannot write a batch with range deletes to a database with transactions.
//!
//! Invariants:
//! - R1. A pointer in an owner is not null and is freed once, by the owner's `Drop`.
//! - R2. Whatever RocksDB refers to outlives the reference: families hold the [`Db`], iterators own
//!   their read options (and these their bounds) and their family, and borrow what they read from.

mod batch;
mod db;
mod iter;
mod options;
mod txn;

use std::ffi::{CStr, c_char};
use std::ptr;

use librocksdb_sys as ffi;

pub(crate) use batch::WriteBatch;
pub(crate) use db::{Db, Family, LiveFile, Pinned, Snapshot};
pub(crate) use iter::Iter;
pub(crate) use options::{ReadOptions, WriteOptions};
pub(crate) use txn::Txn;

/// RocksDB's error text, such as `Corruption: block checksum mismatch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) String);

/// The version of the RocksDB that is linked in, such as `11.8.1`.
pub(crate) fn version() -> String {
    // SAFETY: a constant, terminated string.
    let text = unsafe { CStr::from_ptr(romanesco_version()) };
    text.to_string_lossy().into_owned()
}

unsafe extern "C" {
    fn romanesco_version() -> *const c_char;
}

/// Call a function that reports through an error slot.
fn check<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T, Status> {
    let mut error: *mut c_char = ptr::null_mut();
    let value = call(&raw mut error);
    if error.is_null() {
        return Ok(value);
    }
    Err(Status(take_string(error)))
}

/// Copy a C string that RocksDB allocated, and free it.
fn take_string(text: *mut c_char) -> String {
    // SAFETY: RocksDB gave us a terminated string from malloc, which is ours to free, once.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        ffi::rocksdb_free(text.cast());
        copy
    }
}

/// The pointer to a byte string for C. Never null, even for an empty string.
fn chars(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

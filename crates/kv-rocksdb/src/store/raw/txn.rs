//! Optimistic transactions, with the additions of the shim.

use std::ffi::c_char;
use std::ptr::NonNull;

use librocksdb_sys as ffi;

use super::db::take_pinned;
use super::{Db, Family, Iter, Pinned, ReadOptions, Status, WriteOptions, chars, check};

unsafe extern "C" {
    fn romanesco_txn_set_write_options(
        txn: *mut ffi::rocksdb_transaction_t,
        options: *const ffi::rocksdb_writeoptions_t,
    );
    fn romanesco_txn_put_untracked(
        txn: *mut ffi::rocksdb_transaction_t,
        family: *mut ffi::rocksdb_column_family_handle_t,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        error: *mut *mut c_char,
    );
    fn romanesco_txn_delete_untracked(
        txn: *mut ffi::rocksdb_transaction_t,
        family: *mut ffi::rocksdb_column_family_handle_t,
        key: *const c_char,
        key_len: usize,
        error: *mut *mut c_char,
    );
    fn romanesco_txn_wrote_within(
        txn: *mut ffi::rocksdb_transaction_t,
        family: *mut ffi::rocksdb_column_family_handle_t,
        from: *const c_char,
        from_len: usize,
        to: *const c_char,
        to_len: usize,
    ) -> u8;
}

/// A transaction with its snapshot. Dropping it rolls back.
pub(crate) struct Txn<'d> {
    raw: NonNull<ffi::rocksdb_transaction_t>,
    /// The snapshot, which belongs to the transaction; the wrapper around it is ours.
    snapshot: NonNull<ffi::rocksdb_snapshot_t>,
    /// Options that read the snapshot; used only while the transaction exists.
    read: ReadOptions<'d>,
    db: &'d Db,
}

impl<'d> Txn<'d> {
    /// Begin a transaction with a snapshot of the current state.
    pub(crate) fn begin(db: &'d Db, options: &WriteOptions) -> Txn<'d> {
        // SAFETY: all objects are alive; RocksDB copies both options.
        unsafe {
            let set = ffi::rocksdb_optimistictransaction_options_create();
            ffi::rocksdb_optimistictransaction_options_set_set_snapshot(set, 1);
            let raw = ffi::rocksdb_optimistictransaction_begin(
                db.transactional(),
                options.raw(),
                set,
                std::ptr::null_mut(),
            );
            ffi::rocksdb_optimistictransaction_options_destroy(set);
            let raw = NonNull::new(raw).expect("beginning does not fail");
            let snapshot = ffi::rocksdb_transaction_get_snapshot(raw.as_ptr()).cast_mut();
            let snapshot = NonNull::new(snapshot).expect("the wrapper is allocated");
            let read = ReadOptions::at_raw(snapshot.as_ptr());
            Txn {
                raw,
                snapshot,
                read,
                db,
            }
        }
    }

    /// The sequence number of the snapshot.
    pub(crate) fn sequence(&self) -> u64 {
        // SAFETY: the transaction keeps its snapshot until it ends, which consumes it.
        unsafe { ffi::rocksdb_snapshot_get_sequence_number(self.snapshot.as_ptr()) }
    }

    /// Options to read what the transaction's snapshot sees.
    pub(crate) fn read_options(&self) -> ReadOptions<'_> {
        // SAFETY: the transaction keeps its snapshot, and the borrow keeps the transaction.
        unsafe { ReadOptions::at_raw(self.snapshot.as_ptr()) }
    }

    /// Read `key` in the transaction.
    pub(crate) fn get(&self, family: &Family, key: &[u8]) -> Result<Option<Pinned<'_>>, Status> {
        // SAFETY: R1, R2.
        let pinned = check(|e| unsafe {
            ffi::rocksdb_transaction_get_pinned_cf(
                self.raw(),
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

    /// Add `key` to the keys that the commit checks for conflicts, without writing it.
    pub(crate) fn track(&self, family: &Family, key: &[u8]) -> Result<(), Status> {
        // SAFETY: R1, R2.
        let pinned = check(|e| unsafe {
            ffi::rocksdb_transaction_get_pinned_for_update_cf(
                self.raw(),
                self.read.raw(),
                family.raw(),
                chars(key),
                key.len(),
                1,
                e,
            )
        })?;
        // SAFETY: RocksDB made it for us.
        drop(unsafe { take_pinned(pinned) });
        Ok(())
    }

    /// Set `key` to `value`; the commit checks `key` for conflicts.
    pub(crate) fn put(&self, family: &Family, key: &[u8], value: &[u8]) -> Result<(), Status> {
        // SAFETY: R1; the bytes are copied.
        check(|e| unsafe {
            ffi::rocksdb_transaction_put_cf(
                self.raw(),
                family.raw(),
                chars(key),
                key.len(),
                chars(value),
                value.len(),
                e,
            );
        })
    }

    /// Remove `key`; the commit checks it for conflicts.
    pub(crate) fn delete(&self, family: &Family, key: &[u8]) -> Result<(), Status> {
        // SAFETY: R1; the bytes are copied.
        check(|e| unsafe {
            ffi::rocksdb_transaction_delete_cf(self.raw(), family.raw(), chars(key), key.len(), e);
        })
    }

    /// Set `key` to `value` without a conflict check.
    pub(crate) fn put_blind(
        &self,
        family: &Family,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Status> {
        // SAFETY: R1; the bytes are copied.
        check(|e| unsafe {
            romanesco_txn_put_untracked(
                self.raw(),
                family.raw(),
                chars(key),
                key.len(),
                chars(value),
                value.len(),
                e,
            );
        })
    }

    /// Remove `key` without a conflict check.
    pub(crate) fn delete_blind(&self, family: &Family, key: &[u8]) -> Result<(), Status> {
        // SAFETY: R1; the bytes are copied.
        check(|e| unsafe {
            romanesco_txn_delete_untracked(self.raw(), family.raw(), chars(key), key.len(), e);
        })
    }

    /// Whether the transaction has written a key from `from` (inclusive) to `to` (exclusive).
    pub(crate) fn wrote_within(&self, family: &Family, from: &[u8], to: &[u8]) -> bool {
        // SAFETY: R1; the bytes are only read.
        unsafe {
            romanesco_txn_wrote_within(
                self.raw(),
                family.raw(),
                chars(from),
                from.len(),
                chars(to),
                to.len(),
            ) != 0
        }
    }

    /// An iterator over the transaction's view of `family`.
    pub(crate) fn iter<'t>(&'t self, options: ReadOptions<'t>, family: &Family) -> Iter<'t> {
        debug_assert!(std::ptr::eq(family.db(), self.db));
        // SAFETY: R2: `'t` keeps the transaction, the iterator keeps the family.
        unsafe {
            let raw = ffi::rocksdb_transaction_create_iterator_cf(
                self.raw(),
                options.raw(),
                family.raw(),
            );
            Iter::new(raw, options, family.clone())
        }
    }

    pub(crate) fn commit(self, options: &WriteOptions) -> Result<(), Status> {
        // SAFETY: R1; the options are copied.
        unsafe { romanesco_txn_set_write_options(self.raw(), options.raw()) };
        // SAFETY: R1.
        check(|e| unsafe { ffi::rocksdb_transaction_commit(self.raw(), e) })
    }

    fn raw(&self) -> *mut ffi::rocksdb_transaction_t {
        self.raw.as_ptr()
    }
}

impl Drop for Txn<'_> {
    fn drop(&mut self) {
        // SAFETY: R1; the snapshot's wrapper came from malloc, the snapshot goes with the
        // transaction.
        unsafe {
            ffi::rocksdb_free(self.snapshot.as_ptr().cast());
            ffi::rocksdb_transaction_destroy(self.raw());
        }
    }
}

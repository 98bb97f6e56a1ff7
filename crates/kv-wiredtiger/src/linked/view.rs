//! A snapshot: a session with an open transaction at snapshot isolation.
//!
//! WiredTiger takes the snapshot when the transaction begins (`__wt_txn_begin`), not at its first
//! read. Read snapshots, write transactions and batches are all views; they differ only in the
//! right to write.
//!
//! No cursor outlives the view whose session it belongs to: its owner is a local variable or a
//! `Walk`, which borrows the view.
//!
//! - V1. After WiredTiger required a rollback, every later call returns `Conflict`.

use std::cell::{Cell, RefCell};

use kv::{
    Cursor as KvCursor, Direction, Durability, Error, ErrorKind, KeyRange, Result, Snapshot, TreeId,
};

use super::catalog;
use super::cursor::Cursor;
use super::error::Fault;
use super::pool::{Lease, Mode, Purpose};
use super::shared::Shared;
use super::sys;
use super::walk::Walk;

/// Number of keys that a range delete removes per scan: enough to justify the seek, few enough to
/// copy.
const REMOVE_CHUNK: usize = 512;

/// An open snapshot.
pub(super) struct View<'e> {
    shared: &'e Shared,
    lease: RefCell<Lease<'e>>,
    /// Whether the transaction is open in the session.
    open: Cell<bool>,
    /// Whether WiredTiger has required a rollback (V1).
    doomed: Cell<bool>,
}

impl<'e> View<'e> {
    /// Take the snapshot.
    pub(super) fn begin(shared: &'e Shared, purpose: Purpose) -> Result<View<'e>> {
        let lease = shared.pool.take(purpose)?;
        lease
            .session()
            .begin()
            .map_err(|fault| fault.into_error("begin"))?;
        Ok(View {
            shared,
            lease: RefCell::new(lease),
            open: Cell::new(true),
            doomed: Cell::new(false),
        })
    }

    /// Convert the error of a call, and record whether it ends the transaction.
    pub(super) fn error(&self, fault: Fault, operation: &'static str) -> Error {
        if fault.is_rollback() {
            self.doomed.set(true);
        }
        fault.into_error(operation)
    }

    /// Refuse every call after WiredTiger required a rollback (V1).
    #[inline]
    pub(super) fn check(&self, operation: &'static str) -> Result<()> {
        if self.doomed.get() {
            return Err(Fault::of(sys::WT_ROLLBACK).into_error(operation));
        }
        Ok(())
    }

    pub(super) fn shared(&self) -> &'e Shared {
        self.shared
    }

    /// A cursor of this session without a position.
    #[inline]
    pub(super) fn lend(&self, tree: TreeId, mode: Mode) -> Result<Cursor> {
        if let Some(cursor) = self.lease.borrow_mut().cached(tree, mode) {
            return Ok(cursor);
        }
        let found = self.shared.tree(tree)?;
        // SAFETY: the owner of the cursor borrows this view, and a view stays on one thread (it is
        // not `Send`).
        let opened = unsafe { self.lease.borrow().open(&found, mode) };
        opened.map_err(|fault| {
            if fault.is_missing() {
                return catalog::stale(tree);
            }
            self.error(fault, "open cursor").with_tree(&found.name)
        })
    }

    /// Return a cursor that has been reset.
    #[inline]
    pub(super) fn give_back(&self, tree: TreeId, mode: Mode, cursor: Cursor) {
        self.lease.borrow_mut().keep(tree, mode, cursor);
    }

    /// Write an entry whether or not it exists.
    pub(super) fn put(&self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.store(tree, key, value, Mode::Overwrite, "put")
    }

    /// Write an entry that must not exist.
    pub(super) fn insert(&self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.store(tree, key, value, Mode::Strict, "insert")
    }

    fn store(
        &self,
        tree: TreeId,
        key: &[u8],
        value: &[u8],
        mode: Mode,
        operation: &'static str,
    ) -> Result<()> {
        self.check(operation)?;
        let mut cursor = self.lend(tree, mode)?;
        let result = cursor.insert(key, value);
        let reusable = result.as_ref().err().is_none_or(Fault::is_duplicate);
        if reusable {
            self.give_back(tree, mode, cursor);
        }
        result.map_err(|fault| self.error(fault, operation).with_key(key))
    }

    /// Remove an entry; returns whether it existed.
    pub(super) fn remove(&self, tree: TreeId, key: &[u8]) -> Result<bool> {
        self.check("delete")?;
        let mut cursor = self.lend(tree, Mode::Strict)?;
        let result = cursor.remove(key);
        if result.is_ok() {
            self.give_back(tree, Mode::Strict, cursor);
        }
        result.map_err(|fault| self.error(fault, "delete").with_key(key))
    }

    /// Remove an entry if it exists.
    pub(super) fn remove_blind(&self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.remove(tree, key).map(|_| ())
    }

    /// Remove the entries of `range` one by one; the crate's documentation explains why.
    pub(super) fn remove_range(&self, tree: TreeId, range: KeyRange<'_>) -> Result<()> {
        let mut last: Option<Vec<u8>> = None;
        loop {
            let rest = KeyRange {
                start: last
                    .as_deref()
                    .map_or(range.start, std::ops::Bound::Excluded),
                end: range.end,
            };
            let keys = self.first_keys(tree, rest)?;
            for key in &keys {
                self.remove(tree, key)?;
            }
            if keys.len() < REMOVE_CHUNK {
                return Ok(());
            }
            last = keys.into_iter().next_back();
        }
    }

    fn first_keys(&self, tree: TreeId, range: KeyRange<'_>) -> Result<Vec<Vec<u8>>> {
        let mut walk = self.walk(tree, range, Direction::Forward)?;
        let mut keys = Vec::new();
        while keys.len() < REMOVE_CHUNK && walk.advance()? {
            keys.push(walk.key().to_vec());
        }
        Ok(keys)
    }

    /// A cursor over `range`.
    pub(super) fn walk(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Walk<'_, 'e>> {
        self.check("cursor")?;
        Ok(Walk::new(
            self,
            tree,
            self.lend(tree, Mode::Overwrite)?,
            range,
            direction,
        ))
    }

    /// Commit the writes.
    pub(super) fn commit(self, durability: Durability) -> Result<()> {
        self.check("commit")?;
        // With or without an error, the library has ended the transaction.
        self.open.set(false);
        let result = self
            .shared
            .commit(self.lease.borrow().session(), durability);
        if result
            .as_ref()
            .is_err_and(|e| e.kind() != ErrorKind::Conflict)
        {
            self.lease.borrow_mut().discard();
        }
        result
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        if !self.open.get() {
            return;
        }
        let lease = self.lease.get_mut();
        if lease.session().rollback().is_err() {
            lease.discard();
        }
    }
}

impl Snapshot for View<'_> {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        self.check("get")?;
        let mut cursor = self.lend(tree, Mode::Overwrite)?;
        if key.is_empty() {
            // The library refuses to search for a key that it cannot store.
            self.give_back(tree, Mode::Overwrite, cursor);
            return Ok(false);
        }
        let result = cursor.search(key).and_then(|found| {
            if found {
                value.extend_from_slice(cursor.value()?);
                cursor.reset()?;
            }
            Ok(found)
        });
        if result.is_ok() {
            self.give_back(tree, Mode::Overwrite, cursor);
        }
        result.map_err(|fault| self.error(fault, "get").with_key(key))
    }

    fn get_many(
        &self,
        tree: TreeId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.check("get")?;
        let mut cursor = self.lend(tree, Mode::Overwrite)?;
        for (index, key) in keys.iter().enumerate() {
            let read = if !key.is_empty() && cursor.search(key).map_err(|f| self.error(f, "get"))? {
                Some(cursor.value().map_err(|f| self.error(f, "get"))?)
            } else {
                None
            };
            visit(index, read);
        }
        cursor.reset().map_err(|fault| self.error(fault, "get"))?;
        self.give_back(tree, Mode::Overwrite, cursor);
        Ok(())
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn KvCursor + '_>> {
        Ok(Box::new(self.walk(tree, range, direction)?))
    }
}

//! Write transactions.
//!
//! LMDB's own write transaction does all the work; it reads its own writes, and there is no other
//! writer, so there are no conflicts.
//!
//! I1. After an error that LMDB does not recover from (a full map, a failed read) the transaction
//! can only be rolled back: every later call repeats the kind of that error.

use std::sync::Arc;

use heed::{MdbError, PutFlags, RwTxn};
use kv::{
    Batch, Change, Cursor, Direction, Durability, Error, ErrorKind, KeyRange, Result, Snapshot,
    Transaction, TreeId,
};

use super::Lmdb;
use super::catalog::{Tree, Trees};
use super::cursor;
use super::snapshot::{View, is_key};
use super::turn::TurnGuard;
use crate::support::{KEY_MAX, NAME, VALUE_MAX};

/// A write transaction. The order of the fields matters: the LMDB transaction ends before the turn.
pub(super) struct Writer<'e> {
    txn: RwTxn<'e>,
    turn: TurnGuard<'e>,
    trees: Arc<Trees>,
    engine: &'e Lmdb,
    /// The kind of the error that ended the transaction (I1).
    failed: Option<ErrorKind>,
}

impl<'e> Writer<'e> {
    /// Wait for the turn and begin.
    pub(super) fn begin(engine: &'e Lmdb) -> Result<Writer<'e>> {
        let turn = engine.take_turn()?;
        let store = &engine.store;
        let txn = store.env.write_txn();
        let txn = txn.map_err(|e| store.error(e, "begin_write"))?;
        Ok(Writer {
            txn,
            turn,
            trees: engine.catalog.trees(),
            engine,
            failed: None,
        })
    }

    fn view(&self) -> View<'_> {
        View {
            txn: &self.txn,
            trees: &self.trees,
            store: &self.engine.store,
        }
    }

    fn check_alive(&self) -> Result<()> {
        match self.failed {
            None => Ok(()),
            Some(kind) => {
                let message = "the transaction failed before; roll it back";
                Err(Error::new(kind, message).with_engine(NAME))
            }
        }
    }

    /// Refuse a batch that cannot be applied whole.
    pub(super) fn check_batch(&self, batch: &Batch) -> Result<()> {
        for change in batch.ops() {
            match change {
                Change::Put { tree, key, value } => {
                    check_entry(key, value).map_err(|e| self.in_tree(e, tree))?;
                    self.trees.get(tree)?;
                }
                Change::Delete { tree, .. } | Change::DeleteRange { tree, .. } => {
                    self.trees.get(tree)?;
                }
            }
        }
        Ok(())
    }

    /// Apply the changes of `batch` in order.
    pub(super) fn apply(&mut self, batch: &Batch) -> Result<()> {
        for change in batch.ops() {
            match change {
                Change::Put { tree, key, value } => self.put(tree, key, value)?,
                Change::Delete { tree, key } => self.delete_blind(tree, key)?,
                Change::DeleteRange { tree, range } => self.delete_range(tree, range)?,
            }
        }
        Ok(())
    }

    fn in_tree(&self, error: Error, tree: TreeId) -> Error {
        match self.trees.get(tree) {
            Ok(tree) => error.with_tree(&*tree.name),
            Err(_) => error,
        }
    }

    /// Run `change` on the LMDB database of `tree`.
    #[inline]
    fn change<T>(
        &mut self,
        operation: &'static str,
        tree: TreeId,
        key: &[u8],
        change: impl FnOnce(&Tree, &mut RwTxn<'e>) -> heed::Result<T>,
    ) -> Result<T> {
        self.check_alive()?;
        let tree = self.trees.get(tree)?;
        change(tree, &mut self.txn).map_err(|e| {
            let exists = matches!(e, heed::Error::Mdb(MdbError::KeyExist));
            let error = if exists {
                let error = Error::new(ErrorKind::Exists, "the key exists");
                error.with_engine(NAME).with_operation(operation)
            } else {
                let error = self.engine.store.error(e, operation);
                self.engine.store.note_full(&error);
                error
            };
            if !exists {
                self.failed = Some(error.kind());
            }
            error.with_tree(&*tree.name).with_key(key)
        })
    }
}

impl Snapshot for Writer<'_> {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.check_alive()?;
        self.view().get_into(tree, key, value)
    }

    fn get_many(
        &self,
        tree: TreeId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.check_alive()?;
        self.view().get_many(tree, keys, visit)
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        self.check_alive()?;
        Ok(Box::new(self.view().walk(tree, range, direction)?))
    }
}

impl Transaction for Writer<'_> {
    fn insert(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        check_entry(key, value).map_err(|e| self.in_tree(e, tree))?;
        self.change("insert", tree, key, |tree, txn| {
            tree.db
                .put_with_flags(txn, PutFlags::NO_OVERWRITE, key, value)
        })
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        check_entry(key, value).map_err(|e| self.in_tree(e, tree))?;
        self.change("put", tree, key, |tree, txn| tree.db.put(txn, key, value))
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        self.change("delete", tree, key, |tree, txn| {
            if is_key(key) {
                tree.db.delete(txn, key)
            } else {
                Ok(false)
            }
        })
    }

    fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(tree, key, value)
    }

    fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.delete(tree, key).map(|_| ())
    }

    fn delete_range(&mut self, tree: TreeId, range: KeyRange<'_>) -> Result<()> {
        self.change("delete_range", tree, b"", |tree, txn| {
            if range == KeyRange::ALL {
                return tree.db.clear(txn);
            }
            let Some(bounds) = cursor::bounds(range) else {
                return Ok(());
            };
            let mut iter = tree.db.range_mut(txn, &bounds)?;
            while let Some(entry) = iter.next() {
                entry?;
                // SAFETY: no slice of the map is kept: the entry was dropped in the line before,
                // and the cursor borrows the transaction mutably, so no other slice exists.
                unsafe { iter.del_current()? };
            }
            Ok(())
        })
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<()> {
        self.check_alive()?;
        let Writer {
            txn, turn, engine, ..
        } = *self;
        let then = engine.commit(txn, durability, &turn)?;
        drop(turn);
        engine.store.finish(&then)
    }

    fn rollback(self: Box<Self>) {
        drop(self);
    }
}

/// Refuse a key or value beyond the limits.
fn check_entry(key: &[u8], value: &[u8]) -> Result<()> {
    let message = if !is_key(key) {
        format!("a key has 1 to {KEY_MAX} bytes, this one {}", key.len())
    } else if VALUE_MAX < value.len() {
        format!(
            "a value has at most {VALUE_MAX} bytes, this one {}",
            value.len()
        )
    } else {
        return Ok(());
    };
    Err(Error::invalid(message).with_engine(NAME).with_key(key))
}

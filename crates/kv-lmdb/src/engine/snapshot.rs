//! Snapshots: an LMDB read transaction and the list of trees of the same time.
//!
//! - I1. The transaction and the list are taken together (`Catalog::with`), so the transaction can
//!   read every tree of the list.
//!
//! Snapshots are not tied to threads (`MDB_NOTLS`), so one thread may hold several. While a
//! snapshot is open, LMDB does not reuse the pages that the snapshot reads: the file grows.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use heed::{RoTxn, WithoutTls};
use kv::{Cursor, Direction, KeyRange, Result, Snapshot, TreeId};

use super::Lmdb;
use super::catalog::{Tree, Trees};
use super::cursor::Walk;
use super::durability::Store;
use crate::support::KEY_MAX;

/// A snapshot.
pub(super) struct Reader<'e> {
    txn: RoTxn<'e, WithoutTls>,
    trees: Arc<Trees>,
    engine: &'e Lmdb,
}

impl<'e> Reader<'e> {
    pub(super) fn begin(engine: &'e Lmdb) -> Result<Reader<'e>> {
        let store = &engine.store;
        let begin = || {
            let txn = store.env.read_txn();
            txn.map_err(|e| store.error(e, "begin_read"))
        };
        // LMDB has more slots than the option, for the pins of `super::synced`.
        let begun = match engine.snapshots.fetch_add(1, Ordering::Relaxed) {
            open if open < u64::from(store.settings.readers) => engine.catalog.with(begin),
            _ => Err(store.error(heed::MdbError::ReadersFull.into(), "begin_read")),
        };
        match begun {
            Ok((trees, txn)) => Ok(Reader { txn, trees, engine }),
            Err(error) => {
                engine.snapshots.fetch_sub(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    pub(super) fn view(&self) -> View<'_> {
        View {
            txn: &self.txn,
            trees: &self.trees,
            store: &self.engine.store,
        }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.engine.snapshots.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Snapshot for Reader<'_> {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.view().get_into(tree, key, value)
    }

    fn get_many(
        &self,
        tree: TreeId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.view().get_many(tree, keys, visit)
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        Ok(Box::new(self.view().walk(tree, range, direction)?))
    }
}

/// A read view of the environment: that of a snapshot or of a write transaction.
#[derive(Clone, Copy)]
pub(super) struct View<'t> {
    pub(super) txn: &'t RoTxn<'t>,
    pub(super) trees: &'t Trees,
    pub(super) store: &'t Store,
}

impl<'t> View<'t> {
    /// The value of `key` in the map, without a copy.
    #[inline]
    fn value(&self, tree: &Tree, key: &[u8]) -> Result<Option<&'t [u8]>> {
        if !is_key(key) {
            return Ok(None);
        }
        tree.db.get(self.txn, key).map_err(|e| {
            let error = self.store.error(e, "get");
            error.with_tree(&*tree.name).with_key(key)
        })
    }

    #[inline]
    pub(super) fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.value(self.trees.get(tree)?, key)?;
        if let Some(found) = found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    pub(super) fn get_many(
        &self,
        tree: TreeId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let tree = self.trees.get(tree)?;
        for (index, key) in keys.iter().enumerate() {
            visit(index, self.value(tree, key)?);
        }
        Ok(())
    }

    pub(super) fn walk(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Walk<'t>> {
        let tree = self.trees.get(tree)?;
        Walk::new(*self, tree, range, direction)
    }
}

/// Whether `key` can exist: LMDB has no empty key.
pub(super) fn is_key(key: &[u8]) -> bool {
    (1..=KEY_MAX).contains(&key.len())
}

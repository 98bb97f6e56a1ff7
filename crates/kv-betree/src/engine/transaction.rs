//! Transactions.

use kv::{Cursor, Direction, Durability, KeyRange, Result, Snapshot, Transaction, TreeId};

use super::cursor::{Walk, way};
use super::errors::convert;
use super::{Betree, bounds, handle};

/// A transaction of the store.
pub(super) struct Writer<'e> {
    engine: &'e Betree,
    txn: betree::Transaction,
}

impl<'e> Writer<'e> {
    pub(super) fn begin(engine: &'e Betree) -> Result<Writer<'e>> {
        let txn = engine.db.begin().map_err(convert)?;
        Ok(Writer { engine, txn })
    }
}

impl Snapshot for Writer<'_> {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = self.txn.get_into(handle(tree), key, value);
        found.map_err(convert)
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let (start, end) = bounds(range);
        let cursor = self.txn.cursor(handle(tree), start, end, way(direction));
        Ok(Box::new(Walk(cursor.map_err(convert)?)))
    }
}

impl Transaction for Writer<'_> {
    fn insert(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        let inserted = self.txn.insert(handle(tree), key, value);
        inserted.map_err(convert)
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.txn.put(handle(tree), key, value).map_err(convert)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        self.txn.delete(handle(tree), key).map_err(convert)
    }

    fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        let put = self.txn.put_blind(handle(tree), key, value);
        put.map_err(convert)
    }

    fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.txn.delete_blind(handle(tree), key).map_err(convert)
    }

    fn delete_range(&mut self, tree: TreeId, range: KeyRange<'_>) -> Result<()> {
        let (start, end) = bounds(range);
        let deleted = self.txn.delete_range(handle(tree), start, end);
        deleted.map_err(convert)
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<()> {
        let level = self.engine.level(durability)?;
        self.txn.commit(level).map_err(convert)
    }

    fn rollback(self: Box<Self>) {
        self.txn.rollback();
    }
}

//! Transactions.

use betree::Db;
use kv::{Cursor, Direction, Durability, KeyRange, Result, Snapshot, Transaction, TreeId};

use super::cursor::Walk;
use super::named;

/// A transaction of the store.
pub(super) struct Writer(betree::Transaction);

impl Writer {
    pub(super) fn begin(db: &Db) -> Result<Writer> {
        db.begin().map(Writer).map_err(named)
    }
}

impl Snapshot for Writer {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.0.get_into(tree, key, value).map_err(named)
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let cursor = self.0.cursor(tree, range.start, range.end, direction);
        Ok(Box::new(Walk(cursor.map_err(named)?)))
    }
}

impl Transaction for Writer {
    fn insert(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(tree, key, value).map_err(named)
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(tree, key, value).map_err(named)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        self.0.delete(tree, key).map_err(named)
    }

    fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put_blind(tree, key, value).map_err(named)
    }

    fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.0.delete_blind(tree, key).map_err(named)
    }

    fn delete_range(&mut self, tree: TreeId, range: KeyRange<'_>) -> Result<()> {
        let deleted = self.0.delete_range(tree, range.start, range.end);
        deleted.map_err(named)
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<()> {
        self.0.commit(durability).map_err(named)
    }

    fn rollback(self: Box<Self>) {
        self.0.rollback();
    }
}

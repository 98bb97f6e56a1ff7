//! A write transaction.

use kv::{
    Capabilities, Cursor, Direction, Durability, KeyRange, Result, Snapshot, Transaction, TreeId,
};

use super::engine::check_lengths;
use super::view::View;

/// An open transaction: a view through which the caller may also write.
pub(super) struct WtTransaction<'e> {
    view: View<'e>,
    capabilities: &'e Capabilities,
}

impl<'e> WtTransaction<'e> {
    pub(super) fn new(view: View<'e>, capabilities: &'e Capabilities) -> WtTransaction<'e> {
        WtTransaction { view, capabilities }
    }
}

impl Snapshot for WtTransaction<'_> {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.view.get_into(tree, key, value)
    }

    fn get_many(
        &self,
        tree: TreeId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        self.view.get_many(tree, keys, visit)
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        self.view.cursor(tree, range, direction)
    }
}

impl Transaction for WtTransaction<'_> {
    fn insert(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        check_lengths(self.capabilities, key, value)?;
        self.view.insert(tree, key, value)
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        check_lengths(self.capabilities, key, value)?;
        self.view.put(tree, key, value)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        check_lengths(self.capabilities, key, b"")?;
        self.view.remove(tree, key)
    }

    fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(tree, key, value)
    }

    fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.delete(tree, key).map(|_| ())
    }

    fn delete_range(&mut self, tree: TreeId, range: KeyRange<'_>) -> Result<()> {
        self.view.remove_range(tree, range)
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<()> {
        self.view.shared().check_durability(durability)?;
        self.view.shared().check_writable()?;
        self.view.commit(durability)
    }

    fn rollback(self: Box<Self>) {
        // Dropping the view rolls the transaction back.
    }
}

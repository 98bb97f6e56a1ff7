//! Transactions: RocksDB's optimistic ones. See `docs/decisions/0003-rocksdb-transactions.md`.

use std::cell::RefCell;
use std::sync::Arc;

use kv::{Cursor, Direction, Durability, Error, ErrorKind, KeyRange, Result, Snapshot, TreeId};

use super::catalog::{Catalog, Tree};
use super::cursor::Walk;
use super::engine::{Store, check_key, check_value};
use super::error::error;
use super::gate::Kind;
use super::raw::{Status, Txn};
use super::snapshot::{Held, copy, tree_of};
use crate::support::NAME;

/// Maximum number of keys that a range delete collects before it deletes them.
const CHUNK: usize = 1024;

pub(super) struct Transaction<'e> {
    store: &'e Store,
    catalog: Arc<Catalog>,
    raw: Txn<'e>,
    /// The trees that the transaction has written, or in which it has deleted absent keys: the
    /// commit checks that they still exist.
    touched: RefCell<Vec<TreeId>>,
}

impl<'e> Transaction<'e> {
    /// Begin a transaction with a snapshot of the current state.
    pub(super) fn begin(store: &'e Store) -> Transaction<'e> {
        Transaction {
            store,
            catalog: store.catalog(),
            raw: Txn::begin(store.db(), store.unsynced()),
            touched: RefCell::default(),
        }
    }

    fn tree(&self, id: TreeId) -> Result<Held<'_>> {
        tree_of(&self.catalog, self.store, id)
    }

    fn touch(&self, tree: TreeId) {
        let mut touched = self.touched.borrow_mut();
        if !touched.contains(&tree) {
            touched.push(tree);
        }
    }

    fn exists(&self, tree: &Tree, key: &[u8]) -> Result<bool> {
        let found = self.raw.get(&tree.family, key);
        Ok(found.map_err(|status| error(status, "get"))?.is_some())
    }

    /// Whether a batch has deleted, since the snapshot, a range into which this transaction wrote.
    fn overlaps_a_range_delete(&self) -> bool {
        let since = self.raw.sequence();
        self.store.range_deletes().conflict(since, |note| {
            self.tree(note.tree)
                .is_ok_and(|tree| self.raw.wrote_within(&tree.family, &note.from, &note.to))
        })
    }

    /// At most [`CHUNK`] keys of `range`, from the first after `last` on.
    fn keys(&self, tree: TreeId, range: KeyRange<'_>, last: Option<&[u8]>) -> Result<Vec<Vec<u8>>> {
        let mut cursor = self.cursor(tree, range, Direction::Forward)?;
        let mut found = match last {
            None => cursor.advance()?,
            Some(last) => cursor.seek(last)?,
        };
        let mut keys = Vec::new();
        while found && keys.len() < CHUNK {
            keys.push(cursor.key().to_vec());
            found = cursor.advance()?;
        }
        Ok(keys)
    }
}

fn write_error(operation: &'static str) -> impl FnOnce(Status) -> Error {
    move |status| error(status, operation)
}

impl Snapshot for Transaction<'_> {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let tree = self.tree(tree)?;
        copy(self.raw.get(&tree.family, key), value)
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let tree = self.tree(tree)?;
        Ok(Box::new(Walk::new(
            range,
            direction,
            || self.raw.read_options(),
            |options| self.raw.iter(options, &tree.family),
        )))
    }
}

impl kv::Transaction for Transaction<'_> {
    fn insert(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        let tree = self.tree(tree)?;
        check_key(key)?;
        check_value(value)?;
        if self.exists(&tree, key)? {
            return Err(Error::new(ErrorKind::Exists, "the key exists")
                .with_engine(NAME)
                .with_operation("insert")
                .with_tree(&tree.name)
                .with_key(key));
        }
        self.touch(tree.id);
        self.raw
            .put(&tree.family, key, value)
            .map_err(write_error("insert"))
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        let tree = self.tree(tree)?;
        check_key(key)?;
        check_value(value)?;
        self.touch(tree.id);
        self.raw
            .put(&tree.family, key, value)
            .map_err(write_error("put"))
    }

    /// The key of a deletion that finds no entry is tracked but not written: the commit checks it,
    /// and writes no tombstone.
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        let tree = self.tree(tree)?;
        check_key(key)?;
        self.touch(tree.id);
        if self.exists(&tree, key)? {
            let deleted = self.raw.delete(&tree.family, key);
            return deleted.map(|()| true).map_err(write_error("delete"));
        }
        let tracked = self.raw.track(&tree.family, key);
        tracked.map(|()| false).map_err(write_error("delete"))
    }

    fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        let tree = self.tree(tree)?;
        check_key(key)?;
        check_value(value)?;
        self.touch(tree.id);
        self.raw
            .put_blind(&tree.family, key, value)
            .map_err(write_error("put"))
    }

    fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        let tree = self.tree(tree)?;
        check_key(key)?;
        self.touch(tree.id);
        self.raw
            .delete_blind(&tree.family, key)
            .map_err(write_error("delete"))
    }

    /// RocksDB's transactions have no range delete, so the keys are deleted one by one, tracked.
    /// Keys that others insert into the range meanwhile stay.
    fn delete_range(&mut self, tree: TreeId, range: KeyRange<'_>) -> Result<()> {
        let handle = self.tree(tree)?;
        let mut last: Option<Vec<u8>> = None;
        loop {
            let keys = self.keys(tree, range, last.as_deref())?;
            for key in &keys {
                self.touch(tree);
                let deleted = self.raw.delete(&handle.family, key);
                deleted.map_err(write_error("delete_range"))?;
            }
            match keys.into_iter().next_back() {
                Some(key) => last = Some(key),
                None => return Ok(()),
            }
        }
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<()> {
        let store = self.store;
        let options = store.write_options(durability)?;
        if self.touched.borrow().is_empty() {
            return Ok(());
        }
        store.prepare_write("commit")?;
        let pass = store.gate().enter(Kind::Commit);
        store.check_trees(&self.catalog, self.touched.borrow().iter().copied())?;
        if self.overlaps_a_range_delete() {
            let message =
                "a batch deleted a range this transaction wrote into; retry the transaction";
            return Err(Error::new(ErrorKind::Conflict, message)
                .with_engine(NAME)
                .with_operation("commit"));
        }
        let this = *self;
        let result = this.raw.commit(options);
        drop(pass);
        result.map_err(|status| store.write_error(status, "commit"))?;
        store.wrote(durability);
        Ok(())
    }

    fn rollback(self: Box<Self>) {}
}

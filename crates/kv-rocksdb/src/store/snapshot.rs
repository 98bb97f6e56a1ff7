//! Snapshots.

use std::ops::Deref;
use std::sync::Arc;

use kv::{Cursor, Direction, KeyRange, Result, TreeId};

use super::catalog::{Catalog, Tree};
use super::cursor::Walk;
use super::engine::Store;
use super::error::error;
use super::raw::{self, Pinned, ReadOptions, Status};

/// Maximum number of keys that are read together. RocksDB reads up to 32 at a time; arrays of twice
/// that size are still small.
const CHUNK: usize = 64;

/// A read view: RocksDB's snapshot and the catalog of the same time.
pub(super) struct Snapshot<'e> {
    store: &'e Store,
    catalog: Arc<Catalog>,
    raw: raw::Snapshot<'e>,
}

impl<'e> Snapshot<'e> {
    /// A snapshot of the current state. The catalog is taken first, so that a tree dropped
    /// meanwhile is still readable.
    pub(super) fn new(store: &'e Store) -> Snapshot<'e> {
        let catalog = store.catalog();
        Snapshot {
            store,
            catalog,
            raw: raw::Snapshot::new(store.db()),
        }
    }
}

/// A tree as a reader uses it.
pub(super) enum Held<'c> {
    /// The tree is in the reader's catalog.
    Known(&'c Tree),
    /// The tree was created after the reader began.
    Later(Arc<Tree>),
}

impl Deref for Held<'_> {
    type Target = Tree;

    #[inline]
    fn deref(&self) -> &Tree {
        match self {
            Held::Known(tree) => tree,
            Held::Later(tree) => tree,
        }
    }
}

/// The tree for a reader that began with `catalog`. A tree that was created later is also found; it
/// is empty in the reader's snapshot.
#[inline]
pub(super) fn tree_of<'c>(catalog: &'c Catalog, store: &Store, id: TreeId) -> Result<Held<'c>> {
    if let Some(tree) = catalog.get(id) {
        return Ok(Held::Known(tree));
    }
    let now = store.catalog();
    now.need(id).map(|tree| Held::Later(Arc::clone(tree)))
}

/// Copy the result of a read.
#[inline]
pub(super) fn copy(found: Result<Option<Pinned<'_>>, Status>, value: &mut Vec<u8>) -> Result<bool> {
    value.clear();
    match found {
        Ok(Some(pinned)) => {
            value.extend_from_slice(pinned.bytes());
            Ok(true)
        }
        Ok(None) => Ok(false),
        Err(status) => Err(error(status, "get")),
    }
}

impl kv::Snapshot for Snapshot<'_> {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let tree = tree_of(&self.catalog, self.store, tree)?;
        copy(self.raw.get(&tree.family, key), value)
    }

    fn get_many(
        &self,
        tree: TreeId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let tree = tree_of(&self.catalog, self.store, tree)?;
        let mut index = 0;
        for chunk in keys.chunks(CHUNK) {
            for found in self.raw.get_many(&tree.family, chunk) {
                let found = found.map_err(|status| error(status, "get"))?;
                visit(index, found.as_ref().map(Pinned::bytes));
                index += 1;
            }
        }
        Ok(())
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let tree = tree_of(&self.catalog, self.store, tree)?;
        Ok(Box::new(Walk::new(
            range,
            direction,
            || ReadOptions::at(&self.raw),
            |options| self.raw.iter(options, &tree.family),
        )))
    }
}

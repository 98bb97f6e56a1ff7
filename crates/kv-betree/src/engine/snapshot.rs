//! Snapshots.

use betree::Db;
use kv::{Cursor, Direction, KeyRange, Result, Snapshot, TreeId};

use super::cursor::{Walk, way};
use super::errors::convert;
use super::{bounds, handle};

/// A snapshot of the store.
pub(super) struct Reader(betree::Snapshot);

impl Reader {
    pub(super) fn begin(db: &Db) -> Result<Reader> {
        db.begin_read().map(Reader).map_err(convert)
    }
}

impl Snapshot for Reader {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = self.0.get_into(handle(tree), key, value);
        found.map_err(convert)
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let (start, end) = bounds(range);
        let cursor = self.0.cursor(handle(tree), start, end, way(direction));
        Ok(Box::new(Walk(cursor.map_err(convert)?)))
    }
}

//! Snapshots.

use betree::Db;
use kv::{Cursor, Direction, KeyRange, Result, Snapshot, TreeId};

use super::cursor::Walk;
use super::named;

/// A snapshot of the store.
pub(super) struct Reader(betree::Snapshot);

impl Reader {
    pub(super) fn begin(db: &Db) -> Result<Reader> {
        db.begin_read().map(Reader).map_err(named)
    }
}

impl Snapshot for Reader {
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

//! What an older store does not say: whether its indexes hold keys that were cut.
//!
//! An index notes its first key that is cut in the transaction that puts it, as it notes arrays.
//! The indexes of a store that was written before this was noted are all taken to hold such keys,
//! unless the least and the greatest key show that there can be none. That is stored once, together
//! with the mark that from then on such keys are noted. An exact answer would need a read of the
//! whole index. An index that is dropped and created again has an exact mark.

use kv::{Direction, Durability, KeyRange, Snapshot, TreeId};
use query::Result;

use super::Store;
use crate::catalog::{NOTES_CUTS, Stored, multikey_key};
use crate::error;
use crate::index::{FieldKind, IndexSpec};
use crate::key;

impl Store {
    /// Mark the indexes that may hold cut keys, if the store was written before those were noted.
    pub(super) fn mark_unknown(&self) -> Result<()> {
        let catalog = self.trees.catalog;
        let mut marks = Vec::new();
        {
            let snapshot = self.engine.begin_read().map_err(error::engine)?;
            let noted = snapshot.get(catalog, NOTES_CUTS).map_err(error::engine)?;
            if noted.is_some() {
                return Ok(());
            }
            let cursor = snapshot.cursor(catalog, KeyRange::ALL, Direction::Forward);
            let mut cursor = cursor.map_err(error::engine)?;
            while cursor.advance().map_err(error::engine)? {
                if cursor.key().starts_with(b"c") {
                    let stored = Stored::from_bytes(cursor.value())?;
                    self.unknown_of(snapshot.as_ref(), &stored, &mut marks)?;
                }
            }
        }
        let mut txn = self.engine.begin_write().map_err(error::engine)?;
        for mark in &marks {
            txn.put(catalog, mark, &[]).map_err(error::engine)?;
        }
        txn.put(catalog, NOTES_CUTS, &[]).map_err(error::engine)?;
        txn.commit(Durability::Group).map_err(error::engine)
    }

    /// The marks of the indexes of one collection.
    fn unknown_of(
        &self,
        snapshot: &dyn Snapshot,
        stored: &Stored,
        marks: &mut Vec<Vec<u8>>,
    ) -> Result<()> {
        let Some(uuid) = &stored.uuid else {
            return Ok(());
        };
        for index in &stored.indexes {
            let tree = self.open_tree(&Stored::index_tree(uuid, index.number))?;
            if may_hold_cut(snapshot, tree, &index.spec)? {
                let behind = u8::try_from(index.spec.fields()?.len());
                let behind = behind.expect("an index has at most 32 fields");
                marks.push(multikey_key(uuid, index.number, behind, 0));
            }
        }
        Ok(())
    }
}

/// Whether an index may hold keys that were cut, by its first and its last key.
fn may_hold_cut(snapshot: &dyn Snapshot, tree: TreeId, spec: &IndexSpec) -> Result<bool> {
    let end = |direction: Direction| -> Result<Option<u8>> {
        let cursor = snapshot.cursor(tree, KeyRange::ALL, direction);
        let mut cursor = cursor.map_err(error::engine)?;
        let found = cursor.advance().map_err(error::engine)?;
        Ok(cursor.key().first().copied().filter(|_| found))
    };
    let fields = spec.fields()?;
    let (Some(first), Some(last)) = (end(Direction::Forward)?, end(Direction::Backward)?) else {
        return Ok(false);
    };
    Ok(match fields.as_slice() {
        [(_, FieldKind::Hashed)] => false,
        [(_, FieldKind::Ascending)] => key::may_be_long(first, last),
        [(_, FieldKind::Descending)] => key::may_be_long(!last, !first),
        _ => true,
    })
}

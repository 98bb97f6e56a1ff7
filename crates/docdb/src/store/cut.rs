//! Upgrade of older stores, which do not record whether their indexes hold truncated keys.
//!
//! An index records its first truncated key in the transaction that inserts it, in the same way as
//! arrays. In a store written before this was recorded, every index is assumed to hold truncated
//! keys, unless its first and last key show that it cannot. This assumption is stored once,
//! together with the mark that truncated keys are recorded from then on. An exact answer would
//! require reading the whole index. An index that is dropped and created again has an exact record.

use kv::{Direction, Durability, KeyRange, Snapshot, TreeId};
use query::Result;

use super::Store;
use crate::catalog::{NOTES_CUTS, Stored, multikey_key};
use crate::error;
use crate::index::{FieldKind, IndexSpec};
use crate::key;

impl Store {
    /// Mark the indexes that may hold truncated keys, if the store was written before these were
    /// recorded.
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

/// Whether an index may hold truncated keys, judged by its first and last key.
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

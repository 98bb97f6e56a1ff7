//! Making an index unique: its entries are copied into a tree in the layout of unique indexes,
//! unless two documents have one key.
//!
//! The collection is not written during the conversion. A crash leaves the old index and an unused
//! tree.

use std::ops::Bound;
use std::sync::Arc;

use bson::{Bson, Document, RawDocument, doc};
use kv::{Direction, Durability, KeyRange};
use query::{Code, Error, Result};

use super::change::Change;
use crate::collection::Collection;
use crate::entries::Entries;
use crate::error;
use crate::index::{Index, IndexSpec, Key};
use crate::record::RecordId;
use crate::txn::Work;

/// Maximum number of entries copied in one transaction.
const PORTION: usize = 4_096;
/// Maximum number of duplicate keys whose documents an error lists.
const SHOWN: usize = 20;

/// An entry of the old index.
struct Old {
    entry: Vec<u8>,
    key: Vec<u8>,
    type_bits: Vec<u8>,
    record: RecordId,
}

/// Copy an index into a unique one and return the new index. With `dry`, only check for duplicates.
///
/// # Errors
/// `CannotConvertIndexToUnique` with the documents that share a key; errors of the engine.
pub(super) fn convert(
    change: &mut Change<'_>,
    index: &Arc<Index>,
    spec: IndexSpec,
    dry: bool,
) -> Result<Option<Arc<Index>>> {
    check(change, index)?;
    if dry {
        return Ok(None);
    }
    let made = Arc::new(change.store.new_index(&mut change.stored, spec, true)?);
    let mut after = None;
    loop {
        let portion = read(change, index, after.as_deref())?;
        let Some(last) = portion.last() else {
            break;
        };
        let mut work = Work::in_change(change.store);
        let mut entries = Entries::new(&mut work);
        for old in &portion {
            let key = Key {
                bytes: &old.key,
                type_bits: &old.type_bits,
            };
            entries.put_entry(&made, key, &old.record)?;
        }
        after = Some(last.entry.clone());
        work.commit(Durability::Interval)?;
    }
    change.store.engine().sync_log().map_err(error::engine)?;
    // The new index replaces the old one and takes over its multikey state.
    let indexes = &mut change.stored.indexes;
    let new = indexes.pop().expect("it was noted last");
    let old = indexes.iter_mut().find(|i| i.number == index.number());
    *old.expect("the index that is converted is there") = new;
    let mut work = Work::in_change(change.store);
    work.note_multikey(&change.collection, &made, &index.multikey())?;
    work.commit(Durability::Group)?;
    Ok(Some(made))
}

/// The next portion of index entries after `after`.
fn read(change: &Change<'_>, index: &Index, after: Option<&[u8]>) -> Result<Vec<Old>> {
    let snapshot = change.store.engine().begin_read().map_err(error::engine)?;
    let range = KeyRange {
        start: after.map_or(Bound::Unbounded, Bound::Excluded),
        end: Bound::Unbounded,
    };
    let cursor = snapshot.cursor(index.tree(), range, Direction::Forward);
    let mut cursor = cursor.map_err(error::engine)?;
    let mut portion = Vec::new();
    while portion.len() < PORTION && cursor.advance().map_err(error::engine)? {
        let entry = index.read_entry(cursor.key(), cursor.value());
        let entry = entry.ok_or_else(|| change.collection.corrupt_index(index))?;
        portion.push(Old {
            entry: cursor.key().to_vec(),
            key: entry.key.to_vec(),
            type_bits: entry.type_bits.to_vec(),
            record: entry.record,
        });
    }
    Ok(portion)
}

/// Check that no two documents share a key. Entries with equal keys are adjacent.
fn check(change: &Change<'_>, index: &Index) -> Result<()> {
    let mut violations: Vec<Vec<RecordId>> = Vec::new();
    let mut same: Vec<RecordId> = Vec::new();
    let mut last: Option<Old> = None;
    loop {
        let after = last.as_ref().map(|old| old.entry.clone());
        let portion = read(change, index, after.as_deref())?;
        if portion.is_empty() {
            break;
        }
        for old in portion {
            if last.as_ref().is_none_or(|last| last.key != old.key) {
                gather(&mut violations, &mut same);
            }
            same.push(old.record.clone());
            last = Some(old);
        }
        if SHOWN < violations.len() {
            break;
        }
    }
    gather(&mut violations, &mut same);
    if violations.is_empty() {
        return Ok(());
    }
    let shown = violations.iter().take(SHOWN);
    let shown: Result<Vec<Document>> = shown.map(|v| ids(change, &change.collection, v)).collect();
    let message = "Cannot convert the index to unique. Please resolve conflicting documents \
                   before running collMod again.";
    let details = doc! {"violations": shown?};
    Err(Error::new(Code::CANNOT_CONVERT_INDEX_TO_UNIQUE, message).with_details(details))
}

fn gather(violations: &mut Vec<Vec<RecordId>>, same: &mut Vec<RecordId>) {
    let found = std::mem::take(same);
    if 1 < found.len() {
        violations.push(found);
    }
}

/// The `_id`s of documents.
fn ids(change: &Change<'_>, collection: &Collection, records: &[RecordId]) -> Result<Document> {
    let snapshot = change.store.engine().begin_read().map_err(error::engine)?;
    let (mut ids, mut bytes) = (Vec::new(), Vec::new());
    for record in records {
        if collection.fetch(snapshot.as_ref(), record, &mut bytes)? {
            let document = RawDocument::from_bytes(&bytes)?;
            if let Some(id) = document.get("_id")? {
                ids.push(Bson::try_from(id)?);
            }
        }
    }
    Ok(doc! {"ids": ids})
}

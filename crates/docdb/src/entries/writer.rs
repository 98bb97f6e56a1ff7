//! Writes documents with all their entries.

use std::sync::Arc;

use bson::RawDocument;
use query::Result;
use query::update::Form;

use super::entry::Entries;
use super::keys::{KeySets, Untouched};
use crate::collection::{Collection, Gathered};
use crate::error;
use crate::index::{Index, Key};
use crate::record::RecordId;
use crate::txn::Work;

/// Writes documents in a transaction.
pub(crate) struct Writer<'w, 's> {
    entries: Entries<'w, 's>,
    /// Buffers reused for each document.
    new: KeySets,
    old: KeySets,
}

impl<'w, 's> Writer<'w, 's> {
    /// A writer in the transaction of this work.
    pub(crate) fn new(work: &'w mut Work<'s>) -> Writer<'w, 's> {
        Writer {
            entries: Entries::new(work),
            new: KeySets::default(),
            old: KeySets::default(),
        }
    }

    /// The work that it writes in.
    pub(crate) fn work(&mut self) -> &mut Work<'s> {
        self.entries.work
    }

    /// Insert one validated document.
    pub(crate) fn insert_one<'d>(
        &mut self,
        collection: &Collection,
        document: &'d RawDocument,
        gathered: &mut Gathered<'d>,
    ) -> Result<()> {
        let (record, number) = if collection.is_clustered() {
            (self.entries.clustered_record(collection, document)?, 0)
        } else {
            let number = collection.core().counts.take_records(1);
            (RecordId::number(number), number)
        };
        self.put_new(collection, &record, document, gathered)?;
        let bytes = i64::try_from(document.as_bytes().len()).expect("at most 16 MiB");
        self.work().count(collection, 1, bytes, number);
        self.work().log_insert(collection, document)
    }

    /// Put a new document under a record.
    fn put_new<'d>(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        document: &'d RawDocument,
        gathered: &mut Gathered<'d>,
    ) -> Result<()> {
        self.new.make(collection, document, gathered)?;
        self.entries.put_all(collection, record, &self.new, None)?;
        // In a clustered collection `clustered_record` has claimed the key.
        let blind = !collection.is_clustered();
        self.entries.put_record(collection, record, document, blind)
    }

    /// Replace a document by another with the same `_id`. `form` is that of the difference in the
    /// oplog; `None` records the new document.
    pub(crate) fn replace(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        (old, new): (&RawDocument, &RawDocument),
        untouched: Untouched,
        form: Option<Form>,
    ) -> Result<()> {
        self.entries.intend_record(collection, record)?;
        note_change(collection, record);
        self.new
            .make_but(collection, new, &mut Gathered::new(), untouched)?;
        self.old.make_stored(collection, old, untouched)?;
        let (new_keys, old_keys) = (&self.new, &self.old);
        self.entries
            .put_all(collection, record, new_keys, Some(old_keys))?;
        self.entries
            .delete_all(collection, record, old_keys, Some(new_keys))?;
        self.entries.put_record(collection, record, new, false)?;
        let size = |d: &RawDocument| i64::try_from(d.as_bytes().len()).unwrap_or(0);
        self.work().count(collection, 0, size(new) - size(old), 0);
        self.work().log_update(collection, (old, new), form)
    }

    /// Remove a document.
    pub(crate) fn remove(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        document: &RawDocument,
    ) -> Result<()> {
        let entries = &mut self.entries;
        entries.intend_record(collection, record)?;
        note_change(collection, record);
        self.old
            .make_stored(collection, document, Untouched::default())?;
        entries.delete_all(collection, record, &self.old, None)?;
        let deleted = entries
            .work
            .txn()?
            .delete(collection.records(), &record.key());
        deleted.map_err(error::engine)?;
        let size = i64::try_from(document.as_bytes().len()).unwrap_or(0);
        entries.work.count(collection, -1, -size, 0);
        entries.work.log_delete(collection, record, document)
    }
}

impl Entries<'_, '_> {
    /// Put the entries of `sets` that are not in `but`, unique ones first (E2).
    fn put_all(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        sets: &KeySets,
        but: Option<&KeySets>,
    ) -> Result<()> {
        let indexes = collection.indexes();
        let is_new = |at: usize, key: &Key<'_>| {
            !but.and_then(|but| but.of(at))
                .is_some_and(|set| set.keys().any(|k| k == *key))
        };
        let was_there = |at: usize, key: &Key<'_>| {
            but.and_then(|but| but.of(at))
                .is_some_and(|set| set.contains(key.bytes))
        };
        for (at, (index, set)) in sets.with(indexes) {
            if index.spec().prepare_unique && !index.unique() {
                for key in set.keys().filter(|k| is_new(at, k) && !was_there(at, k)) {
                    self.check_alone(collection, index, key, record)?;
                }
            }
        }
        let mut undo: Vec<(usize, usize)> = Vec::new();
        for unique in [true, false] {
            let pairs = sets.with(indexes);
            for (at, (index, set)) in pairs.filter(|(_, (i, _))| i.unique() == unique) {
                self.work.note_multikey(collection, index, set.multikey())?;
                for (place, key) in set.keys().enumerate().filter(|(_, k)| is_new(at, k)) {
                    // A key that stays but has other type bits is written over the old one.
                    let stays = was_there(at, &key);
                    let put = match unique {
                        false => self.put_entry(index, key, record),
                        true if !stays => self.insert_unique(collection, index, key, record),
                        true if index.is_ready() => self.put_entry(index, key, record),
                        true => self.put_own(collection, index, key, record),
                    };
                    if let Err(refused) = put {
                        self.undo(indexes, sets, &undo)?;
                        return Err(refused);
                    }
                    if unique && !stays {
                        undo.push((at, place));
                    }
                }
            }
        }
        Ok(())
    }

    /// Remove the entries of `sets` whose keys are not in `but`.
    fn delete_all(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        sets: &KeySets,
        but: Option<&KeySets>,
    ) -> Result<()> {
        for (at, (index, set)) in sets.with(collection.indexes()) {
            let kept = but.and_then(|but| but.of(at));
            for key in set.keys() {
                if !kept.is_some_and(|set| set.contains(key.bytes)) {
                    self.delete_entry(index, key, record)?;
                }
            }
        }
        Ok(())
    }

    /// Undo unique entries: pairs of an index and the position in its set.
    fn undo(
        &mut self,
        indexes: &[Arc<Index>],
        sets: &KeySets,
        undo: &[(usize, usize)],
    ) -> Result<()> {
        for (at, place) in undo {
            let key = sets.of(*at).and_then(|set| set.keys().nth(*place));
            if let (Some(index), Some(key)) = (indexes.get(*at), key) {
                let deleted = self.work.txn()?.delete(index.tree(), key.bytes);
                deleted.map_err(error::engine)?;
            }
        }
        Ok(())
    }
}

/// Notify the index builds of the collection that a document changes.
fn note_change(collection: &Collection, record: &RecordId) {
    for index in collection.indexes() {
        index.note_change(record);
    }
}

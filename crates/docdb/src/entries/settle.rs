//! Writes the difference between two states of a document as the primary has made them: without
//! checks, and without entries in the oplog.
//!
//! - E3. Of several documents, entries of unique indexes are put after all that are removed: a key
//!   that one document gives up and another takes belongs to the other, whatever their order.

use bson::RawDocument;
use kv::TreeId;
use query::Result;

use super::entry::is_highest;
use super::keys::{KeySets, Untouched};
use crate::collection::{Collection, Gathered};
use crate::error;
use crate::record::RecordId;
use crate::txn::Work;

/// A state of a document.
#[derive(Clone, Copy)]
pub(crate) struct State<'d> {
    pub(crate) record: &'d RecordId,
    pub(crate) document: &'d RawDocument,
}

/// Writes documents of a batch.
pub(crate) struct Settle<'w, 's> {
    work: &'w mut Work<'s>,
    old: KeySets,
    new: KeySets,
    /// Entries of unique indexes to put (E3).
    later: Vec<(TreeId, Vec<u8>, Vec<u8>)>,
}

impl<'w, 's> Settle<'w, 's> {
    pub(crate) fn new(work: &'w mut Work<'s>) -> Settle<'w, 's> {
        Settle {
            work,
            old: KeySets::default(),
            new: KeySets::default(),
            later: Vec::new(),
        }
    }

    /// Write a document that was in one state, or did not exist, and is in another one, or does not
    /// exist. The caller calls [`Settle::finish`] after the last one.
    ///
    /// # Errors
    /// Documents that cannot be indexed; errors of the engine.
    pub(crate) fn document(
        &mut self,
        collection: &Collection,
        before: Option<State<'_>>,
        after: Option<State<'_>>,
    ) -> Result<()> {
        match before {
            Some(state) => {
                let untouched = Untouched::default();
                self.old
                    .make_stored(collection, state.document, untouched)?;
            }
            None => self.old.clear(),
        }
        match after {
            Some(state) => {
                let gathered = &mut Gathered::new();
                self.new.make(collection, state.document, gathered)?;
            }
            None => self.new.clear(),
        }
        let record = |state: Option<State<'_>>| state.map(|state| state.record.clone());
        let stays = record(before) == record(after);
        if let Some(before) = before {
            self.remove(collection, before, stays)?;
        }
        if let Some(after) = after {
            self.put(collection, after, stays)?;
        }
        let size = |state: Option<State<'_>>| {
            state.map_or(0, |state| {
                i64::try_from(state.document.as_bytes().len()).unwrap_or(0)
            })
        };
        let one = |state: Option<State<'_>>| i64::from(state.is_some());
        let number = after.filter(|_| !stays).and_then(|s| s.record.as_number());
        self.work.count(
            collection,
            one(after) - one(before),
            size(after) - size(before),
            number.unwrap_or(0),
        );
        Ok(())
    }

    fn remove(&mut self, collection: &Collection, state: State<'_>, stays: bool) -> Result<()> {
        let (mut entry, mut value) = (Vec::new(), Vec::new());
        for (at, (index, set)) in self.old.with(collection.indexes()) {
            let kept = self.new.of(at).filter(|_| stays);
            for key in set.keys() {
                if kept.is_some_and(|kept| kept.contains(key.bytes)) {
                    continue;
                }
                entry.clear();
                value.clear();
                index.append_entry(key, state.record, &mut entry, &mut value);
                let deleted = self.work.txn()?.delete_blind(index.tree(), &entry);
                deleted.map_err(error::engine)?;
            }
        }
        if !stays {
            let records = collection.records();
            let deleted = self.work.txn()?.delete_blind(records, &state.record.key());
            deleted.map_err(error::engine)?;
        }
        Ok(())
    }

    fn put(&mut self, collection: &Collection, state: State<'_>, stays: bool) -> Result<()> {
        let (mut entry, mut value) = (Vec::new(), Vec::new());
        for (at, (index, set)) in self.new.with(collection.indexes()) {
            self.work.note_multikey(collection, index, set.multikey())?;
            let there = self.old.of(at).filter(|_| stays);
            for key in set.keys() {
                if there.is_some_and(|there| there.keys().any(|other| other == key)) {
                    continue;
                }
                entry.clear();
                value.clear();
                index.append_entry(key, state.record, &mut entry, &mut value);
                if index.unique() {
                    if index.spec().is_id() {
                        // Keep its bound of all keys.
                        is_highest(collection, &entry);
                    }
                    self.later
                        .push((index.tree(), entry.clone(), value.clone()));
                    continue;
                }
                let put = self.work.txn()?.put_blind(index.tree(), &entry, &value);
                put.map_err(error::engine)?;
            }
        }
        let (records, key) = (collection.records(), state.record.key());
        let document = state.document.as_bytes();
        let put = self.work.txn()?.put_blind(records, &key, document);
        put.map_err(error::engine)
    }

    /// Put the entries of unique indexes (E3).
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn finish(self) -> Result<()> {
        for (tree, entry, value) in self.later {
            let put = self.work.txn()?.put_blind(tree, &entry, &value);
            put.map_err(error::engine)?;
        }
        Ok(())
    }
}

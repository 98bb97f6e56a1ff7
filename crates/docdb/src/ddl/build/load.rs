//! Step 3 of a build: inserts the sorted entries.
//!
//! - F1. Entries are inserted while no other thread holds the latch: every earlier change of a
//!   document is then committed or rolled back, and recorded with the index.
//! - F2. The entry of a document that may have changed since it was read is inserted only if the
//!   document still has it. The writer that changed the document has inserted its new entries, and
//!   removed those that it no longer has.
//! - F3. So every entry of the index belongs to a document that has it, and a key of a unique index
//!   that exists for another record is a duplicate.

use std::sync::Arc;

use bson::RawDocument;
use kv::{Durability, ErrorKind};
use query::Result;

use super::Begun;
use super::scan::Found;
use super::sorter::{Entry, Sorted};
use crate::collection::{Collection, duplicate};
use crate::error;
use crate::index::{self, Build, Index, KeySet};
use crate::stop::{Point, reach};
use crate::store::Store;
use crate::txn::{Op, Work};

/// Entries inserted at once: takes some milliseconds, during which writers wait.
const PORTION: usize = if cfg!(test) { 64 } else { 2_048 };

impl Store {
    /// Insert the entries found for the indexes.
    ///
    /// # Errors
    /// `DuplicateKey`; the operation must end; the collection no longer exists; errors of the
    /// engine.
    pub(super) fn put_found(&self, op: &Op<'_>, begun: &Begun, found: Vec<Found>) -> Result<()> {
        let entries = found.iter().map(|found| found.count).sum();
        op.begin_stage(
            "Index Build: inserting keys from external sorter into index",
            entries,
        );
        let mut portion = Vec::with_capacity(PORTION);
        for (index, found) in begun.indexes.iter().zip(found) {
            let Found {
                mut entries,
                multikey,
                ..
            } = found;
            self.apart(op, begun, &mut |work, collection| {
                work.note_multikey(collection, index, &multikey)
            })?;
            while fill(&mut portion, &mut entries)? {
                self.apart(op, begun, &mut |work, collection| {
                    let mut load = Load {
                        work,
                        collection,
                        build: &begun.build,
                        index,
                        document: Vec::new(),
                        keys: KeySet::new(),
                    };
                    portion.iter().try_for_each(|entry| load.put(entry))
                })?;
                op.advance_stage(portion.len());
                reach(Point::Put);
            }
        }
        Ok(())
    }

    /// Run and commit `body` while no other thread holds the latch.
    fn apart(
        &self,
        op: &Op<'_>,
        begun: &Begun,
        body: &mut dyn FnMut(&mut Work<'_>, &Collection) -> Result<()>,
    ) -> Result<()> {
        op.check()?;
        let collection = self.building(begun)?;
        let alone = self.hold(op, &collection)?;
        // The collection may have been dropped while this waited for the latch.
        let collection = self.building(begun)?;
        assert!(
            alone.is_of(&collection.core().latch),
            "F1: the latch of the collection is held"
        );
        let mut work = Work::new(self, op.ends());
        body(&mut work, &collection)?;
        work.commit(Durability::Interval)
    }
}

/// Fill a portion with the next entries; false at the end.
fn fill(portion: &mut Vec<Entry>, entries: &mut Sorted) -> Result<bool> {
    portion.clear();
    while portion.len() < PORTION
        && let Some(entry) = entries.next()?
    {
        portion.push(entry);
    }
    Ok(!portion.is_empty())
}

struct Load<'a, 's> {
    work: &'a mut Work<'s>,
    collection: &'a Collection,
    build: &'a Build,
    index: &'a Arc<Index>,
    document: Vec<u8>,
    keys: KeySet,
}

impl Load<'_, '_> {
    fn put(&mut self, (key, value): &Entry) -> Result<()> {
        let index = self.index;
        let entry = self.read(key, value)?;
        if self.build.may_have_changed(&entry.record) && !self.is_there(&entry)? {
            return Ok(());
        }
        let txn = self.work.txn()?;
        if !index.unique() {
            return txn
                .put_blind(index.tree(), key, value)
                .map_err(error::engine);
        }
        match txn.insert(index.tree(), key, value) {
            Err(e) if e.kind() == ErrorKind::Exists => self.check_same(&entry, key),
            put => put.map_err(error::engine),
        }
    }

    fn read<'e>(&self, key: &'e [u8], value: &'e [u8]) -> Result<index::Entry<'e>> {
        let entry = self.index.read_entry(key, value);
        entry.ok_or_else(|| self.collection.corrupt_index(self.index))
    }

    /// Whether the document currently has the entry.
    fn is_there(&mut self, entry: &index::Entry<'_>) -> Result<bool> {
        let snapshot = self.work.snapshot()?;
        let found = self
            .collection
            .fetch(snapshot, &entry.record, &mut self.document)?;
        if !found {
            return Ok(false);
        }
        let document = RawDocument::from_bytes(&self.document)?;
        self.index.maker().keys(document, &mut self.keys)?;
        Ok(self.keys.keys().any(|there| there == entry.key()))
    }

    /// Check that an existing key belongs to the same document, in which case a writer has inserted
    /// it.
    fn check_same(&mut self, entry: &index::Entry<'_>, key: &[u8]) -> Result<()> {
        let mut value = Vec::new();
        let snapshot = self.work.snapshot()?;
        let found = snapshot.get_into(self.index.tree(), key, &mut value);
        found.map_err(error::engine)?;
        if self.read(key, &value)?.record == entry.record {
            return Ok(());
        }
        Err(duplicate(self.collection, self.index, entry.key()))
    }
}

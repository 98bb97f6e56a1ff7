//! Step 2 of a build: reads all documents and sorts their index entries.
//!
//! Writers continue meanwhile; each document is read in its state at the time of the read.

use std::ops::Bound;
use std::sync::Arc;

use bson::RawDocument;
use kv::{Direction, KeyRange};
use query::Result;

use super::Begun;
use super::sorter::{Sorted, Sorter};
use crate::collection::Collection;
use crate::error;
use crate::index::{Index, KeySet};
use crate::stop::{Point, reach};
use crate::store::Store;
use crate::txn::Op;

/// Maximum number of documents read in one snapshot: the engine keeps old versions for as long as a
/// snapshot is open.
const PORTION: usize = if cfg!(test) { 32 } else { 1_024 };

/// The entries found for an index.
pub(super) struct Found {
    pub(super) entries: Sorted,
    pub(super) count: u64,
    /// Per field, a bit for each part of its path that was an array.
    pub(super) multikey: Vec<u32>,
}

struct Scan<'a> {
    collection: &'a Collection,
    indexes: &'a [Arc<Index>],
    sorters: Vec<Sorter>,
    multikey: Vec<Vec<u32>>,
    keys: KeySet,
    entry: (Vec<u8>, Vec<u8>),
    /// Documents read since the last check.
    taken: usize,
}

impl Store {
    /// Find the entries of all indexes of the build.
    ///
    /// # Errors
    /// Documents that cannot be indexed; the operation must end; the collection no longer exists;
    /// errors of the engine.
    pub(super) fn find_entries(&self, op: &Op<'_>, begun: &Begun) -> Result<Vec<Found>> {
        let indexes = begun.indexes.as_slice();
        let collection = self.building(begun)?;
        let memory = self.tuning().index_memory() / indexes.len().max(1);
        let sorter = |_: &Arc<Index>| Sorter::new(memory, self.spill_place());
        let mut scan = Scan {
            collection: &collection,
            indexes,
            sorters: indexes.iter().map(sorter).collect(),
            multikey: vec![Vec::new(); indexes.len()],
            keys: KeySet::new(),
            entry: Default::default(),
            taken: 0,
        };
        let documents = collection.core().counts.documents();
        op.begin_stage(
            "Index Build: scanning collection",
            u64::try_from(documents).unwrap_or(0),
        );
        let mut after = None;
        loop {
            op.check()?;
            self.building(begun)?;
            after = scan.portion(self, after)?;
            op.advance_stage(std::mem::take(&mut scan.taken));
            reach(Point::Read);
            if after.is_none() {
                return scan.finish();
            }
        }
    }
}

impl Scan<'_> {
    /// Read the next portion of documents after a record key; returns the key of the last one, or
    /// `None` at the end.
    fn portion(&mut self, store: &Store, after: Option<Vec<u8>>) -> Result<Option<Vec<u8>>> {
        let range = KeyRange {
            start: after.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
            end: Bound::Unbounded,
        };
        let snapshot = store.engine().begin_read().map_err(error::engine)?;
        let cursor = snapshot.cursor(self.collection.records(), range, Direction::Forward);
        let mut cursor = cursor.map_err(error::engine)?;
        for _ in 0..PORTION {
            if !cursor.advance().map_err(error::engine)? {
                return Ok(None);
            }
            self.take(cursor.key(), cursor.value())?;
            self.taken += 1;
        }
        Ok(Some(cursor.key().to_vec()))
    }

    fn take(&mut self, key: &[u8], document: &[u8]) -> Result<()> {
        let record = self.collection.record(key)?;
        let document = RawDocument::from_bytes(document)?;
        let each = self.indexes.iter().zip(&mut self.sorters);
        for ((index, sorter), multikey) in each.zip(&mut self.multikey) {
            index.maker().keys(document, &mut self.keys)?;
            let arrays = self.keys.multikey();
            multikey.resize(multikey.len().max(arrays.len()), 0);
            multikey
                .iter_mut()
                .zip(arrays)
                .for_each(|(all, new)| *all |= new);
            let (entry, value) = &mut self.entry;
            for key in self.keys.keys() {
                entry.clear();
                value.clear();
                index.append_entry(key, &record, entry, value);
                sorter.push(entry, value)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<Found>> {
        let found = self.sorters.into_iter().zip(self.multikey);
        found
            .map(|(sorter, multikey)| {
                let count = sorter.count();
                let entries = sorter.finish()?;
                Ok(Found {
                    entries,
                    count,
                    multikey,
                })
            })
            .collect()
    }
}

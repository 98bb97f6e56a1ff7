//! A document and its index entries, put and removed together: all writes come through here.
//!
//! - E1. What is put for a document is what the key generator gives for it, and nothing else; what
//!   is removed for a document is what it gives for the bytes that were stored.
//! - E2. A write that is refused (a duplicate key, arrays that cannot be indexed) leaves nothing of
//!   its document in the transaction: all keys are made before the first is put, and unique ones
//!   are put before all others and taken back.

use std::ops::Bound;
use std::sync::Arc;

use bson::{Bson, RawBsonRef, RawDocument, doc};
use kv::{Direction, KeyRange, TreeId};
use query::update::Update;
use query::{Code, Error, Result};

use crate::collection::{Collection, Gathered, duplicate};
use crate::document::shell;
use crate::error;
use crate::index::{FieldKind, Index, Key, KeySet};
use crate::key::Encoder;
use crate::record::RecordId;
use crate::txn::Work;

/// Key sets of one document, index by index.
#[derive(Default)]
pub(crate) struct KeySets(Vec<KeySet>);

/// Indexes, by their place in the collection, whose entries a change of a document leaves alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Untouched(u64);

impl Untouched {
    /// Those that hold nothing of what an update may change. Which documents a partial index holds,
    /// and which paths a wildcard index, is said by more than its fields: they are never among
    /// them.
    pub(crate) fn by(update: &Update, collection: &Collection) -> Untouched {
        let mut places = 0;
        for (at, index) in collection.indexes().iter().enumerate().take(64) {
            let keeps = |(path, kind): &(String, FieldKind)| {
                *kind != FieldKind::Wildcard && !update.touches(path)
            };
            if index.spec().partial.is_none() && index.fields().iter().all(keeps) {
                places |= 1 << at;
            }
        }
        Untouched(places)
    }

    fn has(self, at: usize) -> bool {
        at < 64 && self.0 >> at & 1 == 1
    }
}

impl KeySets {
    fn make<'d>(
        &mut self,
        collection: &Collection,
        document: &'d RawDocument,
        gathered: &mut Gathered<'d>,
    ) -> Result<()> {
        self.make_but(collection, document, gathered, Untouched::default())
    }

    /// The same, with nothing for the indexes that are left alone.
    fn make_but<'d>(
        &mut self,
        collection: &Collection,
        document: &'d RawDocument,
        gathered: &mut Gathered<'d>,
        untouched: Untouched,
    ) -> Result<()> {
        collection.gather(document, gathered)?;
        let indexes = collection.indexes();
        self.0.resize_with(indexes.len(), KeySet::new);
        for (at, (index, keys)) in indexes.iter().zip(&mut self.0).enumerate() {
            if untouched.has(at) {
                keys.clear();
                continue;
            }
            let top = |field| collection.top(at, field, gathered);
            index.maker().make(document, top, keys)?;
        }
        Ok(())
    }
}

impl Work<'_> {
    /// Put a new document under a record.
    pub(crate) fn put_new<'d>(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        document: &'d RawDocument,
        gathered: &mut Gathered<'d>,
    ) -> Result<()> {
        let mut sets = std::mem::take(&mut self.new_keys);
        let made = sets.make(collection, document, gathered);
        let put = made.and_then(|()| self.put_entries(collection, record, &sets, None));
        self.new_keys = sets;
        put?;
        self.put_record(collection, record, document)
    }

    /// Replace a document by another with the same `_id`.
    pub(crate) fn replace(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        (old, new): (&RawDocument, &RawDocument),
        untouched: Untouched,
    ) -> Result<()> {
        self.intend_record(collection, record)?;
        note_change(collection, record);
        let mut sets = std::mem::take(&mut self.new_keys);
        let mut old_sets = std::mem::take(&mut self.old_keys);
        let done = sets
            .make_but(collection, new, &mut Gathered::new(), untouched)
            .and_then(|()| old_sets.make_but(collection, old, &mut Gathered::new(), untouched))
            .and_then(|()| self.put_entries(collection, record, &sets, Some(&old_sets)))
            .and_then(|()| self.delete_entries(collection, record, &old_sets, Some(&sets)));
        self.new_keys = sets;
        self.old_keys = old_sets;
        done?;
        let mut key = std::mem::take(&mut self.entry_key);
        key.clear();
        record.append_key(&mut key);
        let put = self.txn()?.put(collection.records(), &key, new.as_bytes());
        self.entry_key = key;
        put.map_err(error::engine)?;
        let size = |d: &RawDocument| i64::try_from(d.as_bytes().len()).unwrap_or(0);
        self.count(collection, 0, size(new) - size(old), 0);
        Ok(())
    }

    /// Remove a document.
    pub(crate) fn remove(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        document: &RawDocument,
    ) -> Result<()> {
        self.intend_record(collection, record)?;
        note_change(collection, record);
        let mut sets = std::mem::take(&mut self.old_keys);
        let made = sets.make(collection, document, &mut Gathered::new());
        let done = made.and_then(|()| self.delete_entries(collection, record, &sets, None));
        self.old_keys = sets;
        done?;
        let deleted = self.txn()?.delete(collection.records(), &record.key());
        deleted.map_err(error::engine)?;
        let size = i64::try_from(document.as_bytes().len()).unwrap_or(0);
        self.count(collection, -1, -size, 0);
        Ok(())
    }

    /// A document is about to be changed or removed: before anything of it is.
    fn intend_record(&mut self, collection: &Collection, record: &RecordId) -> Result<()> {
        let mut key = std::mem::take(&mut self.entry_key);
        key.clear();
        record.append_key(&mut key);
        let intended = self.intend(collection.records(), &key);
        self.entry_key = key;
        intended
    }

    fn put_record(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        document: &RawDocument,
    ) -> Result<()> {
        let mut key = std::mem::take(&mut self.entry_key);
        key.clear();
        record.append_key(&mut key);
        let records = collection.records();
        let put = if collection.is_clustered() {
            // `clustered_record` has claimed the key.
            self.txn()?.put(records, &key, document.as_bytes())
        } else {
            self.txn()?.put_blind(records, &key, document.as_bytes())
        };
        self.entry_key = key;
        put.map_err(error::engine)
    }

    /// Put the entries of `sets` that are not in `but`, unique ones first (E2).
    fn put_entries(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        sets: &KeySets,
        but: Option<&KeySets>,
    ) -> Result<()> {
        let indexes = collection.indexes();
        let is_new = |at: usize, key: &Key<'_>| {
            !but.and_then(|b| b.0.get(at))
                .is_some_and(|set| set.keys().any(|k| k == *key))
        };
        let was_there = |at: usize, key: &Key<'_>| {
            but.and_then(|b| b.0.get(at))
                .is_some_and(|set| set.contains(key.bytes))
        };
        for (at, (index, set)) in indexes.iter().zip(&sets.0).enumerate() {
            if index.spec().prepare_unique && !index.unique() {
                for key in set.keys().filter(|k| is_new(at, k) && !was_there(at, k)) {
                    self.check_alone(collection, index, key, record)?;
                }
            }
        }
        let mut undo: Vec<(usize, usize)> = Vec::new();
        for unique in [true, false] {
            let pairs = indexes.iter().zip(&sets.0).enumerate();
            for (at, (index, set)) in pairs.filter(|(_, (i, _))| i.unique() == unique) {
                self.learn(collection, index, set.multikey())?;
                for (place, key) in set.keys().enumerate().filter(|(_, k)| is_new(at, k)) {
                    // A key that stays and has other type bits is put over the old one.
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
    fn delete_entries(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        sets: &KeySets,
        but: Option<&KeySets>,
    ) -> Result<()> {
        for (at, (index, set)) in collection.indexes().iter().zip(&sets.0).enumerate() {
            let kept = but.and_then(|b| b.0.get(at));
            for key in set.keys() {
                if !kept.is_some_and(|set| set.contains(key.bytes)) {
                    self.delete_entry(index, key, record)?;
                }
            }
        }
        Ok(())
    }

    /// Put an entry, whether or not it is there.
    pub(crate) fn put_entry(
        &mut self,
        index: &Index,
        key: Key<'_>,
        record: &RecordId,
    ) -> Result<()> {
        self.with_entry(index, key, record, |work, entry, value| {
            let put = work.txn()?.put_blind(index.tree(), entry, value);
            put.map_err(error::engine)
        })
    }

    /// Put a new entry of a unique index.
    pub(crate) fn insert_unique(
        &mut self,
        collection: &Collection,
        index: &Index,
        key: Key<'_>,
        record: &RecordId,
    ) -> Result<()> {
        self.with_entry(index, key, record, |work, entry, value| {
            work.intend(index.tree(), entry)?;
            let fresh = index.spec().is_id() && is_highest(collection, entry);
            let txn = work.txn()?;
            let put = if fresh {
                txn.put(index.tree(), entry, value)
            } else {
                txn.insert(index.tree(), entry, value)
            };
            match put {
                Err(e) if e.kind() == kv::ErrorKind::Exists => {
                    Err(duplicate(collection, index, key))
                }
                other => other.map_err(error::engine),
            }
        })
    }

    /// Check that no other document has this key, of an index that is to become unique. Whoever
    /// puts the same key at the same time conflicts here.
    fn check_alone(
        &mut self,
        collection: &Collection,
        index: &Index,
        key: Key<'_>,
        record: &RecordId,
    ) -> Result<()> {
        // No entry is the key alone.
        let tree = index.tree();
        self.clear(tree, key.bytes)?;
        let txn = self.txn()?;
        let range = KeyRange {
            start: Bound::Included(key.bytes),
            end: Bound::Unbounded,
        };
        let cursor = txn.cursor(tree, range, Direction::Forward);
        let mut cursor = cursor.map_err(error::engine)?;
        while cursor.advance().map_err(error::engine)? && cursor.key().starts_with(key.bytes) {
            let entry = index.read_entry(cursor.key(), cursor.value());
            let entry = entry.ok_or_else(|| collection.corrupt_index(index))?;
            if entry.key == key.bytes && entry.record != *record {
                return Err(duplicate(collection, index, key));
            }
        }
        Ok(())
    }

    /// Remove an entry. The document's record is written in the same transaction, so that two
    /// transactions that do this conflict there.
    fn delete_entry(&mut self, index: &Index, key: Key<'_>, record: &RecordId) -> Result<()> {
        if index.unique() && !index.is_ready() {
            return self.delete_own(index, key, record);
        }
        let frees = index.unique() && self.is_many();
        self.with_entry(index, key, record, |work, entry, _| {
            // An insert of the key waits for the outcome.
            if frees {
                work.intend(index.tree(), entry)?;
            }
            let deleted = work.txn()?.delete_blind(index.tree(), entry);
            deleted.map_err(error::engine)
        })
    }

    /// Put an entry of a unique index that is built over the document's own: until the build has
    /// put those of all documents, another document may have put the same key.
    fn put_own(
        &mut self,
        collection: &Collection,
        index: &Index,
        key: Key<'_>,
        record: &RecordId,
    ) -> Result<()> {
        if self.is_anothers(index, key.bytes, record)? {
            return Err(duplicate(collection, index, key));
        }
        self.with_entry(index, key, record, |work, entry, value| {
            work.intend(index.tree(), entry)?;
            let put = work.txn()?.put(index.tree(), entry, value);
            put.map_err(error::engine)
        })
    }

    /// Remove an entry of a unique index that is built, unless another document has put the same
    /// key. One that a transaction does not see may have come since it began: then it must conflict
    /// with whoever put it.
    fn delete_own(&mut self, index: &Index, key: Key<'_>, record: &RecordId) -> Result<()> {
        if self.is_anothers(index, key.bytes, record)? {
            return Ok(());
        }
        self.clear(index.tree(), key.bytes)
    }

    /// See to it that a key is not there, in conflict with whoever puts it at the same time: to
    /// remove what is not there conflicts with nobody, so it is put before.
    fn clear(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.intend(tree, key)?;
        let txn = self.txn()?;
        txn.put(tree, key, &[]).map_err(error::engine)?;
        txn.delete(tree, key).map_err(error::engine)?;
        Ok(())
    }

    /// Whether a key of a unique index is there with another document.
    fn is_anothers(&mut self, index: &Index, entry: &[u8], record: &RecordId) -> Result<bool> {
        let found = self.txn()?.get(index.tree(), entry);
        let found = found.map_err(error::engine)?;
        let there = found
            .as_deref()
            .and_then(|value| index.read_entry(entry, value));
        Ok(there.is_some_and(|there| there.record != *record))
    }

    /// Take back unique entries: pairs of an index and the place in its set.
    fn undo(
        &mut self,
        indexes: &[Arc<Index>],
        sets: &KeySets,
        undo: &[(usize, usize)],
    ) -> Result<()> {
        for (at, place) in undo {
            let key = sets.0.get(*at).and_then(|set| set.keys().nth(*place));
            if let (Some(index), Some(key)) = (indexes.get(*at), key) {
                self.txn()?
                    .delete(index.tree(), key.bytes)
                    .map_err(error::engine)?;
            }
        }
        Ok(())
    }

    /// Do something with the key and the value of an entry, made in buffers that are kept.
    fn with_entry<R>(
        &mut self,
        index: &Index,
        key: Key<'_>,
        record: &RecordId,
        body: impl FnOnce(&mut Self, &[u8], &[u8]) -> R,
    ) -> R {
        let mut entry = std::mem::take(&mut self.entry_key);
        let mut value = std::mem::take(&mut self.entry_value);
        entry.clear();
        value.clear();
        index.append_entry(key, record, &mut entry, &mut value);
        let done = body(self, &entry, &value);
        self.entry_key = entry;
        self.entry_value = value;
        done
    }

    /// The record of a document that is new in a clustered collection.
    pub(crate) fn clustered_record(
        &mut self,
        collection: &Collection,
        document: &RawDocument,
    ) -> Result<RecordId> {
        let id = document.get("_id")?.unwrap_or(RawBsonRef::Null);
        let mut encoder = Encoder::new();
        encoder.append(id, false, collection.collation().map(AsRef::as_ref))?;
        encoder.end();
        let key = encoder.bytes();
        let limit = self.store.key_limit(true);
        if limit < key.len() {
            let message = format!("the _id of a clustered collection has at most {limit} bytes");
            return Err(Error::bad_value(message));
        }
        let mut found = Vec::new();
        let records = collection.records();
        self.intend(records, key)?;
        if !self
            .txn()?
            .get_into(records, key, &mut found)
            .map_err(error::engine)?
        {
            return Ok(RecordId::clustered(key));
        }
        let id = Bson::try_from(id)?;
        let name = collection.options().clustered.as_deref().unwrap_or("_id_");
        let message = format!(
            "E11000 duplicate key error collection: {} index: {name} dup key: {}",
            collection.ns(),
            shell(&doc! { "_id": id.clone() })
        );
        let details = doc! { "keyPattern": { "_id": 1 }, "keyValue": { "_id": id } };
        Err(Error::new(Code::DUPLICATE_KEY, message).with_details(details))
    }
}

/// Tell the builds of indexes that a document changes.
fn note_change(collection: &Collection, record: &RecordId) {
    for index in collection.indexes() {
        index.note_change(record);
    }
}

/// Whether a key of the index on `_id` is beyond all there ever were; it is the highest then.
fn is_highest(collection: &Collection, key: &[u8]) -> bool {
    let mut highest = collection.core().highest_id.lock();
    if key <= highest.as_slice() {
        return false;
    }
    highest.clear();
    highest.extend_from_slice(key);
    true
}

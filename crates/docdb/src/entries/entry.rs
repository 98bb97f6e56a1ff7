//! Single entries of indexes, and the records of documents.

use std::ops::Bound;

use bson::{Bson, RawBsonRef, RawDocument, doc};
use kv::{Direction, KeyRange, TreeId};
use query::{Error, Result};

use crate::collection::{Collection, duplicate, duplicate_values};
use crate::error;
use crate::index::{Index, IndexSpec, Key};
use crate::key::Encoder;
use crate::record::RecordId;
use crate::txn::Work;

/// Puts and removes entries in a transaction.
pub(crate) struct Entries<'w, 's> {
    pub(super) work: &'w mut Work<'s>,
    /// Buffers reused for each entry.
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'w, 's> Entries<'w, 's> {
    /// Entries written in the transaction of this work.
    pub(crate) fn new(work: &'w mut Work<'s>) -> Entries<'w, 's> {
        Entries {
            work,
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Put an entry, whether or not it exists.
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
    pub(super) fn insert_unique(
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

    /// Check that no other document has this key, for an index that is to become unique. Causes a
    /// conflict with concurrent writers of the same key.
    pub(super) fn check_alone(
        &mut self,
        collection: &Collection,
        index: &Index,
        key: Key<'_>,
        record: &RecordId,
    ) -> Result<()> {
        // No entry consists of the key alone.
        let tree = index.tree();
        self.clear(tree, key.bytes)?;
        let txn = self.work.txn()?;
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
    /// transactions that remove the same entry conflict on the record.
    pub(super) fn delete_entry(
        &mut self,
        index: &Index,
        key: Key<'_>,
        record: &RecordId,
    ) -> Result<()> {
        if index.unique() && !index.is_ready() {
            return self.delete_own(index, key, record);
        }
        let frees = index.unique() && self.work.is_multi_document();
        self.with_entry(index, key, record, |work, entry, _| {
            // A concurrent insert of the key waits for the outcome.
            if frees {
                work.intend(index.tree(), entry)?;
            }
            let deleted = work.txn()?.delete_blind(index.tree(), entry);
            deleted.map_err(error::engine)
        })
    }

    /// Put an entry of a unique index being built over the document's own entry: until the build
    /// has inserted the entries of all documents, another document may have inserted the same key.
    pub(super) fn put_own(
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

    /// Remove an entry of a unique index being built, unless another document has inserted the same
    /// key. If the transaction does not see the entry, it may have been inserted since the
    /// transaction began: then the removal must conflict with the writer that inserted it.
    fn delete_own(&mut self, index: &Index, key: Key<'_>, record: &RecordId) -> Result<()> {
        if self.is_anothers(index, key.bytes, record)? {
            return Ok(());
        }
        self.clear(index.tree(), key.bytes)
    }

    /// Make sure that a key does not exist, and conflict with concurrent writers of it. Deleting a
    /// missing key conflicts with no writer, so the key is put first.
    fn clear(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.work.intend(tree, key)?;
        let txn = self.work.txn()?;
        txn.put(tree, key, &[]).map_err(error::engine)?;
        txn.delete(tree, key).map_err(error::engine)?;
        Ok(())
    }

    /// Whether a key of a unique index belongs to another document.
    fn is_anothers(&mut self, index: &Index, entry: &[u8], record: &RecordId) -> Result<bool> {
        let found = self.work.txn()?.get(index.tree(), entry);
        let found = found.map_err(error::engine)?;
        let there = found
            .as_deref()
            .and_then(|value| index.read_entry(entry, value));
        Ok(there.is_some_and(|there| there.record != *record))
    }

    /// Call a closure with the key and the value of an entry.
    fn with_entry<R>(
        &mut self,
        index: &Index,
        key: Key<'_>,
        record: &RecordId,
        body: impl FnOnce(&mut Work<'s>, &[u8], &[u8]) -> R,
    ) -> R {
        self.key.clear();
        self.value.clear();
        index.append_entry(key, record, &mut self.key, &mut self.value);
        body(self.work, &self.key, &self.value)
    }

    /// Declare the intent to change or remove a document; call it before any change.
    pub(super) fn intend_record(
        &mut self,
        collection: &Collection,
        record: &RecordId,
    ) -> Result<()> {
        self.make_record_key(record);
        self.work.intend(collection.records(), &self.key)
    }

    /// Put the bytes of a document; `blind` if its record is known not to exist.
    pub(super) fn put_record(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        document: &RawDocument,
        blind: bool,
    ) -> Result<()> {
        self.make_record_key(record);
        let (records, txn) = (collection.records(), self.work.txn()?);
        let put = match blind {
            true => txn.put_blind(records, &self.key, document.as_bytes()),
            false => txn.put(records, &self.key, document.as_bytes()),
        };
        put.map_err(error::engine)
    }

    fn make_record_key(&mut self, record: &RecordId) {
        self.key.clear();
        record.append_key(&mut self.key);
    }

    /// The record id of a new document in a clustered collection.
    pub(super) fn clustered_record(
        &mut self,
        collection: &Collection,
        document: &RawDocument,
    ) -> Result<RecordId> {
        let id = document.get("_id")?.unwrap_or(RawBsonRef::Null);
        let mut encoder = Encoder::new();
        encoder.append(id, false, collection.collation().map(AsRef::as_ref))?;
        encoder.end();
        let key = encoder.bytes();
        let store = self.work.store;
        let limit = store.clustered_limit();
        if limit < key.len() {
            let mut message =
                format!("the _id of a clustered collection has at most {limit} bytes");
            if limit < store.key_limit(true) {
                message.push_str(
                    ": a member of the replica set has an engine that stores no longer keys \
                     (keyMaxBytes in replSetGetStatus)",
                );
            }
            return Err(Error::bad_value(message));
        }
        let mut found = Vec::new();
        let records = collection.records();
        self.work.intend(records, key)?;
        if !self
            .work
            .txn()?
            .get_into(records, key, &mut found)
            .map_err(error::engine)?
        {
            return Ok(RecordId::clustered(key));
        }
        let mut index = IndexSpec::id(None);
        if let Some(name) = &collection.options().clustered {
            index.name.clone_from(name);
        }
        let values = doc! { "_id": Bson::try_from(id)? };
        Err(duplicate_values(collection, &index, values))
    }
}

/// Whether a key of the index on `_id` is higher than every earlier key; if so, records it as the
/// highest.
pub(super) fn is_highest(collection: &Collection, key: &[u8]) -> bool {
    let mut highest = collection.core().highest_id.lock();
    if key <= highest.as_slice() {
        return false;
    }
    highest.clear();
    highest.extend_from_slice(key);
    true
}

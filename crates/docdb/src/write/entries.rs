//! A document and its index entries, put and removed together: all writes come through here.
//!
//! - E1. What is put for a document is what the key generator gives for it, and nothing else; what is
//!   removed for a document is what it gives for the bytes that were stored.
//! - E2. A write that is refused (a duplicate key) leaves nothing of its document in the transaction.

use std::sync::Arc;

use bson::{Bson, Document, RawBsonRef, RawDocument, doc};
use query::{Code, Error, Result};

use crate::collection::{Collection, Gathered};
use crate::error;
use crate::index::{Index, Key};
use crate::key::{Encoder, decode};
use crate::record::RecordId;
use crate::work::Work;

impl Work<'_> {
    /// Put a new document under a record.
    pub(crate) fn put_new<'d>(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        document: &'d RawDocument,
        gathered: &mut Gathered<'d>,
    ) -> Result<()> {
        collection.gather(document, gathered)?;
        let indexes = collection.indexes();
        // Unique indexes first: a refusal must leave nothing, and what came before it is few (E2).
        let mut undo: Vec<(usize, Vec<u8>)> = Vec::new();
        for (at, index) in indexes.iter().enumerate().filter(|(_, i)| i.unique()) {
            let put = self.put_unique(collection, at, index, record, document, gathered, &mut undo);
            if let Err(error) = put {
                self.undo(indexes, &undo)?;
                return Err(error);
            }
        }
        for (at, index) in indexes.iter().enumerate().filter(|(_, i)| !i.unique()) {
            if let Err(error) = self.put_plain(collection, at, index, record, document, gathered) {
                self.undo(indexes, &undo)?;
                return Err(error);
            }
        }
        let mut key = std::mem::take(&mut self.entry_key);
        key.clear();
        record.append_key(&mut key);
        let records = collection.records();
        let put = if collection.is_clustered() {
            self.txn()?.put(records, &key, document.as_bytes())
        } else {
            self.txn()?.put_blind(records, &key, document.as_bytes())
        };
        self.entry_key = key;
        put.map_err(error::engine)
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

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one document on its way"
    )]
    fn put_unique<'d>(
        &mut self,
        collection: &Collection,
        at: usize,
        index: &Arc<Index>,
        record: &RecordId,
        document: &'d RawDocument,
        gathered: &Gathered<'d>,
        undo: &mut Vec<(usize, Vec<u8>)>,
    ) -> Result<()> {
        let mut keys = std::mem::take(&mut self.keys);
        let made = index
            .maker()
            .make(document, |f| collection.top(at, f, gathered), &mut keys);
        let done = made.and_then(|()| {
            self.learn(collection, index, keys.multikey())?;
            for key in keys.keys() {
                self.insert_unique(collection, index, key, record)?;
                undo.push((at, key.bytes.to_vec()));
            }
            Ok(())
        });
        self.keys = keys;
        done
    }

    fn put_plain<'d>(
        &mut self,
        collection: &Collection,
        at: usize,
        index: &Arc<Index>,
        record: &RecordId,
        document: &'d RawDocument,
        gathered: &Gathered<'d>,
    ) -> Result<()> {
        let mut keys = std::mem::take(&mut self.keys);
        let made = index
            .maker()
            .make(document, |f| collection.top(at, f, gathered), &mut keys);
        let done = made.and_then(|()| {
            self.learn(collection, index, keys.multikey())?;
            keys.keys()
                .try_for_each(|key| self.put_entry(index, key, record))
        });
        self.keys = keys;
        done
    }

    /// Put an entry of an index that is not unique.
    pub(crate) fn put_entry(
        &mut self,
        index: &Index,
        key: Key<'_>,
        record: &RecordId,
    ) -> Result<()> {
        let (mut entry, mut value) = self.take_entry();
        index.append_entry(key, record, &mut entry, &mut value);
        let put = self.txn()?.put_blind(index.tree(), &entry, &value);
        self.give_entry(entry, value);
        put.map_err(error::engine)
    }

    /// Put an entry of a unique index.
    pub(crate) fn insert_unique(
        &mut self,
        collection: &Collection,
        index: &Index,
        key: Key<'_>,
        record: &RecordId,
    ) -> Result<()> {
        let (mut entry, mut value) = self.take_entry();
        index.append_entry(key, record, &mut entry, &mut value);
        let fresh = index.spec().is_id() && is_highest(collection, &entry);
        let txn = self.txn()?;
        let put = if fresh {
            txn.put(index.tree(), &entry, &value)
        } else {
            txn.insert(index.tree(), &entry, &value)
        };
        self.give_entry(entry, value);
        match put {
            Err(e) if e.kind() == kv::ErrorKind::Exists => Err(duplicate(collection, index, key)),
            other => other.map_err(error::engine),
        }
    }

    /// Remove an entry.
    pub(crate) fn delete_entry(
        &mut self,
        index: &Index,
        key: Key<'_>,
        record: &RecordId,
    ) -> Result<()> {
        let (mut entry, mut value) = self.take_entry();
        index.append_entry(key, record, &mut entry, &mut value);
        let deleted = self.txn()?.delete_blind(index.tree(), &entry);
        self.give_entry(entry, value);
        deleted.map_err(error::engine)
    }

    /// Remove what [`Work::put_unique`] has put of a document.
    fn undo(&mut self, indexes: &[Arc<Index>], undo: &[(usize, Vec<u8>)]) -> Result<()> {
        for (at, key) in undo {
            if let Some(index) = indexes.get(*at) {
                self.txn()?
                    .delete(index.tree(), key)
                    .map_err(error::engine)?;
            }
        }
        Ok(())
    }

    fn take_entry(&mut self) -> (Vec<u8>, Vec<u8>) {
        let mut entry = std::mem::take(&mut self.entry_key);
        let mut value = std::mem::take(&mut self.entry_value);
        entry.clear();
        value.clear();
        (entry, value)
    }

    fn give_entry(&mut self, entry: Vec<u8>, value: Vec<u8>) {
        self.entry_key = entry;
        self.entry_value = value;
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

/// The error of a key that is there already.
pub(crate) fn duplicate(collection: &Collection, index: &Index, key: Key<'_>) -> Error {
    let mut values = Document::new();
    let decoded = match index.maker().collation() {
        None => decode(key.bytes, key.type_bits, index.directions()).ok(),
        Some(_) => None,
    };
    let names = index.spec().key.keys();
    match decoded {
        Some((decoded, _)) => {
            for (name, value) in names.zip(decoded) {
                values.insert(name, Bson::try_from(value).unwrap_or(Bson::Null));
            }
        }
        None => {
            for name in names {
                values.insert(name, Bson::Null);
            }
        }
    }
    let shown = if index.maker().collation().is_some() {
        format!(
            " collation: {}",
            shell(&index.spec().collation.clone().unwrap_or_default())
        )
    } else {
        String::new()
    };
    let message = format!(
        "E11000 duplicate key error collection: {} index: {}{shown} dup key: {}",
        collection.ns(),
        index.name(),
        shell(&values)
    );
    Error::new(Code::DUPLICATE_KEY, message).with_details(doc! {
        "keyPattern": index.spec().key.clone(),
        "keyValue": values,
    })
}

/// A document as MongoDB's messages show it: `{ a: 1, b: "x" }`.
pub(crate) fn shell(document: &Document) -> String {
    if document.is_empty() {
        return "{}".to_owned();
    }
    let fields: Vec<String> = document
        .iter()
        .map(|(name, value)| format!("{name}: {}", shown(value)))
        .collect();
    format!("{{ {} }}", fields.join(", "))
}

fn shown(value: &Bson) -> String {
    match value {
        Bson::Double(v) if v.is_finite() && v.fract() == 0.0 && v.abs() < 1e15 => format!("{v:.1}"),
        Bson::Double(v) => format!("{v}"),
        Bson::Document(inner) => shell(inner),
        Bson::Array(items) if items.is_empty() => "[]".to_owned(),
        Bson::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[ {} ]", items.join(", "))
        }
        Bson::ObjectId(id) => format!("ObjectId('{}')", id.to_hex()),
        Bson::DateTime(date) => format!("new Date({})", date.timestamp_millis()),
        Bson::Undefined => "undefined".to_owned(),
        Bson::MinKey => "MinKey".to_owned(),
        Bson::MaxKey => "MaxKey".to_owned(),
        other => other.to_string(),
    }
}

//! `validate`: checks documents against index entries in both directions.
//!
//! Every document must be valid BSON and have exactly the entries that the key generator makes for
//! it; every entry must point to a document that has it; the counts must be correct. The report has
//! MongoDB's fields.

use std::sync::Arc;

use bson::{Bson, Document, RawDocument, doc};
use kv::{Direction, KeyRange, Snapshot};
use query::{Code, Error, Namespace, Result};

use crate::collection::{Alone, Collection};
use crate::document;
use crate::error;
use crate::index::{Index, KeySet, is_cut};
use crate::oplog::entry::Entry;
use crate::store::Store;
use crate::txn::Op;

/// Maximum number of errors that a report lists; further errors are only counted.
const ERRORS_MAX: usize = 100;

/// The errors found so far.
#[derive(Default)]
struct Found {
    errors: Vec<Bson>,
    missing: i64,
    extra: i64,
    invalid: i64,
}

impl Found {
    fn error(&mut self, text: String) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(Bson::String(text));
        }
    }
}

impl Store {
    /// Check a collection against its indexes, in one snapshot. Holds the latch exclusively, so
    /// that no other thread writes to the collection.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `CommandNotSupportedOnView`; errors of the engine. Errors found in the
    /// collection are in the report: `valid`, `errors`.
    pub fn validate(&self, op: &Op<'_>, ns: &Namespace) -> Result<Document> {
        let (collection, _alone) = self.hold_existing(op, ns)?;
        let snapshot = self.see()?;
        let snapshot = snapshot.as_ref();
        let mut found = Found::default();
        let mut entries = vec![0_i64; collection.indexes().len()];
        let records = documents(op, snapshot, &collection, &mut entries, &mut found)?;
        let mut keys = Document::new();
        let mut details = Document::new();
        for (index, wanted) in collection.indexes().iter().zip(&entries) {
            let there = walk_index(op, snapshot, &collection, index, &mut found)?;
            if index.is_ready() && there != *wanted {
                found.error(format!(
                    "index {} has {there} entries, its documents want {wanted}",
                    index.name()
                ));
            }
            keys.insert(index.name(), there);
            details.insert(index.name(), doc! { "valid": found.errors.is_empty() });
        }
        // Entries are put while this reads the oplog.
        if collection.count() != records && !collection.is_oplog() {
            found.error(format!(
                "the count says {}, there are {records}",
                collection.count()
            ));
        }
        Ok(doc! {
            "ns": ns.to_string(),
            "uuid": collection.uuid(),
            "nInvalidDocuments": found.invalid,
            "nNonCompliantDocuments": 0_i64,
            "nrecords": records,
            "nIndexes": i32::try_from(collection.indexes().len()).unwrap_or(i32::MAX),
            "keysPerIndex": keys,
            "indexDetails": details,
            "valid": found.errors.is_empty(),
            "repaired": false,
            "warnings": [],
            "errors": found.errors,
            "extraIndexEntries": found.extra,
            "missingIndexEntries": found.missing,
            "corruptRecords": [],
        })
    }
}

impl Store {
    /// The collection with this name, its latch held exclusively.
    fn hold_existing(&self, op: &Op<'_>, ns: &Namespace) -> Result<(Arc<Collection>, Alone)> {
        let missing = |error: Error| {
            let message = match error.code {
                Code::NAMESPACE_NOT_FOUND => {
                    format!("Collection '{ns}' does not exist to validate.")
                }
                Code::COMMAND_NOT_SUPPORTED_ON_VIEW => "Cannot validate a view".to_owned(),
                _ => return error,
            };
            Error::new(error.code, message)
        };
        loop {
            let found = self.existing(ns).map_err(missing)?;
            let alone = self.hold(op, &found)?;
            // The name may by now belong to another collection.
            let now = self.existing(ns).map_err(missing)?;
            if now.uuid() == found.uuid() {
                return Ok((now, alone));
            }
        }
    }
}

/// Check documents against their entries; returns the number of documents, and adds up the entries
/// expected.
fn documents(
    op: &Op<'_>,
    snapshot: &dyn Snapshot,
    collection: &Collection,
    entries: &mut [i64],
    found: &mut Found,
) -> Result<i64> {
    let cursor = snapshot.cursor(collection.records(), KeyRange::ALL, Direction::Forward);
    let mut cursor = cursor.map_err(error::engine)?;
    let (mut records, mut bytes) = (0_i64, 0_i64);
    let mut keys = KeySet::new();
    let (mut entry_key, mut entry_value, mut stored) = (Vec::new(), Vec::new(), Vec::new());
    while cursor.advance().map_err(error::engine)? {
        op.check()?;
        records += 1;
        bytes += i64::try_from(cursor.value().len()).unwrap_or(0);
        let record = collection.record(cursor.key())?;
        let checked = RawDocument::from_bytes(cursor.value())
            .map_err(query::Error::from)
            .and_then(|d| check_one(collection, d).map(|()| d));
        let document = match checked {
            Ok(document) => document,
            Err(e) => {
                found.invalid += 1;
                found.error(format!("the document of {record:?} is invalid: {e}"));
                continue;
            }
        };
        for (index, wanted) in collection.indexes().iter().zip(entries.iter_mut()) {
            if !index.is_ready() {
                continue;
            }
            index.maker().keys(document, &mut keys)?;
            for key in keys.keys() {
                *wanted += 1;
                entry_key.clear();
                entry_value.clear();
                index.append_entry(key, &record, &mut entry_key, &mut entry_value);
                let there = snapshot.get_into(index.tree(), &entry_key, &mut stored);
                if !there.map_err(error::engine)? || stored != entry_value {
                    found.missing += 1;
                    found.error(format!(
                        "{record:?} lacks an entry of index {}",
                        index.name()
                    ));
                }
            }
        }
    }
    if collection.data_size() != bytes && !collection.is_oplog() {
        let counted = collection.data_size();
        found.error(format!("the size says {counted} bytes, there are {bytes}"));
    }
    Ok(records)
}

/// Check a document. An entry of the oplog is larger, and nested deeper, than its document.
fn check_one(collection: &Collection, document: &RawDocument) -> Result<()> {
    match collection.is_oplog() {
        true => Entry::parse(document).map(|_| ()),
        false => document::check(document).map(|_| ()),
    }
}

/// Check entries against their documents; returns the number of entries.
fn walk_index(
    op: &Op<'_>,
    snapshot: &dyn Snapshot,
    collection: &Collection,
    index: &Index,
    found: &mut Found,
) -> Result<i64> {
    let cursor = snapshot.cursor(index.tree(), KeyRange::ALL, Direction::Forward);
    let mut cursor = cursor.map_err(error::engine)?;
    let mut entries = 0;
    let mut keys = KeySet::new();
    let mut bytes = Vec::new();
    while cursor.advance().map_err(error::engine)? {
        op.check()?;
        entries += 1;
        let Some(entry) = index.read_entry(cursor.key(), cursor.value()) else {
            found.error(format!("index {} has an entry that is none", index.name()));
            continue;
        };
        if is_cut(entry.type_bits) && !index.may_be_cut() {
            let name = index.name();
            found.error(format!("index {name} has a cut key that was not noted"));
        }
        let there = collection.fetch(snapshot, &entry.record, &mut bytes)?;
        let has = there && {
            index
                .maker()
                .keys(RawDocument::from_bytes(&bytes)?, &mut keys)?;
            keys.contains(entry.key)
        };
        if !has {
            found.extra += 1;
            let name = index.name();
            found.error(format!(
                "index {name} has an entry that {:?} does not",
                entry.record
            ));
        }
    }
    Ok(entries)
}

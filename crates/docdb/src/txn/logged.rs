//! What a work changes, collected for its oplog entries (see `oplog`).
//!
//! - G1. Each change of a document adds its operation after it has succeeded, in the same work: a
//!   work that is rolled back or repeated leaves none.
//!
//! Without an oplog, nothing is collected.

use std::collections::BTreeMap;

use bson::raw::cstr;
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use query::Result;
use query::update::{Difference, Form, diff};

use super::SessionId;
use super::work::Work;
use crate::collection::Collection;
use crate::error;
use crate::limits::DOCUMENT_MAX;
use crate::oplog::entry::{Operation, Place};
use crate::oplog::{Former, Retry, What, image, is_replicated};
use crate::record::RecordId;

/// Bytes of a document and its key that an entry of an insert has beside its other fields. The key
/// is left out beyond that.
const WITH_KEY_MAX: usize = DOCUMENT_MAX + 8 * 1024;

impl Work<'_> {
    /// Add the insert of a document.
    pub(crate) fn log_insert(
        &mut self,
        collection: &Collection,
        document: &RawDocument,
    ) -> Result<()> {
        if !self.logs(collection) {
            return Ok(());
        }
        let key = key(document)?;
        let size = document.as_bytes().len() + key.as_bytes().len();
        let ns = collection.ns().to_string();
        let operation = Operation::Insert {
            place: place(collection, &ns),
            document,
            key: (size <= WITH_KEY_MAX).then_some(&*key),
        };
        self.pending.operation(&operation);
        Ok(())
    }

    /// Add the change of a document: as a diff in a form, or as the new document.
    pub(crate) fn log_update(
        &mut self,
        collection: &Collection,
        (old, new): (&RawDocument, &RawDocument),
        form: Option<Form>,
    ) -> Result<()> {
        if !self.logs(collection) {
            return Ok(());
        }
        let difference = match form {
            Some(form) => diff(old, new, form)?,
            None => Difference::Whole,
        };
        let update = match &difference {
            Difference::Nothing => return Ok(()),
            Difference::Delta(delta) => delta,
            Difference::Whole => new,
        };
        let ns = collection.ns().to_string();
        let operation = Operation::Update {
            place: place(collection, &ns),
            update,
            key: &key(new)?,
        };
        self.pending.operation(&operation);
        if self.keeps_undo() {
            let what = match diff(new, old, Form::Operators)? {
                Difference::Delta(delta) => What::Diff(delta_of(&delta)?),
                _ => What::Document(old.to_owned()),
            };
            self.pending.former(former(None, what));
        }
        self.log_image(collection, old)
    }

    /// Add the removal of a document.
    pub(crate) fn log_delete(
        &mut self,
        collection: &Collection,
        record: &RecordId,
        document: &RawDocument,
    ) -> Result<()> {
        if !self.logs(collection) {
            return Ok(());
        }
        let ns = collection.ns().to_string();
        let operation = Operation::Delete {
            place: place(collection, &ns),
            key: &key(document)?,
        };
        self.pending.operation(&operation);
        if self.keeps_undo() {
            let what = What::Document(document.to_owned());
            self.pending.former(former(record.as_number(), what));
        }
        self.log_image(collection, document)
    }

    /// Add the document before the last change, if its collection keeps pre-images.
    fn log_image(&mut self, collection: &Collection, old: &RawDocument) -> Result<()> {
        if collection.options().pre_images
            && let Some(images) = self.images()?
        {
            self.count(&images, 1, image::size(old), 0);
            let uuid = collection.uuid();
            self.pending.image(images.records(), uuid, old);
        }
        Ok(())
    }

    /// Set the session and the transaction number of the entries.
    pub(crate) fn log_session(&mut self, id: &SessionId, number: i64) {
        if self.store.oplog().is_some() {
            let transaction = self.is_multi_document();
            self.pending.set_session(id.lsid(), number, transaction);
        }
    }

    /// Add the records that are put for the session: keys and values. `clear`: records of single
    /// statements were removed before.
    pub(crate) fn log_retry(
        &mut self,
        id: &SessionId,
        clear: bool,
        records: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<()> {
        if self.store.oplog().is_none() {
            return Ok(());
        }
        let session = [&id.id[..], &id.uid[..]].concat();
        if self.keeps_undo() {
            let tree = self.store.trees().sessions;
            let keys = records.iter().map(|(key, _)| key.clone());
            for (key, value) in former_records(self.txn()?, tree, (&session, clear), keys)? {
                self.pending.former_record(key, value);
            }
        }
        let rest = |(key, value): &(Vec<u8>, Vec<u8>)| {
            let rest = key.get(session.len()..).unwrap_or_default();
            Ok((rest.to_vec(), RawDocumentBuf::from_bytes(value.clone())?))
        };
        let records = records.iter().map(rest).collect::<Result<_>>()?;
        self.pending.set_retry(Retry {
            session,
            clear,
            records,
        });
        Ok(())
    }

    /// Give a statement's number to the first operation without one, if any.
    pub(crate) fn log_statement(&mut self, number: i32) {
        self.pending.statement(number);
    }

    /// Whether what takes back its changes is kept beside its entries.
    pub(crate) fn keeps_undo(&self) -> bool {
        let oplog = self.store.oplog();
        oplog.is_some_and(|oplog| oplog.undo().kept().is_some())
    }

    fn logs(&self, collection: &Collection) -> bool {
        self.store.oplog().is_some() && is_replicated(collection.ns())
    }
}

fn former(record: Option<i64>, what: What) -> Former {
    let index = 0;
    Former {
        index,
        record,
        what,
    }
}

/// The diff in the update of an entry.
pub(crate) fn delta_of(update: &RawDocument) -> Result<RawDocumentBuf> {
    match update.get("diff")? {
        Some(RawBsonRef::Document(diff)) => Ok(diff.to_owned()),
        _ => Err(query::Error::bad_value("an update has no diff")),
    }
}

/// Keys and values, the value absent for a key without one.
type Records = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The records of a session that a commit is to put, by these keys, and to remove (`clear`: all),
/// as they are before.
pub(crate) fn former_records(
    txn: &(dyn kv::Transaction + '_),
    tree: kv::TreeId,
    (session, clear): (&[u8], bool),
    keys: impl Iterator<Item = Vec<u8>>,
) -> Result<Records> {
    let mut records = BTreeMap::new();
    if clear {
        let end = [session, &[0xFF; 5]].concat();
        let range = kv::KeyRange::half_open(session, &end);
        let cursor = txn.cursor(tree, range, kv::Direction::Forward);
        let mut cursor = cursor.map_err(error::engine)?;
        while cursor.advance().map_err(error::engine)? {
            records.insert(cursor.key().to_vec(), Some(cursor.value().to_vec()));
        }
    }
    for key in keys {
        let former = txn.get(tree, &key).map_err(error::engine)?;
        records.insert(key, former);
    }
    Ok(records.into_iter().collect())
}

fn place<'n>(collection: &Collection, ns: &'n str) -> Place<'n> {
    let uuid = collection.uuid();
    Place { ns, uuid }
}

/// The key of a document.
fn key(document: &RawDocument) -> Result<RawDocumentBuf> {
    let mut key = RawDocumentBuf::new();
    if let Some(id) = document.get("_id")? {
        key.append(cstr!("_id"), id);
    }
    Ok(key)
}

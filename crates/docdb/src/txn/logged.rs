//! What a work changes, collected for its oplog entries (see `oplog`).
//!
//! - G1. Each change of a document adds its operation after it has succeeded, in the same work: a
//!   work that is rolled back or repeated leaves none.
//!
//! Without an oplog, nothing is collected.

use bson::raw::cstr;
use bson::{RawDocument, RawDocumentBuf};
use query::Result;
use query::update::{Difference, Form, diff};

use super::SessionId;
use super::work::Work;
use crate::collection::Collection;
use crate::limits::DOCUMENT_MAX;
use crate::oplog::entry::{Operation, Place};
use crate::oplog::{Retry, image, is_replicated};

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
        self.log_image(collection, old)
    }

    /// Add the removal of a document.
    pub(crate) fn log_delete(
        &mut self,
        collection: &Collection,
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

    fn logs(&self, collection: &Collection) -> bool {
        self.store.oplog().is_some() && is_replicated(collection.ns())
    }
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

//! Applies oplog entries, as `applyOps` does.
//!
//! - A1. The changes of one call form one engine transaction: all or none are applied.
//! - A2. An insert replaces an existing document with the same `_id`, and an update may insert:
//!   applying entries again yields the same documents.

use std::collections::BTreeSet;
use std::sync::Arc;

use bson::{Bson, Document, RawBson, RawDocument, RawDocumentBuf};
use query::update::{Form, Update, delta, identical_values};
use query::{Code, Error, Namespace, Result};

use super::seek::{Found, Seek, Selection};
use super::update::{Change, larger, upsert};
use super::validate::validate;
use crate::collection::{Collection, Gathered};
use crate::document;
use crate::entries::{Untouched, Writer};
use crate::store::Store;
use crate::txn::Op;

/// The change that an entry makes.
#[derive(Clone, Debug)]
pub enum Applied {
    /// Insert a document, or replace the one with the same `_id`.
    Insert(RawDocumentBuf),
    /// Update the document that matches.
    Update {
        /// The filter that selects the document.
        filter: RawDocumentBuf,
        /// The update applied to it.
        update: AppliedUpdate,
        /// Insert a document if none matches.
        upsert: bool,
    },
    /// Delete the document that matches.
    Delete(RawDocumentBuf),
}

/// The form of an entry's update.
#[derive(Clone, Debug)]
pub enum AppliedUpdate {
    /// A replacement, or a document of operators.
    Document(RawDocumentBuf),
    /// The diff of `{$v: 2, diff: ..}`.
    Delta(RawDocumentBuf),
}

/// An entry: a change of documents of a collection.
#[derive(Clone, Debug)]
pub struct AppliedEntry {
    /// The collection.
    pub ns: Namespace,
    /// The change.
    pub change: Applied,
}

impl Store {
    /// Apply all entries or none (A1). The collections must exist.
    ///
    /// # Errors
    /// The index of the entry that failed, and its error.
    pub fn apply(
        &self,
        op: &Op<'_>,
        entries: &[AppliedEntry],
        bypass_validation: bool,
    ) -> Result<(), (usize, Error)> {
        let mut at = 0;
        let done = self.write(op, &mut |work| {
            at = 0;
            // Take all latches before the transaction begins, in the same order in every operation.
            let names: BTreeSet<&Namespace> = entries.iter().map(|entry| &entry.ns).collect();
            for ns in names {
                if let Some(collection) = work.collection(ns)? {
                    work.hold_capped(&collection)?;
                }
            }
            let mut writer = Writer::new(work);
            for (place, entry) in entries.iter().enumerate() {
                at = place;
                if place % 64 == 63 {
                    op.check()?;
                }
                let collection = writer.work().collection(&entry.ns)?;
                let collection = collection.ok_or_else(|| self.missing(&entry.ns))?;
                let one = One {
                    op,
                    collection: &collection,
                    bypass: bypass_validation,
                };
                one.apply(&mut writer, &entry.change)?;
                writer.evict(&collection)?;
            }
            Ok(())
        });
        done.map_err(|error| (at, error))
    }

    /// The error for an entry whose collection does not exist.
    fn missing(&self, ns: &Namespace) -> Error {
        if self.lookup(ns).is_some() {
            return crate::store::is_view(ns);
        }
        let message = format!("Failed to apply operation due to missing collection: {ns}");
        Error::new(Code::NAMESPACE_NOT_FOUND, message)
    }
}

/// An entry being applied.
struct One<'a> {
    op: &'a Op<'a>,
    collection: &'a Arc<Collection>,
    bypass: bool,
}

impl One<'_> {
    fn seek(&self, filter: &RawDocument) -> Result<Seek> {
        let selection = Selection {
            filter,
            sort: None,
            hint: None,
            collation: None,
            variables: None,
            write: None,
        };
        Seek::parse(self.op, &selection, Some(self.collection))
    }

    fn apply(&self, writer: &mut Writer<'_, '_>, change: &Applied) -> Result<()> {
        match change {
            Applied::Insert(document) => self.insert(writer, document),
            Applied::Update {
                filter,
                update,
                upsert,
            } => self.update(writer, filter, update, *upsert),
            Applied::Delete(filter) => {
                let seek = self.seek(filter)?;
                if let Some(found) = seek.first(self.op, writer.work(), self.collection)? {
                    writer.remove(self.collection, &found.record, &found.document)?;
                }
                Ok(())
            }
        }
    }

    fn insert(&self, writer: &mut Writer<'_, '_>, document: &RawDocument) -> Result<()> {
        let filter = by_id(document)?;
        let shape = document::check(document)?;
        let ready = document::normalise(document, shape, &mut || None)?;
        let found = self
            .seek(&filter)?
            .first(self.op, writer.work(), self.collection)?;
        if let Some(found) = found {
            return self.put(writer, &found, &ready, None);
        }
        validate(self.op, self.collection, None, &ready, self.bypass)?;
        writer.insert_one(self.collection, &ready, &mut Gathered::new())
    }

    fn update(
        &self,
        writer: &mut Writer<'_, '_>,
        filter: &RawDocument,
        update: &AppliedUpdate,
        or_insert: bool,
    ) -> Result<()> {
        let seek = self.seek(filter)?;
        let found = seek.first(self.op, writer.work(), self.collection)?;
        let update = match (update, &found) {
            (AppliedUpdate::Document(update), _) => update,
            (AppliedUpdate::Delta(diff), Some(found)) => {
                let next = delta(&found.document, diff)?;
                let shape = document::check(&next).map_err(larger)?;
                let ready = document::normalise(&next, shape, &mut || None)?;
                return self.put(writer, found, &ready, Some(Form::Operators));
            }
            (AppliedUpdate::Delta(_), None) => return Err(not_found(filter)),
        };
        let value = RawBson::Document(update.clone());
        let parsed = Update::parse(value.as_raw_bson_ref(), &[], &seek.settings)?;
        match found {
            Some(found) => {
                let change = Change::of(&parsed, self.collection, self.bypass);
                change.apply(self.op, writer, self.collection, &found)?;
            }
            None if or_insert => {
                let (op, collection) = (self.op, self.collection);
                upsert(op, writer, collection, &seek, &parsed, self.bypass)?;
            }
            None => return Err(not_found(filter)),
        }
        Ok(())
    }

    /// Replace the found document by `next`, which is in stored form. `form` as in
    /// [`Writer::replace`].
    fn put(
        &self,
        writer: &mut Writer<'_, '_>,
        found: &Found,
        next: &RawDocument,
        form: Option<Form>,
    ) -> Result<()> {
        let id = |document: &RawDocument| document.get("_id")?.map(Bson::try_from).transpose();
        let same = match (id(&found.document)?, id(next)?) {
            (Some(old), Some(new)) => identical_values(&old, &new),
            _ => false,
        };
        if !same {
            let message = "an entry must not change the _id of a document";
            return Err(Error::new(Code::IMMUTABLE_FIELD, message));
        }
        let old = Some(&*found.document);
        validate(self.op, self.collection, old, next, self.bypass)?;
        writer.replace(
            self.collection,
            &found.record,
            (&found.document, next),
            Untouched::default(),
            form,
        )
    }
}

/// The filter that matches a document's `_id`.
///
/// # Errors
/// `NoSuchKey` if the document has no `_id`.
fn by_id(document: &RawDocument) -> Result<RawDocumentBuf> {
    let Some(id) = document.get("_id")? else {
        let message = "Failed to apply insert due to missing _id";
        return Err(Error::new(Code::NO_SUCH_KEY, message));
    };
    let mut equal = RawDocumentBuf::new();
    equal.append(bson::raw::cstr!("$eq"), RawBson::from(id));
    let mut filter = RawDocumentBuf::new();
    filter.append(bson::raw::cstr!("_id"), equal);
    Ok(filter)
}

fn not_found(filter: &RawDocument) -> Error {
    let filter = Document::try_from(filter).unwrap_or_default();
    let message = format!("Failed to apply update: no document matches {filter}");
    Error::new(Code::UPDATE_OPERATION_FAILED, message)
}

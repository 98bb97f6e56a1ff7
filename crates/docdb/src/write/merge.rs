//! `$merge` of one document into its target collection.
//!
//! Finding the target document, deciding the outcome and writing it form one engine transaction: a
//! concurrent write is a conflict, and the outcome is decided again.

use std::sync::Arc;

use bson::{Bson, Document, RawBson, RawDocumentBuf};
use query::stage::{Merge, MergeOutcome};
use query::update::Update;
use query::{Code, Error, Namespace, Result};

use super::seek::{Found, Seek, Selection};
use super::update::Change;
use super::validate::validate;
use crate::collection::{Collection, Gathered};
use crate::document;
use crate::entries::Writer;
use crate::store::Store;
use crate::txn::{Op, Work};

/// Maximum attempts of an insert when concurrent writers insert the same key first.
const INSERTS: u32 = 10;

/// How an attempt ended.
#[derive(Clone, Copy, PartialEq)]
enum Attempt {
    Done,
    /// A document must be inserted, but the collection does not exist yet.
    Missing,
}

impl Store {
    /// Merge a document into `ns` as specified by `merge`.
    ///
    /// # Errors
    /// Errors of `merge`; errors of writes.
    pub(crate) fn merge_document(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        merge: &Merge,
        incoming: &Document,
        bypass_validation: bool,
    ) -> Result<()> {
        let one = One {
            op,
            ns,
            merge,
            incoming,
            filter: filter(merge, incoming)?,
            bypass: bypass_validation,
        };
        let mut attempt = 0;
        loop {
            let mut inserts = false;
            match self.write(op, &mut |work| one.run(work, &mut inserts)) {
                Ok(Attempt::Done) => return Ok(()),
                Ok(Attempt::Missing) => {
                    self.ensure_collection(op, ns)?;
                }
                Err(e) if e.code == Code::DUPLICATE_KEY && inserts && attempt < INSERTS => {
                    attempt += 1;
                }
                Err(e) if e.code == Code::IMMUTABLE_FIELD => {
                    return Err(e.within(
                        "$merge failed to update the matching document, did you attempt to modify \
                         the _id or the shard key?",
                    ));
                }
                Err(e) => return Err(e),
            }
        }
    }
}

/// A document being merged.
struct One<'a> {
    op: &'a Op<'a>,
    ns: &'a Namespace,
    merge: &'a Merge,
    incoming: &'a Document,
    filter: RawDocumentBuf,
    bypass: bool,
}

impl One<'_> {
    /// Sets `inserts` if the document was inserted or would have been.
    fn run(&self, work: &mut Work<'_>, inserts: &mut bool) -> Result<Attempt> {
        *inserts = false;
        let collection = work.collection(self.ns)?;
        let found = match &collection {
            None => None,
            Some(collection) => {
                work.hold_capped(collection)?;
                self.find(work, collection)?
            }
        };
        let existing = found.as_ref().map(|f| Document::try_from(&*f.document));
        let existing = existing.transpose()?;
        let outcome = self
            .merge
            .resolve(existing.as_ref(), self.incoming.clone())
            .map_err(|e| self.as_duplicate(e, collection.as_deref()))?;
        match (outcome, collection, found) {
            (MergeOutcome::Nothing, ..) => return Ok(Attempt::Done),
            (_, None, _) => return Ok(Attempt::Missing),
            (MergeOutcome::Replace(next), Some(collection), Some(found)) => {
                let mut writer = Writer::new(work);
                self.replace(&mut writer, &collection, &found, &next)?;
                writer.evict(&collection)?;
            }
            (MergeOutcome::Insert(next) | MergeOutcome::Replace(next), Some(collection), _) => {
                *inserts = true;
                let mut writer = Writer::new(work);
                self.insert(&mut writer, &collection, &next)?;
                writer.evict(&collection)?;
            }
        }
        Ok(Attempt::Done)
    }

    /// The error of `whenMatched: "fail"`, worded like the duplicate-key error of an insert.
    fn as_duplicate(&self, mut error: Error, collection: Option<&Collection>) -> Error {
        let values = error.details.as_deref();
        let values = values.and_then(|details| details.get_document("keyValue").ok());
        let (Code::DUPLICATE_KEY, Some(values), Some(collection)) =
            (error.code, values, collection)
        else {
            return error;
        };
        let on = &self.merge.on;
        let mut unique = collection.indexes().iter().filter(|index| {
            let spec = index.spec();
            (spec.unique || spec.is_id()) && spec.key.len() == on.len()
        });
        let index = unique.find(|index| on.iter().all(|path| index.spec().key.contains_key(path)));
        let index = index.map_or("_id_", |index| index.name());
        error.message = format!(
            "E11000 duplicate key error collection: {} index: {index} dup key: {}",
            self.ns,
            document::shell(values)
        );
        error
    }

    fn find(&self, work: &mut Work<'_>, collection: &Arc<Collection>) -> Result<Option<Found>> {
        let selection = Selection {
            filter: &self.filter,
            sort: None,
            hint: None,
            collation: None,
            variables: None,
            write: None,
        };
        Seek::parse(self.op, &selection, Some(collection))?.first(self.op, work, collection)
    }

    fn replace(
        &self,
        writer: &mut Writer<'_, '_>,
        collection: &Arc<Collection>,
        found: &Found,
        next: &Document,
    ) -> Result<()> {
        let next = RawBson::Document(RawDocumentBuf::try_from(next)?);
        let settings = self.op.settings();
        let update = Update::parse(next.as_raw_bson_ref(), &[], &settings)?;
        let change = Change::of(&update, collection, self.bypass);
        change.apply(self.op, writer, collection, found).map(|_| ())
    }

    fn insert(
        &self,
        writer: &mut Writer<'_, '_>,
        collection: &Arc<Collection>,
        next: &Document,
    ) -> Result<()> {
        let raw = RawDocumentBuf::try_from(next)?;
        let shape = document::check(&raw)?;
        let stamp = writer.work().store.timestamp();
        let ready = document::normalise(&raw, shape, &mut || Some(stamp))?;
        validate(self.op, collection, None, &ready, self.bypass)?;
        writer.insert_one(collection, &ready, &mut Gathered::new())
    }
}

/// The filter on the identifying fields. Their values are matched literally, even if they look like
/// operators.
fn filter(merge: &Merge, incoming: &Document) -> Result<RawDocumentBuf> {
    let mut filter = Document::new();
    for (path, value) in merge.key(incoming)? {
        let mut equal = Document::new();
        equal.insert("$eq", value);
        filter.insert(path, Bson::Document(equal));
    }
    Ok(RawDocumentBuf::try_from(&filter)?)
}

//! Updating documents.
//!
//! A statement that updates one document is one engine transaction: find, change, put. A statement
//! that updates many finds records in portions and changes each portion in a transaction of its
//! own, which checks again that the documents still match; no document is changed twice.

use std::sync::Arc;

use bson::oid::ObjectId;
use bson::{Bson, Document, RawBson, RawDocument, RawDocumentBuf};
use query::update::{Form, Position, Update, upsert_base};
use query::{Code, Error, Namespace, Result};

use super::insert::WriteError;
use super::portions::{Portions, Target};
use super::seek::{Found, Seek, Selection};
use super::statements::{Attempt, attempt, run_each};
use super::validate::validate;
use crate::collection::{Collection, Gathered};
use crate::document;
use crate::entries::{Untouched, Writer};
use crate::find::UPDATE;
use crate::session::Done;
use crate::store::Store;
use crate::txn::{Op, Work};
use crate::variables::Let;

/// One statement of an `update` command.
#[derive(Clone, Debug)]
pub struct UpdateStatement {
    /// The filter that selects the documents.
    pub filter: RawDocumentBuf,
    /// The update: a document of operators, a replacement or a pipeline.
    pub update: RawBson,
    /// Whether to update all matching documents or only the first (default).
    pub multi: bool,
    /// Insert a document when none matches.
    pub upsert: bool,
    /// An index by name or key pattern.
    pub hint: Option<Bson>,
    /// Collation of string comparisons (default: that of the collection).
    pub collation: Option<RawDocumentBuf>,
    /// Filters for the identifiers in `$[identifier]`.
    pub array_filters: Vec<RawDocumentBuf>,
    /// The sort order that determines the first document.
    pub sort: Option<RawDocumentBuf>,
    /// Variables for expressions (`let`, `c`).
    pub variables: Option<Let>,
}

impl UpdateStatement {
    /// A statement that updates the first matching document, with all other options at their
    /// defaults.
    #[must_use]
    pub fn new(filter: RawDocumentBuf, update: impl Into<RawBson>) -> UpdateStatement {
        UpdateStatement {
            filter,
            update: update.into(),
            multi: false,
            upsert: false,
            hint: None,
            collation: None,
            array_filters: Vec::new(),
            sort: None,
            variables: None,
        }
    }

    /// The part of the statement that selects documents.
    pub(crate) fn selection(&self) -> Selection<'_> {
        Selection {
            filter: &self.filter,
            sort: self.sort.as_deref(),
            hint: self.hint.as_ref(),
            collation: self.collation.as_deref(),
            variables: self.variables.as_ref(),
            write: Some(UPDATE).filter(|_| !self.upsert),
        }
    }
}

/// Result of an update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateReply {
    /// Documents that matched, or were inserted.
    pub n: i64,
    /// Documents that changed.
    pub n_modified: i64,
    /// Index and inserted `_id` of each statement that inserted.
    pub upserted: Vec<(usize, Bson)>,
    /// Errors of the statements that failed.
    pub errors: Vec<WriteError>,
    /// Statement numbers already executed by an earlier attempt.
    pub retried: Vec<i32>,
}

impl Store {
    /// Update documents, statement by statement.
    ///
    /// # Errors
    /// Errors of the whole command; in a multi-document transaction, the first error of a
    /// statement.
    pub fn update(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        statements: &[UpdateStatement],
        ordered: bool,
        bypass_validation: bool,
    ) -> Result<UpdateReply> {
        self.check_writable(op, ns)?;
        let run = |statement: &UpdateStatement, retry: Attempt<'_>| {
            let one = One {
                store: self,
                op,
                ns,
                statement,
                bypass: bypass_validation,
                retry,
            };
            one.run()
        };
        let mut reply = UpdateReply::default();
        let mut add = |index, done| reply.add(index, done);
        let ran = run_each(self, op, (statements, ordered), &run, &mut add)?;
        reply.errors = ran.errors;
        reply.retried = ran.retried;
        Ok(reply)
    }

    /// Check that users may write to a collection of this name.
    pub(crate) fn check_writable(&self, op: &Op<'_>, ns: &Namespace) -> Result<()> {
        Namespace::new(ns.db.as_str(), ns.coll.as_str())?;
        crate::ddl::check_not_views(ns)?;
        match self.named(op, ns)? {
            Some(crate::catalog::Named::View(_)) => Err(crate::store::is_view(ns)),
            _ => Ok(()),
        }
    }
}

impl UpdateReply {
    fn add(&mut self, index: usize, done: Done) {
        self.n += done.n;
        self.n_modified += done.modified;
        self.upserted.extend(done.upserted.map(|id| (index, id)));
    }
}

/// A statement being executed.
struct One<'a> {
    store: &'a Store,
    op: &'a Op<'a>,
    ns: &'a Namespace,
    statement: &'a UpdateStatement,
    bypass: bool,
    retry: Attempt<'a>,
}

impl One<'_> {
    fn run(&self) -> Result<Done> {
        let statement = self.statement;
        let collection = self.store.collection_for(self.op, self.ns)?;
        let seek = Seek::parse(self.op, &statement.selection(), collection.as_deref())?;
        let update = Update::parse(
            statement.update.as_raw_bson_ref(),
            &statement.array_filters,
            &seek.settings,
        )?;
        let has_constants = statement.variables.as_ref().is_some_and(Let::has_constants);
        if has_constants && !update.is_pipeline() {
            let message = "Constant values may only be specified for pipeline updates";
            return Err(Error::location(51_198, message));
        }
        if statement.multi && update.is_replacement() {
            return Err(Error::parse(
                "multi update is not supported for replacement-style update",
            ));
        }
        if statement.multi && self.retry.is_some() {
            return Err(Error::new(
                Code::INVALID_OPTIONS,
                "Cannot use retryable writes with multi=true",
            ));
        }
        if collection.is_none() {
            self.op.plan("EOF");
            if !statement.upsert {
                return Ok(Done::default());
            }
            self.store.ensure_collection(self.op, self.ns)?;
        }
        if statement.multi {
            let done = self.many(collection.as_deref(), &seek, &update)?;
            if 0 < done.n || !statement.upsert {
                return Ok(done);
            }
        }
        attempt(self.op, statement.upsert, &mut || {
            self.single(&seek, &update)
        })
    }

    fn single(&self, seek: &Seek, update: &Update) -> Result<Done> {
        self.store.write(self.op, &mut |work| {
            let Some(collection) = self.store.collection_in(work, (self.op, self.ns))? else {
                return Ok(Done::default());
            };
            work.hold_capped(&collection)?;
            let mut done = Done::default();
            let found = seek.first(self.op, work, &collection)?;
            let mut writer = Writer::new(work);
            match found {
                Some(found) => {
                    done.n = 1;
                    let change = Change::of(update, &collection, self.bypass);
                    let changed = change.apply(self.op, &mut writer, &collection, &found)?;
                    done.modified = i64::from(changed.is_some());
                }
                None if self.statement.upsert => {
                    let made =
                        upsert(self.op, &mut writer, &collection, seek, update, self.bypass)?;
                    done.n = 1;
                    done.upserted = made.get("_id").cloned();
                }
                None => {}
            }
            writer.evict(&collection)?;
            if let Some((retry, stmt)) = self.retry {
                retry.remember(work, stmt, 1, &done)?;
            }
            Ok(done)
        })
    }

    fn many(&self, was: Option<&Collection>, seek: &Seek, update: &Update) -> Result<Done> {
        let target = Target::new(self.ns, was);
        let portions = Portions::new(self.store, self.op, target, seek);
        let (n, modified) = portions.each(&mut |work, collection, records| {
            let mut done = Done::default();
            let change = Change::of(update, collection, self.bypass);
            let mut writer = Writer::new(work);
            for record in records {
                let Some(found) = seek.again(writer.work(), collection, record)? else {
                    continue;
                };
                done.n += 1;
                let changed = change.apply(self.op, &mut writer, collection, &found)?;
                done.modified += i64::from(changed.is_some());
            }
            Ok((done.n, done.modified))
        })?;
        Ok(Done {
            n,
            modified,
            ..Done::default()
        })
    }
}

/// An update bound to a collection.
pub(super) struct Change<'u> {
    update: &'u Update,
    untouched: Untouched,
    /// The form of the difference in the oplog; `None` for the new document.
    form: Option<Form>,
    bypass: bool,
}

impl<'u> Change<'u> {
    pub(super) fn of(update: &'u Update, collection: &Collection, bypass: bool) -> Change<'u> {
        Change {
            update,
            untouched: Untouched::by(update, collection),
            form: match (update.is_replacement(), update.is_pipeline()) {
                (true, _) => None,
                (false, true) => Some(Form::Smallest),
                (false, false) => Some(Form::Operators),
            },
            bypass,
        }
    }

    /// Change one document; returns the new document, or `None` if it is unchanged.
    pub(super) fn apply(
        &self,
        op: &Op<'_>,
        writer: &mut Writer<'_, '_>,
        collection: &Arc<Collection>,
        found: &Found,
    ) -> Result<Option<RawDocumentBuf>> {
        let position = position(op, writer.work()).with_array_index(found.details.array_index);
        let Some(next) = self.update.apply_encoded(&found.document, &position)? else {
            return Ok(None);
        };
        document::check(&next).map_err(larger)?;
        validate(op, collection, Some(&found.document), &next, self.bypass)?;
        writer.replace(
            collection,
            &found.record,
            (&found.document, &next),
            self.untouched,
            self.form,
        )?;
        Ok(Some(next))
    }
}

/// Whether an update changes a document.
pub(crate) fn would_change(
    store: &Store,
    op: &Op<'_>,
    update: &Update,
    found: &Found,
) -> Result<bool> {
    let current = Document::try_from(found.document.as_ref())?;
    let mut position = Position::at(op.now).with_array_index(found.details.array_index);
    position.timestamp = store.timestamp();
    Ok(update.apply(&current, &position)?.is_some())
}

/// Insert the document of an upsert.
pub(super) fn upsert(
    op: &Op<'_>,
    writer: &mut Writer<'_, '_>,
    collection: &Arc<Collection>,
    seek: &Seek,
    update: &Update,
    bypass: bool,
) -> Result<Document> {
    let base = upsert_base(&seek.filter)?;
    let position = position(op, writer.work()).inserting();
    let mut made = update.apply(&base, &position)?.unwrap_or(base);
    let id = made
        .remove("_id")
        .unwrap_or_else(|| Bson::ObjectId(ObjectId::new()));
    let mut whole = Document::new();
    whole.insert("_id", id);
    whole.extend(made);
    let raw = RawDocumentBuf::try_from(&whole)?;
    document::check(&raw)?;
    validate(op, collection, None, &raw, bypass)?;
    writer.insert_one(collection, &raw, &mut Gathered::new())?;
    Ok(whole)
}

fn position(op: &Op<'_>, work: &Work<'_>) -> Position {
    let mut position = Position::at(op.now);
    position.timestamp = work.store.timestamp();
    position
}

pub(super) fn larger(error: Error) -> Error {
    if error.code == Code::BSON_OBJECT_TOO_LARGE {
        let message = "Resulting document after update is larger than 16777216";
        return Error::new(error.code, message);
    }
    error
}

/// Convert a raw document to an owned one.
pub(super) fn owned(document: &RawDocument) -> Result<Document> {
    Ok(Document::try_from(document)?)
}

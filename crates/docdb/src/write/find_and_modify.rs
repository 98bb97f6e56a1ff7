//! `findAndModify`: change or delete one document and return it, before or after the change.

use bson::{Bson, RawBson, RawDocumentBuf};
use query::projection::Projection;
use query::update::Update;
use query::{Code, Error, Namespace, Result};

use super::seek::{Found, Seek, Selection};
use super::statements::{Attempt, attempt};
use super::update::{Change, upsert};
use crate::entries::Writer;
use crate::find::{DELETE, UPDATE};
use crate::session::Done;
use crate::store::Store;
use crate::txn::{Op, Work};
use crate::variables::Let;

/// The arguments of `findAndModify`, with MongoDB's names and defaults.
#[derive(Clone, Debug, Default)]
pub struct FindAndModify {
    /// The filter that selects the documents; only the first is modified.
    pub filter: RawDocumentBuf,
    /// The sort order that determines the first document.
    pub sort: Option<RawDocumentBuf>,
    /// The update to apply; `None` deletes the document.
    pub update: Option<RawBson>,
    /// Return the document after the change (default: before).
    pub new: bool,
    /// The projection of the returned document.
    pub fields: Option<RawDocumentBuf>,
    /// Insert a document when none matches.
    pub upsert: bool,
    /// Filters for the identifiers in `$[identifier]`.
    pub array_filters: Vec<RawDocumentBuf>,
    /// An index by name or key pattern.
    pub hint: Option<Bson>,
    /// Collation of string comparisons (default: that of the collection).
    pub collation: Option<RawDocumentBuf>,
    /// Variables for expressions.
    pub variables: Option<Let>,
    /// Skip the collection's validator.
    pub bypass_validation: bool,
}

impl FindAndModify {
    /// The part of the command that selects the document.
    pub(crate) fn selection(&self) -> Selection<'_> {
        Selection {
            filter: &self.filter,
            sort: self.sort.as_deref(),
            hint: self.hint.as_ref(),
            collation: self.collation.as_deref(),
            variables: self.variables.as_ref(),
            write: match (&self.update, &self.fields) {
                (_, Some(_)) => None,
                (Some(_), None) => Some(UPDATE).filter(|_| !self.upsert),
                (None, None) => Some(DELETE),
            },
        }
    }
}

/// Result of `findAndModify`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FindAndModifyReply {
    /// Documents changed, deleted or inserted: 0 or 1.
    pub n: i64,
    /// Whether an existing document was updated.
    pub updated_existing: bool,
    /// The `_id` of an inserted document.
    pub upserted: Option<Bson>,
    /// The document before or after the change, as requested.
    pub value: Option<RawDocumentBuf>,
    /// Whether the session had already executed this statement.
    pub retried: bool,
}

impl Store {
    /// Change or delete one document and return it.
    ///
    /// # Errors
    /// Errors of the filter, update or projection; errors of writes.
    pub fn find_and_modify(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        asked: &FindAndModify,
    ) -> Result<FindAndModifyReply> {
        self.check_writable(op, ns)?;
        check(asked)?;
        let retry = self.begin_retry(op)?;
        let stmt = op.session.as_ref().map_or(0, |session| session.stmt(0));
        if let Some(done) = retry.as_ref().and_then(|retry| retry.done(stmt)) {
            return replay(done);
        }
        let collection = self.collection_for(op, ns)?;
        let seek = Seek::parse(op, &asked.selection(), collection.as_deref())?;
        let update = match &asked.update {
            None => None,
            Some(update) => Some(Update::parse(
                update.as_raw_bson_ref(),
                &asked.array_filters,
                &seek.settings,
            )?),
        };
        let projection = match asked.fields.as_ref().filter(|fields| !fields.is_empty()) {
            None => None,
            Some(fields) => Some(Projection::parse(
                fields,
                &seek.settings,
                Some(seek.filter.as_ref()),
            )?),
        };
        if projection.as_ref().is_some_and(Projection::reads_sort_key) {
            return Err(Error::bad_value(
                "Cannot use a $meta sortKey projection in findAndModify commands.",
            ));
        }
        if collection.is_none() {
            op.plan("EOF");
            if !asked.upsert {
                return Ok(FindAndModifyReply::default());
            }
            self.ensure_collection(op, ns)?;
        }
        let task = Task {
            op,
            ns,
            asked,
            seek: &seek,
            update: update.as_ref(),
            projection: projection.as_ref(),
            retry: retry.as_ref().map(|retry| (retry, stmt)),
        };
        let done = attempt(op, asked.upsert, &mut || {
            self.write(op, &mut |work| task.run(work))
        });
        done.map_err(|error| error.within("Plan executor error during findAndModify"))
    }
}

struct Task<'a> {
    op: &'a Op<'a>,
    ns: &'a Namespace,
    asked: &'a FindAndModify,
    seek: &'a Seek,
    update: Option<&'a Update>,
    projection: Option<&'a Projection>,
    retry: Attempt<'a>,
}

impl Task<'_> {
    fn run(&self, work: &mut Work<'_>) -> Result<FindAndModifyReply> {
        let Some(collection) = work.collection(self.ns)? else {
            return Ok(FindAndModifyReply::default());
        };
        work.hold_capped(&collection)?;
        let bypass = self.asked.bypass_validation;
        let mut reply = FindAndModifyReply::default();
        let found = self.seek.first(self.op, work, &collection)?;
        let mut writer = Writer::new(work);
        match (found, self.update) {
            (None, Some(update)) if self.asked.upsert => {
                let made = upsert(self.op, &mut writer, &collection, self.seek, update, bypass)?;
                reply.n = 1;
                reply.upserted = made.get("_id").cloned();
                if self.asked.new {
                    let raw = RawDocumentBuf::try_from(&made)?;
                    reply.value = Some(self.project(raw, None)?);
                }
            }
            (None, _) => {}
            (Some(found), None) => {
                writer.remove(&collection, &found.record, &found.document)?;
                reply.n = 1;
                reply.value = Some(self.project(found.document.clone(), Some(&found))?);
            }
            (Some(found), Some(update)) => {
                let change = Change::of(update, &collection, bypass);
                let next = change.apply(self.op, &mut writer, &collection, &found)?;
                reply.n = 1;
                reply.updated_existing = true;
                let shown = match next {
                    Some(next) if self.asked.new => next,
                    _ => found.document.clone(),
                };
                reply.value = Some(self.project(shown, Some(&found))?);
            }
        }
        writer.evict(&collection)?;
        if let Some((retry, stmt)) = self.retry {
            retry.remember(work, stmt, 1, &image(&reply)?)?;
        }
        Ok(reply)
    }

    fn project(&self, document: RawDocumentBuf, found: Option<&Found>) -> Result<RawDocumentBuf> {
        match self.projection {
            None => Ok(document),
            Some(projection) => projection.apply(&document, found.map(|f| &f.details)),
        }
    }
}

fn check(asked: &FindAndModify) -> Result<()> {
    if asked.update.is_none() && asked.upsert {
        return Err(Error::parse(
            "Cannot specify both upsert=true and remove=true ",
        ));
    }
    if asked.update.is_none() && asked.new {
        return Err(Error::parse(
            "Cannot specify both new=true and remove=true; 'remove' always returns the deleted \
             document",
        ));
    }
    Ok(())
}

/// The stored result that a retry needs to return the same reply.
fn image(reply: &FindAndModifyReply) -> Result<Done> {
    let value = match &reply.value {
        None => Bson::Null,
        Some(value) => Bson::Document(super::update::owned(value)?),
    };
    Ok(Done {
        n: reply.n,
        modified: i64::from(reply.updated_existing),
        upserted: reply.upserted.clone(),
        image: Some(value),
    })
}

fn replay(done: Done) -> Result<FindAndModifyReply> {
    let value = match done.image {
        Some(Bson::Document(value)) => Some(RawDocumentBuf::try_from(&value)?),
        None => {
            return Err(Error::new(
                Code(217),
                "The statement was executed before by another command",
            ));
        }
        Some(_) => None,
    };
    Ok(FindAndModifyReply {
        n: done.n,
        updated_existing: done.modified == 1,
        upserted: done.upserted,
        value,
        retried: true,
    })
}

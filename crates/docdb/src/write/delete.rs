//! Deleting documents.

use bson::{Bson, RawDocumentBuf};
use query::{Code, Error, Namespace, Result};

use super::insert::WriteError;
use super::portions::{Portions, Target};
use super::seek::{Seek, Selection};
use super::statements::{Attempt, run_each};
use crate::collection::Collection;
use crate::entries::Writer;
use crate::find::DELETE;
use crate::session::Done;
use crate::store::Store;
use crate::txn::Op;
use crate::variables::Let;

/// One statement of a `delete` command.
#[derive(Clone, Debug)]
pub struct DeleteStatement {
    /// The filter that selects the documents.
    pub filter: RawDocumentBuf,
    /// Whether to delete all matching documents (`limit: 0`) or the first (`limit: 1`).
    pub multi: bool,
    /// An index by name or key pattern.
    pub hint: Option<Bson>,
    /// Collation of string comparisons (default: that of the collection).
    pub collation: Option<RawDocumentBuf>,
    /// Variables for expressions.
    pub variables: Option<Let>,
}

impl DeleteStatement {
    /// A statement that deletes the first matching document, with all other options at their
    /// defaults.
    #[must_use]
    pub fn new(filter: RawDocumentBuf) -> DeleteStatement {
        DeleteStatement {
            filter,
            multi: false,
            hint: None,
            collation: None,
            variables: None,
        }
    }

    /// The part of the statement that selects documents.
    pub(crate) fn selection(&self) -> Selection<'_> {
        Selection {
            filter: &self.filter,
            sort: None,
            hint: self.hint.as_ref(),
            collation: self.collation.as_deref(),
            variables: self.variables.as_ref(),
            write: Some(DELETE),
        }
    }
}

/// Result of a delete.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteReply {
    /// Documents deleted.
    pub n: i64,
    /// Errors of the statements that failed.
    pub errors: Vec<WriteError>,
    /// Statement numbers already executed by an earlier attempt.
    pub retried: Vec<i32>,
}

impl Store {
    /// Delete documents, statement by statement.
    ///
    /// # Errors
    /// Errors of the whole command; in a multi-document transaction, the first error of a
    /// statement.
    pub fn delete(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        statements: &[DeleteStatement],
        ordered: bool,
    ) -> Result<DeleteReply> {
        self.check_writable(op, ns)?;
        let run = |statement: &DeleteStatement, retry: Attempt<'_>| {
            self.delete_one(op, ns, statement, retry)
        };
        let mut n = 0;
        let mut add = |_, done: Done| n += done.n;
        let ran = run_each(self, op, (statements, ordered), &run, &mut add)?;
        Ok(DeleteReply {
            n,
            errors: ran.errors,
            retried: ran.retried,
        })
    }

    fn delete_one(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        statement: &DeleteStatement,
        retry: Attempt<'_>,
    ) -> Result<Done> {
        let collection = self.collection_for(op, ns)?;
        let seek = Seek::parse(op, &statement.selection(), collection.as_deref())?;
        if statement.multi && retry.is_some() {
            return Err(Error::new(
                Code::INVALID_OPTIONS,
                "Cannot use retryable writes with limit=0",
            ));
        }
        if collection.is_none() {
            op.plan("EOF");
            return Ok(Done::default());
        }
        if statement.multi {
            let target = Target::new(ns, collection.as_deref());
            return Ok(Done {
                n: self.delete_all(op, target, &seek, false)?,
                ..Done::default()
            });
        }
        self.write(op, &mut |work| {
            let mut done = Done::default();
            let Some(collection) = self.collection_in(work, (op, ns))? else {
                return Ok(done);
            };
            work.hold_capped(&collection)?;
            if let Some(found) = seek.first(op, work, &collection)? {
                Writer::new(work).remove(&collection, &found.record, &found.document)?;
                done.n = 1;
            }
            if let Some((retry, stmt)) = retry {
                retry.remember(work, stmt, 1, &done)?;
            }
            Ok(done)
        })
    }

    /// Delete the expired documents of `collection`, except those written by an open transaction,
    /// which the next pass visits again.
    ///
    /// # Errors
    /// As [`Store::delete`].
    pub(crate) fn delete_expired(
        &self,
        op: &Op<'_>,
        collection: &Collection,
        filter: RawDocumentBuf,
    ) -> Result<i64> {
        let statement = DeleteStatement::new(filter);
        let seek = Seek::parse(op, &statement.selection(), Some(collection))?;
        let target = Target::new(collection.ns(), Some(collection));
        self.delete_all(op, target, &seek, true)
    }

    /// Delete all matching documents; with `spare`, except those written by an open transaction.
    fn delete_all(&self, op: &Op<'_>, target: Target<'_>, seek: &Seek, spare: bool) -> Result<i64> {
        let portions = Portions::new(self, op, target, seek);
        let (n, _) = portions.each(&mut |work, collection, records| {
            let mut n = 0;
            let mut writer = Writer::new(work);
            for record in records {
                if spare
                    && !writer
                        .work()
                        .may_change(collection.records(), &record.key())?
                {
                    continue;
                }
                if let Some(found) = seek.again(writer.work(), collection, record)? {
                    writer.remove(collection, &found.record, &found.document)?;
                    n += 1;
                }
            }
            Ok((n, 0))
        })?;
        Ok(n)
    }
}

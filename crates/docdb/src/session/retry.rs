//! Retryable writes: the session records the result of each statement until its transaction number
//! advances.

use std::sync::Arc;

use bson::Bson;
use kv::KeyRange;
use query::{Code, Error, Result};

use super::registry::{CheckedOut, Session};
use super::stored::{self, Executed, add, records};
use super::too_old;
use crate::error;
use crate::store::Store;
use crate::txn::{Op, SessionId, SessionRef, Work};

/// Result of an executed statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Done {
    /// Documents matched, inserted or deleted.
    pub(crate) n: i64,
    /// Documents changed.
    pub(crate) modified: i64,
    /// The `_id` of an inserted document.
    pub(crate) upserted: Option<Bson>,
    /// The document that `findAndModify` returned.
    pub(crate) image: Option<Bson>,
}

/// A retryable write in progress; it has exclusive use of its session.
pub(crate) struct Retry<'s> {
    store: &'s Store,
    session: CheckedOut,
    id: SessionId,
    number: i64,
    now: bson::DateTime,
}

impl SessionRef {
    /// The statement number of the statement at `index` of a batch.
    #[must_use]
    pub fn stmt(&self, index: usize) -> i32 {
        let named = self
            .stmt_ids
            .as_ref()
            .and_then(|ids| ids.get(index))
            .copied();
        let after = || {
            self.stmt_id
                .saturating_add(i32::try_from(index).unwrap_or(i32::MAX))
        };
        named.unwrap_or_else(after)
    }
}

impl Store {
    /// Begin a retryable write; `None` if the operation is not one.
    ///
    /// # Errors
    /// `IllegalOperation` without a replica set, `TransactionTooOld`.
    pub(crate) fn begin_retry(&self, op: &Op<'_>) -> Result<Option<Retry<'_>>> {
        let Some(session) = &op.session else {
            return Ok(None);
        };
        let (Some(number), None) = (session.txn_number, op.transaction) else {
            return Ok(None);
        };
        self.check_numbers_allowed()?;
        let entry: Arc<Session> = self.sessions().get(self, session.id)?;
        let checked = entry.check_out(op)?;
        checked.with(|state| {
            if number < state.number {
                return Err(too_old(
                    "Retryable write with txnNumber",
                    number,
                    state.number,
                ));
            }
            if state.number < number {
                state.advance(number);
            }
            Ok(())
        })?;
        Ok(Some(Retry {
            store: self,
            session: checked,
            id: session.id,
            number,
            now: op.now,
        }))
    }

    /// Check that transaction numbers are allowed: they require a replica set.
    pub(crate) fn check_numbers_allowed(&self) -> Result<()> {
        match self.options().replica_set {
            Some(_) => Ok(()),
            None => Err(Error::new(
                Code::ILLEGAL_OPERATION,
                "Transaction numbers are only allowed on a replica set member or mongos",
            )),
        }
    }
}

impl Retry<'_> {
    /// The recorded result of a statement; `None` if it has not run.
    pub(crate) fn done(&self, stmt: i32) -> Option<Done> {
        self.session.with(|state| {
            let (first, (count, done)) = state.executed.range(..=stmt).next_back()?;
            (stmt < first.saturating_add(*count)).then(|| done.clone())
        })
    }

    /// Record `done` as the result of each of `count` statements from `stmt` on: in the work's
    /// transaction and, after its commit, in memory. Call it at most once per work.
    pub(crate) fn remember(
        &self,
        work: &mut Work<'_>,
        stmt: i32,
        count: i32,
        done: &Done,
    ) -> Result<()> {
        work.log_statement(stmt);
        self.remember_all(work, &[(stmt, count)], done)
    }

    /// As [`Retry::remember`], for several runs of statements.
    pub(crate) fn remember_all(
        &self,
        work: &mut Work<'_>,
        runs: &[(i32, i32)],
        done: &Done,
    ) -> Result<()> {
        let mut fresh = Executed::new();
        let (records, old_runs) = self.session.with(|state| {
            for (first, count) in runs {
                add(&state.executed, &mut fresh, *first, *count, done);
            }
            let old_runs = state.executed.is_empty() && state.has_runs;
            let records = records(&self.id, self.number, self.now, &state.executed, &fresh)?;
            Ok::<_, Error>((records, old_runs))
        })?;
        work.log_session(&self.id, self.number);
        work.log_retry(&self.id, old_runs, &records)?;
        let (tree, txn) = (self.store.trees().sessions, work.txn()?);
        if old_runs {
            let (start, end) = stored::runs(&self.id);
            let range = KeyRange::half_open(&start, &end);
            txn.delete_range(tree, range).map_err(error::engine)?;
        }
        for (key, value) in &records {
            txn.put_blind(tree, key, value).map_err(error::engine)?;
        }
        let (session, number) = (self.session.session(), self.number);
        work.after_commit(move || session.executed(number, fresh));
        Ok(())
    }
}

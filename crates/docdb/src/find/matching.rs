//! The documents that a write is about.

use std::sync::Arc;

use bson::{Bson, RawDocumentBuf};
use kv::Snapshot;
use query::Result;
use query::filter::Filter;
use query::sort::Sort;

use super::express::{Express, Write};
use super::prepare::Query;
use super::settings::Collated;
use crate::collection::Collection;
use crate::exec::{Cx, Executor, Step};
use crate::record::RecordId;
use crate::store::Store;
use crate::txn::{Op, View};

/// What a write looks for.
#[derive(Clone)]
pub struct Matching {
    /// What documents must match; parsed with the collation below.
    pub filter: Arc<Filter>,
    /// The order in which they are wanted.
    pub sort: Option<Sort>,
    /// An index by name, by key pattern, or `{$natural: 1}`.
    pub hint: Option<Bson>,
    /// How strings compare (default: as the collection says).
    pub collation: Option<RawDocumentBuf>,
    /// Documents wanted, when not all are.
    pub limit: Option<u64>,
    /// The stage that writes what one `_id` names, where MongoDB has one for it.
    pub(crate) write: Option<Write>,
}

/// A stream of documents that match, read from the write's own transaction.
///
/// It may be given another view of the store with each call; it never gives a document twice.
pub struct Matched {
    executor: Executor,
}

impl Store {
    /// Plan what a write looks for.
    ///
    /// # Errors
    /// Hints that do not fit; of execution.
    pub fn matching(
        &self,
        op: &Op<'_>,
        collection: &Arc<Collection>,
        snapshot: &dyn Snapshot,
        matching: &Matching,
    ) -> Result<Matched> {
        let space = collection.space()?;
        let collated = Collated::of(matching.collation.as_deref(), Some(&space))?;
        let mut query = Query::of_filter(space, collated, Arc::clone(&matching.filter));
        if let Some(sort) = &matching.sort {
            query.set_parsed_sort(sort.clone());
        }
        query.set_hint(matching.hint.as_ref())?;
        query.purpose.tail.limit = matching.limit;
        query.purpose.once = true;
        query.purpose.express = matching
            .write
            .map(|write| Express::write(collection, write));
        query.purpose.spill = Some(self.options().temp_dir.clone());
        let mut view = View::borrowed(self, op, snapshot);
        let executor = query.execute(collection, &mut view)?;
        executor.announce(op);
        Ok(Matched { executor })
    }
}

impl Matched {
    /// The next document.
    ///
    /// # Errors
    /// Of execution; that the operation must end.
    pub fn next(
        &mut self,
        op: &Op<'_>,
        snapshot: &dyn Snapshot,
    ) -> Result<Option<(RecordId, RawDocumentBuf)>> {
        self.next_of(op, snapshot, 1)
    }

    /// The next document, where about `rows` more are wanted from the same view: those are read
    /// ahead. Call [`Matched::leave`] before giving another view.
    ///
    /// # Errors
    /// Of execution; that the operation must end.
    pub fn next_of(
        &mut self,
        op: &Op<'_>,
        snapshot: &dyn Snapshot,
        rows: usize,
    ) -> Result<Option<(RecordId, RawDocumentBuf)>> {
        let mut check = || op.check();
        let mut cx = Cx::new(snapshot, &mut check);
        cx.rows_left = rows;
        match self.executor.next_item(&mut cx)? {
            Step::Row(item) => Ok(Some((item.record, item.document))),
            Step::Pause | Step::End => Ok(None),
        }
    }

    /// The plan being executed.
    pub(crate) fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Tell an operation what was read.
    pub(crate) fn report(&mut self, op: &Op<'_>) {
        self.executor.report_counts(op);
    }

    /// Forget what was read ahead.
    pub fn leave(&mut self) {
        self.executor.save();
    }
}

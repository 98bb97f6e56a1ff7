//! Finds the documents that a write changes.

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

/// The selection of a write.
#[derive(Clone)]
pub struct Matching {
    /// The filter that documents must match, parsed with the collation below.
    pub filter: Arc<Filter>,
    /// The sort order.
    pub sort: Option<Sort>,
    /// An index by name, by key pattern, or `{$natural: 1}`.
    pub hint: Option<Bson>,
    /// Collation of string comparisons (default: that of the collection).
    pub collation: Option<RawDocumentBuf>,
    /// Maximum number of documents; `None` for all.
    pub limit: Option<u64>,
    /// MongoDB's express write stage for a filter on one `_id`, if it has one.
    pub(crate) write: Option<Write>,
}

/// A stream of documents that match, read from the write's own transaction.
///
/// Each call may pass another view of the store; no document is returned twice.
pub struct Matched {
    executor: Executor,
}

impl Store {
    /// Plan the selection of a write.
    ///
    /// # Errors
    /// Hints that cannot be used; errors of execution.
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
        query.purpose.spill = Some(self.spill_place());
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
    /// Errors of execution; the operation must end.
    pub fn next(
        &mut self,
        op: &Op<'_>,
        snapshot: &dyn Snapshot,
    ) -> Result<Option<(RecordId, RawDocumentBuf)>> {
        self.next_of(op, snapshot, 1)
    }

    /// The next document, if about `rows` more are wanted from the same view: these are read ahead.
    /// Call [`Matched::leave`] before passing another view.
    ///
    /// # Errors
    /// Errors of execution; the operation must end.
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

    /// Report to an operation what was read.
    pub(crate) fn report(&mut self, op: &Op<'_>) {
        self.executor.report_counts(op);
    }

    /// Discard the documents read ahead.
    pub fn leave(&mut self) {
        self.executor.save();
    }
}

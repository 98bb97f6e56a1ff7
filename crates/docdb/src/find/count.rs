//! `count`.

use bson::{Bson, RawDocumentBuf};
use query::{Namespace, Result};

use super::prepare::Query;
use crate::catalog::Named;
use crate::collection::Collection;
use crate::cursor::{check_alive, or_killed_if};
use crate::exec::{Cx, Executor, Item, Step};
use crate::store::Store;
use crate::txn::{Op, View, with_view};
use crate::variables::Let;

/// The arguments of `count`, with MongoDB's names and defaults.
#[derive(Debug, Clone, Default)]
pub struct CountRequest {
    /// The filter that documents must match (default: all match, and the count is read from the
    /// collection's counter).
    pub filter: RawDocumentBuf,
    /// Number of documents to skip (default 0).
    pub skip: u64,
    /// Maximum count (default: no limit).
    pub limit: Option<u64>,
    /// An index by name, by key pattern, or `{$natural: 1}`.
    pub hint: Option<Bson>,
    /// Collation of string comparisons (default: that of the collection).
    pub collation: Option<RawDocumentBuf>,
    /// Variables for expressions.
    pub variables: Option<Let>,
}

impl CountRequest {
    /// The counting query, also used by `explain`.
    pub(crate) fn query(&self, op: &Op<'_>, collection: &Collection) -> Result<Query> {
        let mut query = Query::plain(
            op,
            collection,
            &self.filter,
            self.collation.as_deref(),
            self.variables.as_ref(),
        )?;
        query.set_hint(self.hint.as_ref())?;
        query.purpose.records_only = true;
        query.purpose.tail.skip = self.skip;
        query.purpose.tail.limit = self.limit;
        Ok(query)
    }
}

impl Store {
    /// [`Store::count`] in a collection; `None` if the name is a view's.
    pub(crate) fn count_in_collection(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &CountRequest,
    ) -> Result<Option<u64>> {
        loop {
            let collection = match self.named(op, ns)? {
                Some(Named::Collection(collection)) => collection,
                Some(Named::View(_)) => return Ok(None),
                None => {
                    op.plan("EOF");
                    return Ok(Some(0));
                }
            };
            if request.filter.is_empty() && request.hint.is_none() && op.is_now() {
                op.plan("RECORD_STORE_FAST_COUNT");
                let count = u64::try_from(collection.count()).unwrap_or(0);
                let count = count.saturating_sub(request.skip);
                return Ok(Some(request.limit.map_or(count, |limit| count.min(limit))));
            }
            let mut was = None;
            let counted = with_view(self, op, &mut |view| {
                let Some(Named::Collection(collection)) = view.named(ns)? else {
                    return Ok(None);
                };
                let collection = &*was.insert(collection);
                let query = request.query(op, collection)?;
                let mut executor = query.execute(collection, view)?;
                drain(collection, &mut executor, view, &mut |_| Ok(()))
                    .map(Some)
                    .map_err(|error| error.within("Executor error during count command"))
            });
            let counted = counted.map_err(|error| or_killed_if(self, op, was.as_ref(), error))?;
            // The collection may have been dropped before the snapshot was opened.
            if counted.is_some() {
                return Ok(counted);
            }
        }
    }
}

/// Run a plan on a collection to its end and pass each item to `visit`; returns the number of
/// items.
pub(crate) fn drain(
    collection: &Collection,
    executor: &mut Executor,
    view: &mut View<'_>,
    visit: &mut dyn FnMut(&Item) -> Result<()>,
) -> Result<u64> {
    executor.announce(view.op());
    let drained = visit_all(collection, executor, view, visit);
    executor.report_counts(view.op());
    drained
}

fn visit_all(
    collection: &Collection,
    executor: &mut Executor,
    view: &mut View<'_>,
    visit: &mut dyn FnMut(&Item) -> Result<()>,
) -> Result<u64> {
    let op = view.op();
    let mut count = 0;
    loop {
        let mut check = || op.check();
        let mut cx = Cx::new(view.snapshot()?, &mut check);
        cx.set_budget(view.budget());
        loop {
            match executor.next_item(&mut cx)? {
                Step::Row(item) => {
                    visit(&item)?;
                    count += 1;
                }
                Step::Pause => break,
                Step::End => return Ok(count),
            }
        }
        executor.save();
        view.renew()?;
        check_alive(view.store(), op, collection, executor)?;
    }
}

//! `find`, `count`, `distinct` and the search of writes: a query of one collection, planned, chosen
//! and executed. Queries of views are pipelines: `aggregate::view`.

mod build;
mod choose;
mod count;
mod cursor;
#[cfg(test)]
mod cut_law;
mod distinct;
mod distinct_scan;
mod express;
#[cfg(test)]
mod hashed_law;
#[cfg(test)]
mod law;
mod matching;
#[cfg(test)]
mod pipeline_law;
mod prepare;
mod request;
#[cfg(test)]
mod runaway;
mod settings;
#[cfg(test)]
pub(crate) mod tests;

use query::{Error, Namespace, Result};

use crate::catalog::Named;
use crate::collection::Collection;
use crate::cursor::{Batch, Collector, FIRST_BATCH, fill, or_killed_if};
use crate::store::Store;
use crate::txn::{Op, with_view};

pub(crate) use build::{Purpose, build};
pub(crate) use choose::try_all;
pub use count::CountRequest;
pub(crate) use count::drain;
use cursor::FindCursor;
pub(crate) use distinct::Distinct;
pub use distinct::DistinctRequest;
pub(crate) use distinct_scan::{Scanned, describe, index_for, scan};
pub(crate) use express::{DELETE, Express, UPDATE, Write};
pub use matching::{Matched, Matching};
pub(crate) use prepare::{Planned, Query};
pub use request::FindRequest;
pub(crate) use settings::Collated;

impl Store {
    /// [`Store::find`] in a collection; `None` if the name is a view's.
    pub(crate) fn find_in_collection(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &FindRequest,
    ) -> Result<Option<Batch>> {
        loop {
            match self.named(op, ns)? {
                Some(Named::Collection(_)) => {
                    // The collection may have been dropped before the snapshot was opened.
                    if let Some(batch) = self.find_in(op, ns, request)? {
                        return Ok(Some(batch));
                    }
                }
                Some(Named::View(_)) => {
                    self.check_find(op, request)?;
                    return Ok(None);
                }
                None => {
                    // An invalid request is an error without a collection as well.
                    self.check_find(op, request)?;
                    op.plan("EOF");
                    return Ok(Some(Batch {
                        id: 0,
                        ns: ns.clone(),
                        documents: Vec::new(),
                        awaits: None,
                        resume: None,
                    }));
                }
            }
        }
    }

    pub(crate) fn check_find(&self, op: &Op<'_>, request: &FindRequest) -> Result<()> {
        let collated = Collated::of(request.collation.as_deref(), None)?;
        let settings = collated.settings(op, request.variables.as_ref())?;
        let filter = query::filter::Filter::parse(&request.filter, &settings)?;
        if let Some(projection) = &request.projection {
            prepare::parse_projection(projection, &settings, &filter, request)?;
        }
        Ok(())
    }

    /// `find` in a collection; `None` if the snapshot has no collection of this name.
    fn find_in(&self, op: &Op<'_>, ns: &Namespace, request: &FindRequest) -> Result<Option<Batch>> {
        let wanted = request.batch_size.unwrap_or(FIRST_BATCH);
        let mut was = None;
        let done = with_view(self, op, &mut |view| {
            let Some(Named::Collection(collection)) = view.named(ns)? else {
                return Ok(None);
            };
            let collection = &*was.insert(collection);
            check_tailable(ns, collection, request)?;
            let query = Query::of_find(op, collection, request, &self.spill_place())?;
            let mut executor = query.execute(collection, view)?;
            let mut collector = Collector::new(wanted, None);
            let over = match wanted {
                0 => {
                    executor.announce(op);
                    executor.report_counts(op);
                    false
                }
                _ => fill(collection, &mut executor, &mut collector, view).map_err(|error| {
                    error.within(format_args!("Executor error during find command: {ns}"))
                })?,
            };
            let (documents, pending) = collector.finish();
            let tails = request.tailable && 0 < collection.count();
            let ended = (over && pending.is_none() && !tails) || request.single_batch;
            let cursor = match ended {
                true => None,
                false => Some(FindCursor::new(collection, executor, pending, request)?),
            };
            Ok(Some((cursor, documents)))
        });
        let done = done.map_err(|error| or_killed_if(self, op, was.as_ref(), error))?;
        let Some((cursor, documents)) = done else {
            return Ok(None);
        };
        if request.tailable
            && !documents.is_empty()
            && let Some(collection) = &was
        {
            self.confirm(collection)?;
        }
        let no_timeout = request.no_cursor_timeout;
        let id = match cursor {
            None => 0,
            Some(cursor) => self.cursors().open(op, ns, no_timeout, Box::new(cursor))?,
        };
        Ok(Some(Batch {
            id,
            ns: ns.clone(),
            documents,
            awaits: None,
            resume: None,
        }))
    }
}

/// Only a capped collection can be tailed.
fn check_tailable(ns: &Namespace, collection: &Collection, request: &FindRequest) -> Result<()> {
    if request.tailable && !collection.is_capped() {
        return Err(Error::bad_value(format!(
            "error processing query: ns={ns} planner returned error :: caused by :: tailable \
             cursor requested on non capped collection"
        )));
    }
    Ok(())
}

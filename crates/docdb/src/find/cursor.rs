//! The cursor of a `find` command.

use std::sync::Arc;

use bson::RawDocumentBuf;
use query::Result;

use super::request::FindRequest;
use crate::collection::Collection;
use crate::cursor::{Collector, Cursor, GetMore, Next, check_alive, fill};
use crate::exec::Executor;
use crate::store::Store;
use crate::txn::{Op, with_view};
use crate::writes::Awaiting;

/// A query of one collection.
pub(crate) struct FindCursor {
    collection: Arc<Collection>,
    executor: Executor,
    /// The document that did not fit into the last batch.
    pending: Option<RawDocumentBuf>,
    tailable: bool,
    await_data: bool,
    /// Bytes of the parsed request that are not reserved elsewhere.
    request: usize,
}

impl FindCursor {
    /// The cursor that continues `request` after its first batch.
    pub(crate) fn new(
        collection: &Arc<Collection>,
        executor: Executor,
        pending: Option<RawDocumentBuf>,
        request: &FindRequest,
    ) -> Result<FindCursor> {
        Ok(FindCursor {
            collection: Arc::clone(collection),
            executor,
            pending,
            tailable: request.tailable,
            await_data: request.await_data,
            request: request.parsed_bytes()?,
        })
    }

    fn fill(&mut self, store: &Store, op: &Op<'_>, collector: &mut Collector) -> Result<bool> {
        let (executor, collection) = (&mut self.executor, &self.collection);
        with_view(store, op, &mut |view| {
            // Checked after the snapshot was opened: up to then the indexes were maintained.
            check_alive(store, op, collection, executor)?;
            executor.check_position(view)?;
            fill(collection, executor, collector, view)
        })
        .map_err(|error| {
            match check_alive(store, op, &self.collection, &self.executor) {
                // If the collection was dropped, report that as the cause.
                Err(gone) => gone,
                Ok(()) => error.within("Executor error during getMore"),
            }
        })
    }
}

impl Cursor for FindCursor {
    fn more(&mut self, store: &Store, op: &Op<'_>, request: &GetMore) -> Result<Next> {
        let writes = &self.collection.core().writes;
        // Looked up before reading, so that any later write ends the wait.
        let awaiting = Awaiting::new(writes, writes.last());
        let mut collector = Collector::new(request.wanted(), self.pending.take());
        let over = self.fill(store, op, &mut collector)?;
        let waits = self.await_data && collector.is_empty();
        let (documents, pending) = collector.finish();
        if self.tailable && !documents.is_empty() {
            store.confirm(&self.collection)?;
        }
        let ended = over && pending.is_none() && !self.tailable;
        self.pending = pending;
        Ok(Next {
            documents,
            ended,
            awaits: waits.then_some(awaiting),
        })
    }

    fn awaits_data(&self) -> bool {
        self.await_data
    }

    fn bytes(&self) -> usize {
        let pending = self.pending.as_ref();
        self.request + pending.map_or(0, |document| document.as_bytes().len())
    }
}

//! The cursor of a `find` command.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bson::RawDocumentBuf;
use query::{Result, meter};

use super::request::FindRequest;
use crate::collection::Collection;
use crate::cursor::{Collector, Cursor, GetMore, Next, check_alive, fill};
use crate::exec::Executor;
use crate::store::Store;
use crate::txn::{Op, with_view};

/// Default wait of `getMore` on an `awaitData` cursor, without `maxTimeMS`.
const AWAIT: Duration = Duration::from_secs(1);

/// A query of one collection.
pub(crate) struct FindCursor {
    collection: Arc<Collection>,
    executor: Executor,
    /// The document that did not fit into the last batch.
    pending: Option<RawDocumentBuf>,
    tailable: bool,
    await_data: bool,
}

impl FindCursor {
    /// The cursor that continues `request` after its first batch.
    pub(crate) fn new(
        collection: &Arc<Collection>,
        executor: Executor,
        pending: Option<RawDocumentBuf>,
        request: &FindRequest,
    ) -> FindCursor {
        FindCursor {
            collection: Arc::clone(collection),
            executor,
            pending,
            tailable: request.tailable,
            await_data: request.await_data,
        }
    }

    /// The next batch. A cursor that waits for data returns it when there is a document or the wait
    /// is over.
    fn fill(&mut self, store: &Store, op: &Op<'_>, request: &GetMore) -> Result<(Collector, bool)> {
        let deadline = stdx::time::now() + request.await_time.unwrap_or(AWAIT);
        let mut collector = Collector::new(request.wanted(), self.pending.take());
        // Taken before reading, so that any later write wakes the wait.
        let mut writes = writes_seen(store, &self.collection);
        loop {
            let (executor, collection) = (&mut self.executor, &self.collection);
            let over = with_view(store, op, &mut |view| {
                // Checked after the snapshot was opened: up to then the indexes were maintained.
                check_alive(store, op, collection, executor)?;
                executor.check_position(view)?;
                fill(collection, executor, &mut collector, view)
            })
            .map_err(|error| {
                match check_alive(store, op, &self.collection, &self.executor) {
                    // If the collection was dropped, report that as the cause.
                    Err(gone) => gone,
                    Ok(()) => error.within("Executor error during getMore"),
                }
            })?;
            if !self.tailable {
                return Ok((collector, over));
            }
            let waits = self.await_data && collector.is_empty();
            if !waits || deadline <= stdx::time::now() {
                return Ok((collector, false));
            }
            let begun = stdx::time::now();
            let waited = wait(store, op, (&self.collection, writes), deadline);
            if let Some(examined) = &op.examined {
                examined.waits(begun.elapsed());
            }
            writes = waited?;
        }
    }
}

impl Cursor for FindCursor {
    fn more(&mut self, store: &Store, op: &Op<'_>, request: &GetMore) -> Result<Next> {
        let (filled, ended) = self.fill(store, op, request)?;
        let (documents, pending) = filled.finish();
        let ended = ended && pending.is_none();
        self.pending = pending;
        Ok((documents, ended))
    }

    fn awaits_data(&self) -> bool {
        self.await_data
    }
}

/// Wait for a write in short slices, so that a killed operation ends.
fn wait(
    store: &Store,
    op: &Op<'_>,
    (collection, seen): (&Collection, u64),
    deadline: Instant,
) -> Result<u64> {
    const SLICE: Duration = Duration::from_millis(100);
    loop {
        op.check()?;
        let until = deadline.min(stdx::time::now() + SLICE);
        meter::rest();
        let count = match collection.is_oplog() {
            true => store.wait_for_entries(seen, until),
            false => store.wait_for_writes(seen, until),
        };
        if count != seen || deadline <= stdx::time::now() {
            return Ok(count);
        }
    }
}

/// The number of writes so far, or the visible time of the oplog, to wait from.
fn writes_seen(store: &Store, collection: &Collection) -> u64 {
    match collection.is_oplog() {
        true => store.wait_for_entries(u64::MAX, stdx::time::now()),
        false => store.wait_for_writes(u64::MAX, stdx::time::now()),
    }
}

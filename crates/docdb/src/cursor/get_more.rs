//! `getMore`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use query::{Code, Error, Namespace, Result};

use super::alive::check_alive;
use super::batch::{Batch, Collector, fill};
use super::open::{Cursor, FindCursor, owner};
use crate::store::Store;
use crate::txn::{Op, with_view};

/// How long `getMore` of an `awaitData` cursor waits, unless `maxTimeMS` says it.
const AWAIT: Duration = Duration::from_secs(1);

/// The arguments of `getMore`.
#[derive(Debug, Clone)]
pub struct GetMore {
    /// The cursor.
    pub id: i64,
    /// The namespace of the cursor.
    pub ns: Namespace,
    /// Documents of the batch (default: as many as fit into 16 MiB).
    pub batch_size: Option<u64>,
    /// How long to wait for data (`maxTimeMS`; default 1 s); only for `awaitData` cursors.
    pub await_time: Option<Duration>,
}

impl Store {
    /// The batch after `batch`, without waiting for data; `None` after the last one.
    ///
    /// # Errors
    /// As [`Store::get_more`].
    pub fn following(&self, op: &Op<'_>, batch: &Batch) -> Result<Option<Batch>> {
        if batch.id == 0 {
            return Ok(None);
        }
        let more = GetMore {
            id: batch.id,
            ns: batch.ns.clone(),
            batch_size: None,
            await_time: None,
        };
        self.get_more(op, &more).map(Some)
    }

    /// `getMore`: the next batch of a cursor. The operation's limit of time, usually
    /// [`Store::cursor_left`], is what the next one has left.
    ///
    /// # Errors
    /// `CursorNotFound`, `Unauthorized` and such for cursors of others; `QueryPlanKilled` when the
    /// collection or an index is gone; of execution. But for cursors of others the cursor is gone
    /// after an error.
    pub fn get_more(&self, op: &Op<'_>, request: &GetMore) -> Result<Batch> {
        let mut lease = self
            .cursors()
            .registry
            .lease(request.id, &request.ns, &owner(op))?;
        let killed = Arc::clone(lease.killed());
        let wanted = request
            .batch_size
            .filter(|&size| size != 0)
            .unwrap_or(u64::MAX);
        let (documents, ended) = match lease.cursor() {
            Cursor::List(cursor) => cursor.more(wanted),
            Cursor::Find(cursor) => {
                let (filled, ended) = self.more_of_find(op, request, cursor, wanted)?;
                let (documents, pending) = filled.finish();
                let ended = ended && pending.is_none();
                cursor.pending = pending;
                (documents, ended)
            }
            Cursor::Pipeline(cursor) => {
                let mut filled = Collector::new(wanted, cursor.take_pending());
                let ended = self.more_of_pipeline(op, cursor, &mut filled)?;
                let (documents, pending) = filled.finish();
                let ended = ended && pending.is_none();
                cursor.set_pending(pending);
                (documents, ended)
            }
        };
        finish(op, request, lease, (documents, ended), &killed)
    }

    /// A batch of a query; for a cursor that waits, when there is something or time is over.
    fn more_of_find(
        &self,
        op: &Op<'_>,
        request: &GetMore,
        cursor: &mut FindCursor,
        wanted: u64,
    ) -> Result<(Collector, bool)> {
        let deadline = stdx::time::now() + request.await_time.unwrap_or(AWAIT);
        let mut collector = Collector::new(wanted, cursor.pending.take());
        // Before reading: what is written after that wakes us.
        let mut writes = self.writes_seen();
        loop {
            let FindCursor {
                executor,
                collection,
                ..
            } = cursor;
            let over = with_view(self, op, &mut |view| {
                // After the snapshot was opened: until then the indexes were kept up to date.
                check_alive(self, op, collection, executor)?;
                executor.check_position(view)?;
                fill(collection, executor, &mut collector, view)
            })
            .map_err(|error| {
                match check_alive(self, op, &cursor.collection, &cursor.executor) {
                    // What failed because the collection went away says so.
                    Err(gone) => gone,
                    Ok(()) => error.within("Executor error during getMore"),
                }
            })?;
            if !cursor.tailable {
                return Ok((collector, over));
            }
            let waits = cursor.await_data && collector.is_empty();
            if !waits || deadline <= stdx::time::now() {
                return Ok((collector, false));
            }
            writes = self.wait(op, writes, deadline)?;
        }
    }

    /// Wait for a write, a while at a time, so that a killed operation ends.
    fn wait(&self, op: &Op<'_>, seen: u64, deadline: Instant) -> Result<u64> {
        const SLICE: Duration = Duration::from_millis(100);
        loop {
            op.check()?;
            let now = stdx::time::now();
            let count = self.wait_for_writes(seen, deadline.min(now + SLICE));
            if count != seen || deadline <= stdx::time::now() {
                return Ok(count);
            }
        }
    }

    /// The number of writes so far, to wait from.
    fn writes_seen(&self) -> u64 {
        self.wait_for_writes(u64::MAX, stdx::time::now())
    }
}

fn finish(
    op: &Op<'_>,
    request: &GetMore,
    lease: super::registry::Lease<'_, Cursor>,
    (documents, ended): (Vec<bson::RawDocumentBuf>, bool),
    killed: &std::sync::atomic::AtomicBool,
) -> Result<Batch> {
    if killed.load(Ordering::Relaxed) {
        return Err(Error::new(
            Code::CURSOR_KILLED,
            format!("cursor id {} was killed", request.id),
        ));
    }
    if ended {
        drop(lease);
    } else {
        lease.give_back(stdx::time::now(), op.left());
    }
    Ok(Batch {
        id: if ended { 0 } else { request.id },
        ns: request.ns.clone(),
        documents,
    })
}

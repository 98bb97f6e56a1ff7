//! `getMore`.

use std::sync::Arc;

use query::{Namespace, Result};

use super::batch::Batch;
use super::open::{Cursor, Next, owner};
use super::registry::{Lease, killed as killed_error};
use crate::store::Store;
use crate::txn::Op;
use crate::writes::End;

/// The arguments of `getMore`.
#[derive(Debug, Clone)]
pub struct GetMore {
    /// The cursor's id.
    pub id: i64,
    /// The namespace of the cursor.
    pub ns: Namespace,
    /// Maximum number of documents in the batch (default: as many as fit into 16 MiB).
    pub batch_size: Option<u64>,
    /// Whether the operation waits if there is no data (see [`Batch::awaits`]). The cursor is then
    /// reserved for it, and another call with `waited` must follow, or
    /// [`Store::release_cursor`].
    pub waits: bool,
    /// Whether the operation has waited for the cursor.
    pub waited: bool,
}

impl GetMore {
    /// The maximum number of documents in the batch.
    pub(crate) fn wanted(&self) -> u64 {
        self.batch_size
            .filter(|&size| size != 0)
            .unwrap_or(u64::MAX)
    }
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
            waits: false,
            waited: false,
        };
        self.get_more(op, &more).map(Some)
    }

    /// `getMore`: the next batch of a cursor, without waiting for data: see [`Batch::awaits`]. The
    /// unused part of the operation's time limit, which
    /// is usually [`Store::cursor_left`], is kept for the next `getMore`.
    ///
    /// # Errors
    /// `CursorNotFound`; `CursorKilled` if it was killed meanwhile; `Unauthorized` and similar
    /// errors for cursors of others; `QueryPlanKilled` when the collection or an index no longer
    /// exists; errors of execution. Every error closes the cursor, except those for cursors of
    /// others.
    pub fn get_more(&self, op: &Op<'_>, request: &GetMore) -> Result<Batch> {
        let mut lease =
            self.cursors()
                .registry
                .lease(request.id, &request.ns, &owner(op), request.waited)?;
        let killed = Arc::clone(lease.killed());
        op.check()?;
        let next = lease.cursor().more(self, op, request)?;
        let resume = lease.cursor().resume_token();
        let batch = finish(op, request, lease, next, &killed)?;
        Ok(Batch { resume, ..batch })
    }
}

fn finish(
    op: &Op<'_>,
    request: &GetMore,
    lease: Lease<'_, Box<dyn Cursor>>,
    next: Next,
    killed: &Arc<End>,
) -> Result<Batch> {
    if killed.is_ended() {
        return Err(killed_error(request.id));
    }
    let awaits = next.awaits.filter(|_| request.waits);
    let awaits = awaits.map(|awaiting| awaiting.until(killed));
    let now = stdx::time::now();
    match (next.ended, &awaits) {
        (true, _) => drop(lease),
        (false, None) => lease.give_back(now, op.left()),
        (false, Some(_)) => lease.reserve(now, op.left()),
    }
    Ok(Batch {
        id: if next.ended { 0 } else { request.id },
        ns: request.ns.clone(),
        documents: next.documents,
        awaits,
        resume: None,
    })
}

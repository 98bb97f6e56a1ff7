//! `getMore`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use query::{Code, Error, Namespace, Result};

use super::batch::Batch;
use super::open::{Cursor, Next, owner};
use super::registry::Lease;
use crate::store::Store;
use crate::txn::Op;

/// The arguments of `getMore`.
#[derive(Debug, Clone)]
pub struct GetMore {
    /// The cursor's id.
    pub id: i64,
    /// The namespace of the cursor.
    pub ns: Namespace,
    /// Maximum number of documents in the batch (default: as many as fit into 16 MiB).
    pub batch_size: Option<u64>,
    /// How long to wait for data (`maxTimeMS`; default 1 s); only for `awaitData` cursors.
    pub await_time: Option<Duration>,
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
            await_time: None,
        };
        self.get_more(op, &more).map(Some)
    }

    /// `getMore`: the next batch of a cursor. The unused part of the operation's time limit, which
    /// is usually [`Store::cursor_left`], is kept for the next `getMore`.
    ///
    /// # Errors
    /// `CursorNotFound`; `Unauthorized` and similar errors for cursors of others; `QueryPlanKilled`
    /// when the collection or an index no longer exists; errors of execution. Every error closes
    /// the cursor, except those for cursors of others.
    pub fn get_more(&self, op: &Op<'_>, request: &GetMore) -> Result<Batch> {
        let mut lease = self
            .cursors()
            .registry
            .lease(request.id, &request.ns, &owner(op))?;
        let killed = Arc::clone(lease.killed());
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
    (documents, ended): Next,
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
        resume: None,
    })
}

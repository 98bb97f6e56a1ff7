//! `getMore`.

use std::sync::Arc;

use query::{Namespace, Result};

use super::batch::Batch;
use super::open::{Kept, Next, owner};
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
        let checked = op.check();
        let next = checked.and_then(|()| lease.cursor().cursor().more(self, op, request));
        // What kills a cursor may interrupt its operation, too: the cursor is the reason.
        if killed.is_ended() {
            return Err(killed_error(request.id));
        }
        let next = next?;
        let resume = lease.cursor().cursor().resume_token();
        if !next.ended {
            lease.cursor().settle()?;
        }
        let batch = finish(op, request, lease, next, &killed);
        Ok(Batch { resume, ..batch })
    }
}

fn finish(
    op: &Op<'_>,
    request: &GetMore,
    lease: Lease<'_, Kept>,
    next: Next,
    killed: &Arc<End>,
) -> Batch {
    let awaits = next.awaits.filter(|_| request.waits);
    let awaits = awaits.map(|awaiting| awaiting.until(killed));
    let now = stdx::time::now();
    match (next.ended, &awaits) {
        (true, _) => drop(lease),
        (false, None) => lease.give_back(now, op.left()),
        (false, Some(_)) => lease.reserve(now, op.left()),
    }
    Batch {
        id: if next.ended { 0 } else { request.id },
        ns: request.ns.clone(),
        documents: next.documents,
        awaits,
        resume: None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use kv::Durability;
    use query::Code;

    use super::*;
    use crate::cursor::Cursor;
    use crate::store::Options;

    /// A cursor that is killed during its first `getMore`, and the operation after it, as
    /// `killSessions` does both.
    struct Doomed(i64);

    impl Cursor for Doomed {
        fn more(&mut self, store: &Store, op: &Op<'_>, _: &GetMore) -> Result<Next> {
            store.kill_cursors(&[self.0], &|_, _| true);
            op.killed.store(Code::INTERRUPTED.0, Ordering::Relaxed);
            op.check()?;
            Ok(Next::of(Vec::new(), false))
        }

        fn bytes(&self) -> usize {
            0
        }
    }

    #[test]
    fn an_operation_that_is_interrupted_with_its_cursor_ends_with_cursor_killed() {
        let folder = tempfile::tempdir().unwrap();
        let engine = kv::memory::factory().open(folder.path(), &kv::EngineOptions::default());
        let store = Store::open(Arc::from(engine.unwrap()), Options::default()).unwrap();
        let ns = Namespace::parse("d.c").unwrap();
        let op = Op::new(Durability::None);
        let opened = store.cursors().open(&op, &ns, false, Box::new(Doomed(0)));
        let id = opened.unwrap();
        let request = GetMore {
            id,
            ns: ns.clone(),
            batch_size: None,
            waits: true,
            waited: false,
        };
        // The cursor learns its number only now.
        let registry = &store.cursors().registry;
        let mut lease = registry.lease(id, &ns, &owner(&op), false).unwrap();
        *lease.cursor() = Kept::new(Box::new(Doomed(id))).unwrap();
        lease.give_back(stdx::time::now(), None);
        let error = store.get_more(&op, &request).unwrap_err();
        assert_eq!(error.code, Code::CURSOR_KILLED);
        let gone = store.get_more(&op, &request).unwrap_err();
        assert_eq!(gone.code, Code::CURSOR_NOT_FOUND);
    }
}

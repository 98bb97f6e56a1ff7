//! The interface of an open cursor, and the store's open cursors.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use bson::RawDocumentBuf;
use query::meter::Held;
use query::{Namespace, Result};
use stdx::rng::mix64;

use super::get_more::GetMore;
use super::registry::{Figures, IdleCursor, Killed, Origin, Owner, Registration, Registry};
use crate::store::Store;
use crate::txn::Op;
use crate::writes::Awaiting;

/// A query that `getMore` continues.
pub(crate) trait Cursor: Send {
    /// The next batch.
    ///
    /// # Errors
    /// `QueryPlanKilled` when its collection or an index no longer exists; errors of execution.
    fn more(&mut self, store: &Store, op: &Op<'_>, request: &GetMore) -> Result<Next>;

    /// Of a change stream, the resume token after the last batch.
    fn resume_token(&self) -> Option<RawDocumentBuf> {
        None
    }

    /// Whether each `getMore` limits how long it waits for data.
    fn awaits_data(&self) -> bool {
        false
    }

    /// Bytes that it keeps until its next batch, except those that it has reserved itself.
    fn bytes(&self) -> usize;
}

/// A cursor, and the reservation for what it keeps while it is idle. A user who may query may
/// open any number of cursors, so that none is too small to count.
pub(crate) struct Kept {
    cursor: Box<dyn Cursor>,
    held: Held,
}

/// Bytes of an idle cursor beside those that it reports: its registration, and the command shown.
const CURSOR: usize = 16 << 10;

impl Kept {
    /// Keep a cursor.
    ///
    /// # Errors
    /// `ExceededMemoryLimit` when the budget of all queries refuses its memory.
    pub(crate) fn new(cursor: Box<dyn Cursor>) -> Result<Kept> {
        let held = Held::new();
        let mut kept = Kept { cursor, held };
        kept.settle()?;
        Ok(kept)
    }

    /// The cursor, for its next batch; [`Kept::settle`] must follow.
    pub(crate) fn cursor(&mut self) -> &mut dyn Cursor {
        self.cursor.as_mut()
    }

    /// Reserve the memory that the cursor keeps now.
    ///
    /// # Errors
    /// As [`Kept::new`].
    pub(crate) fn settle(&mut self) -> Result<()> {
        let bytes = CURSOR.saturating_add(self.cursor.bytes());
        self.held.retain("A cursor", bytes)
    }
}

/// The next batch of a cursor.
pub(crate) struct Next {
    pub(crate) documents: Vec<RawDocumentBuf>,
    /// Whether it is the last.
    pub(crate) ended: bool,
    /// See [`super::Batch::awaits`].
    pub(crate) awaits: Option<Awaiting>,
}

impl Next {
    /// A batch of documents that are there.
    pub(crate) fn of(documents: Vec<RawDocumentBuf>, ended: bool) -> Next {
        Next {
            documents,
            ended,
            awaits: None,
        }
    }
}

/// The open cursors of the store.
pub(crate) struct Cursors {
    pub(super) registry: Registry<Kept>,
}

impl Default for Cursors {
    fn default() -> Cursors {
        let nanos = stdx::time::wall().as_nanos() & u128::from(u64::MAX);
        let seed = u64::try_from(nanos).unwrap_or(0) ^ u64::from(std::process::id()) << 32;
        Cursors {
            registry: Registry::new(mix64(seed)),
        }
    }
}

/// The owner of cursors opened by `op`.
pub(crate) fn owner(op: &Op<'_>) -> Owner {
    let session = op.session.as_ref();
    Owner {
        session: session.map(|session| [&session.id.id[..], &session.id.uid[..]].concat()),
        transaction: op
            .transaction
            .and_then(|_| session.and_then(|session| session.txn_number)),
        user: op.user.clone(),
    }
}

impl Cursors {
    /// Keep a cursor for `getMore` and return its id.
    ///
    /// # Errors
    /// As [`Kept::new`].
    pub(crate) fn open(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        no_timeout: bool,
        cursor: Box<dyn Cursor>,
    ) -> Result<i64> {
        let registration = Registration {
            namespace: ns.clone(),
            owner: owner(op),
            at: op.held.map(|held| held.time),
            no_timeout,
            left: if cursor.awaits_data() {
                None
            } else {
                op.left()
            },
            origin: None,
        };
        let kept = Kept::new(cursor)?;
        let id = self.registry.insert(registration, kept, stdx::time::now());
        Ok(id)
    }
}

impl Store {
    /// The open cursors of the store.
    pub(crate) fn cursors(&self) -> &Cursors {
        self.part()
    }

    /// `killCursors`: close the cursors of `ids` for which `may`, given namespace and owner,
    /// returns true.
    pub fn kill_cursors(&self, ids: &[i64], may: &dyn Fn(&Namespace, &Owner) -> bool) -> Killed {
        self.cursors().registry.kill(ids, may)
    }

    /// End the wait of an operation for the data of a cursor: others may use it again.
    pub fn release_cursor(&self, id: i64) {
        self.cursors().registry.release(id, stdx::time::now());
    }

    /// Close a cursor that the caller opened itself.
    pub fn end_cursor(&self, id: i64) {
        self.cursors().registry.kill(&[id], &|_, _| true);
    }

    /// The privileges that the user of a cursor needs for each further batch, if they were set
    /// (see [`Origin::needs`]).
    #[must_use]
    pub fn cursor_needs(&self, id: i64) -> Option<Arc<dyn Any + Send + Sync>> {
        self.cursors().registry.needs(id)
    }

    /// The namespace and the owner of a cursor.
    #[must_use]
    pub fn cursor_owner(&self, id: i64) -> Option<(Namespace, Owner)> {
        self.cursors().registry.owner(id)
    }

    /// The time of the held snapshot that a cursor reads, if any: continue the cursor by
    /// [`Store::at_moment`].
    #[must_use]
    pub fn cursor_time(&self, id: i64) -> Option<bson::Timestamp> {
        self.cursors().registry.time(id)
    }

    /// Time left for all operations of a cursor together, not counting idle time, if `find` or
    /// `aggregate` limited it.
    #[must_use]
    pub fn cursor_left(&self, id: i64) -> Option<Duration> {
        self.cursors().registry.left(id)
    }

    /// Set the command that opened a cursor.
    pub fn set_cursor_origin(&self, id: i64, origin: Origin) {
        self.cursors().registry.set_origin(id, Arc::new(origin));
    }

    /// The command that opened a cursor, if it was set and the operation may use the cursor.
    #[must_use]
    pub fn cursor_origin(&self, op: &Op<'_>, id: i64) -> Option<Arc<Origin>> {
        self.cursors().registry.origin(id, &owner(op))
    }

    /// Close the cursors for which `chosen`, given namespace and owner, returns true: those of an
    /// ended session, a transaction, a namespace. Returns their number.
    pub fn kill_cursors_where(&self, chosen: &mut dyn FnMut(&Namespace, &Owner) -> bool) -> usize {
        self.cursors()
            .registry
            .kill_where(&mut |r| chosen(&r.namespace, &r.owner))
    }

    /// Close the cursors that were idle for too long and return their number. Call it every few
    /// seconds.
    pub fn reap_cursors(&self) -> usize {
        let limit = self.tuning().cursor_limit();
        self.cursors().registry.reap(stdx::time::now(), limit)
    }

    /// The cursors that no operation uses now, for `$currentOp`.
    #[must_use]
    pub fn idle_cursors(&self) -> Vec<IdleCursor> {
        self.cursors().registry.idle(stdx::time::now())
    }

    /// Cursor statistics for `serverStatus`.
    pub fn cursor_figures(&self) -> Figures {
        self.cursors().registry.figures()
    }
}

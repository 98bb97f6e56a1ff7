//! A pool of idle sessions, with their open cursors.
//!
//! A session serves one thread at a time, and opening a cursor costs about as much as several
//! reads, so both are reused: a session returns to the pool with its cursors, which are reset.
//!
//! A cached cursor belongs to the session in the same slot; `Slot` declares its cursors before its
//! session, so they are dropped first.
//!
//! - P1. A table with an open cursor cannot be dropped, so a cached cursor is never stale.

use std::mem;
use std::sync::Arc;

use kv::{Error, ErrorKind, Result, TreeId};
use stdx::sync::Mutex;

use super::catalog::Tree;
use super::config::SESSIONS_RESERVED;
use super::connection::Connection;
use super::cursor::Cursor;
use super::error::Called;
use super::session::Session;
use crate::support::NAME;

/// Maximum number of cursors kept per session. A transaction rarely uses more trees, and finding a
/// cursor in the list takes linear time.
const CURSORS_MAX: usize = 48;

/// How a cursor writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Reads, and writes whether or not the key exists.
    Overwrite,
    /// An insert fails if the key exists; a removal returns whether it existed.
    Strict,
}

struct Cached {
    tree: TreeId,
    mode: Mode,
    cursor: Cursor,
}

/// A session and its cursors.
struct Slot {
    // Declared before the session, to be dropped before it.
    cursors: Vec<Cached>,
    session: Session,
}

impl Slot {
    fn forget(&mut self, tree: TreeId) {
        self.cursors.retain(|cached| cached.tree != tree);
    }
}

struct State {
    free: Vec<Slot>,
    /// Sessions in use.
    lent: usize,
    /// Sessions in use for snapshots and transactions of callers.
    callers: usize,
    /// The tree for which a caller needs exclusive access: a session that is returned closes its
    /// cursors on this tree.
    wanted: Option<TreeId>,
}

/// The sessions of a store.
pub(super) struct Pool {
    connection: Arc<Connection>,
    state: Mutex<State>,
    /// Maximum number of sessions of callers.
    limit: usize,
}

/// The purpose of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A snapshot or transaction of a caller, for any time.
    Caller,
    /// The engine's own work, which always ends and may use the reserve.
    Own,
}

impl Pool {
    pub(super) fn new(connection: Arc<Connection>, limit: usize) -> Pool {
        Pool {
            connection,
            state: Mutex::new(State {
                free: Vec::new(),
                lent: 0,
                callers: 0,
                wanted: None,
            }),
            limit,
        }
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Take a session, until the lease is dropped.
    ///
    /// # Errors
    /// `Full` when the limit is reached.
    pub(super) fn take(&self, purpose: Purpose) -> Result<Lease<'_>> {
        let limit = match purpose {
            Purpose::Caller => self.limit,
            Purpose::Own => self.limit + SESSIONS_RESERVED,
        };
        let waiting = {
            let mut state = self.state.lock();
            if limit <= state.lent {
                let message = format!(
                    "all {limit} sessions are in use; end snapshots or transactions, or open the \
                     store with a larger option sessions"
                );
                return Err(Error::new(ErrorKind::Full, message).with_engine(NAME));
            }
            state.lent += 1;
            state.callers += usize::from(purpose == Purpose::Caller);
            state.free.pop()
        };
        let mut lease = Lease {
            pool: self,
            purpose,
            slot: waiting,
        };
        if lease.slot.is_none() {
            let opened = self.connection.open_session();
            let session = opened.map_err(|fault| fault.into_error("open session"))?;
            lease.slot = Some(Slot {
                cursors: Vec::new(),
                session,
            });
        }
        Ok(lease)
    }

    /// Whether callers hold snapshots or transactions.
    pub(super) fn has_callers(&self) -> bool {
        0 < self.state.lock().callers
    }

    /// Close the cursors on `tree` of idle sessions now and, until [`Pool::release`], those of
    /// every session that is returned. One tree at a time.
    pub(super) fn want(&self, tree: TreeId) {
        let mut state = self.state.lock();
        state.wanted = Some(tree);
        for slot in &mut state.free {
            slot.forget(tree);
        }
    }

    /// End the effect of [`Pool::want`].
    pub(super) fn release(&self) {
        self.state.lock().wanted = None;
    }

    /// Close all idle sessions.
    pub(super) fn clear(&self) {
        let free = mem::take(&mut self.state.lock().free);
        drop(free);
    }

    /// The connection, once all sessions have been returned.
    pub(super) fn into_connection(self) -> Arc<Connection> {
        self.clear();
        self.connection
    }
}

/// A session borrowed from the pool.
pub(super) struct Lease<'p> {
    pool: &'p Pool,
    purpose: Purpose,
    slot: Option<Slot>,
}

impl Lease<'_> {
    fn slot(&self) -> &Slot {
        self.slot
            .as_ref()
            .expect("there is a session until the lease ends")
    }

    fn slot_mut(&mut self) -> &mut Slot {
        self.slot
            .as_mut()
            .expect("there is a session until the lease ends")
    }

    pub(super) fn session(&self) -> &Session {
        &self.slot().session
    }

    /// Take a cursor on a tree that this session already has open.
    #[inline]
    pub(super) fn cached(&mut self, tree: TreeId, mode: Mode) -> Option<Cursor> {
        let cursors = &mut self.slot_mut().cursors;
        let index = cursors
            .iter()
            .rposition(|c| c.tree == tree && c.mode == mode)?;
        Some(cursors.swap_remove(index).cursor)
    }

    /// Open a cursor.
    ///
    /// # Safety
    /// The cursor must be dropped, or kept, before the lease ends, and be used only by the thread
    /// that holds the lease.
    pub(super) unsafe fn open(&self, tree: &Tree, mode: Mode) -> Called<Cursor> {
        let config = match mode {
            Mode::Overwrite => c"overwrite=true",
            Mode::Strict => c"overwrite=false",
        };
        // SAFETY: the caller's promise; kept cursors are dropped before their session (`Slot`).
        unsafe { self.session().open_cursor(&tree.uri, config) }
    }

    /// Keep a cursor of this session for reuse; the cursor must have been reset.
    #[inline]
    pub(super) fn keep(&mut self, tree: TreeId, mode: Mode, cursor: Cursor) {
        let cursors = &mut self.slot_mut().cursors;
        if CURSORS_MAX <= cursors.len() {
            cursors.remove(0);
        }
        cursors.push(Cached { tree, mode, cursor });
    }

    /// Close the session instead of returning it to the pool, because its state is unknown.
    pub(super) fn discard(&mut self) {
        self.slot = None;
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut slot = self.slot.take();
        let mut state = self.pool.state.lock();
        if let (Some(slot), Some(tree)) = (&mut slot, state.wanted) {
            slot.forget(tree);
        }
        state.lent -= 1;
        state.callers -= usize::from(self.purpose == Purpose::Caller);
        state.free.extend(slot);
    }
}

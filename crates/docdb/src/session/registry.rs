//! The registry of sessions in use.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use query::{Code, Error, Result};
use stdx::sync::{Condvar, Mutex};

use super::stored::{Executed, Stored, from_bytes, key, load, of_key, runs};
use super::transaction::{Open, Phase, give_up};
use crate::error;
use crate::store::Store;
use crate::txn::{Op, Outrun, SessionId};

/// Maximum number of sessions in use at once (MongoDB's default).
const SESSIONS_MAX: usize = 1_000_000;
/// Interval at which an operation that waits for a session checks whether it must end.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Default)]
pub(crate) struct Sessions {
    all: Mutex<HashMap<SessionId, Arc<Session>>>,
    pub(super) open: Open,
}

pub(crate) struct Session {
    state: Mutex<State>,
    free: Condvar,
}

pub(crate) struct State {
    /// Whether an operation has exclusive use of the session (S1).
    busy: bool,
    last_use: Instant,
    /// The highest transaction number seen; -1 before the first.
    pub(super) number: i64,
    /// Results of the statements of the retryable write with that number.
    pub(super) executed: Executed,
    /// Whether the store has run records beside the head, under this number or an earlier one.
    pub(super) has_runs: bool,
    /// State of the transaction with that number.
    pub(super) phase: Phase,
    /// Whether the previous transaction failed to become the writer because of others' writes; the
    /// next transaction reads it.
    pub(super) outrun: Arc<Outrun>,
}

/// Exclusive use of a session by one operation.
pub(crate) struct CheckedOut(Arc<Session>);

impl Sessions {
    /// The session with this id; its stored state is read at its first use.
    pub(super) fn get(&self, store: &Store, id: SessionId) -> Result<Arc<Session>> {
        if let Some(session) = self.all.lock().get(&id) {
            session.touch();
            return Ok(Arc::clone(session));
        }
        let snapshot = store.engine().begin_read().map_err(error::engine)?;
        let stored = load(snapshot.as_ref(), store.trees().sessions, &id)?;
        drop(snapshot);
        let mut all = self.all.lock();
        if SESSIONS_MAX <= all.len() {
            return Err(Error::new(
                Code::TOO_MANY_LOGICAL_SESSIONS,
                "Unable to add session into the cache because the number of active sessions is \
                 too high",
            ));
        }
        let session = all
            .entry(id)
            .or_insert_with(|| Arc::new(Session::new(stored)));
        Ok(Arc::clone(session))
    }

    /// Remove a session and abort its open transaction. Returns whether run records of it may
    /// exist.
    fn end(&self, id: &SessionId) -> bool {
        let Some(session) = self.all.lock().remove(id) else {
            return true;
        };
        let mut state = session.state.lock();
        state.phase = Phase::None;
        state.has_runs
    }

    /// Remove a session, whose stored state is read again at its next use. Its records have changed
    /// without it: no operation of this member has written under its number.
    pub(super) fn forget(&self, id: &SessionId) {
        self.all.lock().remove(id);
    }

    /// Read the stored state of every session again at its next use.
    pub(super) fn forget_all(&self) {
        self.all.lock().clear();
    }

    fn ids(&self) -> Vec<SessionId> {
        self.all.lock().keys().copied().collect()
    }
}

impl Session {
    fn new(stored: Option<Stored>) -> Session {
        let mut state = State {
            busy: false,
            last_use: stdx::time::now(),
            number: -1,
            executed: Executed::new(),
            has_runs: false,
            phase: Phase::None,
            outrun: Arc::default(),
        };
        if let Some(stored) = stored {
            state.number = stored.number;
            state.executed = stored.executed;
            state.has_runs = stored.has_runs;
            if stored.committed {
                state.phase = Phase::Committed;
            }
        }
        Session {
            state: Mutex::new(state),
            free: Condvar::new(),
        }
    }

    fn touch(&self) {
        self.state.lock().last_use = stdx::time::now();
    }

    /// Take exclusive use of the session, waiting while another operation has it.
    pub(super) fn check_out(self: &Arc<Session>, op: &Op<'_>) -> Result<CheckedOut> {
        let mut state = self.state.lock();
        while state.busy {
            op.check()?;
            self.free.wait_for(&mut state, LOOK);
        }
        state.busy = true;
        state.last_use = stdx::time::now();
        Ok(CheckedOut(Arc::clone(self)))
    }

    /// Record the statements committed under a number: `fresh` holds new or lengthened runs.
    pub(crate) fn executed(&self, number: i64, fresh: Executed) {
        let mut state = self.state.lock();
        if state.number == number {
            state.executed.extend(fresh);
            // The first commit under a number removes the run records of earlier numbers.
            state.has_runs = 1 < state.executed.len();
        } else {
            state.has_runs = true;
        }
    }
}

impl State {
    /// Advance to a higher transaction number (S3). Aborts an open transaction and waits until it
    /// has ended, so that the next transaction cannot conflict with it.
    pub(super) fn advance(&mut self, number: i64) {
        if let Phase::Open(sender) = &self.phase {
            give_up(sender);
        }
        assert!(self.number <= number, "S3: numbers of transactions grow");
        self.number = number;
        self.executed.clear();
        self.phase = Phase::None;
    }
}

impl CheckedOut {
    pub(super) fn with<R>(&self, body: impl FnOnce(&mut State) -> R) -> R {
        body(&mut self.0.state.lock())
    }

    pub(super) fn session(&self) -> Arc<Session> {
        Arc::clone(&self.0)
    }
}

impl Drop for CheckedOut {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        assert!(state.busy, "S1: one operation has the session");
        state.busy = false;
        drop(state);
        self.0.free.notify_all();
    }
}

impl Store {
    pub(super) fn sessions(&self) -> &Sessions {
        self.part()
    }

    /// Mark sessions as in use (`startSession`, `refreshSessions`, and every command).
    ///
    /// # Errors
    /// `TooManyLogicalSessions`.
    pub fn refresh_sessions(&self, ids: &[SessionId]) -> Result<()> {
        ids.iter()
            .try_for_each(|id| self.sessions().get(self, *id).map(|_| ()))
    }

    /// End sessions (`endSessions`, `killSessions`): aborts open transactions and discards the
    /// recorded results of their retryable writes. On an engine with one writer, if other writes
    /// hold the writer for long, the stored records are left to session expiry.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn end_sessions(&self, ids: &[SessionId]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut batch = kv::Batch::new();
        let tree = self.trees().sessions;
        for id in ids {
            let has_runs = self.sessions().end(id);
            batch.delete(tree, &key(id));
            if has_runs {
                let (start, end) = runs(id);
                batch.delete_range(tree, kv::KeyRange::half_open(&start, &end));
            }
        }
        let Some(_turn) = self.turns().take_soon(&|| Ok(()))? else {
            return Ok(());
        };
        self.engine()
            .write(&batch, kv::Durability::Interval)
            .map_err(error::engine)
    }

    /// The ids of the sessions in use.
    #[must_use]
    pub fn session_ids(&self) -> Vec<SessionId> {
        self.sessions().ids()
    }

    /// The sessions in use, each with the time since it was last used.
    #[must_use]
    pub fn session_uses(&self) -> Vec<(SessionId, Duration)> {
        let now = stdx::time::now();
        let all = self.sessions().all.lock();
        let since = |session: &Session| {
            let state = session.state.lock();
            match state.busy {
                true => Duration::ZERO,
                false => now.saturating_duration_since(state.last_use),
            }
        };
        all.iter()
            .map(|(id, session)| (*id, since(session)))
            .collect()
    }

    /// Open transactions that no operation runs in now, for `$currentOp`: session id and
    /// transaction number.
    #[must_use]
    pub fn idle_transactions(&self) -> Vec<(SessionId, i64)> {
        let mut idle = Vec::new();
        for (id, session) in self.sessions().all.lock().iter() {
            let state = session.state.lock();
            if !state.busy && matches!(state.phase, Phase::Open(_)) {
                idle.push((*id, state.number));
            }
        }
        idle
    }

    /// End sessions unused for longer than the session timeout of the options, and delete the
    /// stored records of sessions that are no longer in use.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn expire_sessions(&self) -> Result<usize> {
        let timeout = self.options().session_timeout;
        let now = stdx::time::now();
        let mut old: Vec<SessionId> = Vec::new();
        for (id, session) in self.sessions().all.lock().iter() {
            let state = session.state.lock();
            if !state.busy && timeout < now.saturating_duration_since(state.last_use) {
                old.push(*id);
            }
        }
        let limit = i64::try_from((stdx::time::wall().saturating_sub(timeout)).as_millis());
        let limit = limit.unwrap_or(0);
        self.stored_before(limit, &mut old)?;
        self.end_sessions(&old)?;
        Ok(old.len())
    }

    /// Append to `old` the stored sessions that are not in use and were last written before
    /// `limit`, in milliseconds since 1970.
    fn stored_before(&self, limit: i64, old: &mut Vec<SessionId>) -> Result<()> {
        let live: std::collections::HashSet<SessionId> = self.session_ids().into_iter().collect();
        let snapshot = self.engine().begin_read().map_err(error::engine)?;
        let all = kv::KeyRange::ALL;
        let cursor = snapshot.cursor(self.trees().sessions, all, kv::Direction::Forward);
        let mut cursor = cursor.map_err(error::engine)?;
        let mut last = None;
        while cursor.advance().map_err(error::engine)? {
            let Some((id, is_head)) = of_key(cursor.key()) else {
                continue;
            };
            // The keys of a session's runs sort after the key of its head. Runs without a head were
            // written while the session ended.
            let lost = !is_head && last != Some(id);
            last = Some(id);
            let written = || from_bytes(cursor.value()).map_or(0, |s| s.time.timestamp_millis());
            if (lost || (is_head && written() < limit)) && !live.contains(&id) {
                old.push(id);
            }
        }
        Ok(())
    }
}

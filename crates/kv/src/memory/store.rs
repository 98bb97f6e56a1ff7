//! The store: the state and the register of snapshots under their locks, and the limits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kv_types::{Durability, Error, ErrorKind, Result};
use stdx::sync::{Mutex, MutexGuard, RwLock};

use super::NAME;
use super::live::Live;
use super::state::State;

/// Maximum number of keys that are visited under one lock, which takes about 100 microseconds.
pub(super) const CHUNK: usize = 1024;

/// Maximum number of queued keys that are visited at the end of a snapshot.
const SWEEP_AT_END: usize = 256;

/// Maximum number of queued keys that a commit visits, in addition to two for each of its changes,
/// so that the queue shrinks even while keys are added.
pub(super) const SWEEP_AT_COMMIT: usize = 64;

/// An open store. Lock order: `state`, `live`.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) state: RwLock<State>,
    live: Mutex<Live>,
    /// Whether the state has garbage. A hint: if false, the end of a snapshot need not lock the
    /// state.
    garbage: AtomicBool,
    limit: Option<u64>,
    log: bool,
    pub(super) commits: AtomicU64,
    pub(super) conflicts: AtomicU64,
}

/// The changes of one commit.
pub(super) trait Commit {
    /// Check the changes; returns an upper bound of the bytes by which the store grows.
    fn check(&self, state: &State) -> Result<u64>;

    /// Apply the changes as the next commit. Called under the same lock as `check`.
    fn apply(self, state: &mut State, live: &mut Live);
}

impl Store {
    /// An empty store that holds at most about `limit` bytes; without `log` it accepts only commits
    /// at `Durability::None`.
    pub(super) fn new(limit: Option<u64>, log: bool) -> Store {
        Store {
            state: RwLock::default(),
            live: Mutex::default(),
            garbage: AtomicBool::new(false),
            limit,
            log,
            commits: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
        }
    }

    /// Register a snapshot of the current state; returns its sequence number.
    pub(super) fn begin(&self) -> u64 {
        // The state's lock excludes commits, so that no commit drops versions that this snapshot
        // sees.
        let state = self.state.read();
        let seq = state.last;
        self.live.lock().add(seq);
        seq
    }

    /// Remove a snapshot from the register.
    pub(super) fn end(&self, seq: u64) {
        let oldest_ended = self.live.lock().remove(seq);
        if !oldest_ended || !self.garbage.load(Ordering::Relaxed) {
            return;
        }
        // If another thread holds the lock, the next commit or the next end of a snapshot does the
        // work.
        let Some(mut state) = self.state.try_write() else {
            return;
        };
        let freed = state.sweep(&self.live.lock(), SWEEP_AT_END);
        self.note_garbage(&state);
        drop(state);
        drop(freed);
    }

    /// The register of snapshots; take the state's lock first.
    pub(super) fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock()
    }

    /// Apply `change`, visit up to `budget` queued keys, and count a commit.
    pub(super) fn commit(&self, budget: usize, change: impl Commit) -> Result<()> {
        let mut state = self.state.write();
        let incoming = change.check(&state)?;
        self.make_room(&mut state, incoming)?;
        let mut live = self.live.lock();
        change.apply(&mut state, &mut live);
        let freed = state.sweep(&live, budget);
        self.note_garbage(&state);
        drop(live);
        drop(state);
        // Freeing a dropped tree may take long: it is done without the lock.
        drop(freed);
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Drop a tree, and free it if no snapshot reads it.
    pub(super) fn drop_tree(&self, name: &str) -> Result<()> {
        let mut state = self.state.write();
        state.drop_tree(name)?;
        let freed = state.sweep(&self.live.lock(), SWEEP_AT_COMMIT);
        self.note_garbage(&state);
        drop(state);
        drop(freed);
        Ok(())
    }

    /// Refuse to add `incoming` bytes (of a write set, for example) if they exceed the limit.
    pub(super) fn check_room(&self, incoming: u64) -> Result<()> {
        let Some(limit) = self.limit else {
            return Ok(());
        };
        if self.state.read().held.saturating_add(incoming) <= limit {
            return Ok(());
        }
        self.make_room(&mut self.state.write(), incoming)
    }

    fn make_room(&self, state: &mut State, incoming: u64) -> Result<()> {
        let Some(limit) = self.limit else {
            return Ok(());
        };
        if incoming == 0 || state.held.saturating_add(incoming) <= limit {
            return Ok(());
        }
        let freed = state.sweep(&self.live.lock(), usize::MAX);
        drop(freed);
        if state.held.saturating_add(incoming) <= limit {
            return Ok(());
        }
        let message = format!(
            "{} bytes are held and {incoming} more would pass the limit of {limit}; delete \
             something, end old snapshots, or raise the option limit",
            state.held
        );
        Err(Error::new(ErrorKind::Full, message).with_engine(NAME))
    }

    /// Drop dead versions of one chunk of keys. Returns false when nothing is left to do.
    pub(super) fn sweep_chunk(&self) -> bool {
        let mut state = self.state.write();
        let live = self.live.lock();
        let freed = state.sweep(&live, CHUNK);
        let more = state.is_ready(&live);
        self.note_garbage(&state);
        drop(live);
        drop(state);
        drop(freed);
        more
    }

    fn note_garbage(&self, state: &State) {
        self.garbage.store(state.has_garbage(), Ordering::Relaxed);
    }

    /// Refuse a durability that the options exclude.
    pub(super) fn check_durability(&self, durability: Durability) -> Result<()> {
        if self.log || durability == Durability::None {
            return Ok(());
        }
        let message = format!(
            "opened without a log, so durability {durability} cannot be had; commit at none or \
             open with a log"
        );
        Err(Error::new(ErrorKind::Unsupported, message).with_engine(NAME))
    }

    /// Count a transaction that failed with a conflict.
    pub(super) fn count_conflict(&self) {
        self.conflicts.fetch_add(1, Ordering::Relaxed);
    }
}

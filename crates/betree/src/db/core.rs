//! The store behind all its handles.
//!
//! Lock order, outermost first: checkpoint, the turn of a bulk commit, commit, flush queue, the
//! list of the fullest, that of paused merges or the look for a crowded bucket, a bucket's state, a
//! buffer. The register of snapshots, the catalog, the space allocator and what came to be crowded
//! are leaves: nothing is locked under them. No lock but the checkpoint's and the turn is held
//! across input or output; the log has its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stdx::sync::atomic::{AtomicU64, Ordering};
use stdx::sync::{Condvar, Mutex};
use vfs::{File, Vfs};

use super::catalog::Catalog;
use super::counters::Counters;
use super::gate::Gate;
use super::health::Health;
use super::memory::Memory;
use super::recent::Recent;
use super::snapshots::{Horizon, Snapshots};
use super::tuning::Tuning;
use crate::checkpoint::DataFile;
use crate::keys::Keys;
use crate::log::Log;
use crate::options::Options;
use crate::run::RunStore;
use crate::space::Space;
use crate::types::{RunId, Seq};
use crate::work::{
    Checkpoints, Crowd, FlushQueue, Fullest, Merges, Pinned, Refused, Sharing, Timers,
};

/// The name of the data file.
pub(crate) const DATA_FILE: &str = "data.betree";

/// The state that the commit lock protects, apart from the order of commits.
pub(crate) struct Committer {
    /// The newest commit, or chunk of a bulk commit, in the buffers.
    pub(crate) last: Seq,
    /// Whether a bulk commit is in progress: no other commit may begin ([`Core::committer`]).
    pub(crate) bulk: bool,
}

/// The store.
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) directory: PathBuf,
    /// The keys of an encrypted store.
    pub(crate) keys: Option<Arc<Keys>>,
    /// The data file, behind `gate`.
    pub(crate) file: Arc<dyn File>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) space: Arc<Space>,
    pub(crate) runs: Arc<RunStore>,
    /// `None` if the store has no log.
    pub(crate) log: Option<Log>,
    pub(crate) catalog: Catalog,
    pub(crate) snapshots: Snapshots,
    pub(crate) recent: Recent,
    pub(crate) memory: Memory,
    pub(crate) queue: FlushQueue,
    pub(crate) pinned: Pinned,
    pub(crate) fullest: Fullest,
    pub(crate) merges: Merges,
    pub(crate) crowd: Crowd,
    pub(crate) sharing: Sharing,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) commit: Mutex<Committer>,
    /// Notified when a bulk commit has ended; used with the commit lock.
    pub(crate) turn: Condvar,
    pub(crate) health: Health,
    pub(crate) counters: Counters,
    pub(crate) wake: Wake,
    pub(crate) timers: Timers,
    pub(crate) refused: Refused,
    pub(crate) tuning: Tuning,
    next_run: AtomicU64,
}

/// The parts from which an opened store is assembled.
pub(crate) struct Parts {
    pub(crate) options: Options,
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) directory: PathBuf,
    pub(crate) keys: Option<Arc<Keys>>,
    /// The data file.
    pub(crate) gate: Arc<Gate>,
    pub(crate) space: Arc<Space>,
    pub(crate) runs: Arc<RunStore>,
    pub(crate) log: Option<Log>,
    pub(crate) catalog: Catalog,
    pub(crate) sharing: Sharing,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) last: Seq,
    pub(crate) next_run: u64,
    /// The seed of random numbers, unless the options set one.
    pub(crate) seed: u64,
}

impl Core {
    /// A store of these parts.
    pub(crate) fn new(parts: Parts) -> Core {
        // `keys` has the master key: another copy would outlive its rotation.
        let options = parts.options.with_encryption(None);
        let tuning = Tuning::new(&options);
        Core {
            snapshots: Snapshots::new(parts.last, options.snapshot_max_age()),
            memory: Memory::new(tuning.buffers),
            merges: Merges::new(options.seed().unwrap_or(parts.seed)),
            crowd: Crowd::default(),
            queue: FlushQueue::default(),
            pinned: Pinned::default(),
            fullest: Fullest::default(),
            recent: Recent::new(),
            commit: Mutex::new(Committer {
                last: parts.last,
                bulk: false,
            }),
            turn: Condvar::new(),
            health: Health::default(),
            counters: Counters::default(),
            wake: Wake::default(),
            timers: Timers::default(),
            refused: Refused::default(),
            tuning,
            vfs: parts.vfs,
            directory: parts.directory,
            keys: parts.keys,
            file: Arc::<Gate>::clone(&parts.gate),
            gate: parts.gate,
            space: parts.space,
            runs: parts.runs,
            log: parts.log,
            catalog: parts.catalog,
            sharing: parts.sharing,
            checkpoints: parts.checkpoints,
            next_run: AtomicU64::new(parts.next_run),
            options,
        }
    }

    /// A number for a new run.
    pub(crate) fn next_run(&self) -> RunId {
        RunId(self.next_run.fetch_add(1, Ordering::Relaxed))
    }

    /// The number of the next run; every existing run has a smaller one.
    pub(crate) fn peek_run(&self) -> u64 {
        self.next_run.load(Ordering::Relaxed)
    }

    /// The versions that flushes and merges must currently keep.
    pub(crate) fn horizon(&self) -> Horizon {
        self.snapshots.horizon(self.vfs.now())
    }

    /// The data file at `path`, as checkpoints see it.
    pub(crate) fn data_file<'a>(&'a self, path: &'a Path) -> DataFile<'a> {
        DataFile {
            file: &*self.file,
            path,
            keys: self.keys.as_deref(),
        }
    }

    /// The data file.
    pub(crate) fn data_path(&self) -> PathBuf {
        self.directory.join(DATA_FILE)
    }

    /// Whether background threads do the work; otherwise callers do.
    pub(crate) fn has_threads(&self) -> bool {
        0 < self.options.threads()
    }
}

/// Wakes background threads, and commits that wait for room.
#[derive(Default)]
pub(crate) struct Wake {
    lock: Mutex<()>,
    work: Condvar,
    room: Condvar,
}

impl Wake {
    /// Signal that there is work.
    pub(crate) fn work(&self) {
        self.work.notify_one();
    }

    /// Wake every thread.
    pub(crate) fn everyone(&self) {
        let _guard = self.lock.lock();
        self.work.notify_all();
        self.room.notify_all();
    }

    /// Signal that there is room in the buffers.
    pub(crate) fn room(&self) {
        self.room.notify_all();
    }

    /// Wait for work, for at most `limit`. A signal between the caller's last check and this wait
    /// may be missed; the limit bounds the delay.
    pub(crate) fn wait_for_work(&self, limit: Duration) {
        let mut guard = self.lock.lock();
        self.work.wait_for(&mut guard, limit);
    }

    /// Wait for room, for at most `limit`.
    pub(crate) fn wait_for_room(&self, limit: Duration) {
        let mut guard = self.lock.lock();
        self.room.wait_for(&mut guard, limit);
    }
}

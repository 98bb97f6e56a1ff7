//! The store: an engine, its catalog, and the counters that operations share.
//!
//! It contains no commands: those are methods of the store in the modules above, which keep their
//! own state in its parts (`parts`).
//!
//! Trees of the engine: `_catalog`, `_counts`, `_sessions` and, with an oplog, the segments
//! `_oplog.N`; per collection `c.<uuid>` with its documents by record, and `i.<uuid>.<number>` with
//! the entries of each index. Trees of collections that the catalog does not list are left over
//! from an unfinished change and are dropped at opening.

mod cut;
mod load;
mod parts;
mod property;
mod time;
mod tuning;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use kv::{Durability, Engine, ErrorKind, TreeId, TreeOptions};
use query::{Code, Error, Namespace, Result};
use stdx::sync::{Mutex, MutexGuard};

use crate::catalog::{Catalog, Named, Stored};
use crate::collection::{Collection, Core, fold_counts};
use crate::error;
use crate::intent::Intents;
use crate::oplog::entry::OpTime;
use crate::oplog::{Advance, Limits, Log, mark};
use crate::turn::Turns;
use stdx::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

pub(crate) use parts::Parts;
pub use property::ContentVersion;
pub use tuning::{IDLE_LIMIT, Tuning};

/// Options for opening a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory for temporary files of sorts and groups that do not fit into memory.
    pub temp_dir: PathBuf,
    /// The name of the replica set, if the server presents one: transactions and retryable writes
    /// need it.
    pub replica_set: Option<String>,
    /// Interval of passes that delete expired documents; `None` disables them (default 60 s).
    pub ttl_period: Option<Duration>,
    /// Maximum duration of a multi-document transaction (default 60 s).
    pub transaction_lifetime: Duration,
    /// Time after which an unused session expires (default 30 min).
    pub session_timeout: Duration,
    /// Whether a member of a replica set keeps an oplog (default false). A standalone store has
    /// none.
    pub oplog: bool,
    /// How much of the oplog is kept at first ([`Store::set_oplog_limits`]).
    pub oplog_limits: Limits,
    /// Whether a stored oplog is that of another store, of which this one is a copy (default
    /// false): it is removed at opening.
    pub foreign_oplog: bool,
    /// Whether it is opened as a follower that has applied its whole oplog (default false): nothing
    /// is changed that has entries, before entries of another store are applied. A store that is a
    /// follower already stays what it is.
    pub follower: bool,
    /// Interval of the passes that make segments of the oplog and remove old ones; `None` disables
    /// them (default 100 ms).
    pub oplog_period: Option<Duration>,
    /// Time without an entry after which an entry that changes nothing is put into the oplog, so
    /// that readers see it advance; `None` puts none (default).
    pub oplog_noop: Option<Duration>,
    /// Directory for the documents that a rollback removes or changes; `None` saves none (default).
    pub rollback_dir: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            temp_dir: std::env::temp_dir(),
            replica_set: Some("rs0".to_owned()),
            ttl_period: Some(Duration::from_secs(60)),
            transaction_lifetime: Duration::from_secs(60),
            session_timeout: Duration::from_secs(30 * 60),
            oplog: false,
            oplog_limits: Limits::default(),
            foreign_oplog: false,
            follower: false,
            oplog_period: Some(Duration::from_millis(100)),
            oplog_noop: None,
            rollback_dir: None,
        }
    }
}

/// Collections of documents in an engine. Shared by any number of threads.
pub struct Store {
    engine: Arc<dyn Engine>,
    options: Options,
    tuning: Tuning,
    trees: Trees,
    /// `None` for a store without an oplog.
    oplog: Option<Log>,
    catalog: ArcSwap<Catalog>,
    /// Held while the catalog is changed.
    changes: Mutex<()>,
    turns: Turns,
    /// Trees still to be dropped, because readers or a writer prevented it.
    undropped: Mutex<Vec<String>>,
    intents: Intents,
    /// The number of the last commit of documents.
    commits: AtomicU64,
    /// Transactions that read snapshots of their own and not as the engine's one writer.
    reading: AtomicUsize,
    closed: AtomicBool,
    /// Whether background work is paused.
    paused: AtomicBool,
    figures: WorkFigures,
    /// State of the modules above.
    parts: Parts,
}

/// Statistics of background work and of transactions since the store was opened.
#[derive(Debug, Default)]
pub struct WorkFigures {
    /// Writes retried because they conflicted with others.
    pub conflicts: AtomicU64,
    /// Passes that delete expired documents.
    pub ttl_passes: AtomicU64,
    /// Expired documents deleted.
    pub ttl_deleted: AtomicU64,
    /// Failed deletes of expired documents, counted once per index and pass.
    pub ttl_failed: AtomicU64,
    /// Multi-document transactions begun.
    pub transactions_started: AtomicU64,
    /// Multi-document transactions committed; those neither committed nor open were aborted.
    pub transactions_committed: AtomicU64,
}

/// The trees that every store has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trees {
    pub(crate) catalog: TreeId,
    pub(crate) counts: TreeId,
    pub(crate) sessions: TreeId,
}

impl Store {
    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &dyn Engine {
        self.engine.as_ref()
    }

    /// The options it was opened with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Settings that may be changed while it is open.
    #[must_use]
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    pub(crate) fn trees(&self) -> Trees {
        self.trees
    }

    /// The oplog, if it keeps one.
    pub(crate) fn oplog(&self) -> Option<&Log> {
        self.oplog.as_ref()
    }

    /// Whether it applies the entries of another member: what has entries is then changed by those
    /// only.
    pub(crate) fn is_follower(&self) -> bool {
        let applied = self.oplog.as_ref().map(Log::applied);
        applied.is_some_and(|applied| applied.of_follower().is_some())
    }

    /// Put the mark of what a follower has applied, which its transaction changes. What is returned
    /// is used after its commit.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn put_applied(
        &self,
        txn: &mut (dyn kv::Transaction + '_),
        at: OpTime,
    ) -> Result<Option<Advance<'_>>> {
        let Some(oplog) = self.oplog() else {
            return Ok(None);
        };
        mark::put(txn, self.trees.catalog, at)?;
        Ok(Some(oplog.applied().advance()))
    }

    /// The current catalog.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Whether `catalog`, returned by [`Store::catalog`], is still current.
    pub(crate) fn is_current(&self, catalog: &Arc<Catalog>) -> bool {
        Arc::ptr_eq(&self.catalog.load(), catalog)
    }

    /// The current collection with this name; `None` for a view.
    #[must_use]
    pub fn collection(&self, ns: &Namespace) -> Option<Arc<Collection>> {
        self.catalog.load().collection(ns).cloned()
    }

    /// The current collection or view with this name.
    #[must_use]
    pub fn lookup(&self, ns: &Namespace) -> Option<Named> {
        self.catalog.load().get(ns).cloned()
    }

    /// The collection with this name, which must exist.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `CommandNotSupportedOnView`.
    pub fn existing(&self, ns: &Namespace) -> Result<Arc<Collection>> {
        match self.lookup(ns) {
            None => Err(not_found(ns)),
            Some(Named::View(_)) => Err(is_view(ns)),
            Some(Named::Collection(collection)) => Ok(collection),
        }
    }

    /// Make all commits durable and close. Operations in progress fail.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        self.save_oplog_totals();
        self.engine.sync_log().map_err(error::engine)
    }

    /// Make everything committed so far survive a power loss.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn sync(&self) -> Result<()> {
        let before = self.oplog_visible();
        self.engine.sync_log().map_err(error::engine)?;
        if let (Some(oplog), Some(before)) = (self.oplog(), before) {
            oplog.synced().note(before);
        }
        Ok(())
    }

    /// Write everything committed so far into the files of the trees.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn checkpoint(&self) -> Result<()> {
        self.engine.checkpoint().map_err(error::engine)
    }

    /// Pause background work and its writes (expiry of documents), or resume it.
    pub fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Release);
    }

    /// Whether background work is paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    /// Statistics of background work and of transactions.
    #[must_use]
    pub fn figures(&self) -> &WorkFigures {
        &self.figures
    }

    /// Whether it is closed: background work then ends.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The intents of open transactions and plain writes.
    pub(crate) fn intents(&self) -> &Intents {
        &self.intents
    }

    /// The number of the last commit of documents.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Acquire)
    }

    /// The number of transactions that read apart from the one writer of the engine.
    pub(crate) fn reading(&self) -> &AtomicUsize {
        &self.reading
    }

    /// Record a commit of documents, or a failed commit, whose effect in the engine is unknown. On
    /// an engine with one writer the caller still holds the turn.
    pub(crate) fn committed<'c>(&self, written: impl Iterator<Item = &'c Core>) {
        let number = self.commits.fetch_add(1, Ordering::AcqRel) + 1;
        for core in written {
            core.writes.note(number);
        }
    }

    /// Take the lock of catalog changes; `None` if others hold it for longer than `limit`.
    pub(crate) fn changes_within(&self, limit: Duration) -> Option<MutexGuard<'_, ()>> {
        self.changes.try_lock_for(limit)
    }

    /// The writer turns of the engine.
    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Check that the store is open, so that waiting threads end when it is closed.
    ///
    /// # Errors
    /// `InterruptedAtShutdown`.
    pub(crate) fn check_not_closed(&self) -> Result<()> {
        if self.is_closed() {
            let message = "the store is closed";
            return Err(Error::new(Code::INTERRUPTED_AT_SHUTDOWN, message));
        }
        Ok(())
    }

    pub(crate) fn set_catalog(&self, next: Catalog) {
        self.catalog.store(Arc::new(next));
    }

    /// Show the oplog, if there is one, as a collection of the catalog.
    pub(crate) fn show_oplog(&self) {
        if let Some(collection) = self.oplog_collection() {
            let _changes = self.changes.lock();
            let ns = collection.ns().clone();
            self.set_catalog(self.catalog().with(ns, Named::Collection(collection)));
        }
    }

    /// Create a tree.
    pub(crate) fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId> {
        self.engine
            .create_tree(name, options)
            .map_err(error::engine)
    }

    /// Drop trees by name that the catalog no longer lists, together with those that earlier calls
    /// could not drop. Trees that a reader or a writer still protects are dropped by a later call.
    pub(crate) fn drop_named(&self, names: impl IntoIterator<Item = String>) {
        let turn = self.turns.take_soon(&|| self.check_not_closed());
        let before = std::mem::take(&mut *self.undropped.lock());
        let mut left: Vec<String> = names.into_iter().chain(before).collect();
        if let Ok(Some(_turn)) = turn {
            left.retain(|name| match self.engine.drop_tree(name) {
                Ok(()) => false,
                // A tree that cannot be dropped now is dropped later, at the latest at the next
                // opening.
                Err(e) => e.kind() != ErrorKind::NotFound,
            });
        }
        self.undropped.lock().append(&mut left);
    }

    /// Drop the trees of a collection that the catalog does not list.
    pub(crate) fn drop_trees(&self, collection: &Collection) {
        let uuid = &collection.core().uuid;
        let indexes = collection.indexes().iter();
        let trees = indexes.map(|index| Stored::index_tree(uuid, index.number()));
        self.drop_named(trees.chain([Stored::records_tree(uuid)]));
    }

    /// Drop trees with those that could not be dropped.
    pub(crate) fn drop_later(&self, names: Vec<String>) {
        self.undropped.lock().extend(names);
    }

    /// Retry to drop the trees that could not be dropped.
    pub(crate) fn drop_left_trees(&self) {
        let some = !self.undropped.lock().is_empty();
        if some {
            self.drop_named([]);
        }
    }

    /// Fold the entries of a collection's counts; the caller holds the turn. If another thread
    /// folds them first, or the engine is full, more entries remain, which is harmless.
    pub(crate) fn fold_counts(&self, core: &Core) {
        let unfolded = core.counts.unfolded();
        let folded = self
            .engine
            .begin_write()
            .map_err(error::engine)
            .and_then(|mut txn| {
                fold_counts(txn.as_mut(), self.trees.counts, &core.uuid, unfolded)?;
                txn.commit(Durability::Interval).map_err(error::engine)
            });
        // A failure leaves more entries, which is harmless.
        if folded.is_ok() {
            core.counts.folded(unfolded);
        }
    }
}

/// The error for commands that need a collection where the name is that of a view.
pub(crate) fn is_view(ns: &Namespace) -> Error {
    Error::new(
        Code::COMMAND_NOT_SUPPORTED_ON_VIEW,
        format!("Namespace {ns} is a view, not a collection"),
    )
}

/// The error of a collection that does not exist.
pub(crate) fn not_found(ns: &Namespace) -> Error {
    Error::new(Code::NAMESPACE_NOT_FOUND, format!("ns not found {ns}"))
}

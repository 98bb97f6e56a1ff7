//! The engine: an LMDB environment, its catalog, and the writer's turn.
//!
//! Lock order: the writer's turn, then the catalog's list, then LMDB's own mutexes. Only the turn
//! is held across input or output.

mod backup;
mod catalog;
mod cursor;
mod durability;
mod errors;
mod open;
mod rounds;
mod snapshot;
mod stats;
mod synced;
mod transaction;
mod turn;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use heed::RwTxn;
use kv::{
    Batch, Capabilities, Compaction, Durability, Engine, EngineStats, Error, Flow, KeyRange,
    Progress, Result, Snapshot, StatScope, StorageMap, Transaction, TreeId, TreeOptions, TreeStats,
};

use crate::support::NAME;
use catalog::Catalog;
use durability::{Store, Then};
use snapshot::Reader;
use transaction::Writer;
use turn::{Turn, TurnGuard};

pub(crate) use open::open;

pub(crate) const AVAILABLE: bool = true;

pub(crate) fn version() -> Option<String> {
    let version = heed::lmdb_version();
    let (major, minor, patch) = (version.major, version.minor, version.patch);
    Some(format!("{major}.{minor}.{patch}"))
}

/// An open LMDB store.
struct Lmdb {
    store: Arc<Store>,
    catalog: Catalog,
    turn: Turn,
    capabilities: Capabilities,
    /// Snapshots open now.
    snapshots: AtomicU64,
    /// Commits since the store was opened.
    commits: AtomicU64,
    syncer: Option<JoinHandle<()>>,
    /// The last field, so that the directory is unlocked after the environment is closed.
    _lock: vfs::DirLock,
}

impl Lmdb {
    fn reader(&self) -> Result<Reader<'_>> {
        Reader::begin(self)
    }

    /// Commit `txn`; the caller holds the turn, and lets the store finish the commit.
    fn commit(&self, txn: RwTxn<'_>, level: Durability, turn: &TurnGuard<'_>) -> Result<Then> {
        let then = self.store.commit(txn, level, turn)?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(then)
    }

    /// Commit a change of the catalog; the caller holds the turn until it is published.
    fn commit_catalog(&self, txn: RwTxn<'_>, turn: &TurnGuard<'_>) -> Result<()> {
        let then = self.commit(txn, self.store.strongest(), turn)?;
        self.store.finish(&then)
    }

    fn take_turn(&self) -> Result<TurnGuard<'_>> {
        let turn = self.turn.take()?;
        self.store.check_writable()?;
        self.store.make_room()?;
        Ok(turn)
    }

    /// Stop the thread that syncs, and sync. Has no effect when called again.
    fn shut_down(&mut self) -> Result<()> {
        let Some(syncer) = self.syncer.take() else {
            return Ok(());
        };
        self.store.stop();
        let ended = syncer.join();
        self.store.sync()?;
        self.store.forget_rounds()?;
        ended.map_err(|_| {
            let message = "the syncing thread panicked; its commits were synced now";
            Error::new(kv::ErrorKind::Io, message).with_engine(NAME)
        })
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        // As the contract requires, dropping hides the error that `close` reports.
        let _ = self.shut_down();
    }
}

impl Engine for Lmdb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn create_tree(&self, name: &str, _: &TreeOptions) -> Result<TreeId> {
        kv::check_name(name).map_err(|e| Error::invalid(e).with_engine(NAME))?;
        let turn = self.take_turn()?;
        let commit = |txn: RwTxn<'_>| self.commit_catalog(txn, &turn);
        self.catalog
            .create(&self.store.env, name, &self.store.place(), commit)
    }

    fn open_tree(&self, name: &str) -> Result<TreeId> {
        match self.catalog.trees().named(name) {
            Some(tree) => Ok(tree.id),
            None => Err(catalog::no_such_tree(name)),
        }
    }

    fn drop_tree(&self, name: &str) -> Result<()> {
        let turn = self.take_turn()?;
        let commit = |txn: RwTxn<'_>| self.commit_catalog(txn, &turn);
        self.catalog
            .remove(&self.store.env, name, &self.store.place(), commit)
    }

    fn trees(&self) -> Result<Vec<String>> {
        let trees = self.catalog.trees();
        let mut names: Vec<String> = trees.iter().map(|t| t.name.as_ref().to_owned()).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn begin_read(&self) -> Result<Box<dyn Snapshot + '_>> {
        Ok(Box::new(self.reader()?))
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(Writer::begin(self)?))
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.store.level(durability)?;
        let mut writer = Writer::begin(self)?;
        writer.check_batch(batch)?;
        writer.apply(batch)?;
        Box::new(writer).commit(durability)
    }

    fn checkpoint(&self) -> Result<()> {
        self.store.sync()
    }

    fn sync_log(&self) -> Result<()> {
        self.store.sync()
    }

    fn compact(
        &self,
        _: TreeId,
        _: KeyRange<'_>,
        _: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        Err(Error::unsupported(NAME, "compaction in place"))
    }

    fn settle(&self, _: Duration) -> Result<Compaction> {
        self.store.sync()?;
        Ok(Compaction::Complete)
    }

    fn backup(
        &self,
        directory: &Path,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        self.turn.refuse_holder()?;
        backup::backup(&self.store, directory, watch)
    }

    fn stats(&self) -> Result<EngineStats> {
        stats::engine(self)
    }

    fn tree_stats(&self, tree: TreeId, scope: StatScope) -> Result<TreeStats> {
        stats::tree(&self.reader()?.view(), tree, scope)
    }

    fn storage_map(&self) -> Result<StorageMap> {
        stats::map(self)
    }

    fn verify(&self) -> Result<()> {
        stats::verify(&self.reader()?.view())
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.shut_down()
    }
}

//! The open store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kv::{
    Batch, Capabilities, Compaction, Durability, Engine, EngineStats, Error, ErrorKind, Flow,
    KeyRange, Progress, Result, Snapshot, StatScope, StorageMap, Transaction, TreeId, TreeOptions,
    TreeStats,
};
use stdx::sync::{Mutex, RwLock};
use vfs::DirLock;

use super::catalog::{Catalog, family_name};
use super::error::{closed, error};
use super::gate::{Gate, Kind};
use super::pressure::{Pressure, relieve};
use super::range_deletes::RangeDeletes;
use super::raw::{Db, Status, WriteOptions};
use super::syncer::Syncer;
use super::transaction;
use super::tuning::Tuning;
use super::{backup, compact, map, snapshot, stats, write};
use crate::support::{KEY_MAX, NAME, VALUE_MAX};

/// An open store.
///
/// Lock order: `creation`, the gate, then `catalog` and the list of range deletes. Only `creation`
/// and the gate are held while RocksDB reads or writes, because they exist to exclude such calls.
pub(super) struct Store {
    /// Ended first, so that it does not sync a log that is being closed.
    pub(super) syncer: Option<Syncer>,
    pub(super) catalog: RwLock<Arc<Catalog>>,
    /// Held while a tree is created or dropped.
    pub(super) creation: Mutex<()>,
    pub(super) db: Arc<Db>,
    pub(super) tuning: Tuning,
    pub(super) capabilities: Capabilities,
    pub(super) directory: PathBuf,
    pub(super) log: bool,
    pub(super) gate: Gate,
    pub(super) range_deletes: RangeDeletes,
    pub(super) pressure: Pressure,
    pub(super) synced: WriteOptions,
    pub(super) unsynced: WriteOptions,
    pub(super) is_closed: AtomicBool,
    /// Released last.
    pub(super) _lock: DirLock,
}

impl Store {
    /// The current trees.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read())
    }

    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(super) fn range_deletes(&self) -> &RangeDeletes {
        &self.range_deletes
    }

    /// Options of a write that returns before it is synced.
    pub(super) fn unsynced(&self) -> &WriteOptions {
        &self.unsynced
    }

    /// The write options of a commit at `durability`.
    ///
    /// # Errors
    /// `Unsupported` above `none` without a log.
    pub(super) fn write_options(&self, durability: Durability) -> Result<&WriteOptions> {
        match durability {
            Durability::None => Ok(&self.unsynced),
            _ if !self.log => {
                let what = format!("durability {durability} without a log; use none");
                Err(Error::unsupported(NAME, &what))
            }
            Durability::Interval => Ok(&self.unsynced),
            Durability::Group | Durability::Sync => Ok(&self.synced),
        }
    }

    /// Must be called after a commit at `durability`: requests the sync that is still due.
    pub(super) fn wrote(&self, durability: Durability) {
        if durability == Durability::Interval
            && let Some(syncer) = &self.syncer
        {
            syncer.wrote();
        }
    }

    /// Must be called before a write: refuses it after a failed sync, and frees memory if
    /// necessary.
    pub(super) fn prepare_write(&self, operation: &'static str) -> Result<()> {
        self.check_writable(operation)?;
        relieve(self)
    }

    /// Refuse writes after a failed sync.
    pub(super) fn check_writable(&self, operation: &'static str) -> Result<()> {
        match self.syncer.as_ref().and_then(Syncer::failure) {
            None => Ok(()),
            Some(status) => Err(closed(&status.0, operation)),
        }
    }

    /// Refuse a write that was prepared with the catalog `then` if one of its `trees` has been
    /// dropped since. Called inside the gate, so that no tree is dropped before the write is done:
    /// RocksDB treats a write into a dropped family as corruption, and stops.
    pub(super) fn check_trees(
        &self,
        then: &Arc<Catalog>,
        mut trees: impl Iterator<Item = TreeId>,
    ) -> Result<()> {
        let now = self.catalog();
        if Arc::ptr_eq(then, &now) {
            return Ok(());
        }
        trees.try_for_each(|tree| now.need(tree).map(|_| ()))
    }

    /// Convert the error of a write: to `Closed` if RocksDB has stopped accepting writes for
    /// another reason than a full disk.
    pub(super) fn write_error(&self, status: Status, operation: &'static str) -> Error {
        let told = error(status, operation);
        let stopped = || self.db.number(c"rocksdb.background-errors").unwrap_or(0) != 0;
        match told.kind() {
            ErrorKind::Io | ErrorKind::Corrupt if stopped() => closed(told.message(), operation),
            _ => told,
        }
    }

    /// Write all memtables into files. Retries when a tree was dropped during the flush.
    pub(super) fn flush(&self, operation: &'static str) -> Result<()> {
        loop {
            let catalog = self.catalog();
            let families: Vec<_> = catalog.trees().map(|tree| &tree.family).collect();
            if families.is_empty() {
                return Ok(());
            }
            let Err(status) = self.db.flush(&families) else {
                return Ok(());
            };
            let is_outdated = {
                // Wait until a drop in progress has changed the catalog.
                let _steady = self.creation.lock();
                !Arc::ptr_eq(&catalog, &self.catalog())
            };
            let error = self.write_error(status, operation);
            if error.kind() != ErrorKind::Invalid || !is_outdated {
                return Err(error);
            }
        }
    }

    fn make_durable(&self, operation: &'static str) -> Result<()> {
        self.check_writable(operation)?;
        if !self.log {
            return self.flush(operation);
        }
        let synced = self.db.sync_log();
        synced.map_err(|status| self.write_error(status, operation))
    }
}

impl Engine for Store {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId> {
        let family_name = family_name(name, options)?;
        let _creating = self.creation.lock();
        let mut next = Catalog::clone(&self.catalog());
        if next.find(name).is_some() {
            return Err(Error::new(ErrorKind::Exists, "the tree exists; open it")
                .with_engine(NAME)
                .with_operation("create_tree")
                .with_tree(name));
        }
        let created = self.db.create(&family_name, &self.tuning.tree(options));
        let family = created.map_err(|s| self.write_error(s, "create_tree").with_tree(name))?;
        let id = next.add(name, family)?;
        *self.catalog.write() = Arc::new(next);
        Ok(id)
    }

    fn open_tree(&self, name: &str) -> Result<TreeId> {
        let catalog = self.catalog();
        catalog.find(name).map(|tree| tree.id).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "there is no such tree; create it")
                .with_engine(NAME)
                .with_operation("open_tree")
                .with_tree(name)
        })
    }

    fn drop_tree(&self, name: &str) -> Result<()> {
        let _dropping = self.creation.lock();
        let catalog = self.catalog();
        let tree = catalog.find(name).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "there is no such tree")
                .with_engine(NAME)
                .with_operation("drop_tree")
                .with_tree(name)
        })?;
        let _alone = self.gate.enter(Kind::Exclusive);
        let dropped = self.db.drop_family(&tree.family);
        dropped.map_err(|s| self.write_error(s, "drop_tree").with_tree(name))?;
        let mut next = Catalog::clone(&catalog);
        next.remove(tree);
        *self.catalog.write() = Arc::new(next);
        Ok(())
    }

    fn trees(&self) -> Result<Vec<String>> {
        Ok(self.catalog().names().map(str::to_owned).collect())
    }

    fn begin_read(&self) -> Result<Box<dyn Snapshot + '_>> {
        Ok(Box::new(snapshot::Snapshot::new(self)))
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(transaction::Transaction::begin(self)))
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        write::write(self, batch, durability)
    }

    fn checkpoint(&self) -> Result<()> {
        self.make_durable("checkpoint")?;
        self.flush("checkpoint")
    }

    fn sync_log(&self) -> Result<()> {
        self.make_durable("sync_log")
    }

    fn compact(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        compact::compact(self, tree, range, watch)
    }

    fn settle(&self, limit: Duration) -> Result<Compaction> {
        compact::settle(self, limit)
    }

    fn backup(
        &self,
        directory: &Path,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        backup::backup(self, directory, watch)
    }

    fn stats(&self) -> Result<EngineStats> {
        Ok(stats::engine(self))
    }

    fn tree_stats(&self, tree: TreeId, scope: StatScope) -> Result<TreeStats> {
        stats::tree(self, tree, scope)
    }

    fn storage_map(&self) -> Result<StorageMap> {
        map::storage_map(self)
    }

    fn verify(&self) -> Result<()> {
        self.db.verify().map_err(|status| error(status, "verify"))
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        let result = self.make_durable("close");
        self.is_closed.store(true, Ordering::Release);
        self.syncer = None;
        result
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if !self.is_closed.load(Ordering::Acquire) {
            // A destructor cannot return this error; `close` does.
            let _ = self.make_durable("close");
        }
    }
}

/// Refuse a key that is too long.
pub(super) fn check_key(key: &[u8]) -> Result<()> {
    if key.len() <= KEY_MAX {
        return Ok(());
    }
    let message = format!("a key has at most {KEY_MAX} bytes, this one {}", key.len());
    Err(Error::invalid(message).with_engine(NAME).with_key(key))
}

/// Refuse a value that is too long.
pub(super) fn check_value(value: &[u8]) -> Result<()> {
    if value.len() <= VALUE_MAX {
        return Ok(());
    }
    let message = format!(
        "a value has at most {VALUE_MAX} bytes, this one {}",
        value.len()
    );
    Err(Error::invalid(message).with_engine(NAME))
}

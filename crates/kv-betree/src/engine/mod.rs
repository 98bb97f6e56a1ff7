//! The engine: a `betree::Db` under the contract of `kv`. Both use the words of `kv-types`, so
//! calls are passed on as they are.

mod backup;
mod cursor;
mod open;
mod snapshot;
pub(crate) mod stats;
mod transaction;

use std::path::{Path, PathBuf};
use std::time::Duration;

use betree::Db;
use kv::{
    BackupSink, Batch, Capabilities, Compaction, Durability, Encryption, Engine, EngineStats,
    Error, Flow, KeyRange, Progress, Result, Snapshot, StatScope, StorageMap, Transaction, TreeId,
    TreeOptions, TreeStats,
};

use crate::settings::{self, NAME};
use snapshot::Reader;
use transaction::Writer;

pub(crate) use open::open;

/// An open store.
struct Betree {
    db: Db,
    directory: PathBuf,
    capabilities: Capabilities,
}

/// The error of the store, with the engine's name.
pub(crate) fn named(error: Error) -> Error {
    error.with_engine(NAME)
}

/// The progress callback `watch` as betree calls it.
fn watching(watch: &mut dyn FnMut(Progress) -> Flow) -> impl FnMut(u64, u64) -> bool {
    move |done_bytes, total_bytes| {
        let progress = Progress {
            done_bytes,
            total_bytes,
        };
        watch(progress) == Flow::Continue
    }
}

fn ended(complete: bool) -> Compaction {
    if complete {
        Compaction::Complete
    } else {
        Compaction::Cancelled
    }
}

impl Engine for Betree {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// It waits only in `stdx` and in the system calls of `vfs`.
    fn announces_waits(&self) -> bool {
        true
    }

    fn encryption(&self) -> Option<Encryption> {
        self.db.encryption().map(|found| Encryption {
            cipher: "AES256-GCM",
            master_key: found.master_key,
            data_key: found.data_key,
        })
    }

    fn rotate_keys(&self, key_file: Option<&Path>, data: bool) -> Result<Encryption> {
        let master = key_file.map(settings::read_master).transpose()?;
        let rotated = self.db.rotate_keys(master.as_ref(), data);
        rotated.map_err(named)?;
        let missing = || Error::invalid("the store is not encrypted").with_engine(NAME);
        self.encryption().ok_or_else(missing)
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId> {
        kv::check_name(name).map_err(|e| Error::invalid(e).with_engine(NAME))?;
        self.db.create_tree(name, *options).map_err(named)
    }

    fn open_tree(&self, name: &str) -> Result<TreeId> {
        self.db.open_tree(name).map_err(named)
    }

    fn drop_tree(&self, name: &str) -> Result<()> {
        self.db.drop_tree(name).map_err(named)
    }

    fn trees(&self) -> Result<Vec<String>> {
        self.db.trees().map_err(named)
    }

    fn begin_read(&self) -> Result<Box<dyn Snapshot + '_>> {
        Ok(Box::new(Reader::begin(&self.db)?))
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(Writer::begin(&self.db)?))
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.db.write(batch, durability).map_err(named)
    }

    fn checkpoint(&self) -> Result<()> {
        let flushed = self.db.flush();
        flushed.and_then(|()| self.db.checkpoint()).map_err(named)
    }

    fn sync_log(&self) -> Result<()> {
        self.db.sync_log().map_err(named)
    }

    fn compact(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        let KeyRange { start, end } = range;
        let compacted = self.db.compact(tree, start, end, &mut watching(watch));
        compacted.map(ended).map_err(named)
    }

    fn settle(&self, limit: Duration) -> Result<Compaction> {
        self.db.settle(limit).map(ended).map_err(named)
    }

    fn backup(
        &self,
        directory: &Path,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        backup::backup(self, directory, watch)
    }

    fn backup_to(&self, _: &Path, sink: &mut dyn BackupSink) -> Result<Compaction> {
        backup::backup_to(self, sink)
    }

    fn lineage(&self) -> Option<[u8; 16]> {
        Some(self.db.store_id().to_be_bytes())
    }

    fn stats(&self) -> Result<EngineStats> {
        self.db.stats().map(|s| stats::engine(&s)).map_err(named)
    }

    fn tree_stats(&self, tree: TreeId, scope: StatScope) -> Result<TreeStats> {
        let found = self.db.tree_stats(tree, scope == StatScope::Exact);
        found.map(|found| stats::tree(&found)).map_err(named)
    }

    fn storage_map(&self) -> Result<StorageMap> {
        let map = self.db.storage_map();
        map.map(|map| stats::map(&map)).map_err(named)
    }

    fn verify(&self) -> Result<()> {
        self.db.verify().map(drop).map_err(named)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.close().map_err(named)
    }
}

//! The engine: a `betree::Db` under the contract of `kv`.
//!
//! Invariant I1: without a log no commit above `Durability::None` reaches the store.

mod backup;
mod cursor;
pub(crate) mod errors;
mod open;
mod pool;
mod snapshot;
pub(crate) mod stats;
mod transaction;

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::Duration;

use betree::Db;
use kv::{
    Batch, Capabilities, Compaction, Durability, Engine, EngineStats, Error, Flow, KeyRange,
    Progress, Result, Snapshot, StatScope, StorageMap, Transaction, TreeId, TreeOptions, TreeStats,
};

use crate::settings::NAME;
use errors::convert;
use pool::Pool;
use snapshot::Reader;
use transaction::Writer;

pub(crate) use open::open;

/// An open store.
struct Betree {
    db: Db,
    directory: PathBuf,
    capabilities: Capabilities,
    log: bool,
    batches: Pool,
}

impl Betree {
    /// The store's name for a level, if it has the level.
    fn level(&self, level: Durability) -> Result<betree::Durability> {
        if !self.log && level != Durability::None {
            let message = format!("durability {level} without a log; use none or keep the log");
            return Err(Error::unsupported(NAME, &message));
        }
        Ok(match level {
            Durability::None => betree::Durability::None,
            Durability::Interval => betree::Durability::Interval,
            Durability::Group => betree::Durability::Group,
            Durability::Sync => betree::Durability::Sync,
        })
    }
}

/// The store's handle of `tree`: the same number.
fn handle(tree: TreeId) -> betree::TreeId {
    betree::TreeId(tree.0)
}

/// The bounds of `range` for the store: crossed bounds become an empty range with ordered bounds.
fn bounds<'a>(range: KeyRange<'a>) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    if range.is_empty() {
        return (Bound::Included(b""), Bound::Excluded(b""));
    }
    (range.start, range.end)
}

/// The progress callback in the store's form.
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

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId> {
        kv::check_name(name).map_err(|e| Error::invalid(e).with_engine(NAME))?;
        let options = betree::TreeOptions {
            ascending: options.ascending,
            point_lookups: options.point_lookups,
        };
        let tree = self.db.create_tree(name, options);
        tree.map(|tree| TreeId(tree.0)).map_err(convert)
    }

    fn open_tree(&self, name: &str) -> Result<TreeId> {
        let tree = self.db.open_tree(name);
        tree.map(|tree| TreeId(tree.0)).map_err(convert)
    }

    fn drop_tree(&self, name: &str) -> Result<()> {
        self.db.drop_tree(name).map_err(convert)
    }

    fn trees(&self) -> Result<Vec<String>> {
        self.db.trees().map_err(convert)
    }

    fn begin_read(&self) -> Result<Box<dyn Snapshot + '_>> {
        Ok(Box::new(Reader::begin(&self.db)?))
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(Writer::begin(self)?))
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let level = self.level(durability)?;
        let batch = self.batches.translate(batch);
        self.db.write(&batch, level).map_err(convert)
    }

    fn checkpoint(&self) -> Result<()> {
        let flushed = self.db.flush();
        flushed.and_then(|()| self.db.checkpoint()).map_err(convert)
    }

    fn sync_log(&self) -> Result<()> {
        self.db.sync_log().map_err(convert)
    }

    fn compact(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        let (start, end) = bounds(range);
        let compacted = self
            .db
            .compact(handle(tree), start, end, &mut watching(watch));
        compacted.map(ended).map_err(convert)
    }

    fn settle(&self, limit: Duration) -> Result<Compaction> {
        self.db.settle(limit).map(ended).map_err(convert)
    }

    fn backup(
        &self,
        directory: &Path,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        backup::backup(self, directory, watch)
    }

    fn stats(&self) -> Result<EngineStats> {
        self.db.stats().map(|s| stats::engine(&s)).map_err(convert)
    }

    fn tree_stats(&self, tree: TreeId, scope: StatScope) -> Result<TreeStats> {
        let found = self.db.tree_stats(handle(tree), scope == StatScope::Exact);
        found.map(|found| stats::tree(&found)).map_err(convert)
    }

    fn storage_map(&self) -> Result<StorageMap> {
        self.db
            .storage_map()
            .map(|m| stats::map(&m))
            .map_err(convert)
    }

    fn verify(&self) -> Result<()> {
        self.db.verify().map(drop).map_err(convert)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.close().map_err(convert)
    }
}

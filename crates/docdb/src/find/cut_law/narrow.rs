//! The reference engine with a short limit of keys, so that few bytes make a key that is cut.

use std::path::Path;
use std::time::Duration;

use kv::{
    Batch, Capabilities, Compaction, Durability, Engine, EngineStats, Flow, KeyRange, Progress,
    Result, Snapshot, StatScope, StorageMap, Transaction, TreeId, TreeOptions, TreeStats,
};

use crate::limits::INDEX_KEY_SLACK;

/// The longest key of an index in such a store.
pub(super) const LIMIT: usize = 64;

/// An engine that promises keys of [`LIMIT`] bytes and the slack, and keeps longer ones of the
/// catalog all the same.
pub(super) struct Narrow {
    inner: Box<dyn Engine>,
    capabilities: Capabilities,
}

impl Narrow {
    pub(super) fn around(inner: Box<dyn Engine>) -> Box<dyn Engine> {
        let mut capabilities = inner.capabilities().clone();
        capabilities.limits.key_max = LIMIT + INDEX_KEY_SLACK;
        Box::new(Narrow {
            inner,
            capabilities,
        })
    }
}

impl Engine for Narrow {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId> {
        self.inner.create_tree(name, options)
    }

    fn open_tree(&self, name: &str) -> Result<TreeId> {
        self.inner.open_tree(name)
    }

    fn drop_tree(&self, name: &str) -> Result<()> {
        self.inner.drop_tree(name)
    }

    fn trees(&self) -> Result<Vec<String>> {
        self.inner.trees()
    }

    fn begin_read(&self) -> Result<Box<dyn Snapshot + '_>> {
        self.inner.begin_read()
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>> {
        self.inner.begin_write()
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.inner.write(batch, durability)
    }

    fn checkpoint(&self) -> Result<()> {
        self.inner.checkpoint()
    }

    fn sync_log(&self) -> Result<()> {
        self.inner.sync_log()
    }

    fn compact(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        self.inner.compact(tree, range, watch)
    }

    fn settle(&self, limit: Duration) -> Result<Compaction> {
        self.inner.settle(limit)
    }

    fn backup(
        &self,
        directory: &Path,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        self.inner.backup(directory, watch)
    }

    fn stats(&self) -> Result<EngineStats> {
        self.inner.stats()
    }

    fn tree_stats(&self, tree: TreeId, scope: StatScope) -> Result<TreeStats> {
        self.inner.tree_stats(tree, scope)
    }

    fn storage_map(&self) -> Result<StorageMap> {
        self.inner.storage_map()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.inner.close()
    }
}

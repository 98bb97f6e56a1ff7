//! The `null` target: accepts every operation and stores nothing. Its rate is the upper limit of
//! the load generator.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use kv::{
    Batch, Capabilities, Compaction, Count, Durability, Engine, EngineOptions, EngineStats, Error,
    ErrorKind, Factory, Flow, KeyRange, Limits, OptionDoc, Progress, Result, Snapshot, StatScope,
    StorageMap, Transaction, TreeId, TreeOptions, TreeStats,
};
use stdx::sync::Mutex;

const NAME: &str = "null";

const CAPABILITIES: Capabilities = Capabilities {
    limits: Limits {
        key_max: usize::MAX,
        value_max: usize::MAX,
    },
    empty_keys: true,
    persistent: false,
    interval: false,
    group_commit: false,
    none_is_consistent: false,
    concurrent_writers: true,
    blind_writes: true,
    cheap_range_delete: true,
    drop_with_readers: true,
    compaction: false,
    backup: false,
    increments: false,
    storage_map: false,
    io_by_reason: false,
    direct_io: false,
    compression: false,
};

struct NullFactory;

/// The factory of the `null` target.
pub(super) fn factory() -> &'static dyn Factory {
    &NullFactory
}

impl Factory for NullFactory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "keeps nothing: the ceiling of the load generator"
    }

    fn license(&self) -> &'static str {
        "MIT OR Apache-2.0"
    }

    fn feature(&self) -> Option<&'static str> {
        None
    }

    fn available(&self) -> bool {
        true
    }

    fn version(&self) -> Option<String> {
        Some(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn options(&self) -> &'static [OptionDoc] {
        &[]
    }

    fn open(&self, directory: &Path, options: &EngineOptions) -> Result<Box<dyn Engine>> {
        self.check_own(options)?;
        kv::identity::claim(directory, NAME, 1, "")?;
        Ok(Box::new(Null {
            trees: Mutex::new(BTreeMap::new()),
        }))
    }
}

struct Null {
    trees: Mutex<BTreeMap<String, TreeId>>,
}

fn keeps_nothing<T>(what: &str) -> Result<T> {
    Err(Error::unsupported(NAME, what))
}

impl Engine for Null {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn create_tree(&self, name: &str, _options: &TreeOptions) -> Result<TreeId> {
        let mut trees = self.trees.lock();
        let id = TreeId(u32::try_from(trees.len()).unwrap_or(u32::MAX));
        trees.insert(name.to_owned(), id);
        Ok(id)
    }

    fn open_tree(&self, name: &str) -> Result<TreeId> {
        let missing = || Error::new(ErrorKind::NotFound, "no such tree").with_tree(name);
        self.trees.lock().get(name).copied().ok_or_else(missing)
    }

    fn drop_tree(&self, name: &str) -> Result<()> {
        self.trees.lock().remove(name);
        Ok(())
    }

    fn trees(&self) -> Result<Vec<String>> {
        Ok(self.trees.lock().keys().cloned().collect())
    }

    fn begin_read(&self) -> Result<Box<dyn Snapshot + '_>> {
        keeps_nothing("snapshots")
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>> {
        keeps_nothing("transactions")
    }

    fn write(&self, batch: &Batch, _durability: Durability) -> Result<()> {
        black_box(batch);
        Ok(())
    }

    fn checkpoint(&self) -> Result<()> {
        Ok(())
    }

    fn sync_log(&self) -> Result<()> {
        Ok(())
    }

    fn compact(
        &self,
        _tree: TreeId,
        _range: KeyRange<'_>,
        _watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        keeps_nothing("compaction")
    }

    fn settle(&self, _limit: Duration) -> Result<Compaction> {
        Ok(Compaction::Complete)
    }

    fn backup(
        &self,
        _directory: &Path,
        _watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        keeps_nothing("backup")
    }

    fn stats(&self) -> Result<EngineStats> {
        Ok(EngineStats::default())
    }

    fn tree_stats(&self, _tree: TreeId, _scope: StatScope) -> Result<TreeStats> {
        Ok(TreeStats {
            entries: Count {
                value: 0,
                exact: true,
            },
            live_bytes: Some(0),
            allocated_bytes: Some(0),
            pages: None,
            depth: None,
            mean_fill: None,
            splits: None,
            merges: None,
        })
    }

    fn storage_map(&self) -> Result<StorageMap> {
        keeps_nothing("storage map")
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

//! The engine: the store, its directory lock and its statistics.

use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kv_types::{Batch, Durability, Error, ErrorKind, KeyRange, Result, TreeId, TreeOptions};
use vfs::DirLock;

use super::NAME;
use super::chain::Tally;
use super::snapshot::MemorySnapshot;
use super::store::{CHUNK, SWEEP_AT_COMMIT, Store};
use super::transaction::MemoryTransaction;
use crate::capabilities::Capabilities;
use crate::compact::{Compaction, Flow, Progress};
use crate::engine::{Engine, Snapshot, Transaction};
use crate::map::StorageMap;
use crate::stats::{Count, EngineStats, StatScope, TreeStats};

/// An open in-memory store.
#[derive(Debug)]
pub(super) struct MemoryEngine {
    pub(super) store: Store,
    capabilities: Capabilities,
    _lock: DirLock,
}

impl MemoryEngine {
    /// An empty store in the directory that `lock` holds.
    pub(super) fn new(store: Store, capabilities: Capabilities, lock: DirLock) -> MemoryEngine {
        MemoryEngine {
            store,
            capabilities,
            _lock: lock,
        }
    }

    /// Drop the dead versions of one chunk of `range`; returns the bytes visited and the next
    /// position.
    fn compact_chunk(&self, tree: TreeId, range: KeyRange<'_>) -> Result<(u64, Option<Box<[u8]>>)> {
        let mut guard = self.store.state.write();
        let state = &mut *guard;
        state.tree(tree)?;
        let live = self.store.live();
        let tree = state
            .trees
            .get_mut(&tree)
            .expect("checked on the line above");
        let before = tree.tally.held_bytes;
        let chunk = tree.prune_range(range, CHUNK, &live);
        state.held = state.held - before + tree.tally.held_bytes;
        Ok(chunk)
    }
}

fn named(operation: &'static str) -> impl Fn(Error) -> Error {
    move |e| e.with_engine(NAME).with_operation(operation)
}

impl Engine for MemoryEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// It never waits for anything but a lock that is held for a moment.
    fn announces_waits(&self) -> bool {
        true
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId> {
        let created = self.store.state.write().create_tree(name, options);
        created.map_err(named("create_tree"))
    }

    fn open_tree(&self, name: &str) -> Result<TreeId> {
        let opened = self.store.state.read().open_tree(name);
        opened.map_err(named("open_tree"))
    }

    /// Open snapshots continue to read the tree; a transaction that wrote to it gets `Conflict`.
    fn drop_tree(&self, name: &str) -> Result<()> {
        let dropped = self.store.drop_tree(name);
        dropped.map_err(named("drop_tree"))
    }

    fn trees(&self) -> Result<Vec<String>> {
        Ok(self.store.state.read().tree_names())
    }

    fn begin_read(&self) -> Result<Box<dyn Snapshot + '_>> {
        Ok(Box::new(MemorySnapshot::begin(&self.store)))
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>> {
        Ok(Box::new(MemoryTransaction::begin(&self.store)))
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.store
            .check_durability(durability)
            .map_err(named("write"))?;
        if batch.is_empty() {
            return Ok(());
        }
        let budget = SWEEP_AT_COMMIT + 2 * batch.len();
        self.store.commit(budget, batch).map_err(named("write"))
    }

    /// Has no effect: there are no tree files.
    fn checkpoint(&self) -> Result<()> {
        Ok(())
    }

    /// Has no effect: no data survive the process (the capability `persistent` is false).
    fn sync_log(&self) -> Result<()> {
        Ok(())
    }

    /// Drops every version of the range that no snapshot sees.
    fn compact(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        let named = named("compact");
        let held = self
            .store
            .state
            .read()
            .tree(tree)
            .map(|t| t.tally.held_bytes);
        let mut progress = Progress {
            done_bytes: 0,
            total_bytes: held.map_err(&named)?,
        };
        if watch(progress) == Flow::Cancel {
            return Ok(Compaction::Cancelled);
        }
        let mut from: Option<Box<[u8]>> = None;
        loop {
            let rest = match &from {
                None => range,
                Some(key) => KeyRange {
                    start: Bound::Excluded(key),
                    end: range.end,
                },
            };
            let (bytes, next) = self.compact_chunk(tree, rest).map_err(&named)?;
            progress.done_bytes += bytes;
            progress.total_bytes = progress.total_bytes.max(progress.done_bytes);
            if next.is_none() {
                progress.total_bytes = progress.done_bytes;
                watch(progress);
                return Ok(Compaction::Complete);
            }
            from = next;
            if watch(progress) == Flow::Cancel {
                return Ok(Compaction::Cancelled);
            }
        }
    }

    /// Drops the queued garbage that is due.
    fn settle(&self, limit: Duration) -> Result<Compaction> {
        let begin = stdx::time::now();
        while self.store.sweep_chunk() {
            if limit <= begin.elapsed() {
                return Ok(Compaction::Cancelled);
            }
        }
        Ok(Compaction::Complete)
    }

    fn backup(
        &self,
        _directory: &Path,
        _watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        Err(Error::unsupported(NAME, "backup"))
    }

    /// The counters: `commits`, `conflicts`, `snapshots` (open now), `trees`, `entries`,
    /// `versions`, `live_bytes`, `held_bytes` (all versions with estimated overhead) and
    /// `queued_keys` (waiting for the end of a snapshot).
    fn stats(&self) -> Result<EngineStats> {
        let state = self.store.state.read();
        let mut sum = Tally::default();
        for tree in state.trees.values() {
            sum.add(tree.tally);
        }
        let counters = [
            ("commits", self.store.commits.load(Ordering::Relaxed)),
            ("conflicts", self.store.conflicts.load(Ordering::Relaxed)),
            ("snapshots", self.store.live().len() as u64),
            ("trees", state.tree_count() as u64),
            ("entries", sum.entries),
            ("versions", sum.versions),
            ("live_bytes", sum.live_bytes),
            ("held_bytes", sum.held_bytes),
            ("queued_keys", state.garbage.len() as u64),
        ];
        Ok(EngineStats {
            debt_bytes: Some(0),
            counters: counters.map(|(k, v)| (k.to_owned(), v)).into(),
            ..EngineStats::default()
        })
    }

    fn tree_stats(&self, tree: TreeId, _scope: StatScope) -> Result<TreeStats> {
        let state = self.store.state.read();
        let tally = state.tree(tree).map_err(named("tree_stats"))?.tally;
        Ok(TreeStats {
            entries: Count {
                value: tally.entries,
                exact: true,
            },
            live_bytes: Some(tally.live_bytes),
            allocated_bytes: None,
            pages: None,
            depth: None,
            mean_fill: None,
            splits: None,
            merges: None,
        })
    }

    fn storage_map(&self) -> Result<StorageMap> {
        Err(Error::unsupported(NAME, "storage map"))
    }

    /// Checks M1 and M3 by reading all data; commits wait meanwhile.
    fn verify(&self) -> Result<()> {
        self.store.state.read().verify().map_err(|what| {
            let error = Error::new(ErrorKind::Corrupt, what);
            named("verify")(error)
        })
    }

    /// Drops the content and releases the directory.
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

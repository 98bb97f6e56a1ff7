//! Statistics of an engine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Why bytes were written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IoReason {
    /// The redo log.
    Log,
    /// Memory written to new runs (an LSM's flush).
    Flush,
    /// Rewriting of runs (merge, compaction).
    Merge,
    /// A page written to replace an older one (B-tree eviction or copy-on-write).
    PageWrite,
    /// A page read from disk.
    PageRead,
    /// Written because of a checkpoint.
    Checkpoint,
    /// Metadata.
    Meta,
}

/// Bytes and operations for one reason since the engine was opened. Neither number ever decreases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoCount {
    /// The reason.
    pub reason: IoReason,
    /// Bytes.
    pub bytes: u64,
    /// Operations, where counted.
    pub operations: Option<u64>,
}

/// The engine's own cache (not the operating system's).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStats {
    /// Capacity of the cache, in bytes.
    pub capacity_bytes: u64,
    /// Current content of the cache, in bytes.
    pub used_bytes: u64,
    /// The part of the content that must still be written, in bytes.
    pub dirty_bytes: u64,
    /// Lookups answered from the cache since the engine was opened; never decreases.
    pub hits: u64,
    /// Lookups that needed a read from disk since the engine was opened; never decreases.
    pub misses: u64,
}

/// Time that callers waited for one reason since the engine was opened. Neither number ever
/// decreases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StallCount {
    /// The reason, in the engine's words: `memtable_limit`, `cache_full`, ...
    pub reason: String,
    /// Number of waits.
    pub count: u64,
    /// Total time in microseconds, where the engine measures it.
    pub micros: Option<u64>,
}

/// Statistics of an engine since it was opened. A statistic that the engine does not collect is
/// empty or `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineStats {
    /// Bytes written, by reason.
    pub written: Vec<IoCount>,
    /// Bytes read, by reason.
    pub read: Vec<IoCount>,
    /// The engine's cache.
    pub cache: Option<CacheStats>,
    /// Waits of callers, by reason.
    pub stalls: Vec<StallCount>,
    /// Durability debt: bytes accepted whose background work is still pending (dirty pages, buffers
    /// in memory, merges that are due).
    pub debt_bytes: Option<u64>,
    /// The background work in progress, by names that can explain a stall: `checkpoint`,
    /// `compaction`, `flush`. Empty when idle or unknown.
    pub activity: Vec<String>,
    /// All other statistics, by the engine's own names: counters that only grow, and gauges that
    /// may fall.
    pub counters: BTreeMap<String, u64>,
}

impl EngineStats {
    /// Bytes written for `reason`, 0 when not counted.
    #[must_use]
    pub fn written_bytes(&self, reason: IoReason) -> u64 {
        self.written
            .iter()
            .filter(|c| c.reason == reason)
            .map(|c| c.bytes)
            .sum()
    }
}

/// How much work may be done to collect statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatScope {
    /// Read only cheap sources; estimates suffice.
    Quick,
    /// Exact where possible, even if the whole tree must be read. The count of entries is always
    /// exact.
    Exact,
}

/// A count, and whether it is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// The number.
    pub value: u64,
    /// False for an estimate.
    pub exact: bool,
}

/// The content of one tree. `None` means that the engine does not know the number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreeStats {
    /// Entries.
    pub entries: Count,
    /// Bytes of live keys and values before compression.
    pub live_bytes: Option<u64>,
    /// Bytes allocated in files to the tree.
    pub allocated_bytes: Option<u64>,
    /// Pages (B-tree) or runs (LSM, Be-tree).
    pub pages: Option<u64>,
    /// Levels of a B-tree from the root to the leaves, or levels of an LSM tree.
    pub depth: Option<u32>,
    /// Mean used fraction of a page, 0 to 1.
    pub mean_fill: Option<f64>,
    /// Pages or buckets that were split since the engine was opened.
    pub splits: Option<u64>,
    /// Merges of the tree's runs that were completed since the engine was opened.
    pub merges: Option<u64>,
}

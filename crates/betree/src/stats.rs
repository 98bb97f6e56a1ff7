//! Statistics of the engine: plain data, captured at one moment. Counters start at 0 when the store
//! is opened and never decrease; gauges are current values. Sizes are in bytes, times in
//! microseconds.

/// The reason of an I/O operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum IoReason {
    /// The log.
    Log,
    /// Buffers written as runs.
    Flush,
    /// Runs merged.
    Merge,
    /// Images of checkpoints.
    Checkpoint,
    /// Superblocks, and everything read or written to open a store.
    Meta,
    /// Pages, fences and filters read for a caller.
    Page,
    /// Runs read to verify or to copy them.
    Check,
}

/// Bytes and system calls for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoCount {
    /// The reason.
    pub reason: IoReason,
    /// Bytes.
    pub bytes: u64,
    /// System calls.
    pub operations: u64,
}

/// Counts of operations since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Commits, of batches and transactions.
    pub commits: u64,
    /// Keys set.
    pub puts: u64,
    /// Keys deleted, including those in range deletes.
    pub deletes: u64,
    /// Range deletes.
    pub range_deletes: u64,
    /// Point reads.
    pub gets: u64,
    /// Cursors opened.
    pub cursors: u64,
    /// Commits and writes refused because another transaction committed first.
    pub conflicts: u64,
    /// Buffers flushed.
    pub flushes: u64,
    /// Flushes whose run became part of the base.
    pub appends: u64,
    /// Buckets merged.
    pub merges: u64,
    /// Buckets split.
    pub splits: u64,
    /// Checkpoints made durable.
    pub checkpoints: u64,
}

/// The cache of pages, fences and filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Maximum bytes.
    pub capacity: u64,
    /// Bytes in use.
    pub used: u64,
    /// Lookups that found their item.
    pub hits: u64,
    /// Lookups that went to the disk.
    pub misses: u64,
}

/// Waits of callers for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The cause: `buffer_memory`, `log_sync`, ...
    pub name: &'static str,
    /// Number of waits.
    pub count: u64,
    /// Total time.
    pub micros: u64,
}

/// The log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Bytes in segments that recovery would read.
    pub bytes_held: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Syncs.
    pub syncs: u64,
    /// Groups of commits that shared a sync.
    pub groups: u64,
    /// Commits in these groups.
    pub group_commits: u64,
}

/// The last durable checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointStats {
    /// Its number; 0 if there is none.
    pub number: u64,
    /// The last commit that it contains entirely.
    pub seq: u64,
    /// Time since it became durable.
    pub age_micros: u64,
    /// Its duration.
    pub took_micros: u64,
    /// Length of its image.
    pub image_bytes: u64,
}

/// The data file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceStats {
    /// Length of the file.
    pub file_bytes: u64,
    /// In use.
    pub used_bytes: u64,
    /// Free for use.
    pub free_bytes: u64,
    /// Free after the next checkpoint.
    pub pending_bytes: u64,
    /// Length of the longest free extent.
    pub largest_free: u64,
}

/// Open snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotStats {
    /// Their number, including transactions.
    pub open: u64,
    /// Age of the oldest; 0 if there is none.
    pub oldest_micros: u64,
}

/// Statistics of the whole store. Cheap enough to read once a second.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes written, by reason, each reason at most once.
    pub written: Vec<IoCount>,
    /// Bytes read, by reason, each reason at most once.
    pub read: Vec<IoCount>,
    /// Counts of operations.
    pub operations: Operations,
    /// The cache.
    pub cache: CacheStats,
    /// Waits of callers, by cause.
    pub waits: Vec<Wait>,
    /// Memory of all buffers, active and frozen.
    pub buffered_bytes: u64,
    /// Memory of frozen buffers, included in `buffered_bytes`.
    pub frozen_bytes: u64,
    /// Memory of flushed buffers that a call in progress still reads; cursors hold none.
    pub pinned_bytes: u64,
    /// Memory of the writes of open transactions, without what they spilled.
    pub transaction_bytes: u64,
    /// Stored bytes in deltas.
    pub delta_bytes: u64,
    /// Stored bytes in bases.
    pub base_bytes: u64,
    /// Bytes that wait for a flush or a merge: those in buffers and deltas, and the bases of
    /// buckets that hold what was kept for snapshots that are gone.
    pub debt_bytes: u64,
    /// Bytes that may be merged before the allowance of [`crate::Options::rho`] is used up;
    /// negative when forced merges overdrew it.
    pub rho_balance: i64,
    /// `runs_per_bucket[n]`: number of buckets in which a scan reads `n` runs (deltas, plus 1 for
    /// the base).
    pub runs_per_bucket: Vec<u64>,
    /// Trees.
    pub trees: u64,
    /// Buckets of all trees.
    pub buckets: u64,
    /// Runs of all trees.
    pub runs: u64,
    /// The log.
    pub log: LogStats,
    /// The last checkpoint.
    pub checkpoint: CheckpointStats,
    /// The data file.
    pub space: SpaceStats,
    /// Open snapshots.
    pub snapshots: SnapshotStats,
    /// Background work in progress: `flush`, `merge`, `checkpoint`. Empty when idle.
    pub activity: Vec<&'static str>,
}

impl Stats {
    /// Bytes written for `reason`.
    #[must_use]
    pub fn written_bytes(&self, reason: IoReason) -> u64 {
        sum(&self.written, reason)
    }

    /// Bytes read for `reason`.
    #[must_use]
    pub fn read_bytes(&self, reason: IoReason) -> u64 {
        sum(&self.read, reason)
    }

    /// The mean number of runs that a scan reads in a bucket; 0 without buckets.
    #[must_use]
    pub fn mean_runs(&self) -> f64 {
        let buckets: u64 = self.runs_per_bucket.iter().sum();
        if buckets == 0 {
            return 0.0;
        }
        let weighted = self.runs_per_bucket.iter().zip(0u64..);
        let runs: u64 = weighted.map(|(count, runs)| count * runs).sum();
        runs as f64 / buckets as f64
    }
}

fn sum(counts: &[IoCount], reason: IoReason) -> u64 {
    let of_reason = counts.iter().filter(|c| c.reason == reason);
    of_reason.map(|c| c.bytes).sum()
}

/// Statistics of one tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeStats {
    /// Number of keys, exact or estimated: see `exact`.
    pub entries: u64,
    /// Whether `entries` and `live_bytes` were counted by reading the tree.
    pub exact: bool,
    /// Keys and values before compression; an estimate unless `exact`.
    pub live_bytes: u64,
    /// The extents of all runs.
    pub allocated_bytes: u64,
    /// Runs.
    pub runs: u64,
    /// Buckets.
    pub buckets: u64,
    /// Memory of buffers.
    pub buffered_bytes: u64,
    /// Stored bytes in deltas.
    pub delta_bytes: u64,
    /// Stored bytes in bases.
    pub base_bytes: u64,
    /// Buckets that were split since the store was opened.
    pub splits: u64,
    /// Merges of its buckets since the store was opened.
    pub merges: u64,
}

/// The result of a check of the whole store that found no damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Trees.
    pub trees: u64,
    /// Buckets.
    pub buckets: u64,
    /// Runs.
    pub runs: u64,
    /// Pages, fences and filters included.
    pub pages: u64,
    /// Entries in runs, all versions.
    pub entries: u64,
    /// Bytes read.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_summed_by_reason() {
        let count = |reason, bytes| IoCount {
            reason,
            bytes,
            operations: 1,
        };
        let stats = Stats {
            written: vec![count(IoReason::Log, 5), count(IoReason::Merge, 7)],
            read: vec![count(IoReason::Page, 3)],
            ..Stats::default()
        };
        assert_eq!(stats.written_bytes(IoReason::Merge), 7);
        assert_eq!(stats.written_bytes(IoReason::Page), 0);
        assert_eq!(stats.read_bytes(IoReason::Page), 3);
    }

    #[test]
    fn runs_are_averaged_over_buckets() {
        let mut stats = Stats::default();
        assert!(stats.mean_runs() < f64::EPSILON);
        stats.runs_per_bucket = vec![1, 2, 1];
        assert!((stats.mean_runs() - 1.0).abs() < f64::EPSILON);
    }
}

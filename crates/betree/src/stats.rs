//! What the engine says of itself: plain data, taken at one moment. Counters begin at 0 when the
//! store is opened and never fall; gauges say what is now. Sizes are in bytes, times in
//! microseconds.

/// Why bytes were written or read.
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
    /// Superblocks and whatever opens a store.
    Meta,
    /// Pages, fences and filters read for a caller.
    Page,
    /// Runs read to check or to copy them.
    Check,
}

/// Bytes and calls for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoCount {
    /// The reason.
    pub reason: IoReason,
    /// Bytes.
    pub bytes: u64,
    /// Calls of the operating system.
    pub operations: u64,
}

/// How often something was done, since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Commits, of batches and transactions.
    pub commits: u64,
    /// Keys set.
    pub puts: u64,
    /// Keys deleted, also by range deletes.
    pub deletes: u64,
    /// Range deletes.
    pub range_deletes: u64,
    /// Point reads.
    pub gets: u64,
    /// Cursors opened.
    pub cursors: u64,
    /// Commits and writes refused because another transaction was first.
    pub conflicts: u64,
    /// Buffers flushed.
    pub flushes: u64,
    /// Of those, appended to the base.
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
    /// The most it may hold.
    pub capacity: u64,
    /// What it holds.
    pub used: u64,
    /// Lookups answered.
    pub hits: u64,
    /// Lookups that went to the disk.
    pub misses: u64,
}

/// What callers waited for, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What for: `buffer_memory`, `log_sync`, ...
    pub name: &'static str,
    /// How often.
    pub count: u64,
    /// How long in all.
    pub micros: u64,
}

/// The log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Held in segments that recovery would read.
    pub bytes_held: u64,
    /// Written.
    pub bytes_written: u64,
    /// Syncs.
    pub syncs: u64,
    /// Groups of commits that shared a sync.
    pub groups: u64,
    /// Commits in these groups.
    pub group_commits: u64,
}

/// The last checkpoint that is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointStats {
    /// Its number; 0 when there is none.
    pub number: u64,
    /// The last commit it holds wholly.
    pub seq: u64,
    /// How long ago it became durable.
    pub age_micros: u64,
    /// How long it took.
    pub took_micros: u64,
    /// The length of its image.
    pub image_bytes: u64,
}

/// The data file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceStats {
    /// Its length.
    pub file_bytes: u64,
    /// In use.
    pub used_bytes: u64,
    /// Free for use.
    pub free_bytes: u64,
    /// Free after the next checkpoint.
    pub pending_bytes: u64,
    /// The longest free piece.
    pub largest_free: u64,
}

/// Snapshots that are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotStats {
    /// How many, transactions included.
    pub open: u64,
    /// The age of the oldest; 0 when there is none.
    pub oldest_micros: u64,
}

/// What the whole store says of itself. Cheap enough for once a second.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes written, by reason, each reason at most once.
    pub written: Vec<IoCount>,
    /// Bytes read, by reason, each reason at most once.
    pub read: Vec<IoCount>,
    /// How often what was done.
    pub operations: Operations,
    /// The cache.
    pub cache: CacheStats,
    /// What callers waited for.
    pub waits: Vec<Wait>,
    /// Memory of all buffers, active and frozen.
    pub buffered_bytes: u64,
    /// Of that, memory of frozen buffers.
    pub frozen_bytes: u64,
    /// Memory of flushed buffers that a call under way still reads; cursors hold none.
    pub pinned_bytes: u64,
    /// Memory of what open transactions wrote; what they spilled is not in it.
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
    /// `runs_per_bucket[n]`: buckets that a scan meets `n` runs in (deltas, and 1 for the base).
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
    /// The background work under way: `flush`, `merge`, `checkpoint`. Empty when idle.
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

    /// The mean number of runs a scan meets in a bucket; 0 without buckets.
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

/// What is stored in one tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeStats {
    /// Entries: keys that are present when `exact`, else about that.
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

/// What a check of the whole store has read and found sound.
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

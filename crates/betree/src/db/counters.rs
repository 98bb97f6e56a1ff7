//! What is counted of waits and of background work, for statistics.

use crate::counter::{Counter, Wait};

/// All counters.
#[derive(Default)]
pub(crate) struct Counters {
    /// Commits slowed down because buffers are filling.
    pub(crate) pressure: Wait,
    /// Commits slowed down because merges are behind.
    pub(crate) merge_debt: Wait,
    /// Commits that waited for room in the buffers.
    pub(crate) memory_full: Wait,
    /// Commits that waited for a sync of the log.
    pub(crate) log_sync: Wait,
    /// Commits that waited because the log's buffers were filling up, or for a buffer or a segment.
    pub(crate) log_buffer: Wait,
    pub(crate) commits: Counter,
    pub(crate) puts: Counter,
    /// Deletes of single keys, including those of range deletes.
    pub(crate) deletes: Counter,
    pub(crate) range_deletes: Counter,
    pub(crate) gets: Counter,
    pub(crate) cursors: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) flushes: Counter,
    pub(crate) appends: Counter,
    pub(crate) merges: Counter,
    pub(crate) splits: Counter,
    /// Buckets whose range was given to a neighbor, because they were empty or small.
    pub(crate) absorbed: Counter,
    pub(crate) checkpoints: Counter,
    pub(crate) image_bytes: Counter,
    /// Bytes read for backups, and the number of reads.
    pub(crate) copied: Counter,
    pub(crate) copy_reads: Counter,
    pub(crate) flush_nanos: Counter,
    /// Total time of completed merges, and the encoded bytes that they wrote.
    pub(crate) merge_nanos: Counter,
    pub(crate) timed_bytes: Counter,
    /// Bytes of keys and values in commits.
    pub(crate) user_bytes: Counter,
    /// Encoded bytes flushed as deltas, which determine the pace of merges.
    pub(crate) delta_bytes: Counter,
    /// Bytes that the pace allowed while there was nothing to merge.
    pub(crate) forgiven_bytes: Counter,
    /// Encoded bytes that merges wrote.
    pub(crate) merged_bytes: Counter,
}

//! Every fixed limit of the engine, with its reason. Configurable limits are in [`crate::Options`].

use kv_types::Limits;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The longest key, in bytes: its length must fit in 15 bits, so that a page can hold it beside a
/// flag in two bytes; and fences and bucket bounds, which hold keys whole, stay small.
pub const KEY_MAX: usize = 32_767;

/// The longest value, in bytes. A page holds at least one entry, so a reader may have to hold this
/// much, decoded, for one key; 64 MiB is four times MongoDB's document.
pub const VALUE_MAX: usize = 64 << 20;

/// What a batch of the log keeps.
pub(crate) const LIMITS: Limits = Limits {
    key_max: KEY_MAX,
    value_max: VALUE_MAX,
};

/// The largest commit, in bytes of its log payload. A commit is one log record, is replayed as a
/// whole and is built in memory; its length must fit in 31 bits.
pub const COMMIT_MAX: usize = 1 << 30;

/// The longest tree name, in bytes: names are stored in the image and appear in errors.
pub const NAME_MAX: usize = 255;

/// The maximum number of trees. 10,000 trees are a design goal; a hundred times as many indicate a
/// runaway loop, and the image, which names each tree, would take minutes to write.
pub const TREES_MAX: usize = 1_000_000;

/// The maximum memory for the log's buffers, in bytes: at 500 MB/s they hold 60 ms of commits. A
/// write may wait that long for the file system while the device is busy.
pub(crate) const LOG_BUFFER_MAX: u64 = 32 * MIB;

/// The smallest log buffer, in bytes: sixteen blocks, so that small commits still share writes.
pub(crate) const LOG_BUFFER_MIN: u64 = 64 * KIB;

/// The first segment of a log, in bytes: 20,000 small commits, and little beside the data of a
/// small store. Larger ones follow under load, up to the option.
pub(crate) const LOG_SEGMENT_FIRST: u64 = 4 * MIB;

/// An opening skips fewer numbers of runs than this. It is large enough that two openings of one
/// state hardly give a number twice (for a million runs each: 2 in a million), and small enough
/// that a store can be opened 33 million times.
pub(crate) const RUN_GAP: u64 = 1 << 40;

/// The memory one background thread has in flight, in bytes: two read pieces and two write pieces
/// of 1 MiB, as a merge reads ahead while it writes.
pub(crate) const WORK_PER_THREAD: u64 = 4 * MIB;

/// The ranges of the options, both ends included; sizes in bytes.
pub(crate) mod range {
    use super::{COMMIT_MAX, GIB, KIB, MIB};
    use std::ops::RangeInclusive;
    use std::time::Duration;

    /// Below 1 MiB the log buffer and the work of one thread would leave nothing for buffers and
    /// cache.
    pub(crate) const MEMORY: RangeInclusive<u64> = MIB..=(16 << 10) * GIB;
    /// Buffers and cache each need a share: without a cache every read goes to the disk, without
    /// buffers every commit does.
    pub(crate) const BUFFER_SHARE: RangeInclusive<f64> = 0.05..=0.95;
    /// Below 0.05 deltas pile up to the cap on runs; above 64 each byte is rewritten at once.
    pub(crate) const RHO: RangeInclusive<f64> = 0.05..=64.0;
    /// One delta at least; a merge of more than 64 sources is slower than two merges.
    pub(crate) const K_CAP: RangeInclusive<u32> = 1..=64;
    /// Below a page of 4 KiB a bucket is all overhead; above 1 GiB one merge blocks a thread for
    /// seconds.
    pub(crate) const BUCKET: RangeInclusive<u64> = 4 * KIB..=GIB;
    /// Below 256 bytes headers outweigh entries; above 1 MiB a point read decodes a megabyte.
    pub(crate) const PAGE: RangeInclusive<u32> = 256..=1 << 20;
    /// 4 bits err in one of 7, 24 bits in one of 100,000: more buys nothing.
    pub(crate) const FILTER_BITS: RangeInclusive<u8> = 4..=24;
    /// A segment is preallocated whole; below 64 KiB it is smaller than a written piece.
    pub(crate) const LOG_SEGMENT: RangeInclusive<u64> = 64 * KIB..=4 * GIB;
    /// Reading more than 16 TiB of log would take hours.
    pub(crate) const LOG_MAX: RangeInclusive<u64> = 128 * KIB..=(16 << 10) * GIB;
    /// No sync is shorter than the minimum; the maximum is a day.
    pub(crate) const INTERVAL: RangeInclusive<Duration> =
        Duration::from_millis(1)..=Duration::from_secs(86_400);
    /// As for the log's interval.
    pub(crate) const CHECKPOINT_INTERVAL: RangeInclusive<Duration> =
        Duration::from_millis(1)..=Duration::from_secs(86_400);
    /// Below 4 KiB each commit would require a checkpoint.
    pub(crate) const CHECKPOINT_BYTES: RangeInclusive<u64> = 4 * KIB..=(16 << 10) * GIB;
    /// More threads would exceed the bandwidth of any device.
    pub(crate) const THREADS: RangeInclusive<u32> = 0..=64;
    /// Longer waits than a second for other commits are pointless.
    pub(crate) const GROUP_DELAY: RangeInclusive<Duration> =
        Duration::ZERO..=Duration::from_secs(1);
    /// With a shorter age no scan could finish.
    pub(crate) const SNAPSHOT_MAX_AGE: RangeInclusive<Duration> =
        Duration::from_millis(1)..=Duration::from_secs(365 * 86_400);
    /// A transaction becomes one log record.
    pub(crate) const TRANSACTION_MAX: RangeInclusive<u64> = 4 * KIB..=COMMIT_MAX as u64;
}

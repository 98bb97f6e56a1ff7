//! The getters.

use std::time::Duration;

use super::{Codec, Filter, MasterKey, Options};
use crate::types::UNIT;

impl Options {
    /// The memory limit, in bytes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// The fraction of the memory for write buffers.
    #[must_use]
    pub fn buffer_share(&self) -> f64 {
        self.buffer_share
    }

    /// Bytes merged for each byte flushed.
    #[must_use]
    pub fn rho(&self) -> f64 {
        self.rho
    }

    /// The maximum number of deltas in a bucket.
    #[must_use]
    pub fn k_cap(&self) -> u32 {
        self.k_cap
    }

    /// The stored size at which a bucket is split, in bytes.
    #[must_use]
    pub fn bucket(&self) -> u64 {
        self.bucket
    }

    /// The size of a page before compression, in bytes.
    #[must_use]
    pub fn page(&self) -> u32 {
        self.page
    }

    /// The codec of bases.
    #[must_use]
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// The codec of deltas.
    #[must_use]
    pub fn delta_codec(&self) -> Codec {
        self.delta_codec
    }

    /// The runs that get a filter.
    #[must_use]
    pub fn filter(&self) -> Filter {
        self.filter
    }

    /// The size of a filter, in bits for each key.
    #[must_use]
    pub fn filter_bits(&self) -> u8 {
        self.filter_bits
    }

    /// Whether there is a log.
    #[must_use]
    pub fn log(&self) -> bool {
        self.log
    }

    /// The codec of the log.
    #[must_use]
    pub fn log_codec(&self) -> Codec {
        self.log_codec
    }

    /// The size of a segment of the log, in bytes: what was given, but no more than half of
    /// [`Options::log_max`], and whole blocks of 4 KiB.
    #[must_use]
    pub fn log_segment(&self) -> u64 {
        let most = self.log_segment.min(self.log_max / 2);
        let blocks = most / UNIT;
        assert!(0 < blocks, "the least of both ranges is many blocks");
        blocks * UNIT
    }

    /// The maximum size of the log that recovery may have to read, in bytes.
    #[must_use]
    pub fn log_max(&self) -> u64 {
        self.log_max
    }

    /// The interval at which the log is synced.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The longest time between checkpoints.
    #[must_use]
    pub fn checkpoint_interval(&self) -> Duration {
        self.checkpoint_interval
    }

    /// The log written between checkpoints at most, in bytes.
    #[must_use]
    pub fn checkpoint_bytes(&self) -> u64 {
        self.checkpoint_bytes
    }

    /// The number of background threads; with 0 the caller does their work.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// Whether the data file bypasses the page cache of the operating system.
    #[must_use]
    pub fn direct_io(&self) -> bool {
        self.direct_io
    }

    /// How long a commit waits for others to share its sync.
    #[must_use]
    pub fn group_delay(&self) -> Duration {
        self.group_delay
    }

    /// The maximum age of snapshots, if any.
    #[must_use]
    pub fn snapshot_max_age(&self) -> Option<Duration> {
        self.snapshot_max_age
    }

    /// The maximum size of a transaction or a batch, in bytes.
    #[must_use]
    pub fn transaction_max(&self) -> u64 {
        self.transaction_max
    }

    /// The seed of the jitter, if it was set.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// The master key, if the store is encrypted.
    #[must_use]
    pub fn encryption(&self) -> Option<&MasterKey> {
        self.encryption.as_ref()
    }
}

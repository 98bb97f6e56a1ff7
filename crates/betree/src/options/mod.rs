//! The options of a store when it is opened. But for the master key of an encrypted store, none of
//! them is part of the stored format: every run states how it was written, so all options may
//! differ at the next open.
//!
//! Invariant I1: [`Options::shares`] adds up to the memory exactly.

mod check;
mod get;
mod set;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crypt::MasterKey;

pub use crate::page::Codec;

use crate::limits::{COMMIT_MAX, LOG_BUFFER_MAX, LOG_BUFFER_MIN, WORK_PER_THREAD};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Which runs get a filter of their keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Filter {
    /// Deltas of trees that were created for point lookups.
    #[default]
    Auto,
    /// No runs.
    None,
    /// All runs of all trees.
    All,
}

impl Filter {
    /// The name of the setting, as parsed by [`FromStr`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Filter::Auto => "auto",
            Filter::None => "none",
            Filter::All => "all",
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        let all = [Filter::Auto, Filter::None, Filter::All];
        let known = all.into_iter().find(|f| f.name() == text);
        known.ok_or_else(|| format!("not a filter rule: {text:?}; use auto, none or all"))
    }
}

/// The division of the memory limit, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Write buffers, active and frozen.
    pub(crate) buffers: u64,
    /// The cache of pages, fences and filters.
    pub(crate) cache: u64,
    /// The log's buffer; 0 without a log.
    pub(crate) log: u64,
    /// Reads and writes in flight.
    pub(crate) work: u64,
}

/// The options of a store when it is opened. Begin with [`Options::default`] or a preset, change
/// what should differ with the `with_` methods; opening checks all of it.
///
/// ```
/// use betree::Options;
///
/// let options = Options::ingest().with_memory(1 << 30).with_threads(1);
/// options.validate()?;
/// # Ok::<(), betree::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    memory: u64,
    buffer_share: f64,
    rho: f64,
    k_cap: u32,
    bucket: u64,
    page: u32,
    codec: Codec,
    delta_codec: Codec,
    filter: Filter,
    filter_bits: u8,
    log: bool,
    log_codec: Codec,
    log_segment: u64,
    log_max: u64,
    interval: Duration,
    checkpoint_interval: Duration,
    checkpoint_bytes: u64,
    threads: u32,
    direct_io: bool,
    group_delay: Duration,
    snapshot_max_age: Option<Duration>,
    transaction_max: u64,
    seed: Option<u64>,
    encryption: Option<MasterKey>,
}

impl Default for Options {
    /// [`Options::balanced`].
    fn default() -> Options {
        Options {
            memory: 128 * MIB,
            buffer_share: 0.5,
            rho: 2.0,
            k_cap: 16,
            bucket: 16 * MIB,
            page: 8 << 10,
            codec: Codec::Lz4,
            delta_codec: Codec::Lz4,
            filter: Filter::Auto,
            filter_bits: 10,
            log: true,
            log_codec: Codec::None,
            log_segment: 64 * MIB,
            log_max: KIB * MIB,
            interval: Duration::from_millis(100),
            checkpoint_interval: Duration::from_secs(10),
            checkpoint_bytes: 256 * MIB,
            threads: 2,
            direct_io: false,
            group_delay: Duration::ZERO,
            snapshot_max_age: None,
            transaction_max: COMMIT_MAX as u64,
            seed: None,
            encryption: None,
        }
    }
}

impl Options {
    /// For stores that are mostly read: merges keep up, so that a scan reads little more than one
    /// run, as in a B-tree; each byte is written about six times (rho 6, 2 runs, buckets of 4 MiB).
    #[must_use]
    pub fn btree() -> Options {
        Options::default()
            .with_rho(6.0)
            .with_k_cap(2)
            .with_bucket(4 * MIB)
    }

    /// The default: a scan reads about two runs, each byte is written about three times (rho 2,
    /// 16 runs, buckets of 16 MiB).
    #[must_use]
    pub fn balanced() -> Options {
        Options::default()
    }

    /// For loading: each byte is written about one and a half times, and a scan reads five runs and
    /// more until the store has settled (rho 1, 24 runs, buckets of 32 MiB).
    #[must_use]
    pub fn ingest() -> Options {
        Options::default()
            .with_rho(1.0)
            .with_k_cap(24)
            .with_bucket(32 * MIB)
    }

    /// The division of the memory limit: the log and I/O in flight get theirs first, at most a
    /// quarter; [`Options::buffer_share`] divides the rest.
    #[must_use]
    pub(crate) fn shares(&self) -> Shares {
        let log = if self.log {
            (self.memory / 8).clamp(LOG_BUFFER_MIN, LOG_BUFFER_MAX)
        } else {
            0
        };
        // Without threads, the caller does the background work.
        let hands = u64::from(self.threads.max(1));
        let work = (hands * WORK_PER_THREAD).min(self.memory / 8);
        let rest = self.memory - log - work;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share between 0 and 1 of a positive number; a fraction of a byte is dropped"
        )]
        let buffers = ((rest as f64 * self.buffer_share) as u64).min(rest);
        let cache = rest - buffers;
        assert_eq!(buffers + cache + log + work, self.memory, "I1");
        Shares {
            buffers,
            cache,
            log,
            work,
        }
    }
}

#[cfg(test)]
mod tests;

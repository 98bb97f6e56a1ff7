//! An embeddable, transactional key-value engine for rows that arrive with several random indexes
//! while the data are far larger than memory.
//!
#![doc = include_str!("../README.md")]
//!
//! ## Where to read on
//!
//! In the order in which a newcomer needs them: [`Db`] (opening, trees, operation), [`Tree`] and
//! [`Iter`] (one tree), [`Snapshot`], [`Transaction`] and [`Batch`] (several reads or writes as
//! one), [`Cursor`] (scans without copies), [`Durability`], [`Options`], [`Error`], [`Stats`].
//!
//! The modules below follow a call from the outside to the inside. `db` is the store as an embedder
//! sees it. A write passes `log` and ends in a `buffer`; `tree` finds its bucket. In
//! the background `work` flushes and merges (`merge`) buffers into runs (`run`, of `page`s read
//! through `cache`) in the data file (`space`), and makes a `checkpoint`. A read is a `cursor` over
//! buffers and runs. `inspect` looks at a store at work. `docs/betree.md` in the repository
//! explains the engine, `docs/format.md` its files.

// What an embedder uses.
mod db;

mod error;
mod keys;
mod limits;
mod options;
mod stats;
mod types;

// The path of a write: log, bucket, buffer.
mod arena;
mod buffer;
mod log;
mod tree;

// Background work: from buffers to runs in the data file.
mod block;
mod checkpoint;
mod merge;
mod page;
mod run;
mod space;
mod work;

// The path of a read.
mod cache;
mod cursor;

// A store at work, seen from outside.
mod counter;
mod inspect;
mod map;

// For benchmarks, the fuzzer and tests of the tests.
#[doc(hidden)]
pub mod bench_kernel;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(not(feature = "plants"))]
mod plant;
#[cfg(feature = "plants")]
#[doc(hidden)]
pub mod plant;

/// The programs of the page "Embed betree", run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embed.md")]
struct Embed;

pub use crypt::MasterKey;
pub use db::{AsKeyRange, Cursor, Db, Iter, Snapshot, Transaction, Tree};
pub use inspect::map_at_rest;
pub use keys::{Encryption, KEY_FILE};
#[doc(inline)]
pub use kv_types::{
    Batch, Change, Counts, Direction, Durability, Error, ErrorKind, KeyRange, Ops, Result, TreeId,
    TreeOptions,
};
pub use limits::{COMMIT_MAX, KEY_MAX, NAME_MAX, TREES_MAX, VALUE_MAX};
pub use map::{BucketMap, LogSegment, Region, RegionKind, StorageMap};
pub use options::{Codec, Filter, Options};
#[doc(hidden)]
pub use page::bench as page_bench;
pub use stats::{
    CacheStats, CheckpointStats, IoCount, IoReason, LogStats, Operations, Report, SnapshotStats,
    SpaceStats, Stats, TreeStats, Wait,
};
pub use types::{BackupNext, BackupPart, Seq};

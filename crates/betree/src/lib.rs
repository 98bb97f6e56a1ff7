//! A write-optimised storage engine: a tree of buckets, each with a buffer in memory, sorted runs
//! of changes below it and a sorted base.

mod arena;
mod batch;
#[doc(hidden)]
pub mod bench_kernel;
mod buffer;
mod cache;
mod checkpoint;
mod cursor;
mod db;
mod durability;
mod error;
#[doc(hidden)]
pub mod fuzzing;

mod inspect;
mod limits;
mod log;
mod map;
mod merge;
mod options;
mod page;
#[cfg(not(feature = "plants"))]
mod plant;
#[cfg(feature = "plants")]
#[doc(hidden)]
pub mod plant;
mod run;
mod space;
mod stats;
mod tree;
mod types;
mod work;

pub use batch::{Batch, Change, Counts, Ops};
pub use db::{Cursor, Db, Snapshot, Transaction};
pub use durability::Durability;
pub use error::{Error, ErrorKind, Result};
pub use inspect::map_at_rest;
pub use limits::{COMMIT_MAX, KEY_MAX, NAME_MAX, TREES_MAX, VALUE_MAX};
pub use map::{BucketMap, LogSegment, Region, RegionKind, StorageMap};
pub use options::{Codec, Filter, Options};
#[doc(hidden)]
pub use page::bench as page_bench;
pub use run::Direction;
pub use stats::{
    CacheStats, CheckpointStats, IoCount, IoReason, LogStats, Operations, Report, SnapshotStats,
    SpaceStats, Stats, TreeStats, Wait,
};
pub use tree::TreeOptions;
pub use types::{Seq, TreeId};

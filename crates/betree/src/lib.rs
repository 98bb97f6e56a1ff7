//! A transactional key-value engine for rows that arrive with several random indexes while the data
//! are far larger than memory.
//!
//! A store has one redo log and any number of trees. A tree is divided into key ranges, called
//! buckets. Per bucket the engine keeps a buffer in memory (a memtable), a stack of delta runs
//! (sorted, immutable runs of changes, as SSTables of level 0) and one sorted base. It is a
//! range-partitioned, log-structured engine; its write path is that of a Be-tree of height one
//! (Brodal and Fagerberg 2003). It has no inner nodes, no levels and no pages changed in place.
//!
//! - A commit appends to the log and to the buffers of its buckets; nothing is sorted.
//! - A flush sorts a frozen buffer and writes it as a delta run.
//! - A merge folds the runs of a bucket into its base, and splits buckets that grow.
//! - A checkpoint writes the catalog of all runs (the image) and frees log and replaced runs.
//! - A read asks the buffers, then the deltas from the newest to the oldest, then the base.
//!
//! ```
//! use betree::{Db, Durability, Options, TreeOptions};
//!
//! # let directory = std::env::temp_dir().join(format!("betree-doc-{}", std::process::id()));
//! let db = Db::open(&directory, Options::ingest().with_memory(64 << 20))?;
//! let rows = db.create_tree("rows", TreeOptions::default())?;
//! let by_price = db.create_tree("rows.price", TreeOptions::default())?;
//!
//! let mut transaction = db.begin()?;
//! transaction.insert(rows, b"17", b"an apple")?; // fails if the key exists
//! transaction.put_blind(by_price, b"9.95/17", b"")?; // reads nothing, conflicts with nothing
//! transaction.commit(Durability::Group)?;
//!
//! let snapshot = db.begin_read()?;
//! assert_eq!(snapshot.get(rows, b"17")?.as_deref(), Some(&b"an apple"[..]));
//! # drop(snapshot);
//! db.close()?;
//! # std::fs::remove_dir_all(&directory).unwrap();
//! # Ok::<(), betree::Error>(())
//! ```
//!
//! Modules in the order in which a write meets them: `db` (handle, transactions, commits), `log`
//! (redo log and recovery), `buffer`, `tree` and `map` (buckets and routing), `run` and `page`
//! (sorted runs), `merge` and `work` (background jobs), `checkpoint` and `space` (images and
//! extents), then for reads `cursor` and `cache`, and `inspect` (statistics, verification, backup).
//! `docs/betree.md` in the repository explains the engine, `docs/format.md` its files.

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
pub use db::{Cursor, Db, Iter, KeyRange, Snapshot, Transaction, Tree};
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

//! The persistence API: the interface of storage engines for the database layers and the
//! laboratory.
//!
//! An [`Engine`] holds named trees (ordered maps from bytes to bytes; key order is byte order). A
//! [`Snapshot`] reads all trees at one moment; a [`Transaction`] also writes them, atomically and
//! at snapshot isolation; a [`Batch`] writes without reading. Code above this API does not depend
//! on which engine stores the data; where engines differ, it reads their [`Capabilities`], which
//! are data.
//!
//! Invariants every engine keeps (`kv-conformance` checks them):
//!
//! - I1. A commit is atomic across trees, for readers and across a crash.
//! - I2. A snapshot never changes: it sees exactly the commits that returned before it was taken,
//!   and possibly some commits that were in progress, each of them whole.
//! - I3. Of two transactions that wrote the same key and overlapped in time, at most one commits
//!   (first committer wins); the other gets [`ErrorKind::Conflict`].
//! - I4. An acknowledged commit survives what its [`Durability`] and [`Capabilities`] promise.
//! - I5. An engine returns `Unsupported` for what it does not support; it never ignores a request.
//!
//! The words that engines share, such as [`Durability`] and [`Batch`], come from the crate
//! `kv-types`. [`memory`] is the reference engine.

mod backup;
mod capabilities;
mod codec;
mod compact;
mod encryption;
mod engine;
mod factory;
pub mod identity;
mod map;
pub mod memory;
mod options;
mod stats;
mod tree;

pub use backup::{BackupSink, Piece, PieceId};
pub use capabilities::{Capabilities, Writes};
pub use codec::NamedCodec;
pub use compact::{Compaction, Flow, Progress};
pub use encryption::Encryption;
pub use engine::{Cursor, Engine, Snapshot, Transaction};
pub use factory::Factory;
#[doc(inline)]
pub use kv_types::{
    Batch, Change, Direction, Durability, Error, ErrorKind, KeyRange, Limits, Result, TreeId,
    TreeOptions,
};
pub use map::{Region, RegionKind, StorageMap};
pub use options::{Codec, CodecDoc, EngineOptions, OptionDoc};
pub use stats::{
    CacheStats, Count, EngineStats, IoCount, IoReason, StallCount, StatScope, TreeStats,
};
pub use tree::{NAME_MAX, check_name};

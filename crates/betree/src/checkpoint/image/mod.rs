//! The image: the catalog of one checkpoint, every tree with its buckets and their runs.
//!
//! It is written whole at every checkpoint, into an extent of its own, and never changed. Each run
//! is described once; buckets name runs by number, since a run may serve several buckets after a
//! split.
//!
//! # Bytes, little-endian
//! ```text
//! image    magic 8 (89 'B' 'T' 'I' 'M' 'A' 'G' 'E'), version u32 (1 or 2), trees u32, number u64,
//!          last seq u64, log from u64, next run u64, next tree u32, runs u32,
//!          runs * run, trees * tree, hash u64 (XXH3-64 of all before)
//! run      id u64, tree u32, pages u32, bytes u64, raw bytes u64, entries u64, tombstones u64,
//!          max seq u64, fence offset u64, filter offset u64, fence len u32, filter len u32,
//!          extents u32, min len u16, max len u16,
//!          version 2 only: seal 20 (data key u32, salt 16),
//!          extents * (offset u64, len u64), min key, max key
//! tree     id u32, flags u8 (1: ascending, 2: point lookups), zero u8, name len u16, buckets u32,
//!          name (UTF-8), buckets * bucket
//! bucket   flushed u64, deltas u32, base u32, lo len u16, lo,
//!          deltas * run id u64 (newest first), base * run id u64 (ascending keys)
//! ```
//! Version 2 is that of an image whose runs are encrypted.
//!
//! Invariants, checked before encoding (a violation is a bug) and after decoding (it is damage):
//! - I1: runs ascend by id, trees by id, buckets by `lo`; the first bucket's `lo` is empty; ids are
//!   below the next ones, names differ, nothing names a sequence number above `last_seq`.
//! - I2: every run is named by at least one bucket, only by buckets of its tree, and by none twice.
//! - I3: the runs of a bucket's base are disjoint and ascend.
//! - I4: a run's description keeps its own rules (`RunMeta::check`): its extents are whole units
//!   and hold its bytes, its fence and filter blocks follow its pages.
//! - I5: all runs are encrypted, or none is.
//!
//! Memory: decoding holds at most a small multiple of the input's length, whatever is in it.

mod decode;
mod encode;
mod validate;

#[cfg(test)]
pub(super) mod tests;

use crate::run::RunMeta;
use crate::types::{RunId, Seq, TreeId};

pub(super) const MAGIC: [u8; 8] = *b"\x89BTIMAGE";
pub(super) const VERSION: u32 = 1;
/// The version of an image whose runs are encrypted.
pub(super) const SEALED_VERSION: u32 = 2;
/// Length of the fields before the runs.
pub(super) const HEADER_LEN: usize = 56;
/// Length of the hash at the end.
pub(super) const HASH_LEN: usize = 8;
/// Minimum lengths of a run, a tree and a bucket.
pub(super) const RUN_LEN: usize = 88;
pub(super) const TREE_LEN: usize = 12;
pub(super) const BUCKET_LEN: usize = 18;

const ASCENDING: u8 = 1;
const POINT_LOOKUPS: u8 = 2;

/// The catalog of one checkpoint; see the module documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// Number of the checkpoint, from 1.
    pub(crate) number: u64,
    /// The newest commit at the time of the capture.
    pub(crate) last_seq: Seq,
    /// The first log record to replay.
    pub(crate) log_from: Seq,
    /// The lowest unused run number.
    pub(crate) next_run: RunId,
    /// The lowest unused tree number.
    pub(crate) next_tree: u32,
    /// Every run that a bucket refers to, once, in ascending order of ids.
    pub(crate) runs: Vec<RunMeta>,
    /// In ascending order of ids.
    pub(crate) trees: Vec<TreeImage>,
}

/// A tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeImage {
    pub(crate) id: TreeId,
    pub(crate) name: String,
    pub(crate) flags: TreeFlags,
    /// In ascending order of `lo`; at least one.
    pub(crate) buckets: Vec<BucketImage>,
}

/// The options with which a tree was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeFlags {
    pub(crate) ascending: bool,
    pub(crate) point_lookups: bool,
}

/// A bucket: the keys from `lo` to the `lo` of the next bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketImage {
    pub(crate) lo: Box<[u8]>,
    /// Entries up to this commit are in its runs.
    pub(crate) flushed: Seq,
    /// Newest first.
    pub(crate) deltas: Vec<RunId>,
    /// In ascending order of keys.
    pub(crate) base: Vec<RunId>,
}

//! The storage map: where the bytes of a store are in its files, and how well space is used.

use kv_types::TreeId;
use serde::{Deserialize, Serialize};

/// What a region of a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RegionKind {
    /// Entries (leaf pages, runs).
    Data,
    /// Pages that only lead to entries (inner pages, fences, filters).
    Index,
    /// Values stored outside of the leaf pages.
    Overflow,
    /// Buffered changes waiting to be merged.
    Buffer,
    /// Free for reuse.
    Free,
    /// Superblocks, catalogs.
    Meta,
    /// The redo log.
    Log,
}

/// A contiguous byte range of a file, all of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Region {
    /// The file, relative to the engine's directory.
    pub file: String,
    /// Offset of the region in the file, in bytes. An engine that knows only the sizes of regions,
    /// not their offsets, lays them out one after the other.
    pub offset: u64,
    /// Length of the region, in bytes.
    pub length: u64,
    /// What the region holds.
    pub kind: RegionKind,
    /// The tree the region belongs to, where known.
    pub tree: Option<TreeId>,
    /// The level: 0 is the leaves of a B-tree and the youngest level of an LSM.
    pub level: u8,
    /// The live fraction of the region, 0 to 1, where known.
    pub used: Option<f32>,
}

/// The regions of a store, file by file in ascending offset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StorageMap {
    /// The regions.
    pub regions: Vec<Region>,
    /// True when offsets are real positions in the files.
    pub offsets_are_real: bool,
}

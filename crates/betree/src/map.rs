//! The storage map: the location of the store's bytes. Plain data, captured at one moment.
//!
//! Invariants of the maker, checked by [`StorageMap::check`]:
//! - I1. Regions are in ascending offset and do not overlap.
//! - I2. Buckets are in order of tree, then of index; within a tree their lower ends ascend.

use crate::types::TreeId;

/// The content of a region of the data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegionKind {
    /// Superblock slots.
    Superblock,
    /// The image of a checkpoint.
    Image,
    /// A run of a bucket's base.
    Base,
    /// A run of changes above a base.
    Delta,
    /// Free for use.
    Free,
    /// Free after the next checkpoint.
    Pending,
}

/// A contiguous region of the data file with one kind of content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Start, in bytes.
    pub offset: u64,
    /// Length, in bytes.
    pub len: u64,
    /// Its content.
    pub kind: RegionKind,
    /// The tree of a run.
    pub tree: Option<TreeId>,
    /// The bucket of a run, counted from 0 in key order (the first of several).
    pub bucket: Option<u32>,
    /// The fraction of it that is in use, 0 to 1.
    pub used: f32,
}

/// One bucket of a tree.
#[doc(alias = "partition")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketMap {
    /// The tree.
    pub tree: TreeId,
    /// Its index in key order, from 0.
    pub index: u32,
    /// Its lower bound; empty for the first bucket.
    pub lo: Box<[u8]>,
    /// Stored bytes of its base.
    pub base_bytes: u64,
    /// Stored bytes of its deltas.
    pub delta_bytes: u64,
    /// Number of runs that a scan reads: deltas, plus 1 for the base.
    pub runs: u32,
    /// Memory of its buffers.
    pub buffered_bytes: u64,
}

/// One segment of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSegment {
    /// The file, relative to the store's directory.
    pub file: String,
    /// Its length, in bytes.
    pub len: u64,
    /// Whether recovery would read it (else it is a spare).
    pub held: bool,
}

/// The location of the store's bytes.
#[doc(alias = "layout")]
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StorageMap {
    /// The regions of the data file, in ascending offset.
    pub regions: Vec<Region>,
    /// The buckets, by tree and in key order.
    pub buckets: Vec<BucketMap>,
    /// The segments of the log, oldest first.
    pub log: Vec<LogSegment>,
}

impl StorageMap {
    /// Bytes of all regions of `kind`.
    #[must_use]
    pub fn bytes(&self, kind: RegionKind) -> u64 {
        let of_kind = self.regions.iter().filter(|r| r.kind == kind);
        of_kind.map(|r| r.len).sum()
    }

    /// Sort the regions, and check the invariants of the map.
    ///
    /// # Panics
    /// When the maker has broken I1 or I2.
    #[must_use]
    pub(crate) fn check(mut self) -> StorageMap {
        self.regions.sort_by_key(|r| r.offset);
        let mut end = 0;
        for region in &self.regions {
            assert!(end <= region.offset, "I1: regions do not overlap");
            assert!((0.0..=1.0).contains(&region.used), "a part is 0 to 1");
            end = region.offset + region.len;
        }
        for pair in self.buckets.windows(2) {
            let [a, b] = pair else { continue };
            assert!(
                (a.tree, a.index) < (b.tree, b.index),
                "I2: by tree and index"
            );
            assert!(a.tree < b.tree || a.lo < b.lo, "I2: lower ends ascend");
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(offset: u64, len: u64, kind: RegionKind) -> Region {
        Region {
            offset,
            len,
            kind,
            tree: None,
            bucket: None,
            used: 1.0,
        }
    }

    #[test]
    fn regions_are_put_in_order_and_summed() {
        let map = StorageMap {
            regions: vec![
                region(8192, 4096, RegionKind::Base),
                region(0, 8192, RegionKind::Superblock),
                region(12288, 4096, RegionKind::Base),
            ],
            ..StorageMap::default()
        };
        let map = map.check();
        assert!(map.regions.is_sorted_by_key(|r| r.offset));
        assert_eq!(map.bytes(RegionKind::Base), 8192);
        assert_eq!(map.bytes(RegionKind::Free), 0);
    }

    #[test]
    #[should_panic(expected = "I1")]
    fn an_overlap_is_a_bug() {
        let regions = vec![
            region(0, 8192, RegionKind::Base),
            region(4096, 4096, RegionKind::Free),
        ];
        let map = StorageMap {
            regions,
            ..StorageMap::default()
        };
        let _ = map.check();
    }

    #[test]
    #[should_panic(expected = "I2")]
    fn buckets_out_of_order_are_a_bug() {
        let bucket = |index, lo: &[u8]| BucketMap {
            tree: TreeId(1),
            index,
            lo: lo.into(),
            base_bytes: 0,
            delta_bytes: 0,
            runs: 0,
            buffered_bytes: 0,
        };
        let map = StorageMap {
            buckets: vec![bucket(0, b""), bucket(1, b"")],
            ..StorageMap::default()
        };
        let _ = map.check();
    }
}

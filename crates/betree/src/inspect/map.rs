//! The storage map: the location of the store's bytes at one moment.
//!
//! What lies in no region is being written, or is held by a reader that outlives its bucket.

use std::collections::BTreeSet;

use super::Look;
use super::look::BucketLook;
use crate::checkpoint::{DATA_START, Superblock};
use crate::db::Core;
use crate::error::Result;
use crate::map::{BucketMap, LogSegment, Region, RegionKind, StorageMap};
use crate::run::RunMeta;
use crate::types::{Extent, TreeId};

impl Core {
    /// The map. Waits for a checkpoint that is being made.
    ///
    /// # Errors
    /// `Closed`.
    pub(crate) fn storage_map(&self) -> Result<StorageMap> {
        self.health.check_open()?;
        let (mut look, layout, superblock) = {
            // No image is written or freed meanwhile.
            let checkpoint = self.checkpoints.hold();
            let superblock = checkpoint.superblock().clone();
            let committer = self.commit.lock();
            let look = Look::at(self, &committer);
            (look, self.runs.accounts().1, superblock)
        };
        look.trees.sort_by_key(|tree| tree.tree.id);
        let mut map = fixed(&superblock);
        // The reserve is free space for the next checkpoint.
        let free = layout.free.iter().chain(&layout.reserve);
        map.regions
            .extend(free.map(|extent| region(*extent, RegionKind::Free, 0.0)));
        let pending = layout.pending.iter();
        map.regions
            .extend(pending.map(|extent| region(*extent, RegionKind::Pending, 0.0)));
        let mut seen = BTreeSet::new();
        for tree in &look.trees {
            for (index, bucket) in (0_u32..).zip(&tree.buckets) {
                map.buckets.push(bucket_map(tree.tree.id, index, bucket));
                let base = bucket.base.iter().map(|run| (run, RegionKind::Base));
                let deltas = bucket.deltas.iter().map(|run| (run, RegionKind::Delta));
                for (run, kind) in base.chain(deltas) {
                    if seen.insert(run.meta().id) {
                        add_run(&mut map.regions, run.meta(), kind, index);
                    }
                }
            }
        }
        map.log = self.log_segments();
        Ok(map.check())
    }

    fn log_segments(&self) -> Vec<LogSegment> {
        let files = self.log.as_ref().map(crate::log::Log::files);
        let segment = |(file, len, held)| LogSegment { file, len, held };
        files.into_iter().flatten().map(segment).collect()
    }
}

/// A map of the parts with a fixed place in every data file: the slots of the superblock, and the
/// image.
pub(super) fn fixed(superblock: &Superblock) -> StorageMap {
    let slots = Extent {
        offset: 0,
        len: DATA_START,
    };
    let mut map = StorageMap::default();
    map.regions.push(region(slots, RegionKind::Superblock, 1.0));
    if let Some(place) = superblock.image {
        let used = share(place.length, place.extent().len);
        let image = region(place.extent(), RegionKind::Image, used);
        map.regions.push(image);
    }
    map
}

pub(super) fn add_run(regions: &mut Vec<Region>, meta: &RunMeta, kind: RegionKind, bucket: u32) {
    let mut left = meta.bytes;
    for extent in &meta.extents {
        let here = left.min(extent.len);
        left -= here;
        regions.push(Region {
            tree: Some(meta.tree),
            bucket: Some(bucket),
            ..region(*extent, kind, share(here, extent.len))
        });
    }
    assert_eq!(left, 0, "the extents of a run hold its bytes");
}

pub(super) fn region(extent: Extent, kind: RegionKind, used: f32) -> Region {
    Region {
        offset: extent.offset,
        len: extent.len,
        kind,
        tree: None,
        bucket: None,
        used,
    }
}

fn share(part: u64, of: u64) -> f32 {
    debug_assert!(part <= of, "a part is not more than the whole");
    (part as f32 / of.max(1) as f32).min(1.0)
}

fn bucket_map(tree: TreeId, index: u32, bucket: &BucketLook) -> BucketMap {
    let runs = bucket.deltas.len() + usize::from(!bucket.base.is_empty());
    BucketMap {
        tree,
        index,
        lo: bucket.lo.as_ref().into(),
        base_bytes: bucket.base.iter().map(|run| run.meta().bytes).sum(),
        delta_bytes: bucket.deltas.iter().map(|run| run.meta().bytes).sum(),
        runs: u32::try_from(runs).unwrap_or(u32::MAX),
        buffered_bytes: bucket.buffered() as u64,
    }
}

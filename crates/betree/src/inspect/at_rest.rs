//! The storage map of a store that is not open, from its data file alone.
//!
//! What is drawn is the newest checkpoint. Commits after it are in the log only, and go into
//! buffers when the store is opened: [`StorageMap::log`] says how much that is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crypt::MasterKey;
use vfs::File;

use super::map::{add_run, fixed, region};
use crate::checkpoint::{self, BucketImage, DataFile, Image};
use crate::error::Result;
use crate::keys::Keys;
use crate::map::{BucketMap, RegionKind, StorageMap};
use crate::run::RunMeta;
use crate::types::{Extent, RunId, TreeId};

/// The map of the newest checkpoint in `file`, the data file at `path`, and the names of its trees.
/// Nothing is written, so a store that is open may be looked at too, though then its checkpoints
/// may overtake the reader (`Corrupt`: try again). `encryption` has the master key of an encrypted
/// store and the bytes of its key file, `keys.betree`.
///
/// # Errors
/// `Invalid`: not a data file of this engine, or an encrypted one with a wrong master key or
/// without; `Corrupt`; `Io`.
pub fn map_at_rest(
    file: &dyn File,
    path: &Path,
    encryption: Option<(&MasterKey, &[u8])>,
) -> Result<(StorageMap, Vec<(TreeId, String)>)> {
    let keys = encryption.map(|(master, bytes)| Keys::decode(bytes, master));
    let keys = keys.transpose().map_err(|error| error.with_path(path))?;
    let data = DataFile {
        file,
        path,
        keys: keys.as_ref(),
    };
    let superblock = checkpoint::read_newest(data)?;
    let image = match superblock.image {
        Some(place) => Some(checkpoint::read_image(data, &superblock, place)?),
        None => None,
    };
    let length = file
        .len()
        .map_err(|e| crate::error::Error::io("examine the data file", path, e))?;
    // Rebuilding the allocator checks that nothing overlaps.
    checkpoint::rebuild_space(length, &superblock, image.as_ref())?;
    let mut map = fixed(&superblock);
    let mut names = Vec::new();
    if let Some(image) = &image {
        add_image(&mut map, image);
        names = image.trees.iter().map(|t| (t.id, t.name.clone())).collect();
    }
    add_free(&mut map, length);
    Ok((map.check(), names))
}

fn add_image(map: &mut StorageMap, image: &Image) {
    let runs: BTreeMap<RunId, &RunMeta> = image.runs.iter().map(|run| (run.id, run)).collect();
    let mut seen = BTreeSet::new();
    for tree in &image.trees {
        for (index, bucket) in (0_u32..).zip(&tree.buckets) {
            map.buckets.push(bucket_map(&runs, tree.id, index, bucket));
            let base = bucket.base.iter().map(|run| (run, RegionKind::Base));
            let deltas = bucket.deltas.iter().map(|run| (run, RegionKind::Delta));
            for (id, kind) in base.chain(deltas) {
                if let Some(run) = runs.get(id).filter(|_| seen.insert(*id)) {
                    add_run(&mut map.regions, run, kind, index);
                }
            }
        }
    }
}

fn bucket_map(
    runs: &BTreeMap<RunId, &RunMeta>,
    tree: TreeId,
    index: u32,
    bucket: &BucketImage,
) -> BucketMap {
    let bytes = |ids: &[RunId]| {
        ids.iter()
            .filter_map(|id| runs.get(id))
            .map(|r| r.bytes)
            .sum()
    };
    let count = bucket.deltas.len() + usize::from(!bucket.base.is_empty());
    BucketMap {
        tree,
        index,
        lo: bucket.lo.clone(),
        base_bytes: bytes(&bucket.base),
        delta_bytes: bytes(&bucket.deltas),
        runs: u32::try_from(count).unwrap_or(u32::MAX),
        buffered_bytes: 0,
    }
}

/// Add the free space, which is everything outside of the regions.
fn add_free(map: &mut StorageMap, length: u64) {
    let mut used: Vec<(u64, u64)> = map.regions.iter().map(|r| (r.offset, r.len)).collect();
    used.sort_unstable();
    let mut end = 0;
    for (offset, len) in used.into_iter().chain([(length, 0)]) {
        if end < offset {
            let hole = Extent {
                offset: end,
                len: offset - end,
            };
            map.regions.push(region(hole, RegionKind::Free, 0.0));
        }
        end = end.max(offset + len);
    }
}

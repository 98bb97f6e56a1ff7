//! The storage map: used and free bytes of each file.
//!
//! WiredTiger reports the size of a file's free space, not its position, so each file is shown as
//! one region of data and one of free space.

use std::fs;

use kv::{Error, Region, RegionKind, Result, StorageMap, TreeId};

use super::catalog;
use super::connection::c_string;
use super::shared::Shared;
use super::{shared, stats};
use crate::support::NAME;

pub(super) fn draw(shared: &Shared) -> Result<StorageMap> {
    let mut files = Vec::new();
    let failed = |e| Error::io("map", &shared.home, e).with_engine(NAME);
    for entry in fs::read_dir(&shared.home).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // A file that was removed meanwhile (of the log, or an LSM chunk) is no longer part of the
        // store.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_file() {
            files.push((
                entry.file_name().to_string_lossy().into_owned(),
                metadata.len(),
            ));
        }
    }
    files.sort();
    let mut map = StorageMap::default();
    for (name, length) in files {
        add_file(shared, &mut map, &name, length);
    }
    Ok(map)
}

fn add_file(shared: &Shared, map: &mut StorageMap, name: &str, length: u64) {
    let tree = catalog::parse_stem(name).filter(|&id| shared.tree(id).is_ok());
    let free = free_in(shared, name, tree).min(length);
    let kind = kind_of(name, tree);
    let regions = [(kind, length - free), (RegionKind::Free, free)];
    let mut offset = 0;
    for (kind, length) in regions {
        if length == 0 {
            continue;
        }
        map.regions.push(Region {
            file: format!("{}/{name}", shared::HOME),
            offset,
            length,
            kind,
            tree,
            level: 0,
            used: None,
        });
        offset += length;
    }
}

/// Free bytes of a tree's file; 0 where the library does not report them, as for a chunk that was
/// merged meanwhile.
fn free_in(shared: &Shared, name: &str, tree: Option<TreeId>) -> u64 {
    if tree.is_none() {
        return 0;
    }
    let Ok(uri) = c_string(&format!("file:{name}")) else {
        return 0;
    };
    stats::file_and_free(shared, &uri).map_or(0, |[_, free]| free)
}

fn kind_of(name: &str, tree: Option<TreeId>) -> RegionKind {
    if name.starts_with("WiredTigerLog") || name.starts_with("WiredTigerPreplog") {
        return RegionKind::Log;
    }
    match tree {
        // The Bloom filter of an LSM chunk.
        Some(_) if name.ends_with(".bf") => RegionKind::Index,
        Some(_) => RegionKind::Data,
        None => RegionKind::Meta,
    }
}

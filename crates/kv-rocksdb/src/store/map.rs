//! The storage map: one region per file.

use std::collections::BTreeMap;
use std::fs;

use kv::{Error, Region, RegionKind, Result, StorageMap};

use super::SUBDIRECTORY;
use super::catalog::parse_family_name;
use super::engine::Store;
use super::raw::LiveFile;
use crate::support::NAME;

/// The storage map. RocksDB reports the length of a file, not the layout inside; `used` is the
/// share of the file's entries that are not deletions.
pub(super) fn storage_map(store: &Store) -> Result<StorageMap> {
    let catalog = store.catalog();
    let mut regions = BTreeMap::new();
    for file in store.db.live_files() {
        let name = parse_family_name(&file.family).ok().map(|(name, _)| name);
        let tree = name.and_then(|name| catalog.find(name)).map(|tree| tree.id);
        let path = format!("{SUBDIRECTORY}{}", file.name);
        let region = Region {
            file: path.clone(),
            offset: 0,
            length: file.size as u64,
            kind: RegionKind::Data,
            tree,
            level: u8::try_from(file.level).unwrap_or(0),
            used: used(&file),
        };
        regions.insert(path, region);
    }
    let directory = store.directory.join(SUBDIRECTORY);
    let io = |e| Error::io("map", &directory, e).with_engine(NAME);
    for entry in fs::read_dir(&directory).map_err(io)? {
        let entry = entry.map_err(io)?;
        // A file may be removed after it was listed.
        let (Ok(name), Ok(metadata)) = (entry.file_name().into_string(), entry.metadata()) else {
            continue;
        };
        let Some(kind) = kind_of(&name) else { continue };
        let path = format!("{SUBDIRECTORY}/{name}");
        let region = Region {
            file: path.clone(),
            offset: 0,
            length: metadata.len(),
            kind,
            tree: None,
            level: 0,
            used: None,
        };
        regions.entry(path).or_insert(region);
    }
    Ok(StorageMap {
        regions: regions.into_values().collect(),
        offsets_are_real: false,
    })
}

fn kind_of(name: &str) -> Option<RegionKind> {
    if name.ends_with(".log") {
        return Some(RegionKind::Log);
    }
    let is_meta = name.starts_with("MANIFEST-") || name.starts_with("OPTIONS-");
    is_meta.then_some(RegionKind::Meta)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a share needs no more digits"
)]
fn used(file: &LiveFile) -> Option<f32> {
    if file.entries == 0 {
        return None;
    }
    let gone = file.deletions as f64 / file.entries as f64;
    Some((1.0 - gone).clamp(0.0, 1.0) as f32)
}

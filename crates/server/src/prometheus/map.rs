//! The storage map for the page: for the largest collections, and for free space, how much of each
//! part of the files belongs to them.

use std::collections::{BTreeMap, HashMap};

use docdb::Collection;
use kv::{Region, RegionKind, StorageMap, TreeId};
use serde_json::{Value, json};

use crate::server::Server;

/// Maximum number of collections: what fits on a page.
const COLLECTIONS: usize = 20;

/// Parts of the files, from the first byte to the last.
const PARTS: usize = 240;

/// The map as JSON.
pub(super) fn map(server: &Server) -> String {
    let store = &server.store;
    let catalog = store.catalog();
    let named = catalog.iter().filter_map(|(_, named)| named.collection());
    let mut all: Vec<(i64, &Collection)> = named
        .map(|collection| {
            let indexes = collection.indexes().iter();
            let trees = indexes
                .map(|index| index.tree())
                .chain(store.record_trees(collection));
            (
                trees.map(|tree| store.tree_bytes(tree)).sum(),
                &**collection,
            )
        })
        .collect();
    all.sort_by_key(|(bytes, _)| -*bytes);
    let left_out = all.len().saturating_sub(COLLECTIONS);
    all.truncate(COLLECTIONS);
    // Engines without a map have the sizes only.
    let map = store.storage_map().unwrap_or_default();
    let mut owners = HashMap::new();
    for (at, (_, collection)) in all.iter().enumerate() {
        owners.insert(collection.records(), at);
        owners.extend(collection.indexes().iter().map(|index| (index.tree(), at)));
    }
    let strips = Strips::of(&map, &owners, all.len());
    let shown: Vec<Value> = all
        .iter()
        .zip(&strips.owned)
        .map(|((bytes, collection), strip)| describe(server, collection, *bytes, strip))
        .collect();
    json!({
        "engine": store.engine().name(),
        "offsetsAreReal": map.offsets_are_real,
        "fileBytes": strips.total,
        "bytesByKind": strips.by_kind,
        "free": strips.free,
        "collections": shown,
        "leftOut": left_out,
    })
    .to_string()
}

fn describe(server: &Server, collection: &Collection, bytes: i64, strip: &[u8]) -> Value {
    let store = &server.store;
    let indexes: Vec<Value> = collection
        .indexes()
        .iter()
        .map(|index| json!({"name": index.name(), "bytes": store.tree_bytes(index.tree())}))
        .collect();
    json!({
        "ns": collection.ns().to_string(),
        "documents": collection.count(),
        "dataBytes": collection.data_size(),
        "storageBytes": store.tree_bytes(collection.records()),
        "allBytes": bytes,
        "indexes": indexes,
        "strip": strip,
    })
}

/// Percentages of each part of the files.
struct Strips {
    /// By collection.
    owned: Vec<Vec<u8>>,
    free: Vec<u8>,
    total: u64,
    by_kind: BTreeMap<String, u64>,
}

impl Strips {
    fn of(map: &StorageMap, owners: &HashMap<TreeId, usize>, count: usize) -> Strips {
        // Files lie one after the other, by their names, without those of the log.
        let placed = || {
            map.regions
                .iter()
                .filter(|region| region.kind != RegionKind::Log)
        };
        let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
        for region in placed() {
            let end = ends.entry(&region.file).or_default();
            *end = (*end).max(region.offset.saturating_add(region.length));
        }
        let mut total = 0_u64;
        for end in ends.values_mut() {
            let length = *end;
            *end = total;
            total = total.saturating_add(length);
        }
        let mut owned = vec![[0.0; PARTS]; count];
        let mut free = [0.0; PARTS];
        let mut by_kind: HashMap<RegionKind, u64> = HashMap::new();
        for region in &map.regions {
            let bytes = by_kind.entry(region.kind).or_default();
            *bytes = bytes.saturating_add(region.length);
        }
        let by_kind = by_kind.into_iter();
        let by_kind = by_kind.map(|(kind, bytes)| (format!("{kind:?}").to_lowercase(), bytes));
        for region in placed() {
            let owner = region.tree.and_then(|tree| owners.get(&tree));
            let strip = match (region.kind, owner) {
                (RegionKind::Free, _) => Some(&mut free),
                (_, Some(owner)) => owned.get_mut(*owner),
                _ => None,
            };
            if let Some(strip) = strip {
                let begin = ends.get(region.file.as_str()).copied().unwrap_or(0);
                cover(strip, begin, region, total);
            }
        }
        Strips {
            owned: owned.iter().map(percent).collect(),
            free: percent(&free),
            total,
            by_kind: by_kind.collect(),
        }
    }
}

/// Add the share of each part that a region covers.
#[expect(clippy::cast_precision_loss, reason = "shares of a picture")]
fn cover(strip: &mut [f64; PARTS], begin: u64, region: &Region, total: u64) {
    let scale = PARTS as f64 / (total as f64).max(1.0);
    let from = begin.saturating_add(region.offset) as f64 * scale;
    let to = from + region.length as f64 * scale;
    // Most regions are smaller than a part.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float becomes the nearest number of a part"
    )]
    let (first, end) = (from as usize, to.ceil() as usize);
    let parts = strip.iter_mut().enumerate().take(end).skip(first);
    for (at, share) in parts {
        let (left, right) = (at as f64, at as f64 + 1.0);
        *share += (to.min(right) - from.max(left)).max(0.0);
    }
}

fn percent(strip: &[f64; PARTS]) -> Vec<u8> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 100"
    )]
    let percent = |share: &f64| (share.clamp(0.0, 1.0) * 100.0).round() as u8;
    strip.iter().map(percent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(offset: u64, length: u64, kind: RegionKind, tree: Option<TreeId>) -> Region {
        Region {
            file: "data".to_owned(),
            offset,
            length,
            kind,
            tree,
            level: 0,
            used: None,
        }
    }

    #[test]
    fn a_strip_has_the_share_of_each_part() {
        let part = 100;
        let end = part * PARTS as u64;
        let tree = TreeId(7);
        let map = StorageMap {
            regions: vec![
                region(0, 150, RegionKind::Data, Some(tree)),
                region(150, 50, RegionKind::Free, None),
                region(end - part, part, RegionKind::Meta, None),
                region(end, 9 * end, RegionKind::Log, None),
            ],
            offsets_are_real: true,
        };
        let strips = Strips::of(&map, &HashMap::from([(tree, 0)]), 1);
        assert_eq!(strips.total, end);
        assert_eq!(strips.owned[0][..3], [100, 50, 0]);
        assert_eq!(strips.free[..3], [0, 50, 0]);
        assert_eq!(strips.by_kind["data"], 150);
        assert_eq!(strips.by_kind["log"], 9 * end);
    }
}

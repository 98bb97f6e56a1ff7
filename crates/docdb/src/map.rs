//! Storage map of a collection: the regions of the engine's map that belong to it.

use bson::{Document, doc};
use kv::{Region, TreeId};
use query::{Namespace, Result};

use crate::store::Store;

/// Maximum number of regions listed per tree; further regions count in the sums only. A region
/// takes about 100 bytes of the reply.
const SHOWN: usize = 2_000;

impl Store {
    /// The storage map of a collection and its indexes: for each tree the bytes by kind and level,
    /// and its first regions.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `CommandNotSupportedOnView`; `CommandNotSupported` for engines without
    /// a storage map.
    pub fn collection_map(&self, ns: &Namespace) -> Result<Document> {
        let collection = self.existing(ns)?;
        let map = self.storage_map()?;
        let mut trees = Vec::new();
        for records in self.record_trees(&collection) {
            trees.push(tree(&map.regions, "collection", &ns.coll, records));
        }
        for index in collection.indexes() {
            trees.push(tree(&map.regions, "index", index.name(), index.tree()));
        }
        Ok(doc! {
            "ns": ns.to_string(),
            "engine": self.engine().name(),
            "offsetsAreReal": map.offsets_are_real,
            "trees": trees,
        })
    }
}

fn whole(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn kind(region: &Region) -> String {
    format!("{:?}", region.kind).to_lowercase()
}

fn tree(regions: &[Region], what: &str, name: &str, id: TreeId) -> Document {
    let own = || regions.iter().filter(|region| region.tree == Some(id));
    let mut sums = Document::new();
    for region in own() {
        let key = format!("{}.{}", kind(region), region.level);
        let before = sums.get_i64(&key).unwrap_or(0);
        sums.insert(key, before.saturating_add(whole(region.length)));
    }
    let shown: Vec<Document> = own().take(SHOWN).map(describe).collect();
    let count = own().count();
    doc! {
        "type": what,
        "name": name,
        "bytes": own().map(|region| whole(region.length)).sum::<i64>(),
        "bytesByKindAndLevel": sums,
        "regions": shown,
        "regionCount": i64::try_from(count).unwrap_or(i64::MAX),
        "truncated": SHOWN < count,
    }
}

fn describe(region: &Region) -> Document {
    let mut shown = doc! {
        "file": region.file.as_str(),
        "offset": whole(region.offset),
        "length": whole(region.length),
        "kind": kind(region),
        "level": i32::from(region.level),
    };
    if let Some(used) = region.used {
        shown.insert("used", f64::from(used));
    }
    shown
}

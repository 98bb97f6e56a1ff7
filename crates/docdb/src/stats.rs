//! Statistics of collections and databases for `collStats`, `dbStats` and `$indexStats`.

use bson::{Bson, Document, doc};
use kv::{StatScope, TreeId};
use query::{Namespace, Result};
use stdx::sync::atomic::Ordering;

use crate::collection::Collection;
use crate::error;
use crate::store::Store;
use crate::txn::Op;

/// Minimum size of a collection or an index, in bytes: an empty file of MongoDB has one page.
const PAGE: i64 = 4096;

/// Sizes that `scale` divides.
const SIZES: [&str; 13] = [
    "size",
    "storageSize",
    "freeStorageSize",
    "totalIndexSize",
    "totalSize",
    "dataSize",
    "indexSize",
    "fsUsedSize",
    "fsTotalSize",
    "freeStorage",
    "totalFreeStorageSize",
    "indexFreeStorageSize",
    "maxSize",
];

/// Convert the sizes in a result of [`Store::coll_stats`] or [`Store::db_stats`] to units of
/// `scale` bytes, rounded down.
pub fn scale_sizes(figures: &mut Document, scale: i64) {
    let scale = scale.max(1);
    for name in SIZES {
        scale_one(figures.get_mut(name), scale);
    }
    if let Ok(indexes) = figures.get_document_mut("indexSizes") {
        for (_, size) in indexes.iter_mut() {
            scale_one(Some(size), scale);
        }
    }
}

/// A count or size as `collStats` returns it: an int32 where it fits.
pub(crate) fn fitting(number: i64) -> Bson {
    match i32::try_from(number) {
        Ok(small) => Bson::Int32(small),
        Err(_) => Bson::Int64(number),
    }
}

/// A size as `dbStats` returns it.
#[expect(clippy::cast_precision_loss, reason = "a statistic for people")]
fn double(bytes: i64) -> f64 {
    bytes as f64
}

/// The numbers of `collStats` for a collection that is missing: MongoDB reports an empty one.
#[must_use]
pub fn missing_coll_stats() -> Document {
    doc! {
        "size": 0,
        "count": 0,
        "numOrphanDocs": 0,
        "storageSize": 0,
        "totalSize": 0,
        "nindexes": 0,
        "totalIndexSize": 0,
        "indexDetails": {},
        "indexSizes": {},
        "scaleFactor": 1,
    }
}

fn scale_one(size: Option<&mut Bson>, scale: i64) {
    match size {
        Some(size @ Bson::Int64(_)) => {
            let bytes = size.as_i64().unwrap_or(0);
            *size = fitting(bytes / scale);
        }
        Some(Bson::Int32(n)) => *n = i32::try_from(i64::from(*n) / scale).unwrap_or(0),
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        Some(Bson::Double(n)) => *n = (*n / scale as f64).trunc(),
        _ => {}
    }
}

impl Store {
    /// The `storageStats` of a collection, in bytes (`scale` 1).
    ///
    /// # Errors
    /// `NamespaceNotFound`, `CommandNotSupportedOnView`.
    pub fn coll_stats(&self, ns: &Namespace) -> Result<Document> {
        let collection = self.existing(ns)?;
        let (count, size) = (collection.count(), collection.data_size());
        let storage = self.record_bytes(&collection);
        let mut sizes = Document::new();
        let mut details = Document::new();
        let mut building = Vec::new();
        let mut total = 0;
        for index in collection.indexes() {
            let bytes = self.stored_bytes(index.tree());
            details.insert(index.name(), self.tree_figures(index.tree()));
            total += bytes;
            sizes.insert(index.name(), fitting(bytes));
            if !index.is_ready() {
                building.push(Bson::String(index.name().to_owned()));
            }
        }
        let mut out = doc! {
            "size": fitting(size),
            "count": fitting(count),
            "numOrphanDocs": 0,
            "storageSize": fitting(storage),
            "freeStorageSize": 0,
            "capped": collection.is_capped(),
            "nindexes": i32::try_from(collection.indexes().len()).unwrap_or(i32::MAX),
            "indexDetails": details,
            "indexBuilds": building,
            "totalIndexSize": fitting(total),
            "totalSize": fitting(storage + total),
            "indexSizes": sizes,
            "scaleFactor": 1,
        };
        if 0 < count {
            out.insert("avgObjSize", fitting(size / count));
        }
        if let [tree] = self.record_trees(&collection).as_slice() {
            out.insert(self.engine().name(), self.tree_figures(*tree));
        }
        if let Some(capped) = collection.options().capped {
            out.insert("maxSize", fitting(capped.size));
            out.insert("max", fitting(capped.max.unwrap_or(0)));
        }
        Ok(out)
    }

    /// The statistics of a database, in bytes; with `free_storage`, also its free storage, which is
    /// zero as far as engines report it.
    #[must_use]
    pub fn db_stats(&self, db: &str, free_storage: bool) -> Document {
        let catalog = self.catalog();
        let (mut collections, mut views, mut indexes) = (0_i64, 0_i64, 0_i64);
        let (mut objects, mut data, mut storage, mut index_size) = (0_i64, 0_i64, 0_i64, 0_i64);
        for (_, named) in catalog.in_database(db) {
            let Some(collection) = named.collection() else {
                views += 1;
                continue;
            };
            collections += 1;
            objects += collection.count();
            data += collection.data_size();
            storage += self.record_bytes(collection);
            for index in collection.indexes() {
                indexes += 1;
                index_size += self.stored_bytes(index.tree());
            }
        }
        let average = match objects {
            0 => 0.0,
            _ => double(data) / double(objects),
        };
        let mut out = doc! {
            "db": db,
            "collections": collections,
            "views": views,
            "objects": objects,
            "avgObjSize": average,
            "dataSize": double(data),
            "storageSize": double(storage),
            "indexes": indexes,
            "indexSize": double(index_size),
            "totalSize": double(storage + index_size),
            "scaleFactor": 1_i64,
        };
        if free_storage {
            out.insert("freeStorageSize", 0.0);
            out.insert("indexFreeStorageSize", 0.0);
            out.insert("totalFreeStorageSize", 0.0);
        }
        out
    }

    /// The rows of `$indexStats`.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `CommandNotSupportedOnView`.
    pub fn index_stats(&self, ns: &Namespace) -> Result<Vec<Document>> {
        let collection = self.existing(ns)?;
        let rows = collection.indexes().iter().map(|index| {
            let usage = index.usage();
            let count = usage.count.load(Ordering::Relaxed);
            let mut row = doc! {
                "name": index.name(),
                "key": index.spec().key.clone(),
                "accesses": {
                    "ops": i64::try_from(count).unwrap_or(i64::MAX),
                    "since": bson::DateTime::from_millis(usage.since),
                },
                "spec": index.spec().to_document(),
                self.engine().name(): self.tree_figures(index.tree()),
            };
            if !index.is_ready() {
                row.insert("building", true);
            }
            row
        });
        Ok(rows.collect())
    }

    /// Compact the trees of a collection; returns the number of bytes freed, as far as the engine
    /// reports it.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `CommandNotSupportedOnView`, `CommandNotSupported` for engines that
    /// cannot; `Interrupted`, `MaxTimeMSExpired`.
    pub fn compact(&self, op: &Op<'_>, ns: &Namespace) -> Result<i64> {
        let collection = self.existing(ns)?;
        let before = self.storage_size(&collection);
        let trees = collection.indexes().iter().map(|index| index.tree());
        for tree in self.record_trees(&collection).into_iter().chain(trees) {
            let mut watch = |_| match op.check() {
                Ok(()) => kv::Flow::Continue,
                Err(_) => kv::Flow::Cancel,
            };
            let done = self.engine().compact(tree, kv::KeyRange::ALL, &mut watch);
            done.map_err(error::engine)?;
            op.check()?;
        }
        Ok((before - self.storage_size(&collection)).max(0))
    }

    /// The storage map of the engine.
    ///
    /// # Errors
    /// `CommandNotSupported` for engines without a storage map.
    pub fn storage_map(&self) -> Result<kv::StorageMap> {
        self.engine().storage_map().map_err(error::engine)
    }

    /// The engine's statistics of one tree; those it does not report are left out.
    fn tree_figures(&self, tree: TreeId) -> Document {
        let Ok(stats) = self.engine().tree_stats(tree, StatScope::Quick) else {
            return Document::new();
        };
        let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let mut figures = doc! {
            "entries": whole(stats.entries.value),
            "entriesAreExact": stats.entries.exact,
        };
        for (name, n) in [
            ("liveBytes", stats.live_bytes),
            ("allocatedBytes", stats.allocated_bytes),
            ("pages", stats.pages),
            ("depth", stats.depth.map(u64::from)),
            ("splits", stats.splits),
            ("merges", stats.merges),
        ] {
            if let Some(n) = n {
                figures.insert(name, whole(n));
            }
        }
        if let Some(fill) = stats.mean_fill {
            figures.insert("meanFill", fill);
        }
        figures
    }

    /// The bytes that the documents and indexes of a database take, as far as the engine reports
    /// them.
    #[must_use]
    pub fn database_size(&self, db: &str) -> i64 {
        let catalog = self.catalog();
        let collections = catalog
            .in_database(db)
            .filter_map(|(_, named)| named.collection());
        collections
            .map(|collection| self.storage_size(collection))
            .sum()
    }

    /// The bytes that a collection's documents and indexes take.
    pub(crate) fn storage_size(&self, collection: &Collection) -> i64 {
        let indexes = collection
            .indexes()
            .iter()
            .map(|i| self.stored_bytes(i.tree()));
        self.record_bytes(collection) + indexes.sum::<i64>()
    }

    fn record_bytes(&self, collection: &Collection) -> i64 {
        let trees = self.record_trees(collection).into_iter();
        trees.map(|tree| self.stored_bytes(tree)).sum()
    }

    /// The bytes of [`Store::tree_bytes`], but at least one page: an engine that has not yet
    /// written a tree to its file holds it in memory.
    fn stored_bytes(&self, tree: TreeId) -> i64 {
        self.tree_bytes(tree).max(PAGE)
    }

    /// The bytes that a tree takes in files, or its live bytes if the engine reports no file size;
    /// 0 if it reports neither.
    #[must_use]
    pub fn tree_bytes(&self, tree: TreeId) -> i64 {
        let stats = self.engine().tree_stats(tree, StatScope::Quick);
        // An engine that reports nothing counts as zero. Data not yet in the files is counted only
        // among the live bytes.
        let bytes = stats.ok().map(|stats| match stats.allocated_bytes {
            None | Some(0) => stats.live_bytes.unwrap_or(0),
            Some(allocated) => allocated,
        });
        let bytes = bytes.unwrap_or(0);
        i64::try_from(bytes).unwrap_or(i64::MAX)
    }
}

//! The collection of the catalog that shows the oplog (see `oplog::collection`).

use std::sync::Arc;

use kv::TreeId;

use crate::collection::{Capped, Collection, CollectionOptions};
use crate::oplog::namespace;
use crate::store::Store;

impl Store {
    /// The collection, with the present limit of its size; `None` without an oplog.
    pub(crate) fn oplog_collection(&self) -> Option<Arc<Collection>> {
        let oplog = self.oplog()?;
        let bytes = oplog.segments().limits.bytes;
        let options = CollectionOptions {
            capped: Some(Capped {
                size: i64::try_from(bytes).unwrap_or(i64::MAX),
                max: None,
            }),
            auto_index_id: Some(false),
            ..CollectionOptions::default()
        };
        let core = Arc::clone(oplog.core());
        let collection = Collection::new(namespace(), options, Vec::new(), core, None);
        Some(Arc::new(collection))
    }

    /// The trees of a collection's documents: one, or the segments of the oplog.
    #[must_use]
    pub fn record_trees(&self, collection: &Collection) -> Vec<TreeId> {
        match self.oplog() {
            Some(oplog) if collection.is_oplog() => {
                let segments = oplog.segments();
                let trees = segments.all().iter().map(|placed| placed.segment.tree());
                trees.collect()
            }
            _ => vec![collection.records()],
        }
    }
}

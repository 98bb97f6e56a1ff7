//! Building indexes while the collection is written.
//!
//! 1. The index is put into the catalog, not ready: from here on writers put and take away the
//!    entries of what they change, and note which documents that are.
//! 2. The documents are read, and their entries sorted.
//! 3. The entries are put in order, portion by portion; for each portion the latch is held alone,
//!    so that nobody's uncommitted change is missed. Between portions writers go on.
//! 4. The index is marked ready.
//!
//! A build that fails takes its index out of the catalog again. One that a crash ended is found not
//! ready at the next opening, and begun anew.

mod load;
mod scan;
mod sorter;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kv::Durability;
use query::{Code, Error, Namespace, Result};

use super::indexes::compare;
use crate::catalog::Stored;
use crate::collection::Collection;
use crate::error;
use crate::index::{Index, IndexSpec};
use crate::op::Op;
use crate::store::Store;

impl Store {
    /// Build the indexes that are not there yet.
    pub(super) fn build_indexes(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        wanted: &[IndexSpec],
    ) -> Result<()> {
        let begun = self.begin_builds(op, ns, wanted)?;
        if begun.is_empty() {
            return Ok(());
        }
        let done = self
            .fill(op, ns, &begun)
            .and_then(|()| self.end_builds(ns, &begun));
        let Err(error) = done else {
            return Ok(());
        };
        let collection = self.collection(ns);
        self.abort_builds(ns, &begun)?;
        Err(match collection {
            // The build itself says what it lacks when the collection is gone.
            Some(collection) if error.code != Code::INDEX_BUILD_ABORTED => {
                let (build, of) = (bson::Uuid::new(), collection.uuid());
                error.within(format_args!(
                    "Index build failed: {build}: Collection {ns} ( {of} )"
                ))
            }
            _ => error,
        })
    }

    /// Step 1.
    fn begin_builds(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        wanted: &[IndexSpec],
    ) -> Result<Vec<Arc<Index>>> {
        let mut change = self.begin_change(op, ns)?;
        let mut begun: Vec<Arc<Index>> = Vec::new();
        for spec in wanted {
            let twice = begun.iter().any(|i| i.spec() == spec);
            if twice || !compare(&change.collection, spec)? {
                continue;
            }
            let index = self.new_index(&mut change.stored, spec.clone(), false)?;
            begun.push(Arc::new(index));
        }
        if begun.is_empty() {
            return Ok(begun);
        }
        let mut indexes = change.indexes();
        indexes.extend(begun.iter().cloned());
        change.finish(indexes)?;
        Ok(begun)
    }

    /// Steps 2 and 3.
    fn fill(&self, op: &Op<'_>, ns: &Namespace, indexes: &[Arc<Index>]) -> Result<()> {
        let found = self.find_entries(op, ns, indexes);
        let filled = found.and_then(|found| self.put_found(op, ns, indexes, found));
        op.end_stages();
        match filled {
            // Trees that were dropped while they were read.
            Err(e) => self.building(ns, indexes).and(Err(e)),
            filled => filled,
        }
    }

    /// The collection, if the indexes are still to be built.
    fn building(&self, ns: &Namespace, indexes: &[Arc<Index>]) -> Result<Arc<Collection>> {
        let collection = self.collection(ns);
        let there = |c: &Arc<Collection>| {
            indexes
                .iter()
                .all(|i| c.indexes().iter().any(|j| Arc::ptr_eq(i, j)))
        };
        collection.filter(there).ok_or_else(|| {
            Error::new(
                Code::INDEX_BUILD_ABORTED,
                format!("Index build failed: the collection or the index of {ns} was dropped"),
            )
        })
    }

    /// Step 4.
    fn end_builds(&self, ns: &Namespace, built: &[Arc<Index>]) -> Result<()> {
        let op = Op::new(Durability::Group);
        let mut change = self.begin_change(&op, ns)?;
        self.building(ns, built)?;
        for index in &mut change.stored.indexes {
            index.ready |= built.iter().any(|b| b.number() == index.number);
        }
        // Documents of the build must not be lost when the mark is not.
        self.engine().sync_log().map_err(error::engine)?;
        for index in built {
            index.set_ready();
        }
        change.finish(change.indexes()).map(|_| ())
    }

    /// Take indexes whose build failed out of the catalog.
    fn abort_builds(&self, ns: &Namespace, begun: &[Arc<Index>]) -> Result<()> {
        let op = Op::new(Durability::Group);
        let mut change = match self.begin_change(&op, ns) {
            Ok(change) => change,
            // The collection was dropped: its indexes with it.
            Err(e) if e.code == Code::NAMESPACE_NOT_FOUND => return Ok(()),
            Err(e) => return Err(e),
        };
        let gone = |number: u32| begun.iter().any(|i| i.number() == number);
        change.stored.indexes.retain(|i| !gone(i.number));
        let uuid = change.stored.uuid.unwrap_or_default();
        let mut indexes = change.indexes();
        indexes.retain(|i| !gone(i.number()));
        change.finish(indexes)?;
        drop(change);
        let tree = |index: &Arc<Index>| Stored::index_tree(&uuid, index.number());
        self.drop_named(begun.iter().map(tree));
        Ok(())
    }

    /// Begin anew the builds that a crash ended. An index that cannot be built is dropped.
    pub(crate) fn resume_builds(&self) -> Result<()> {
        let op = Op::new(Durability::Group);
        let all: Vec<Arc<Collection>> = self
            .catalog()
            .iter()
            .filter_map(|(_, named)| named.collection().cloned())
            .collect();
        for collection in all {
            let unready = |i: &&Arc<Index>| !i.is_ready();
            let begun: Vec<Arc<Index>> = collection
                .indexes()
                .iter()
                .filter(unready)
                .cloned()
                .collect();
            if begun.is_empty() {
                continue;
            }
            let specs: Vec<IndexSpec> = begun.iter().map(|i| i.spec().clone()).collect();
            self.abort_builds(collection.ns(), &begun)?;
            match self.build_indexes(&op, collection.ns(), &specs) {
                Ok(()) => {}
                // Documents that cannot be indexed: nobody waits for this build any more, and the
                // index is not there, as if it had failed before the crash.
                Err(e) if !crate::write::is_fatal(&e) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

//! Building indexes while the collection is written.
//!
//! 1. The index is put into the catalog, not ready: from here on writers keep it up to date.
//! 2. The documents are gone through in portions. For each portion the latch is held alone, so that
//!    nobody's uncommitted change is missed; between portions writers go on. Putting an entry that
//!    a writer has put already changes nothing.
//! 3. The index is marked ready.
//!
//! A build that fails takes its index out of the catalog again. One that a crash ended is found not
//! ready at the next opening, and begun anew.

use std::sync::Arc;

use bson::RawDocument;
use kv::{Direction, Durability, KeyRange};
use query::{Code, Error, Namespace, Result};

use super::indexes::compare;
use crate::catalog::Stored;
use crate::collection::Collection;
use crate::error;
use crate::index::{Index, IndexSpec, KeySet};
use crate::op::Op;
use crate::store::Store;
use crate::work::Work;
use crate::write::duplicate;

/// Documents of a portion: some milliseconds of work, for which writers wait.
const PORTION: usize = 256;

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
        if done.is_err() {
            self.abort_builds(ns, &begun)?;
        }
        done
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

    /// Step 2.
    fn fill(&self, op: &Op<'_>, ns: &Namespace, indexes: &[Arc<Index>]) -> Result<()> {
        let mut position: Option<Vec<u8>> = None;
        loop {
            op.check()?;
            let collection = self.building(ns, indexes)?;
            let _alone = self.hold(op, &collection)?;
            let mut work = Work::new(self, op.ends());
            let next = portion(&mut work, &collection, indexes, position.as_deref())?;
            work.commit(Durability::Interval)?;
            match next {
                None => return Ok(()),
                next => position = next,
            }
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

    /// Step 3.
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

/// Put the entries of the next documents; gives the key of the last one, or `None` at the end.
fn portion(
    work: &mut Work<'_>,
    collection: &Collection,
    indexes: &[Arc<Index>],
    after: Option<&[u8]>,
) -> Result<Option<Vec<u8>>> {
    let mut documents: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(PORTION);
    {
        let range = KeyRange {
            start: after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded),
            end: std::ops::Bound::Unbounded,
        };
        let snapshot = work.snapshot()?;
        let cursor = snapshot.cursor(collection.records(), range, Direction::Forward);
        let mut cursor = cursor.map_err(error::engine)?;
        while documents.len() < PORTION && cursor.advance().map_err(error::engine)? {
            documents.push((cursor.key().to_vec(), cursor.value().to_vec()));
        }
    }
    let mut keys = KeySet::new();
    for (key, bytes) in &documents {
        let record = collection.record(key)?;
        let document = RawDocument::from_bytes(bytes)?;
        for index in indexes {
            index.maker().keys(document, &mut keys)?;
            work.learn(collection, index, keys.multikey())?;
            for key in keys.keys() {
                if !index.unique() {
                    work.put_entry(index, key, &record)?;
                    continue;
                }
                let mut value = Vec::new();
                let found = work
                    .snapshot()?
                    .get_into(index.tree(), key.bytes, &mut value);
                if !found.map_err(error::engine)? {
                    work.insert_unique(collection, index, key, &record)?;
                    continue;
                }
                let entry = index.read_entry(key.bytes, &value);
                let entry = entry.ok_or_else(|| collection.corrupt_index(index))?;
                if entry.record != record {
                    return Err(duplicate(collection, index, key));
                }
            }
        }
    }
    let full = documents.len() == PORTION;
    Ok(documents.pop().map(|(key, _)| key).filter(|_| full))
}

#[cfg(test)]
mod tests {
    use bson::doc;
    use kv::EngineOptions;

    use super::*;
    use crate::store::Options;
    use crate::write::InsertOptions;

    #[test]
    fn a_build_that_a_crash_ended_is_done_at_the_next_opening() {
        let directory = tempfile::tempdir().unwrap();
        let open = || {
            let path = directory.path().join("store");
            let engine = kv_betree::factory()
                .open(&path, &EngineOptions::default())
                .unwrap();
            Store::open(Arc::from(engine), Options::default()).unwrap()
        };
        let (ns, op) = (
            Namespace::new("d", "c").unwrap(),
            Op::new(Durability::Group),
        );
        let store = open();
        let put = |store: &Store, id: i32| {
            let raw = bson::RawDocumentBuf::try_from(&doc! { "_id": id, "a": id }).unwrap();
            store
                .insert(&op, &ns, &[&raw], InsertOptions::default())
                .unwrap();
        };
        (0..300).for_each(|id| put(&store, id));
        let spec = IndexSpec::parse(&doc! { "key": { "a": 1 }, "unique": true }).unwrap();
        let begun = store.begin_builds(&op, &ns, &[spec]).unwrap();
        {
            // One portion of two, and a writer who keeps the index up to date.
            let collection = store.collection(&ns).unwrap();
            let mut work = Work::new(&store, op.ends());
            let next = portion(&mut work, &collection, &begun, None).unwrap();
            assert!(next.is_some());
            work.commit(Durability::Group).unwrap();
        }
        put(&store, 300);
        assert!(
            !store
                .collection(&ns)
                .unwrap()
                .index("a_1")
                .unwrap()
                .usable()
        );
        drop(begun);
        drop(store);
        let store = open();
        assert!(
            store
                .collection(&ns)
                .unwrap()
                .index("a_1")
                .unwrap()
                .usable()
        );
        let report = store.validate(&op, &ns).unwrap();
        assert!(report.get_bool("valid").unwrap(), "{report}");
        assert_eq!(
            report
                .get_document("keysPerIndex")
                .unwrap()
                .get_i64("a_1")
                .unwrap(),
            301
        );
    }
}

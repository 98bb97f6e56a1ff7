//! Online index builds: the collection can be written during the build.
//!
//! 1. The indexes are added to the catalog, not ready: from here on writers add and remove the
//!    index entries of the documents they change, and record which documents these are.
//! 2. The documents are read, and their index entries sorted.
//! 3. The entries are inserted in key order, in portions. Each portion holds the latch exclusively,
//!    so that no uncommitted change is missed. Writers run between portions.
//! 4. The catalog is switched to the ready state of the indexes.
//!
//! A failed build removes its indexes from the catalog. A build interrupted by a crash is found not
//! ready when the store is next opened, and restarted.
//!
//! - B1. Before each step the builder checks that the collection with its UUID still has the
//!   indexes of its build (see `index::build`), and modifies no others: the name may by now belong
//!   to another collection.
//! - B2. Commands that would replace or remove the collection during a build are either rejected
//!   (`collMod`, `renameCollection`, `convertToCapped`:
//!   `BackgroundOperationInProgressForNamespace`) or abort the build (`drop`, `dropDatabase`,
//!   `dropIndexes`: `IndexBuildAborted`).
//! - B3. An operation that requests an index that another operation is building waits for that
//!   build without holding a lock and shares its outcome. If that builder's operation itself was
//!   ended, the waiting operation builds the index.

mod load;
mod scan;
mod sorter;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kv::Durability;
use query::{Error, Namespace, Result};

use super::change::Change;
use super::indexes::{Standing, compare, count};
use crate::catalog::Stored;
use crate::collection::Collection;
use crate::error;
use crate::index::{Build, Index, IndexSpec, Outcome};
use crate::oplog::{Noted, NotedBuild};
use crate::stop::{Point, reach};
use crate::store::Store;
use crate::txn::Op;

/// The builder's state of a build in progress.
struct Begun {
    /// The name of the collection, which cannot change during the build (B2).
    ns: Namespace,
    /// The UUID of the collection.
    collection: bson::Uuid,
    build: Arc<Build>,
    /// The indexes' state from the start to the end of the build.
    indexes: Vec<Arc<Index>>,
    /// The number of indexes before, as users see it.
    before: i32,
    /// The build in the oplog.
    noted: NotedBuild,
}

/// The action for the requested indexes.
enum Beginning {
    /// All indexes exist and are ready. Holds the number of indexes.
    There(i32),
    /// Wait for another operation's build.
    Elsewhere(Arc<Build>),
    /// Build them.
    Here(Begun),
}

impl Begun {
    /// Whether an index belongs to this build (U1).
    fn owns(&self, index: &Index) -> bool {
        let id = self.build.id();
        index.build().is_some_and(|build| build.id() == id)
    }

    /// Check that a collection still has the indexes that are built.
    ///
    /// # Errors
    /// `IndexBuildAborted`.
    fn check(&self, collection: Option<&Collection>) -> Result<()> {
        let aborted = |why: &str| Err(error::index_build_aborted(why));
        let Some(collection) = collection.filter(|c| c.uuid() == self.collection) else {
            return aborted("collection dropped");
        };
        let there = collection.indexes().iter().filter(|i| self.owns(i)).count();
        if there < self.indexes.len() {
            return aborted("dropIndexes command");
        }
        Ok(())
    }

    /// The error with MongoDB's description of the failed build.
    fn failed(&self, error: Error) -> Error {
        error.within(format_args!(
            "Index build failed: {}: Collection {} ( {} )",
            self.build.id(),
            self.ns,
            self.collection
        ))
    }
}

/// Ends the build when the builder ends, also by a panic: waiters are woken.
struct Gone<'b>(&'b Build);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.end(Outcome::GivenUp);
    }
}

impl Store {
    /// Build the indexes that do not exist yet, or wait for the operations that build them; returns
    /// the number of indexes before.
    pub(super) fn build_indexes(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        wanted: &[IndexSpec],
    ) -> Result<i32> {
        loop {
            match self.begin_builds(op, ns, wanted)? {
                Beginning::There(count) => return Ok(count),
                Beginning::Here(begun) => return self.run(op, &begun).map(|()| begun.before),
                Beginning::Elsewhere(build) => {
                    reach(Point::Waits);
                    if let Outcome::Failed(error) = build.wait(&|| self.check_open(op))? {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Step 1: add the indexes to the catalog, not ready.
    fn begin_builds(&self, op: &Op<'_>, ns: &Namespace, wanted: &[IndexSpec]) -> Result<Beginning> {
        let mut change = self.begin_change(op, ns)?;
        let (mut fresh, mut elsewhere) = (Vec::new(), None);
        for spec in wanted {
            match compare(&change.collection, &fresh, spec)? {
                Standing::Missing => fresh.push(spec),
                Standing::Built(build) => elsewhere = Some(build),
                Standing::There => {}
            }
        }
        if let Some(build) = elsewhere {
            return Ok(Beginning::Elsewhere(build));
        }
        if fresh.is_empty() {
            return Ok(Beginning::There(count(&change.collection)));
        }
        let left: Vec<Arc<Index>> = change
            .indexes()
            .into_iter()
            .filter(|i| i.is_left())
            .collect();
        let mut indexes = change.without(&left);
        let before = count(&change.collection) - i32::try_from(left.len()).unwrap_or(0);
        let build = Arc::new(Build::new());
        let mut begun = Vec::new();
        for spec in fresh {
            let index = self.new_index(&mut change.stored, spec.clone(), false)?;
            begun.push(Arc::new(index.within(&build)));
        }
        indexes.extend(begun.iter().cloned());
        let specs = begun.iter().map(|index| index.spec());
        let of = (ns.coll.as_str(), change.collection.options());
        let noted = NotedBuild::new(of, build.id(), specs)?;
        change.finish(indexes, &noted.begun()?)?;
        let begun = Begun {
            ns: ns.clone(),
            collection: change.collection.uuid(),
            build,
            indexes: begun,
            before,
            noted,
        };
        self.end_without(change, &left);
        Ok(Beginning::Here(begun))
    }

    /// Steps 2 to 4.
    fn run(&self, op: &Op<'_>, begun: &Begun) -> Result<()> {
        let _gone = Gone(&begun.build);
        reach(Point::Begun);
        let done = self.fill(op, begun).and_then(|()| self.end_builds(begun));
        let Err(error) = done else {
            begun.build.end(Outcome::Ready);
            return Ok(());
        };
        // The operation has failed in any case. Indexes that cannot be removed from the catalog now
        // are removed by the next build, or built at the next opening.
        drop(self.abort_builds(begun, &error));
        let own = op.check().is_err_and(|end| end.code == error.code);
        let error = begun.failed(error);
        begun.build.end(match own {
            true => Outcome::GivenUp,
            false => Outcome::Failed(error.clone()),
        });
        Err(error)
    }

    /// Steps 2 and 3: read the documents and insert their entries.
    fn fill(&self, op: &Op<'_>, begun: &Begun) -> Result<()> {
        let found = self.find_entries(op, begun);
        let filled = found.and_then(|found| self.put_found(op, begun, found));
        op.end_stages();
        match filled {
            // Trees may have been dropped while they were read: report the aborted build instead.
            Err(e) => self.building(begun).and(Err(e)),
            filled => filled,
        }
    }

    /// The collection, if its indexes are still to be built (B1).
    fn building(&self, begun: &Begun) -> Result<Arc<Collection>> {
        let collection = self.collection(&begun.ns);
        begun.check(collection.as_deref())?;
        collection.ok_or_else(|| error::corrupt("a collection that was checked is not there"))
    }

    /// Step 4: mark the indexes as ready.
    fn end_builds(&self, begun: &Begun) -> Result<()> {
        let op = Op::new(Durability::Group);
        self.building(begun)?;
        let mut change = match self.begin_change(&op, &begun.ns) {
            Ok(change) => change,
            // The collection may have been dropped while this waited for the latch.
            Err(e) => return self.building(begun).and(Err(e)),
        };
        begun.check(Some(&change.collection))?;
        let mut indexes = Vec::new();
        for index in change.indexes() {
            indexes.push(match begun.owns(&index) {
                true => change.next_state(&index, index.spec().clone(), true)?,
                false => index,
            });
        }
        // Make the build's entries durable before the mark that the indexes are ready.
        self.engine().sync_log().map_err(error::engine)?;
        change
            .finish(indexes, &begun.noted.committed()?)
            .map(|_| ())
    }

    /// Remove the indexes of a failed build from the catalog.
    fn abort_builds(&self, begun: &Begun, cause: &Error) -> Result<()> {
        let op = Op::new(Durability::Group);
        let of = (&begun.ns, begun.collection);
        let noted = begun.noted.aborted(cause)?;
        self.take_out(&op, of, (&|index| begun.owns(index), &noted))
    }

    /// Remove indexes of a collection, identified by name and UUID, from the catalog, if the
    /// collection exists.
    fn take_out(
        &self,
        op: &Op<'_>,
        (ns, uuid): (&Namespace, bson::Uuid),
        (gone, noted): (&dyn Fn(&Index) -> bool, &Noted),
    ) -> Result<()> {
        let is_there = || self.collection(ns).is_some_and(|c| c.uuid() == uuid);
        if !is_there() {
            return Ok(());
        }
        let mut change = match self.begin_change(op, ns) {
            Err(e) if is_there() => return Err(e),
            Err(_) => return Ok(()),
            Ok(change) => change,
        };
        let gone: Vec<Arc<Index>> = change.indexes().into_iter().filter(|i| gone(i)).collect();
        if change.collection.uuid() != uuid || gone.is_empty() {
            return Ok(());
        }
        let indexes = change.without(&gone);
        change.finish(indexes, noted)?;
        self.end_without(change, &gone);
        Ok(())
    }

    /// Finish a change that removed indexes from the catalog: drop their trees, but those that an
    /// undo record keeps.
    pub(super) fn end_without(&self, change: Change<'_>, gone: &[Arc<Index>]) {
        let uuid = change.stored.uuid.unwrap_or_default();
        let retains = self.retains(change.collection.ns());
        drop(change);
        let gone = gone.iter().filter(|index| !(retains && index.is_ready()));
        let mut names = gone.map(|index| Stored::index_tree(&uuid, index.number()));
        if let Some(first) = names.next() {
            self.drop_named([first].into_iter().chain(names));
        }
    }

    /// Restart the builds that a crash interrupted. An index that cannot be built is dropped.
    pub(crate) fn resume_builds(&self) -> Result<()> {
        let op = Op::new(Durability::Group);
        let all: Vec<Arc<Collection>> = self
            .catalog()
            .iter()
            .filter_map(|(_, named)| named.collection().cloned())
            .collect();
        for collection in all {
            let unready = collection.indexes().iter().filter(|i| !i.is_ready());
            let specs: Vec<IndexSpec> = unready.map(|i| i.spec().clone()).collect();
            if specs.is_empty() {
                continue;
            }
            if self.is_follower() {
                // The entry that ends the build is not applied: that builds them again.
                self.remove_left(&op, &collection)?;
                continue;
            }
            // The change that adds the new indexes to the catalog removes the old ones.
            match self.build_indexes(&op, collection.ns(), &specs) {
                Ok(_) => {}
                // Some documents cannot be indexed: no client waits for this build, and the index
                // does not exist, as if its build had failed before the crash.
                Err(e) if !error::is_fatal(&e) => self.remove_left(&op, &collection)?,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Remove the indexes that ended builds have left.
    fn remove_left(&self, op: &Op<'_>, collection: &Collection) -> Result<()> {
        let of = (collection.ns(), collection.uuid());
        let left = |index: &Index| index.is_left();
        // Their build has an entry of its begin only: it ended with the crash.
        self.take_out(op, of, (&left, &Noted::nothing()))
    }
}

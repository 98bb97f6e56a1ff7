//! A schema change of one collection, from taking its locks to swapping the catalog.

use std::sync::Arc;
use std::time::Duration;

use kv::Durability;
use query::{Code, Error, Namespace, Result};

use crate::catalog::{Named, Stored, StoredIndex};
use crate::collection::{Alone, Collection, CollectionOptions};
use crate::error;
use crate::index::{Index, IndexSpec};
use crate::oplog::entry::OpTime;
use crate::oplog::{Formers, Kept, Noted, Pending, Undo, before_each, replayed};
use crate::stop::{Point, reach};
use crate::store::{Store, not_found};
use crate::txn::{Changes, Op};

/// Maximum wait for a second latch while holding the first.
const TURN: Duration = Duration::from_millis(50);

/// Pause after giving up, in which others can take both latches.
const PAUSE: Duration = Duration::from_millis(5);

/// A change in progress (D1).
pub(super) struct Change<'s> {
    pub(super) store: &'s Store,
    pub(super) collection: Arc<Collection>,
    pub(super) stored: Stored,
    _alone: Alone,
    _changes: Changes<'s>,
}

impl Store {
    /// Begin a change of a collection.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `CommandNotSupportedOnView`; the operation must end.
    pub(super) fn begin_change(&self, op: &Op<'_>, ns: &Namespace) -> Result<Change<'_>> {
        op.check()?;
        outside(op)?;
        loop {
            let found = self.existing(ns)?;
            let alone = self.hold(op, &found)?;
            let changes = self.changes(op)?;
            if let Some(change) = self.change_under(ns, &found, alone, changes)? {
                return Ok(change);
            }
        }
    }

    /// A change of a collection whose latch the caller holds; `None` if the name now belongs to
    /// another collection.
    pub(super) fn change_under<'s>(
        &'s self,
        ns: &Namespace,
        found: &Collection,
        alone: Alone,
        changes: Changes<'s>,
    ) -> Result<Option<Change<'s>>> {
        let collection = self.existing(ns)?;
        collection.check_changeable()?;
        if !is_same(&collection, found) {
            return Ok(None);
        }
        let stored = self.get_stored(ns)?.ok_or_else(|| not_found(ns))?;
        Ok(Some(Change {
            store: self,
            collection,
            stored,
            _alone: alone,
            _changes: changes,
        }))
    }

    /// Take the latch of a collection exclusively.
    ///
    /// # Errors
    /// The operation was killed or its time limit is exceeded.
    pub(crate) fn hold(&self, op: &Op<'_>, collection: &Collection) -> Result<Alone> {
        let check = || self.check_open(op);
        // Announce that this operation wants the latch next.
        let _wish = self.turns().wish();
        loop {
            if let Some(alone) = collection.core().latch.alone(None, &check)? {
                return Ok(alone);
            }
        }
    }

    /// Take the latches of two collections exclusively (D3).
    ///
    /// # Errors
    /// The operation was killed or its time limit is exceeded.
    pub(super) fn hold_both(
        &self,
        op: &Op<'_>,
        first: &Collection,
        second: &Collection,
    ) -> Result<(Alone, Alone)> {
        let check = || self.check_open(op);
        let _wish = self.turns().wish();
        loop {
            let one = self.hold(op, first)?;
            if let Some(two) = second.core().latch.alone(Some(TURN), &check)? {
                return Ok((one, two));
            }
            // The holder of the second latch may wait for the first: release the first before
            // retrying.
            drop(one);
            stdx::time::sleep(PAUSE);
        }
    }
}

/// Whether two states belong to the same collection.
pub(super) fn is_same(a: &Collection, b: &Collection) -> bool {
    a.core().uuid == b.core().uuid
}

impl Change<'_> {
    /// Write the stored form with its oplog entries, and swap the catalog.
    pub(super) fn finish(
        &self,
        indexes: Vec<Arc<Index>>,
        noted: &Noted,
    ) -> Result<Arc<Collection>> {
        self.store.put_stored(&self.stored, noted)?;
        reach(Point::Marked);
        self.publish(self.stored.ns.clone(), self.stored.options.clone(), indexes)
    }

    /// Swap the catalog.
    pub(super) fn publish(
        &self,
        ns: Namespace,
        options: CollectionOptions,
        indexes: Vec<Arc<Index>>,
    ) -> Result<Arc<Collection>> {
        let core = Arc::clone(self.collection.core());
        let made = Arc::new(self.store.assemble(ns.clone(), options, indexes, core)?);
        let named = Named::Collection(Arc::clone(&made));
        let mut next = (*self.store.catalog()).clone();
        if *self.collection.ns() != ns {
            next = next.without(self.collection.ns());
        }
        self.store.set_catalog(next.with(ns, named));
        Ok(made)
    }

    /// The current indexes.
    pub(super) fn indexes(&self) -> Vec<Arc<Index>> {
        self.collection.indexes().to_vec()
    }

    /// Remove indexes from the stored form and return the remaining ones. Call
    /// [`Store::end_without`] after [`Change::finish`].
    pub(super) fn without(&mut self, gone: &[Arc<Index>]) -> Vec<Arc<Index>> {
        let is_gone = |number: u32| gone.iter().any(|i| i.number() == number);
        self.stored.indexes.retain(|i| !is_gone(i.number));
        let mut indexes = self.indexes();
        indexes.retain(|i| !is_gone(i.number()));
        indexes
    }

    /// Make the next state of an index, and update the stored form.
    pub(super) fn next_state(
        &mut self,
        index: &Index,
        spec: IndexSpec,
        ready: bool,
    ) -> Result<Arc<Index>> {
        let number = index.number();
        let next = StoredIndex {
            spec,
            number,
            ready,
        };
        let options = &self.stored.options;
        let made = self
            .store
            .index(next.clone(), index.tree(), options, Vec::new())?;
        for stored in self.stored.indexes.iter_mut() {
            if stored.number == number {
                stored.clone_from(&next);
            }
        }
        Ok(Arc::new(made.after(index)))
    }

    /// Check that no index of the collection is being built: a build relies on the collection's
    /// name and on the state of its indexes.
    ///
    /// # Errors
    /// `BackgroundOperationInProgressForNamespace`.
    pub(super) fn check_no_build(&self) -> Result<()> {
        self.collection.check_no_build()
    }
}

impl Collection {
    /// Check that none of its indexes is being built.
    ///
    /// # Errors
    /// `BackgroundOperationInProgressForNamespace`.
    pub fn check_no_build(&self) -> Result<()> {
        let mut indexes = self.indexes().iter();
        if !indexes.any(|index| index.build_under_way().is_some()) {
            return Ok(());
        }
        Err(Error::new(
            Code::BACKGROUND_OPERATION_IN_PROGRESS_FOR_NAMESPACE,
            format!(
                "cannot perform operation: an index build is currently running for collection \
                 with UUID: {}",
                self.uuid()
            ),
        ))
    }
}

/// Check that the operation is not in a multi-document transaction, where changes are not
/// supported.
pub(super) fn outside(op: &Op<'_>) -> Result<()> {
    match op.transaction {
        None => Ok(()),
        Some(_) => Err(Error::new(
            Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
            "Cannot change collections or indexes in a multi-document transaction.",
        )),
    }
}

impl Store {
    /// Commit a change of the catalog with its oplog entries. `uuid` is that of the collection, if
    /// it is one; `formers` are what [`Store::formers`] has returned before the transaction.
    pub(super) fn commit_change(
        &self,
        mut txn: Box<dyn kv::Transaction + '_>,
        (ns, uuid): (&Namespace, Option<[u8; 16]>),
        (noted, formers): (&Noted, &Formers),
    ) -> Result<()> {
        let formers = match formers.is_empty() {
            true => Vec::new(),
            false => before_each(noted, formers)?,
        };
        if let Some(at) = replayed() {
            return self.commit_replayed(txn, at, (noted, formers));
        }
        let mut reserved = None;
        if let Some(oplog) = self.oplog() {
            let mut pending = Pending::default();
            noted.add_to(
                &mut pending,
                (ns, uuid.map(bson::Uuid::from_bytes)),
                formers,
            );
            reserved = oplog.put(txn.as_mut(), &pending)?;
        }
        let done = txn.commit(Durability::Group).map_err(error::engine);
        if let Some(reserved) = reserved {
            reserved.end(done.is_ok());
        }
        done
    }

    /// Commit a change of the catalog that the entry at a position has: with the mark that it is
    /// applied, if the change completes it.
    fn commit_replayed(
        &self,
        mut txn: Box<dyn kv::Transaction + '_>,
        at: OpTime,
        (noted, mut formers): (&Noted, Vec<Kept>),
    ) -> Result<()> {
        let completes = noted.completes();
        let undo = self.oplog().and_then(|oplog| oplog.undo().kept());
        if let (Some(tree), Some(catalog), true) = (undo, formers.pop(), completes) {
            let undo = Undo {
                catalog,
                ..Undo::default()
            };
            undo.put(txn.as_mut(), (tree, at.ts))?;
        }
        let advance = match completes {
            true => self.put_applied(txn.as_mut(), at)?,
            false => None,
        };
        txn.commit(Durability::Group).map_err(error::engine)?;
        if let Some(advance) = advance {
            advance.to(at);
        }
        Ok(())
    }
}

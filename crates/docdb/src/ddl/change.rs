//! A change of one collection, from its locks to the swap of the catalog.

use std::sync::Arc;
use std::time::Duration;

use kv::Durability;
use query::{Code, Error, Namespace, Result};

use crate::catalog::{Named, Stored, StoredIndex};
use crate::collection::{Alone, Collection, CollectionOptions};
use crate::error;
use crate::index::{Index, IndexSpec};
use crate::stop::{Point, reach};
use crate::store::{Store, not_found};
use crate::txn::{Changes, Op};

/// How long who holds one latch waits for another.
const TURN: Duration = Duration::from_millis(50);

/// How long it then leaves both to others.
const PAUSE: Duration = Duration::from_millis(5);

/// A change under way (D1).
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
    /// `NamespaceNotFound`, `CommandNotSupportedOnView`; that the operation must end.
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

    /// The change of a collection whose latch is held; `None` when the name is another's by now.
    pub(super) fn change_under<'s>(
        &'s self,
        ns: &Namespace,
        found: &Collection,
        alone: Alone,
        changes: Changes<'s>,
    ) -> Result<Option<Change<'s>>> {
        let collection = self.existing(ns)?;
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

    /// Hold the latch of a collection alone.
    ///
    /// # Errors
    /// That the operation must end.
    pub(crate) fn hold(&self, op: &Op<'_>, collection: &Collection) -> Result<Alone> {
        let check = || self.check_open(op);
        // It is the next thing that this waits for.
        let _wish = self.turns().wish();
        loop {
            if let Some(alone) = collection.core().latch.alone(None, &check)? {
                return Ok(alone);
            }
        }
    }

    /// Hold the latches of two collections alone (D3).
    ///
    /// # Errors
    /// That the operation must end.
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
            // Who holds the second may wait for the first: let it in before trying again.
            drop(one);
            stdx::time::sleep(PAUSE);
        }
    }
}

/// Whether two states are of one collection.
pub(super) fn is_same(a: &Collection, b: &Collection) -> bool {
    a.core().uuid == b.core().uuid
}

impl Change<'_> {
    /// Write the stored form and swap the catalog.
    pub(super) fn finish(&self, indexes: Vec<Arc<Index>>) -> Result<Arc<Collection>> {
        self.store.put_stored(&self.stored)?;
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

    /// The indexes as they are.
    pub(super) fn indexes(&self) -> Vec<Arc<Index>> {
        self.collection.indexes().to_vec()
    }

    /// Take indexes out of the stored form; gives those that stay. Call [`Store::end_without`]
    /// after [`Change::finish`].
    pub(super) fn without(&mut self, gone: &[Arc<Index>]) -> Vec<Arc<Index>> {
        let is_gone = |number: u32| gone.iter().any(|i| i.number() == number);
        self.stored.indexes.retain(|i| !is_gone(i.number));
        let mut indexes = self.indexes();
        indexes.retain(|i| !is_gone(i.number()));
        indexes
    }

    /// The next state of an index, which the stored form gets, too.
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

    /// Check that no index of the collection is being built: who builds relies on its name and on
    /// what its indexes are.
    ///
    /// # Errors
    /// `BackgroundOperationInProgressForNamespace`.
    pub(super) fn check_no_build(&self) -> Result<()> {
        self.collection.check_no_build()
    }
}

impl Collection {
    /// Check that no index of it is being built.
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

/// Changes are not done in multi-document transactions.
pub(super) fn outside(op: &Op<'_>) -> Result<()> {
    match op.transaction {
        None => Ok(()),
        Some(_) => Err(Error::new(
            Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
            "Cannot change collections or indexes in a multi-document transaction.",
        )),
    }
}

/// Commit a change of the catalog.
pub(super) fn commit(txn: Box<dyn kv::Transaction + '_>) -> Result<()> {
    txn.commit(Durability::Group).map_err(error::engine)
}

//! A change of one collection, from its locks to the swap of the catalog.

use std::sync::Arc;

use kv::Durability;
use query::{Code, Error, Namespace, Result};
use stdx::sync::MutexGuard;

use crate::catalog::{Named, Stored};
use crate::collection::{Alone, Collection, CollectionOptions};
use crate::error;
use crate::index::Index;
use crate::op::Op;
use crate::store::{Store, is_view};

/// A change under way (D1).
pub(super) struct Change<'s> {
    pub(super) store: &'s Store,
    pub(super) collection: Arc<Collection>,
    pub(super) stored: Stored,
    _alone: Alone,
    _changes: MutexGuard<'s, ()>,
}

impl Store {
    /// Begin a change of a collection.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `CommandNotSupportedOnView`; `MaxTimeMSExpired` when others hold the
    /// collection too long.
    pub(super) fn begin_change(&self, op: &Op<'_>, ns: &Namespace) -> Result<Change<'_>> {
        op.check()?;
        outside(op)?;
        let changes = self.changes();
        let collection = match self.lookup(ns) {
            None => return Err(not_found(ns)),
            Some(Named::View(_)) => return Err(is_view(ns)),
            Some(Named::Collection(collection)) => collection,
        };
        let alone = self.hold(op, &collection)?;
        let stored = self.get_stored(ns)?.ok_or_else(|| not_found(ns))?;
        Ok(Change {
            store: self,
            collection,
            stored,
            _alone: alone,
            _changes: changes,
        })
    }

    /// Hold the latch of a collection alone.
    pub(crate) fn hold(&self, op: &Op<'_>, collection: &Collection) -> Result<Alone> {
        let limit = op
            .deadline
            .map(|d| d.saturating_duration_since(stdx::time::now()));
        collection
            .core()
            .latch
            .alone(limit)
            .ok_or_else(|| Error::new(Code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"))
    }
}

impl Change<'_> {
    /// Write the stored form and swap the catalog.
    pub(super) fn finish(&self, indexes: Vec<Arc<Index>>) -> Result<Arc<Collection>> {
        self.store.put_stored(&self.stored)?;
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
}

/// The error of a collection that is not there.
pub(super) fn not_found(ns: &Namespace) -> Error {
    Error::new(Code::NAMESPACE_NOT_FOUND, format!("ns not found {ns}"))
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

//! The catalog as seen by the reader of one snapshot: a transaction, or a read at a held snapshot.
//!
//! - N1. A collection that others changed, dropped or created since the snapshot cannot be read:
//!   the snapshot lacks the entries of an index built after it. The error makes the client restart
//!   its transaction.
//! - N2. A collection that a transaction creates is visible only to that transaction until its
//!   commit, which adds it to the catalog. If the transaction aborts, the trees of the collection
//!   are dropped.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bson::Timestamp;
use kv::Snapshot;
use query::{Code, Error, Namespace, Result};

use crate::catalog::{Catalog, Named, Stored};
use crate::collection::Collection;
use crate::store::Store;

/// A held snapshot, owned by its thread.
pub struct Held<'s> {
    pub(crate) snapshot: Box<dyn Snapshot + 's>,
    /// The catalog just before it was opened.
    pub(crate) catalog: Arc<Catalog>,
    /// The time of the snapshot.
    pub(crate) time: Timestamp,
}

impl Held<'_> {
    /// The catalog just before the snapshot.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The time of the snapshot.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        self.time
    }
}

/// The catalog as seen by a transaction.
#[derive(Default)]
pub struct SeenCatalog {
    /// The catalog when the engine's transaction began.
    seen: RefCell<Option<Arc<Catalog>>>,
    looked_up: RefCell<BTreeSet<Namespace>>,
    created: RefCell<BTreeMap<Namespace, Created>>,
}

/// A collection that a transaction has created.
#[derive(Clone)]
pub(crate) struct Created {
    pub(crate) stored: Stored,
    pub(crate) collection: Arc<Collection>,
}

impl SeenCatalog {
    /// Record that the engine transaction begins after `catalog` was read.
    pub(crate) fn begin(&self, catalog: Arc<Catalog>) {
        *self.seen.borrow_mut() = Some(catalog);
    }

    /// Whether the engine's transaction has begun.
    pub(crate) fn is_begun(&self) -> bool {
        self.seen.borrow().is_some()
    }

    /// The collection or view of a name.
    ///
    /// # Errors
    /// `SnapshotUnavailable` (N1).
    pub(crate) fn lookup(&self, store: &Store, ns: &Namespace) -> Result<Option<Named>> {
        if let Some(created) = self.created.borrow().get(ns) {
            return Ok(Some(Named::Collection(Arc::clone(&created.collection))));
        }
        if !self.looked_up.borrow().contains(ns) {
            self.looked_up.borrow_mut().insert(ns.clone());
        }
        match &*self.seen.borrow() {
            None => Ok(store.lookup(ns)),
            Some(seen) => unchanged(store, seen, ns),
        }
    }

    /// Check that no collection looked up has changed since the store's commit number `commits`.
    /// For engines with one writer; the caller holds the turn.
    ///
    /// # Errors
    /// `WriteConflict` for documents; `SnapshotUnavailable` (N1).
    pub(crate) fn check_current(&self, store: &Store, commits: u64) -> Result<()> {
        let seen = self.seen.borrow();
        let Some(seen) = &*seen else {
            return Ok(());
        };
        for ns in &*self.looked_up.borrow() {
            let named = unchanged(store, seen, ns)?;
            let written = |c: &Arc<Collection>| c.core().writes.last();
            let written = named.as_ref().and_then(Named::collection).map(written);
            if written.is_some_and(|written| commits < written) {
                return Err(crate::error::conflict());
            }
        }
        Ok(())
    }

    /// A collection that the transaction has created.
    pub(crate) fn created(&self, ns: &Namespace) -> Option<Created> {
        self.created.borrow().get(ns).cloned()
    }

    /// Record a collection that the transaction has created, or its next state.
    pub(crate) fn note_created(&self, created: Created) {
        self.created
            .borrow_mut()
            .insert(created.stored.ns.clone(), created);
    }

    /// All collections that the transaction has created.
    pub(crate) fn all_created(&self) -> Vec<Created> {
        self.created.borrow().values().cloned().collect()
    }

    /// Whether the transaction has created anything.
    pub(crate) fn has_created(&self) -> bool {
        !self.created.borrow().is_empty()
    }

    /// Remove and return the collections that the transaction has created.
    pub(crate) fn take_created(&self) -> Vec<Created> {
        self.created.take().into_values().collect()
    }
}

/// The collection or view with this name, if it is the same as in `seen`.
///
/// # Errors
/// `SnapshotUnavailable` (N1).
pub(crate) fn unchanged(store: &Store, seen: &Catalog, ns: &Namespace) -> Result<Option<Named>> {
    let now = store.lookup(ns);
    let same = match (seen.get(ns), &now) {
        (None, None) => true,
        (Some(Named::Collection(then)), Some(Named::Collection(now))) => Arc::ptr_eq(then, now),
        (Some(Named::View(then)), Some(Named::View(now))) => Arc::ptr_eq(then, now),
        _ => false,
    };
    if same {
        return Ok(now);
    }
    Err(Error::new(
        Code::SNAPSHOT_UNAVAILABLE,
        format!(
            "Unable to read from a snapshot due to pending collection catalog changes to {ns}; \
             please retry the operation."
        ),
    ))
}

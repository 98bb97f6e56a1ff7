//! The view of the store that a batch reads: a snapshot that is renewed periodically, or a
//! transaction's, which stays the same.
//!
//! - V1. A plan relies only on data that its snapshot holds. A plain read opens its snapshot while
//!   the catalog is unchanged, and looks names up in that catalog state: an index that is ready
//!   there has all its entries in the snapshot, and was maintained up to then. The multikey state
//!   of indexes is read after the snapshot was opened.

use std::sync::Arc;

use kv::Snapshot;
use query::{Namespace, Result};

use super::op::Op;
use crate::catalog::{Catalog, Named};
use crate::pause::between_portions;
use crate::stop::{Point, reach};
use crate::store::Store;

/// Units of work within one snapshot: old snapshots keep deleted data from being reclaimed. Few in
/// tests, which thus renew their snapshots often.
const WORK_PER_SNAPSHOT: u64 = if cfg!(test) { 300 } else { 200_000 };

enum Held<'a> {
    Own(Box<dyn Snapshot + 'a>),
    Borrowed(&'a dyn Snapshot),
    Gone,
}

/// A view of the store; see the module documentation.
pub(crate) struct View<'a> {
    store: &'a Store,
    op: &'a Op<'a>,
    held: Held<'a>,
    /// The catalog that belongs to the view's own snapshot.
    catalog: Option<Arc<Catalog>>,
}

impl<'a> View<'a> {
    /// The view of a transaction.
    pub(crate) fn borrowed(
        store: &'a Store,
        op: &'a Op<'a>,
        snapshot: &'a dyn Snapshot,
    ) -> View<'a> {
        View {
            store,
            op,
            held: Held::Borrowed(snapshot),
            catalog: None,
        }
    }

    /// A view with a new snapshot and the catalog that belongs to it (V1).
    fn of_now(store: &'a Store, op: &'a Op<'a>) -> Result<View<'a>> {
        loop {
            let catalog = store.catalog();
            reach(Point::Looked);
            let snapshot = store.see()?;
            if store.is_current(&catalog) {
                return Ok(View {
                    store,
                    op,
                    held: Held::Own(snapshot),
                    catalog: Some(catalog),
                });
            }
        }
    }

    /// The collection or view with this name, as seen by this view (V1).
    ///
    /// # Errors
    /// As [`Store::named`].
    pub(crate) fn named(&self, ns: &Namespace) -> Result<Option<Named>> {
        match &self.catalog {
            Some(catalog) => Ok(catalog.get(ns).cloned()),
            None => self.store.named(self.op, ns),
        }
    }

    /// The store.
    pub(crate) fn store(&self) -> &'a Store {
        self.store
    }

    /// The operation.
    pub(crate) fn op(&self) -> &'a Op<'a> {
        self.op
    }

    /// What is read.
    pub(crate) fn snapshot(&self) -> Result<&dyn Snapshot> {
        match &self.held {
            Held::Own(snapshot) => Ok(snapshot.as_ref()),
            Held::Borrowed(snapshot) => Ok(*snapshot),
            Held::Gone => Err(crate::error::corrupt("a snapshot could not be renewed")),
        }
    }

    /// Work that may be done before the snapshot is renewed.
    pub(crate) fn budget(&self) -> u64 {
        match self.held {
            Held::Borrowed(_) => u64::MAX,
            _ => WORK_PER_SNAPSHOT,
        }
    }

    /// Continue with a snapshot of now. Readers must have left the old one.
    pub(crate) fn renew(&mut self) -> Result<()> {
        if let Held::Own(_) = self.held {
            // The old one first: some engines have few reader slots.
            self.held = Held::Gone;
            between_portions();
            *self = View::of_now(self.store, self.op)?;
        }
        Ok(())
    }

    /// Whether the catalog has changed since the snapshot was opened: what it lists now may not be
    /// in the snapshot (V1), which should be renewed.
    pub(crate) fn is_behind(&self) -> bool {
        let catalog = self.catalog.as_ref();
        catalog.is_some_and(|catalog| !Arc::ptr_eq(catalog, &self.store.catalog()))
    }
}

/// Call `body` with a view for `op`: its transaction's, its held snapshot, or a new one.
pub(crate) fn with_view<R>(
    store: &Store,
    op: &Op<'_>,
    body: &mut dyn FnMut(&mut View<'_>) -> Result<R>,
) -> Result<R> {
    op.check()?;
    if op.transaction.is_some() {
        return store.read(op, &mut |snapshot| {
            body(&mut View::borrowed(store, op, snapshot))
        });
    }
    if let Some(held) = op.held {
        return body(&mut View::borrowed(store, op, held.snapshot.as_ref()));
    }
    body(&mut View::of_now(store, op)?)
}

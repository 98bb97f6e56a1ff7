//! The view of the store that a batch is made from: a snapshot that is renewed now and then, or a
//! transaction's, which stays.

use kv::Snapshot;
use query::Result;

use crate::error::engine;
use crate::op::Op;
use crate::store::Store;

/// Units of work within one snapshot: old snapshots keep what was deleted since.
const WORK_PER_SNAPSHOT: u64 = 200_000;

enum Held<'a> {
    Own(Box<dyn Snapshot + 'a>),
    Borrowed(&'a dyn Snapshot),
    Gone,
}

/// See above.
pub(crate) struct View<'a> {
    store: &'a Store,
    op: &'a Op<'a>,
    held: Held<'a>,
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

    /// Go on with a snapshot of now. Whoever reads must have been told to leave the old one.
    pub(crate) fn renew(&mut self) -> Result<()> {
        if let Held::Own(_) = self.held {
            // The old one first: some engines have few reader slots.
            self.held = Held::Gone;
            self.held = Held::Own(self.store.engine().begin_read().map_err(engine)?);
        }
        Ok(())
    }
}

/// Do `body` with a view for `op`: its transaction's, its snapshot, or one of now.
pub(crate) fn with_view<R>(
    store: &Store,
    op: &Op<'_>,
    body: &mut dyn FnMut(&mut View<'_>) -> Result<R>,
) -> Result<R> {
    op.check()?;
    if op.transaction.is_some() {
        return store.read(op, &mut |snapshot| {
            body(&mut View {
                store,
                op,
                held: Held::Borrowed(snapshot),
            })
        });
    }
    if let Some(held) = op.held {
        return body(&mut View::borrowed(store, op, held.snapshot.as_ref()));
    }
    let snapshot = store.engine().begin_read().map_err(engine)?;
    body(&mut View {
        store,
        op,
        held: Held::Own(snapshot),
    })
}

//! How operations access the store: reads, writes, catalog changes and waits.

use std::sync::Arc;
use std::time::Duration;

use bson::doc;
use kv::Snapshot;
use query::{Code, Error, Namespace, Result};
use stdx::sync::MutexGuard;
use stdx::sync::atomic::Ordering;

use super::catalog::unchanged;
use super::op::{InTransaction, Op};
use super::work::Work;
use crate::catalog::Named;
use crate::collection::Collection;
use crate::oplog::note_read;
use crate::patience::LOOK;
use crate::pause::between_portions;
use crate::store::Store;
use crate::turn::{self, Turn, WAIT};

/// Maximum attempts of a plain write that conflicts with others before the client gets the
/// conflict: about 100 seconds. MongoDB retries such a write without limit; here a fault that makes
/// every attempt conflict must not occupy a thread forever.
const ATTEMPTS: u32 = 10_000;

/// The exclusive right to change the catalog, until dropped.
pub(crate) struct Changes<'s> {
    _guard: MutexGuard<'s, ()>,
    _turn: Turn,
}

impl Store {
    /// Read in the operation's transaction, in its held snapshot, or in a new snapshot.
    ///
    /// # Errors
    /// Errors of `body`; errors of the engine.
    pub fn read<R>(
        &self,
        op: &Op<'_>,
        body: &mut dyn FnMut(&dyn Snapshot) -> Result<R>,
    ) -> Result<R> {
        op.check()?;
        match op.transaction {
            None if let Some(held) = op.held => body(held.snapshot.as_ref()),
            None => {
                let snapshot = self.see()?;
                body(snapshot.as_ref())
            }
            Some(transaction) => in_transaction(op, transaction, &mut |work| body(work.view()?)),
        }
    }

    /// Write in the operation's transaction, or in a new one, which is retried while it conflicts
    /// with others. If an open transaction has written the same key, the retry waits until that
    /// transaction has ended.
    pub(crate) fn write<R>(
        &self,
        op: &Op<'_>,
        body: &mut dyn FnMut(&mut Work<'_>) -> Result<R>,
    ) -> Result<R> {
        op.check()?;
        if let Some(transaction) = op.transaction {
            return in_transaction(op, transaction, body);
        }
        let mut attempt = 0;
        loop {
            let mut work = Work::new(self, op.ends());
            let (done, blocked) = match body(&mut work) {
                Ok(result) => (work.commit(op.durability).map(|()| result), None),
                Err(e) => {
                    let blocked = work.take_blocked();
                    // Hold nothing while waiting.
                    drop(work);
                    (Err(e), blocked)
                }
            };
            match done {
                Err(e) if e.code == Code::WRITE_CONFLICT && blocked.is_some() => {
                    self.figures().conflicts.fetch_add(1, Ordering::Relaxed);
                    if let Some(holder) = blocked {
                        holder.wait(&|| self.check_open(op))?;
                    }
                    self.check_open(op)?;
                    continue;
                }
                Err(e) if e.code == Code::WRITE_CONFLICT && attempt < ATTEMPTS => {
                    self.figures().conflicts.fetch_add(1, Ordering::Relaxed);
                }
                done => return done,
            }
            self.check_open(op)?;
            between_portions();
            back_off(attempt);
            attempt += 1;
        }
    }

    /// Check that a waiting operation may continue to wait.
    ///
    /// # Errors
    /// As [`Op::check`]; `InterruptedAtShutdown` when the store is closed.
    pub(crate) fn check_open(&self, op: &Op<'_>) -> Result<()> {
        self.check_not_closed()?;
        op.check()
    }

    /// The writer turn for an operation outside of any work.
    ///
    /// # Errors
    /// The operation must end; `LockTimeout` in a multi-document transaction.
    pub(crate) fn turn(&self, op: &Op<'_>) -> Result<Turn> {
        let limit = op.transaction.is_some().then_some(WAIT);
        let taken = self.turns().take(limit, &|| self.check_open(op))?;
        taken.ok_or_else(|| turn::busy("the engine's one writer"))
    }

    /// Take the lock of catalog changes, together with the writer turn.
    ///
    /// # Errors
    /// The operation must end while it waits for other changes.
    pub(crate) fn changes(&self, op: &Op<'_>) -> Result<Changes<'_>> {
        let turn = self.turn(op)?;
        loop {
            if let Some(guard) = self.changes_within(LOOK) {
                return Ok(Changes {
                    _guard: guard,
                    _turn: turn,
                });
            }
            self.check_open(op)?;
        }
    }

    /// The collection or view with this name, as the operation sees it: in its transaction, in its
    /// held snapshot, or in the current catalog.
    ///
    /// # Errors
    /// `SnapshotUnavailable` if it was changed after the time that the operation reads at.
    pub(crate) fn named(&self, op: &Op<'_>, ns: &Namespace) -> Result<Option<Named>> {
        match (op.transaction, op.held) {
            (Some(transaction), _) => transaction.catalog().lookup(self, ns),
            (None, Some(held)) => unchanged(self, &held.catalog, ns),
            (None, None) => Ok(self.lookup(ns)),
        }
    }

    /// Check that a collection is unchanged. Call it after a snapshot was opened: `collection` then
    /// describes the snapshot's data correctly.
    ///
    /// # Errors
    /// `QueryPlanKilled`; as [`Store::named`].
    pub(crate) fn check_unchanged(&self, op: &Op<'_>, collection: &Arc<Collection>) -> Result<()> {
        match self.named(op, collection.ns())? {
            Some(Named::Collection(now)) if Arc::ptr_eq(&now, collection) => Ok(()),
            _ => Err(Error::new(
                Code::QUERY_PLAN_KILLED,
                format!(
                    "the collection {} or its indexes were changed while the command was planned",
                    collection.ns()
                ),
            )),
        }
    }

    /// The collection with this name, as seen by [`Store::named`]; `None` for a view.
    ///
    /// # Errors
    /// As [`Store::named`] and [`Store::check_uuid`].
    pub(crate) fn collection_for(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
    ) -> Result<Option<Arc<Collection>>> {
        let named = self.named(op, ns)?;
        let found = named.and_then(|named| named.collection().cloned());
        self.check_uuid(op, ns, found.as_deref())?;
        Ok(found)
    }

    /// The collection with this name, for the rest of the work: see [`Work::collection`].
    ///
    /// # Errors
    /// As [`Work::collection`] and [`Store::check_uuid`].
    pub(crate) fn collection_in(
        &self,
        work: &mut Work<'_>,
        (op, ns): (&Op<'_>, &Namespace),
    ) -> Result<Option<Arc<Collection>>> {
        let found = work.collection(ns)?;
        self.check_uuid(op, ns, found.as_deref())?;
        Ok(found)
    }

    /// Check that `found`, the collection that `ns` names, has the UUID that the operation expects,
    /// if it expects one.
    ///
    /// # Errors
    /// `CollectionUUIDMismatch`, with the name of the collection of this database that has the
    /// UUID.
    pub(crate) fn check_uuid(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        found: Option<&Collection>,
    ) -> Result<()> {
        let Some(expected) = op.collection_uuid else {
            return Ok(());
        };
        if found.is_some_and(|found| found.uuid() == expected) {
            return Ok(());
        }
        let catalog = self.catalog();
        let actual = catalog.of_uuid(expected).map(|other| other.ns());
        let actual = actual.filter(|actual| actual.db == ns.db);
        let details = doc! {
            "db": &ns.db,
            "collectionUUID": expected,
            "expectedCollection": &ns.coll,
            "actualCollection": actual.map(|actual| actual.coll.as_str()),
        };
        let message = "Collection UUID does not match that specified";
        Err(Error::new(Code::COLLECTION_UUID_MISMATCH, message).with_details(details))
    }
}

fn in_transaction<R>(
    op: &Op<'_>,
    transaction: &dyn InTransaction,
    body: &mut dyn FnMut(&mut Work<'_>) -> Result<R>,
) -> Result<R> {
    let mut result = None;
    transaction.with(&mut |work| {
        work.set_ends(op.ends());
        result = Some(body(work)?);
        if let Some(time) = work.time() {
            note_read(time);
        }
        Ok(())
    })?;
    result.ok_or_else(|| Error::new(Code::INTERNAL_ERROR, "a transaction did not do its work"))
}

/// Wait before the next attempt of a write that conflicted: not at all at first, then for up to 10
/// ms.
fn back_off(attempt: u32) {
    if 3 < attempt {
        stdx::time::sleep(Duration::from_micros(100) * attempt.min(100));
    }
}

//! Work: an engine transaction, with the latches, counts and intents of the collections it writes.
//!
//! - W1. A writer of documents of a collection holds the collection's latch in shared mode until
//!   the commit, so that the set of indexes does not change.
//! - W2. The counts of the collections change with the commit, in the same engine transaction.
//! - W3. The latch of a collection comes before the turn and the engine transaction, except in a
//!   multi-document transaction, which waits for a latch with a limit: with an engine of one writer
//!   no other thread could write meanwhile.
//! - W4. On an engine with one writer, a multi-document transaction reads a snapshot until its
//!   first write, and then becomes the writer. The writer sees the newest state: if anything the
//!   transaction has read was changed since its snapshot, its first write is a conflict instead.
//!   The next transaction of the session is the writer from its first statement on, so that a
//!   client that retries its transaction succeeds.

use std::rc::Rc;
use std::sync::Arc;

use bson::Timestamp;
use kv::{Durability, Snapshot, Transaction, TreeId};
use query::meter::{self, Watch};
use query::{Namespace, Result};
use stdx::sync::MutexGuard;
use stdx::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::catalog::{Created, SeenCatalog};
use super::ends::Ends;
use crate::catalog::{Named, multikey_key, stored_key};
use crate::collection::{Alone, Collection, Core, Delta, Shared};
use crate::error;
use crate::index::Index;
use crate::intent::{Claims, Holder, Refused};
use crate::oplog::entry::OpTime;
use crate::oplog::{Noted, Pending, before_created, image};
use crate::stop::{Point, reach};
use crate::store::Store;
use crate::turn::{self, Turn, WAIT};

/// An engine transaction in progress.
pub struct Work<'s> {
    pub(crate) store: &'s Store,
    txn: Option<Box<dyn Transaction + 's>>,
    /// The snapshot that a multi-document transaction reads before its first write (W4).
    reading: Option<Reading<'s>>,
    /// History of the session of a multi-document transaction (W4).
    outrun: Option<Arc<Outrun>>,
    /// Released after the engine transaction.
    turn: Option<Turn>,
    /// Whether the surrounding catalog change holds the turn.
    in_change: bool,
    /// The conditions that end the operation running in it.
    ends: Option<Ends>,
    touched: Vec<Touched>,
    /// The catalog as seen by a multi-document transaction.
    seen: Option<Rc<SeenCatalog>>,
    /// The exclusive latch on the writers of a capped collection.
    alone: Option<Alone>,
    /// Multikey bits that are stored with the commit.
    multikey: Vec<(Arc<Index>, u8, u8)>,
    /// Called after the commit.
    after_commit: Option<Box<dyn FnOnce()>>,
    /// The intents of the changed keys; set at the first change.
    claims: Option<Claims<'s>>,
    /// The transaction that must end before this work can be done.
    blocked: Option<Arc<Holder>>,
    /// Of a multi-document transaction: its snapshot has all oplog entries up to this time.
    time: Option<Timestamp>,
    /// The changes that the oplog entries of this work will have.
    pub(super) pending: Pending,
    /// The entry up to which a follower has applied all with this work.
    applies: Option<OpTime>,
}

/// Maximum number of transactions that read a snapshot of their own at once (W4): a quarter of the
/// snapshots that LMDB opens by default. Further transactions are the writer from their first
/// statement on.
const READING_MAX: usize = 128;

/// A snapshot, and the number of the store's last commit when it was opened.
struct Reading<'s> {
    snapshot: Box<dyn Snapshot + 's>,
    commits: u64,
    _place: Place<'s>,
}

/// A slot of a transaction that reads a snapshot of its own.
struct Place<'s>(&'s AtomicUsize);

impl<'s> Place<'s> {
    fn take(taken: &'s AtomicUsize) -> Option<Place<'s>> {
        let place = Place(taken);
        (taken.fetch_add(1, Ordering::Relaxed) < READING_MAX).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the previous transaction of a session failed to become the writer because others had
/// changed what it had read (W4).
#[derive(Debug, Default)]
pub(crate) struct Outrun(AtomicBool);

struct Touched {
    core: Arc<Core>,
    delta: Delta,
    wrote: bool,
    /// Released with the work.
    _latch: Shared,
}

impl<'s> Work<'s> {
    /// The work of one operation, which the conditions `ends` can end.
    pub(crate) fn new(store: &'s Store, ends: Ends) -> Work<'s> {
        let mut work = Work::empty(store);
        work.set_ends(ends);
        work
    }

    /// The work of a multi-document transaction, with the catalog as seen by it and the history of
    /// its session.
    pub(crate) fn multi_document(
        store: &'s Store,
        seen: Rc<SeenCatalog>,
        outrun: Arc<Outrun>,
    ) -> Work<'s> {
        let mut work = Work::empty(store);
        work.seen = Some(seen);
        work.outrun = Some(outrun);
        work
    }

    /// The work of a catalog change, which holds the turn.
    pub(crate) fn in_change(store: &'s Store) -> Work<'s> {
        let mut work = Work::empty(store);
        work.in_change = true;
        work
    }

    fn empty(store: &'s Store) -> Work<'s> {
        Work {
            store,
            txn: None,
            reading: None,
            outrun: None,
            turn: None,
            in_change: false,
            ends: None,
            touched: Vec::new(),
            seen: None,
            multikey: Vec::new(),
            claims: None,
            blocked: None,
            after_commit: None,
            alone: None,
            time: None,
            pending: Pending::default(),
            applies: None,
        }
    }

    /// This work applies the oplog entries of another member up to this one: it moves the mark of
    /// what is applied, and has no entries of its own.
    pub(crate) fn apply_to(&mut self, at: OpTime) {
        self.applies = Some(at);
    }

    /// Set the conditions that end the operations that run in it from now on.
    pub(crate) fn set_ends(&mut self, ends: Ends) {
        self.ends = Some(ends);
    }

    /// The engine transaction; the first call begins it.
    ///
    /// # Errors
    /// Errors of the engine. On an engine with one writer: the operation must end while it waits
    /// for other writers, or `LockTimeout` in a multi-document transaction; `WriteConflict` and
    /// `SnapshotUnavailable` in a transaction that has read data changed since (W4).
    pub fn txn(&mut self) -> Result<&mut (dyn Transaction + 's)> {
        if self.txn.is_none() {
            self.take_turn()?;
            self.check_current()?;
            if let Some(seen) = &self.seen {
                seen.begin(self.store.catalog());
            }
            self.see_time();
            // Some engines allow one transaction per thread.
            self.reading = None;
            let txn = self.store.engine().begin_write().map_err(error::engine)?;
            self.txn = Some(txn);
        }
        Ok(self.txn.as_deref_mut().expect("it was begun above"))
    }

    fn take_turn(&mut self) -> Result<()> {
        if self.in_change || self.turn.is_some() {
            return Ok(());
        }
        let limit = self.is_multi_document().then_some(WAIT);
        let taken = self.store.turns().take(limit, &|| self.check_ends())?;
        self.turn = Some(taken.ok_or_else(|| turn::busy("the engine's one writer"))?);
        Ok(())
    }

    /// Check, while holding the turn, that the data read from the snapshot is unchanged (W4).
    fn check_current(&self) -> Result<()> {
        let current = match (&self.seen, &self.reading) {
            (Some(seen), Some(reading)) => seen.check_current(self.store, reading.commits),
            _ => Ok(()),
        };
        if let Some(outrun) = &self.outrun {
            outrun.0.store(current.is_err(), Ordering::Relaxed);
        }
        current
    }

    /// The snapshot for reads of the operation. On an engine with one writer, reading does not make
    /// a multi-document transaction the writer (W4).
    ///
    /// # Errors
    /// As [`Work::txn`].
    pub(crate) fn view(&mut self) -> Result<&dyn Snapshot> {
        if self.reading.is_none()
            && self.may_read_apart()
            && let Some(place) = Place::take(self.store.reading())
        {
            if let Some(seen) = &self.seen {
                seen.begin(self.store.catalog());
            }
            // Read before opening the snapshot: a commit in between then counts as later, which is
            // safe.
            let commits = self.store.commits();
            self.see_time();
            let snapshot = self.store.engine().begin_read().map_err(error::engine)?;
            self.reading = Some(Reading {
                snapshot,
                commits,
                _place: place,
            });
        }
        let both = self.reading.is_some() && self.txn.is_some();
        assert!(
            !both,
            "W4: a transaction reads apart until it is the writer"
        );
        match self.reading {
            Some(ref reading) => Ok(reading.snapshot.as_ref()),
            None => Ok(self.txn()?),
        }
    }

    /// Note the time before the snapshot of a multi-document transaction is opened.
    fn see_time(&mut self) {
        if self.is_multi_document() && self.time.is_none() {
            self.time = self.store.oplog_visible();
        }
    }

    /// The time up to which a multi-document transaction has all oplog entries; `None` before it
    /// reads, and without an oplog.
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.time
    }

    fn may_read_apart(&self) -> bool {
        let was_outrun = || match &self.outrun {
            Some(outrun) => outrun.0.swap(false, Ordering::Relaxed),
            None => false,
        };
        self.is_multi_document()
            && self.txn.is_none()
            && self.store.turns().are_one()
            && !was_outrun()
    }

    /// The engine transaction as a snapshot, for reads of documents that are to be written.
    ///
    /// # Errors
    /// As [`Work::txn`].
    pub fn snapshot(&mut self) -> Result<&dyn Snapshot> {
        Ok(self.txn()?)
    }

    /// The current state of a collection; its latch is held in shared mode until this work ends
    /// (W1). `None` if the collection does not exist.
    ///
    /// # Errors
    /// `LockTimeout` and `SnapshotUnavailable` in a multi-document transaction; the operation must
    /// end.
    pub(crate) fn collection(&mut self, ns: &Namespace) -> Result<Option<Arc<Collection>>> {
        loop {
            let Some(found) = self.lookup(ns)? else {
                return Ok(None);
            };
            found.check_written()?;
            self.touch(&found)?;
            // The collection may have changed while this waited for the latch.
            match self.lookup(ns)? {
                Some(now) if now.core().uuid == found.core().uuid => return Ok(Some(now)),
                _ => {}
            }
        }
    }

    /// The collection of pre-images, whose latch is held as by [`Work::collection`]. `None` if it
    /// does not exist.
    ///
    /// # Errors
    /// As [`Work::collection`].
    pub(crate) fn images(&mut self) -> Result<Option<Arc<Collection>>> {
        let found = self.lookup(&image::namespace())?;
        if let Some(found) = &found {
            // Nothing replaces it while the store is open.
            self.touch(found)?;
        }
        Ok(found)
    }

    fn lookup(&self, ns: &Namespace) -> Result<Option<Arc<Collection>>> {
        match &self.seen {
            None => Ok(self.store.collection(ns)),
            Some(seen) => {
                let named = seen.lookup(self.store, ns)?;
                Ok(named.and_then(|named| named.collection().cloned()))
            }
        }
    }

    fn touch(&mut self, collection: &Collection) -> Result<()> {
        let core = collection.core();
        if self.touched.iter().any(|t| t.core.uuid == core.uuid) {
            return Ok(());
        }
        let limit = (self.is_multi_document() || self.txn.is_some()).then_some(WAIT);
        assert!(
            limit.is_some() || self.turn.is_none(),
            "W3, L3, U2: who has the turn waits for a latch only with a limit"
        );
        let Some(latch) = core.latch.shared(false, limit, &|| self.check_ends())? else {
            return Err(turn::busy(&format!("lock on '{}'", collection.ns())));
        };
        self.touched.push(Touched {
            core: Arc::clone(core),
            delta: Delta::default(),
            wrote: false,
            _latch: latch,
        });
        Ok(())
    }

    /// Declare the intent to change a key. If two transactions, or a transaction and a plain write,
    /// want the same key, one of them is refused here (see `intent`).
    ///
    /// # Errors
    /// `WriteConflict`; the operation must end while a transaction waits for plain writes.
    pub(crate) fn intend(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        let store = self.store;
        if !self.is_multi_document() && store.turns().are_one() {
            return Ok(());
        }
        let claims = match &mut self.claims {
            Some(claims) => claims,
            None => {
                let claims = match &self.seen {
                    None => store.intents().plain(),
                    Some(_) => store.intents().transaction(&|| self.check_ends())?,
                };
                self.claims.insert(claims)
            }
        };
        match claims.take(tree, key) {
            Ok(()) => Ok(()),
            Err(Refused::Conflict) => Err(error::conflict()),
            Err(Refused::After(holder)) => {
                self.blocked = Some(holder);
                Err(error::conflict())
            }
        }
    }

    /// [`Work::intend`] for a key to be skipped if an open transaction has written it: returns
    /// false then.
    ///
    /// # Errors
    /// The operation must end.
    pub(crate) fn may_change(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        match self.intend(tree, key) {
            Err(_) if self.blocked.take().is_some() => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// The open transaction whose intent made this work fail, if any.
    pub(super) fn take_blocked(&mut self) -> Option<Arc<Holder>> {
        self.blocked.take()
    }

    /// Check that the operation running in it may continue to wait.
    ///
    /// # Errors
    /// As [`Store::check_open`].
    pub(crate) fn check_ends(&self) -> Result<()> {
        match &self.ends {
            Some(ends) => self.store.check_not_closed().and_then(|()| ends.check()),
            None => Ok(()),
        }
    }

    /// Record a change of the counts of a collection.
    pub(crate) fn count(
        &mut self,
        collection: &Collection,
        documents: i64,
        bytes: i64,
        record: i64,
    ) {
        let uuid = &collection.core().uuid;
        let touched = self.touched.iter_mut().find(|t| t.core.uuid == *uuid);
        let touched = touched.expect("W1: the latch of a collection that is written is shared");
        touched.wrote = true;
        touched.delta.documents += documents;
        touched.delta.bytes += bytes;
        touched.delta.record = touched.delta.record.max(record);
    }

    /// Record path parts that are arrays for the first time, and the first truncated key.
    pub(crate) fn note_multikey(
        &mut self,
        collection: &Collection,
        index: &Arc<Index>,
        found: &[u32],
    ) -> Result<()> {
        if found.is_empty() {
            return Ok(());
        }
        let tree = self.store.trees().catalog;
        for (field, part) in index.add_multikey(found) {
            let known = |(i, f, p): &(Arc<Index>, u8, u8)| {
                Arc::ptr_eq(i, index) && (*f, *p) == (field, part)
            };
            if self.multikey.iter().any(known) {
                continue;
            }
            let key = multikey_key(&collection.core().uuid, index.number(), field, part);
            self.txn()?
                .put_blind(tree, &key, &[])
                .map_err(error::engine)?;
            self.multikey.push((Arc::clone(index), field, part));
        }
        Ok(())
    }

    /// Commit the engine transaction.
    ///
    /// # Errors
    /// `WriteConflict`; errors of the engine; `LockTimeout` of a transaction that creates
    /// collections.
    pub(crate) fn commit(mut self, durability: Durability) -> Result<()> {
        let created = self
            .seen
            .as_ref()
            .map_or(Vec::new(), |seen| seen.all_created());
        let changes = if created.is_empty() {
            None
        } else {
            Some(self.put_created(&created)?)
        };
        let Some(mut txn) = self.txn.take() else {
            let wrote = self.touched.iter().any(|t| t.wrote);
            assert!(!wrote, "W2: counts change in the transaction of documents");
            return Ok(());
        };
        let tree = self.store.trees().counts;
        let mut open = Vec::new();
        let counted = |touched: &&Touched| touched.wrote && !touched.delta.is_zero();
        for touched in self.touched.iter().filter(counted) {
            let Touched { core, delta, .. } = touched;
            open.push(core.counts.write(txn.as_mut(), tree, &core.uuid, *delta)?);
        }
        let reserved = match self.store.oplog() {
            Some(oplog) => oplog.put(txn.as_mut(), &self.pending)?,
            None => None,
        };
        let advance = match self.applies {
            Some(at) => self.store.put_applied(txn.as_mut(), at)?,
            None => None,
        };
        reach(Point::Reserved);
        // It may wait for the log, for other commits, or for merges.
        meter::rest();
        let done = txn.commit(durability).map_err(error::engine);
        if let Some(reserved) = reserved {
            reserved.end(done.is_ok());
        }
        if let (Some(advance), Some(at), Ok(())) = (advance, self.applies, &done) {
            advance.to(at);
        }
        let written = self.touched.iter().filter(|t| t.wrote);
        self.store.committed(written.map(|t| &*t.core));
        drop(open);
        done?;
        if let Some(changes) = changes {
            self.publish_created();
            drop(changes);
        }
        self.committed();
        Ok(())
    }

    /// Make known what has been committed.
    fn committed(&mut self) {
        let counted = |touched: &&Touched| touched.wrote && !touched.delta.is_zero();
        for (index, field, part) in &self.multikey {
            index.stored(*field, *part);
        }
        if let Some(hook) = self.after_commit.take() {
            hook();
        }
        for touched in self.touched.iter().filter(counted) {
            if touched.core.counts.committed(touched.delta) {
                self.store.fold_counts(&touched.core);
            }
        }
        for touched in self.touched.iter().filter(|t| t.wrote) {
            touched.core.writes.wake();
        }
    }

    /// Write the catalog records of the collections created by this transaction. The returned lock
    /// keeps the catalog locked until they are published.
    fn put_created(&mut self, created: &[Created]) -> Result<MutexGuard<'s, ()>> {
        let store = self.store;
        // The turn comes before the lock.
        self.take_turn()?;
        let changes = store.changes_within(WAIT);
        let changes = changes.ok_or_else(|| turn::busy("the lock of the catalog"))?;
        for made in created {
            if store.lookup(&made.stored.ns).is_some() {
                return Err(error::conflict());
            }
            let (key, bytes) = (stored_key(&made.stored.ns), made.stored.to_bytes()?);
            let put = self.txn()?.put(store.trees().catalog, &key, &bytes);
            put.map_err(error::engine)?;
            if store.oplog().is_some() {
                let noted = Noted::created(&made.stored)?.and(Noted::indexed(&made.stored)?);
                let uuid = made.collection.uuid();
                let formers = match self.keeps_undo() {
                    true => before_created(&made.stored)?,
                    false => Vec::new(),
                };
                let of = (&made.stored.ns, Some(uuid));
                noted.add_to(&mut self.pending, of, formers);
            }
        }
        Ok(changes)
    }

    /// Publish the created collections in the catalog.
    fn publish_created(&self) {
        let created = self
            .seen
            .as_ref()
            .map_or(Vec::new(), |seen| seen.take_created());
        let mut next = (*self.store.catalog()).clone();
        for made in created {
            next.insert(made.stored.ns, Named::Collection(made.collection));
        }
        self.store.set_catalog(next);
    }

    /// Number of documents and bytes of a collection, including the changes of this work.
    pub(crate) fn counts(&self, collection: &Collection) -> (i64, i64) {
        let core = collection.core();
        let delta = self
            .touched
            .iter()
            .find(|t| t.core.uuid == core.uuid)
            .map(|t| t.delta);
        let delta = delta.unwrap_or_default();
        let documents = core.counts.documents() + delta.documents;
        (documents, core.counts.bytes() + delta.bytes)
    }

    /// Hold a latch until this work ends.
    pub(crate) fn keep(&mut self, alone: Alone) {
        self.alone = Some(alone);
    }

    /// Call `hook` after this work has committed; not called if it does not commit. At most once
    /// per work.
    pub(crate) fn after_commit(&mut self, hook: impl FnOnce() + 'static) {
        debug_assert!(
            self.after_commit.is_none(),
            "what is stored was made of what is known before the work"
        );
        self.after_commit = Some(Box::new(hook));
    }

    /// Whether this is a multi-document transaction.
    pub(crate) fn is_multi_document(&self) -> bool {
        self.seen.is_some()
    }

    /// Whether it has changed anything.
    pub(crate) fn has_written(&self) -> bool {
        let created = self.seen.as_ref().is_some_and(|seen| seen.has_created());
        created || self.touched.iter().any(|t| t.wrote)
    }

    /// Whether the engine's transaction was begun.
    pub(crate) fn is_begun(&self) -> bool {
        self.txn.is_some()
    }
}

impl Drop for Work<'_> {
    /// Drop the trees of collections whose creation was not committed, after the engine transaction
    /// has ended.
    fn drop(&mut self) {
        self.txn = None;
        self.reading = None;
        self.turn = None;
        self.claims = None;
        let created = self
            .seen
            .as_ref()
            .map_or(Vec::new(), |seen| seen.take_created());
        for made in created {
            self.store.drop_trees(&made.collection);
        }
    }
}

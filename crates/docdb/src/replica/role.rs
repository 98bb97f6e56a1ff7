//! Primary or follower, and the positions of a member.

use std::time::Duration;

use bson::{RawDocument, Timestamp};
use kv::Durability;
use query::{Code, Error, Result};
use stdx::sync::Mutex;

use crate::error;
use crate::oplog::entry::OpTime;
use crate::oplog::{Log, mark};
use crate::store::Store;
use crate::txn::Op;

/// How long a change of the role waits for commits at a time.
const GATE: Duration = Duration::from_millis(50);

/// What a member does with its oplog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It writes entries with their changes, if its server lets clients write.
    Primary,
    /// It appends and applies the entries of another member.
    Follower,
}

/// The locks of a member; a change of the role holds both, in this order.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    /// Held while entries are appended.
    pub(super) appends: Mutex<()>,
    /// Held while entries are applied or taken back.
    pub(super) applies: Mutex<()>,
}

/// A store with an oplog as a member of a replica set. Its calls may come from several threads.
#[derive(Clone, Copy)]
pub struct Replica<'s> {
    pub(super) store: &'s Store,
    pub(super) log: &'s Log,
}

impl Store {
    /// The store as a member of a replica set; `None` without an oplog.
    #[must_use]
    pub fn replica(&self) -> Option<Replica<'_>> {
        let log = self.oplog()?;
        Some(Replica { store: self, log })
    }
}

impl Replica<'_> {
    /// What it is. A store is opened as what it was: a primary that was killed is opened as one,
    /// and its server makes it a follower before it lets clients write.
    #[must_use]
    pub fn role(&self) -> Role {
        match self.log.applied().of_follower() {
            Some(_) => Role::Follower,
            None => Role::Primary,
        }
    }

    /// The last entry of the oplog; [`OpTime::NONE`] without any.
    #[must_use]
    pub fn written(&self) -> OpTime {
        self.log.last_entry()
    }

    /// A position that all entries up to the visible time have reached: the last entry of a
    /// follower; of a primary the time before its oldest write under way, or its last entry.
    #[must_use]
    pub fn visible(&self) -> OpTime {
        match self.role() {
            Role::Follower => self.log.last_entry(),
            Role::Primary => self.log.last_visible(),
        }
    }

    /// The last entry whose change the data has.
    #[must_use]
    pub fn applied(&self) -> OpTime {
        let applied = self.log.applied().of_follower();
        applied.unwrap_or_else(|| self.log.last_entry())
    }

    /// Make all entries that are written now survive a power loss; returns the last of them.
    ///
    /// # Errors
    /// Errors of the engine. No entry may be reported as durable then.
    pub fn sync(&self) -> Result<OpTime> {
        let visible = self.log.visible();
        // Of a primary: an entry before a later one may not be committed yet.
        let written = self.visible();
        self.store.engine().sync_log().map_err(error::engine)?;
        self.log.synced().note(visible);
        Ok(written)
    }

    /// Become a follower: from now on every other write of what has entries fails with
    /// `NotWritablePrimary`, also the commit of a transaction that is open. All that is written is
    /// applied. Does nothing for a follower.
    ///
    /// # Errors
    /// The operation must end while it waits for commits; errors of the engine. The store is then
    /// what it was.
    pub fn follow(&self, op: &Op<'_>) -> Result<()> {
        let locks = self.locks();
        let _appends = locks.appends.lock();
        let _applies = locks.applies.lock();
        if self.role() == Role::Follower {
            return Ok(());
        }
        while !self.log.follow(stdx::time::now() + GATE) {
            self.store.check_open(op)?;
        }
        let turn = self.store.turn(op);
        let put = turn.and_then(|_turn| {
            let mut txn = self.store.engine().begin_write().map_err(error::engine)?;
            mark::put(txn.as_mut(), self.store.trees().catalog, self.applied())?;
            txn.commit(Durability::Group).map_err(error::engine)
        });
        if put.is_err() {
            self.log.applied().set(None);
        }
        put
    }

    /// Become the primary of a term: entries of other members are no longer appended, and writes
    /// have entries of this term. The server calls [`Replica::begin_term`] before it lets clients
    /// write.
    ///
    /// # Errors
    /// `IllegalOperation` while entries are written that are not applied, or for a term before that
    /// of the last entry; errors of the engine, after which the store is what it was.
    pub fn lead(&self, op: &Op<'_>, term: i64) -> Result<()> {
        let locks = self.locks();
        let _appends = locks.appends.lock();
        let _applies = locks.applies.lock();
        if let Some(copy) = self.copying()
            && copy.phase != super::copy::Phase::Complete
        {
            let message = "cannot become primary: the initial sync is not complete";
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        let (written, applied) = (self.written(), self.applied());
        if applied != written {
            let message = format!(
                "cannot become primary: applied up to {}, and the oplog ends at {}; apply the rest",
                shown(applied),
                shown(written)
            );
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        if term < written.term {
            let message = format!(
                "cannot become primary of the term {term}: the oplog ends at {}",
                shown(written)
            );
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        if self.role() == Role::Follower {
            let _turn = self.store.turn(op)?;
            let mut txn = self.store.engine().begin_write().map_err(error::engine)?;
            mark::remove(txn.as_mut(), self.store.trees().catalog)?;
            txn.commit(Durability::Group).map_err(error::engine)?;
        }
        self.log.set_term(term);
        self.log.applied().set(None);
        Ok(())
    }

    /// Put the entry that begins the term of a new primary, with a note; returns its position. Its
    /// time is `at` if that is later than all entries, or the next one.
    ///
    /// # Errors
    /// `NotWritablePrimary` for a follower; the operation must end; errors of the engine.
    pub fn begin_term(&self, op: &Op<'_>, at: Timestamp, note: &RawDocument) -> Result<OpTime> {
        let _turn = self.store.turn(op)?;
        self.store.commit_note(self.log, (at, note), op.durability)
    }

    /// Drop the temporary collections, which an `$out` of another primary has not finished: a new
    /// primary does so once it may write. Returns their number.
    ///
    /// # Errors
    /// `NotWritablePrimary` for a follower; the operation must end; errors of the engine.
    pub fn drop_temporary(&self, op: &Op<'_>) -> Result<usize> {
        let mut dropped = 0;
        for (ns, _) in self.store.catalog().iter() {
            let stored = self.store.get_stored(ns)?;
            if stored.is_some_and(|stored| stored.temporary) {
                dropped += usize::from(self.store.drop_collection(op, ns)?);
            }
        }
        Ok(dropped)
    }

    pub(super) fn locks(&self) -> &Locks {
        self.store.part::<Locks>()
    }

    /// Check that it is a follower.
    pub(super) fn check_follows(&self, what: &str) -> Result<()> {
        match self.role() {
            Role::Follower => Ok(()),
            Role::Primary => {
                let message = format!("a primary cannot {what}: it must become a follower first");
                Err(Error::new(Code::ILLEGAL_OPERATION, message))
            }
        }
    }
}

/// A position in messages.
pub(super) fn shown(at: OpTime) -> String {
    let OpTime { ts, term } = at;
    format!("Timestamp({}, {}) of term {term}", ts.time, ts.increment)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kv::Engine;
    use query::Namespace;

    use super::*;
    use crate::collection::CollectionOptions;
    use crate::store::Options;

    fn open(engine: &Arc<dyn Engine>) -> Arc<Store> {
        let options = Options {
            oplog: true,
            oplog_period: None,
            ttl_period: None,
            ..Options::default()
        };
        Store::open(Arc::clone(engine), options).unwrap()
    }

    fn engine() -> Arc<dyn Engine> {
        let directory = tempfile::tempdir().unwrap();
        let engine = kv::memory::factory().open(directory.path(), &kv::EngineOptions::default());
        Arc::from(engine.unwrap())
    }

    #[test]
    fn a_new_primary_drops_what_another_has_left_temporary() {
        let (first, other) = (engine(), engine());
        let (primary, mut follower) = (open(&first), open(&other));
        let op = Op::new(Durability::Group);
        let ns = Namespace::new("test", "tmp.agg_out.1").unwrap();
        let options = CollectionOptions::default();
        primary.create_temporary(&op, &ns, options).unwrap();
        let entries = primary.replica().unwrap();
        let entries = entries
            .stored_after(OpTime::NONE.ts, 9, usize::MAX)
            .unwrap();
        let values: Vec<&[u8]> = entries.iter().map(|entry| &*entry.value).collect();
        let replica = follower.replica().unwrap();
        replica.follow(&op).unwrap();
        let last = replica.append(&op, OpTime::NONE, &values).unwrap();
        replica.apply_to(&op, last).unwrap();
        assert!(
            replica.drop_temporary(&op).is_err(),
            "a follower writes nothing"
        );
        // Nor does it when it is opened.
        drop(follower);
        follower = open(&other);
        assert!(follower.collection(&ns).is_some());
        let replica = follower.replica().unwrap();
        replica.lead(&op, 2).unwrap();
        assert_eq!(replica.drop_temporary(&op).unwrap(), 1);
        assert!(follower.collection(&ns).is_none());
        assert!(last.ts < replica.written().ts);
    }
}

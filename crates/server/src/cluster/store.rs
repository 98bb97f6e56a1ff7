//! The document store as the store of a member. A member copies the whole oplog of another one only
//! if that oplog begins with the set: the store was empty when it was opened as a member first, and
//! no entry was removed since.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf, Timestamp, rawdoc};
use docdb::oplog::entry::OpTime;
use docdb::replica::Replica;
use docdb::replica::copy::{Copying, Left, Origin, Phase, Portion};
use docdb::{Op, Store};
use kv::Durability;
use query::{Code, Error, Result};
use repl::log::{Log, Run};
use repl::position::{Position, Term};

use super::letter::{EngineNote, number, timestamp};
use super::storage::{Read, Started, Storage, StoredEntry};
use super::sync::lease::Leases;
use super::sync::letter::{Answer, Asked, CATALOG, Content};
use super::traffic::Traffic;

/// The property that says that the oplog has everything since the store was empty.
const WHOLE: &str = "replset-whole-oplog";

/// The most entries that are read at once.
const ENTRIES: usize = 5_000;

/// How long the answer to a member that copies this one may take.
const ANSWER: Duration = Duration::from_secs(20);

/// The store of a member.
pub(crate) struct MemberStore {
    store: Arc<Store>,
    whole: AtomicBool,
    leases: Leases,
    /// How many rollbacks have begun.
    rollbacks: AtomicU64,
    pub(crate) traffic: Arc<Traffic>,
}

impl MemberStore {
    /// Take a store with an oplog, in which nothing was written by this process yet: it becomes a
    /// follower.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn new(store: Arc<Store>) -> Result<MemberStore> {
        let replica = replica(&store)?;
        let empty = replica.written() == OpTime::NONE && !has_data(&store)?;
        if empty {
            store.set_property(WHOLE, b"1")?;
        }
        replica.follow(&operation())?;
        // Also while it has no other member: it may get some. A copy takes nothing back.
        let copies = replica.copying().is_some_and(|copy| is_under_way(&copy));
        replica.keep_undo(&operation(), !copies)?;
        let whole = store.property(WHOLE)?.is_some_and(|value| value == b"1");
        Ok(MemberStore {
            store,
            whole: AtomicBool::new(whole),
            leases: Leases::default(),
            rollbacks: AtomicU64::new(0),
            traffic: Arc::default(),
        })
    }

    /// How many rollbacks have begun.
    pub(crate) fn rollbacks(&self) -> u64 {
        self.rollbacks.load(Ordering::SeqCst)
    }

    /// Answer a member that copies this store (`sync`: Z1 is for the caller). Also returns the
    /// position that the answer has the data of.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn answer(&self, member: u32, asked: &Asked) -> Result<(Answer, Position)> {
        let replica = self.replica()?;
        let id = self.store.property(crate::store_id::PROPERTY)?;
        let mut op = operation();
        op.deadline = stdx::time::now().checked_add(ANSWER);
        let (content, at) = match asked {
            Asked::Begin => {
                let origin = replica.origin(&op, CATALOG)?;
                let at = super::letter::position_of(&origin.entry)?;
                self.leases.renew(&self.store, member, before(at))?;
                (Content::Origin(origin), at)
            }
            Asked::Portion(wanted) => {
                let at = position(wanted.after)?;
                let portion = self
                    .leases
                    .renew(&self.store, member, before(at))
                    .and_then(|()| replica.portion(&op, wanted));
                match portion {
                    Err(error) if error.code == Code::CAPPED_POSITION_LOST => {
                        (Content::Again(error.message), Position::ZERO)
                    }
                    Err(error) => return Err(error),
                    Ok(portion) => {
                        let at = position(portion.at)?;
                        (Content::Portion(portion), at)
                    }
                }
            }
        };
        let store = id.unwrap_or_default();
        Ok((Answer { store, content }, at))
    }

    fn replica(&self) -> Result<Replica<'_>> {
        replica(&self.store)
    }

    /// The copy that the store is, unless it is complete.
    fn under_way(&self) -> Option<Copying> {
        let copy = self.replica().ok()?.copying();
        copy.filter(is_under_way)
    }

    /// The entries up to `at` are committed: the data of a copy can be shown.
    fn settle(&self, at: Position) -> Result<()> {
        let floor = self.floor();
        match floor != Position::ZERO && floor <= at {
            true => self.replica()?.settle_copy(&operation()),
            false => Ok(()),
        }
    }

    /// The first entry after a time.
    fn next(&self, after: u64) -> Result<Option<OpTime>> {
        let after = timestamp(Position {
            term: Term(1),
            ts: after,
        });
        let found = self.replica()?.stored_after(after, 1, 1)?;
        Ok(found.first().map(|entry| entry.at))
    }

    /// The time of the last entry of a term, which has an entry at `low`; `high` is the last entry
    /// of all. Terms do not decrease, so the end of a term is searched by halves.
    fn end_of(&self, term: i64, low: u64, high: u64) -> Result<u64> {
        let (mut low, mut high) = (low, high);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.next(middle)? {
                // Some entry of the term is later.
                Some(at) if at.term == term => low = number(at.ts),
                _ => high = middle,
            }
        }
        Ok(low)
    }

    fn log(&self) -> Result<Log> {
        let written = self.replica()?.written();
        let mut runs = Vec::new();
        let mut next = match written == OpTime::NONE {
            true => None,
            false => self.first(number(written.ts))?,
        };
        while let Some(first) = next {
            let last = self.end_of(first.term, number(first.ts), number(written.ts))?;
            let at = position(OpTime {
                ts: first.ts,
                term: first.term,
            })?;
            runs.push(Run {
                term: at.term,
                last,
            });
            next = match last < number(written.ts) {
                true => self.next(last)?,
                false => None,
            };
        }
        Log::of(runs).ok_or_else(|| {
            let message = "the terms of the oplog do not increase; restore the store from a backup";
            Error::new(Code::INTERNAL_ERROR, message)
        })
    }

    /// The first entry that is kept.
    fn first(&self, last: u64) -> Result<Option<OpTime>> {
        let lost = |after| match self.next(after) {
            Err(error) if error.code == Code::CAPPED_POSITION_LOST => Ok(true),
            Err(error) => Err(error),
            Ok(_) => Ok(false),
        };
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = low + (high - low) / 2;
            match lost(middle)? {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        // The time before it: its own is the first after which nothing is lost, or earlier.
        match self.next(low.saturating_sub(1)) {
            Err(_) => self.next(low),
            first => first,
        }
    }
}

impl Storage for MemberStore {
    fn start(&self) -> Result<Started> {
        if self.under_way().is_some() {
            return Ok(Started::default());
        }
        Ok(Started {
            log: self.log()?,
            // It is learned from the others; nothing that was committed can be undone meanwhile,
            // because no log without it becomes newer than this one.
            commit: Position::ZERO,
        })
    }

    fn last(&self) -> Position {
        if self.under_way().is_some() {
            return Position::ZERO;
        }
        let at = self.replica().map(|replica| replica.visible());
        at.and_then(position).unwrap_or(Position::ZERO)
    }

    fn applied(&self) -> Position {
        if self.under_way().is_some() {
            return Position::ZERO;
        }
        let at = self.replica().map(|replica| replica.applied());
        at.and_then(position).unwrap_or(Position::ZERO)
    }

    fn engine(&self) -> EngineNote {
        let engine = self.store.engine();
        EngineNote {
            name: engine.name().into(),
            key_max: engine.capabilities().limits.key_max,
        }
    }

    fn bytes(&self) -> u64 {
        self.store.oplog_totals().map_or(0, |(_, bytes)| bytes)
    }

    fn read(&self, after: Position, through: Position, bytes: usize) -> Result<Read> {
        if after == Position::ZERO && !self.whole.load(Ordering::Acquire) {
            return Ok(Read::TooOld);
        }
        let found = self
            .replica()?
            .stored_after(timestamp(after), ENTRIES, bytes);
        let found = match found {
            Err(error) if error.code == Code::CAPPED_POSITION_LOST => return Ok(Read::TooOld),
            other => other?,
        };
        let mut entries = Vec::new();
        for entry in found {
            if through < position(entry.at)? {
                break;
            }
            entries.push(entry.value);
        }
        Ok(Read::Entries(entries))
    }

    fn append(&self, entries: &[StoredEntry]) -> Result<()> {
        let replica = self.replica()?;
        let values: Vec<&[u8]> = entries.iter().map(Vec::as_slice).collect();
        let last = replica.append(&operation(), replica.written(), &values)?;
        let bytes = values.iter().map(|value| value.len() as u64).sum();
        let count = values.len() as u64;
        self.traffic.wrote(position(last)?, count, bytes);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.replica()?.sync().map(|_| ())
    }

    fn apply(&self, to: Position, committed: bool) -> Result<()> {
        let replica = self.replica()?;
        if committed {
            self.committed(to);
        }
        if position(replica.applied())? < to {
            let begun = stdx::time::now();
            replica.apply_to(&operation(), optime(to))?;
            self.traffic.applied_to(to, begun.elapsed());
        }
        match committed {
            true => self.settle(to),
            false => Ok(()),
        }
    }

    fn committed(&self, at: Position) {
        if let Ok(replica) = self.replica() {
            replica.set_committed(optime(at));
        }
        // The next commit point comes soon.
        drop(self.settle(at));
    }

    fn roll_back(&self, to: Position) -> Result<()> {
        let replica = self.replica()?;
        if to < self.floor() {
            replica.abandon_copy(&operation())?;
            let message = "entries that this member has copied with its data by an initial sync \
                were overruled by another primary; restart the server, which then copies its data \
                again";
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        if to < position(replica.written())? {
            // Before anything that a read has seen is taken back.
            self.rollbacks.fetch_add(1, Ordering::SeqCst);
            replica.roll_back_to(&operation(), optime(to))?;
            self.traffic.rolled_back(to);
        }
        Ok(())
    }

    fn lead(&self, term: Term) -> Result<Position> {
        let replica = self.replica()?;
        let op = operation();
        let term = i64::try_from(term.0).map_err(|_| Error::bad_value("a term out of range"))?;
        replica.lead(&op, term)?;
        let seconds = u32::try_from(stdx::time::wall().as_secs()).unwrap_or(u32::MAX);
        let now = Timestamp {
            time: seconds,
            increment: 1,
        };
        let first = replica.begin_term(&op, now, &rawdoc! { "msg": "new primary" })?;
        // Before clients write: theirs are in use.
        replica.drop_temporary(&op)?;
        position(first)
    }

    fn follow(&self) -> Result<Position> {
        let replica = self.replica()?;
        replica.follow(&operation())?;
        position(replica.written())
    }

    fn copying(&self) -> Option<RawDocumentBuf> {
        Some(self.under_way()?.label)
    }

    fn copied(&self) -> Option<Position> {
        let copy = self.under_way()?;
        let continued = copy.phase == Phase::Copying;
        // After a crash some of these may be still to be applied.
        let at = self.replica().ok()?.written();
        position(at).ok().filter(|_| continued)
    }

    fn floor(&self) -> Position {
        let copy = self.replica().ok().and_then(|replica| replica.copying());
        let complete = copy.filter(|copy| copy.phase == Phase::Complete);
        let floor = complete.and_then(|copy| position(copy.floor).ok());
        floor.unwrap_or(Position::ZERO)
    }

    fn begin_copy(&self, label: &RawDocument, origin: &Origin) -> Result<()> {
        // Its entries will not reach back to the beginning of the set.
        self.store.set_property(WHOLE, b"0")?;
        self.whole.store(false, Ordering::Release);
        self.replica()?.begin_copy(&operation(), label, origin)
    }

    fn copy_next(&self) -> Option<(OpTime, Option<Left>)> {
        self.replica().ok()?.copy_next()
    }

    fn take_portion(&self, portion: &Portion) -> Result<Position> {
        let replica = self.replica()?;
        replica.take_portion(&operation(), portion)?;
        position(replica.applied())
    }

    fn complete_copy(&self) -> Result<Position> {
        let replica = self.replica()?;
        let floor = replica.complete_copy(&operation())?;
        replica.keep_undo(&operation(), true)?;
        position(floor)
    }

    fn tend(&self) {
        self.leases.expire(stdx::time::now());
    }
}

/// Whether a copy is not complete.
fn is_under_way(copy: &Copying) -> bool {
    copy.phase != Phase::Complete
}

/// The time before a position: a pin keeps what is later.
fn before(at: Position) -> Timestamp {
    timestamp(Position {
        ts: at.ts.saturating_sub(1),
        ..at
    })
}

fn replica(store: &Store) -> Result<Replica<'_>> {
    store.replica().ok_or_else(|| {
        let message = "a member of a replica set needs an oplog; set replication.oplogSizeMB";
        Error::new(Code::ILLEGAL_OPERATION, message)
    })
}

/// Whether there are collections.
fn has_data(store: &Store) -> Result<bool> {
    let catalog = store.catalog();
    for database in catalog.databases() {
        if database != "local" && !store.list_collections(database)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn operation() -> Op<'static> {
    Op::new(Durability::Interval)
}

/// A position of the oplog as one of the protocol.
///
/// # Errors
/// An entry without a term.
pub(crate) fn position(at: OpTime) -> Result<Position> {
    if at == OpTime::NONE || number(at.ts) == 0 {
        return Ok(Position::ZERO);
    }
    let term = u64::try_from(at.term).ok().filter(|term| 0 < *term);
    let term = term.ok_or_else(|| {
        let message = format!("the oplog has an entry without a term at {}", at.ts);
        Error::new(Code::INTERNAL_ERROR, message)
    })?;
    Ok(Position {
        term: Term(term),
        ts: number(at.ts),
    })
}

/// A position of the protocol as one of the oplog.
pub(crate) fn optime(at: Position) -> OpTime {
    if at == Position::ZERO {
        return OpTime::NONE;
    }
    OpTime {
        ts: timestamp(at),
        term: i64::try_from(at.term.0).unwrap_or(i64::MAX),
    }
}

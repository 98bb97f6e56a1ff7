//! The stored oplog, written by the transactions whose changes it records into the trees of its
//! segments (see `segment`).
//!
//! - O1. An entry is put in the engine transaction that makes its change: a store has both or
//!   neither, also after a crash.
//! - O2. The times of a transaction are reserved after its last change and held until its commit
//!   has returned (see `slots`). A transaction that changes what another one has changed is a
//!   conflict unless it began after that one's commit, so the entries of a document have the order
//!   of its changes.
//! - O3. Times increase, also over a restart and with the wall clock set back.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bson::{DateTime, RawDocument, Timestamp};
use kv::{Engine, Transaction};
use query::{Code, Error, Result};
use stdx::sync::atomic::{AtomicI64, Ordering};
use stdx::sync::{Condvar, Mutex, MutexGuard};

use super::applied::Applied;
use super::entry::{Entry, GROUP_MAX, OpTime, Operation, Session, chain};
use super::pending::Pending;
use super::segment::{self, Segment};
use super::segments::{Limits, Segments};
use super::slots::{Oldest, Slot, Slots, next};
use super::synced::Synced;
use super::undo::{Keeping, Undo};
use super::written::note_written;
use crate::collection::Core;
use crate::error;
use crate::plant::{Plant, planted};
use crate::writes::{Awaiting, Streams, Touched};

/// The term of the entries of a set of one member, which elects that member once.
const TERM: i64 = 1;

/// The database that the entries of several operations name, as in MongoDB.
const GROUPS: &str = "admin";

/// Issues times: each is later than the one before, which it receives.
pub(crate) type Clock = Box<dyn Fn(Timestamp) -> Timestamp + Send + Sync>;

/// The oplog of a store.
pub(crate) struct Log {
    slots: Slots,
    synced: Synced,
    /// Locked under the lock of the slots.
    segments: Mutex<Segments>,
    /// Segments whose trees are still to be dropped, in order. Held while segments are made and
    /// removed.
    pub(crate) removed: Mutex<VecDeque<u64>>,
    /// The shared parts of the collection that shows it.
    core: Arc<Core>,
    /// The clock that issues the times; the wall clock until it is set.
    clock: OnceLock<Clock>,
    /// Notified whenever a slot has ended.
    ended: (Mutex<()>, Condvar),
    /// The waits of change streams.
    streams: Arc<Streams>,
    /// The term of the entries that this member writes.
    term: AtomicI64,
    /// The last entry: the one with the greatest time among the committed ones.
    last: Mutex<OpTime>,
    /// What of it the data has.
    applied: Applied,
    /// Whether undo records are kept beside the entries.
    undo: Keeping,
}

/// The entries up to a time have become visible.
pub(crate) struct Advanced {
    /// Some of their times.
    pub(crate) times: Vec<Timestamp>,
    /// What they change.
    pub(crate) touched: Touched,
}

/// The reserved times of a transaction, with what it puts. It ends after the commit.
#[must_use = "the times are reserved until it is dropped"]
pub(crate) struct Reserved<'l> {
    log: &'l Log,
    /// Present until it is dropped.
    slot: Option<Slot<'l>>,
    /// Entries and bytes in each segment.
    put: Vec<(Arc<Segment>, u64, u64)>,
    /// The times of its entries, and what they touch.
    times: Vec<Timestamp>,
    touched: Touched,
}

impl Log {
    /// The oplog of a store, which may have none yet. `mark`: what a follower has applied.
    ///
    /// # Errors
    /// Errors of the engine; damaged segments.
    pub(crate) fn open(
        engine: &dyn Engine,
        (limits, used): (Limits, bool),
        mark: Option<OpTime>,
    ) -> Result<Log> {
        let segments = Segments::open(engine, limits, used)?;
        let last = segments.last_entry(engine)?;
        let (mut entries, mut bytes) = (0, 0);
        for placed in segments.all() {
            entries += placed.segment.entries();
            bytes += placed.segment.document_bytes();
        }
        Ok(Log {
            slots: Slots::new(segments.last()),
            synced: Synced::default(),
            segments: Mutex::new(segments),
            removed: Mutex::new(VecDeque::new()),
            core: super::collection::core(entries, bytes),
            clock: OnceLock::new(),
            ended: (Mutex::new(()), Condvar::new()),
            streams: Arc::default(),
            // The next term is set before this member writes, unless it is the only one.
            term: AtomicI64::new(last.term.max(TERM)),
            last: Mutex::new(last),
            applied: Applied::new(mark),
            undo: Keeping::open(engine)?,
        })
    }

    /// Put the entries of a transaction's changes; none for a transaction without changes. The
    /// caller holds the reserved times until the commit has returned (O2).
    ///
    /// # Errors
    /// `TransactionTooLarge` or `BSONObjectTooLarge` for an operation that no entry can have;
    /// `NotWritablePrimary` for a follower; errors of the engine. The transaction must not be
    /// committed then.
    pub(crate) fn put(
        &self,
        txn: &mut (dyn Transaction + '_),
        pending: &Pending,
    ) -> Result<Option<Reserved<'_>>> {
        let mut put = Put {
            log: self,
            txn,
            reserved: None,
        };
        let hidden = if pending.is_empty() {
            None
        } else {
            pending.hidden()
        };
        let operations = pending.operations();
        let commands = pending.commands();
        for (index, command) in commands.iter().enumerate() {
            let at = put.next(pending.holder())?;
            let operation = Operation::parse(command)?;
            let last = operations.is_empty() && index + 1 == commands.len();
            let hidden = hidden.as_deref().filter(|_| last);
            let time = at.0.ts;
            put.entry((at, wall()), hidden, |at, wall| {
                Entry::new(at, wall, operation)
            })?;
            if self.undo.kept().is_some() {
                put.undo(time, &pending.undo_of_command(index, last))?;
            }
        }
        match operations.get(0) {
            None => {}
            Some(one) if operations.len() == 1 && !pending.is_transaction() => {
                let at = put.next(pending.holder())?;
                let (time, wall) = (at.0.ts, wall());
                let operation = Operation::parse(one)?;
                put.entry((at, wall), hidden.as_deref(), |at, wall| {
                    let mut entry = Entry::new(at, wall, operation);
                    entry.session = pending.session();
                    entry.statements = operations.statement_of(0).into_iter().collect();
                    entry
                })?;
                pending.images().put(put.txn, (time, wall), &(0..1))?;
            }
            Some(_) => put.chain(pending, hidden.as_deref())?,
        }
        if !operations.is_empty() {
            let time = put.reserved.as_ref().map(Reserved::at);
            put.undo(time.unwrap_or(OpTime::NONE).ts, pending.undo())?;
        }
        if let Some(reserved) = &mut put.reserved {
            reserved.touched = pending.touched();
        }
        Ok(put.reserved)
    }

    /// The time up to which the oplog has no holes. For a follower that of the last applied entry:
    /// later ones may be taken back, and the data does not have them.
    pub(crate) fn visible(&self) -> Timestamp {
        match self.applied.of_follower() {
            Some(applied) => applied.ts,
            None => self.slots.visible(),
        }
    }

    /// The time up to which a snapshot that was opened before this call may have changes: a commit
    /// is seen before it has returned. Not all entries up to then exist; see [`Log::reached`].
    pub(crate) fn seen_until(&self) -> Timestamp {
        match self.applied.of_follower() {
            Some(applied) => applied.ts,
            None => self.slots.last(),
        }
    }

    /// The time of the last entry up to `time` if there is none after it, and else `time`: a write
    /// that was given up leaves a time without an entry, to which no position comes. It is `time`
    /// while a write with an earlier one may still commit.
    pub(crate) fn reached(&self, time: Timestamp) -> Timestamp {
        match self.slots.oldest() {
            Some(oldest) if oldest.time <= time => time,
            // Read now: a slot ends after its entry is the last one.
            _ => time.min(self.last_entry().ts),
        }
    }

    /// The time up to which change streams read: of a member of a replica set only what is
    /// committed, for a stream cannot take events back.
    pub(crate) fn followed(&self) -> Timestamp {
        let visible = self.visible();
        match self.undo.kept() {
            Some(_) if !planted(Plant::StreamUncommitted) => visible.min(self.undo.committed()),
            _ => visible,
        }
    }

    /// All entries up to this time are committed. Ends the waits of change streams for them.
    pub(crate) fn commit(&self, time: Timestamp) {
        self.undo.commit(time);
        self.streams
            .ended(&[], Touched::default(), || self.followed());
    }

    /// Whether undo records are kept, and where.
    pub(crate) fn undo(&self) -> &Keeping {
        &self.undo
    }

    /// The last entries were removed, and `left` is the last one now.
    pub(crate) fn removed_last(&self, left: OpTime, gone: &[(Arc<Segment>, Timestamp, u64)]) {
        *self.last.lock() = left;
        self.synced.end_at(left.ts);
        let mut documents = 0;
        for (segment, _, bytes) in gone {
            segment.remove(1, *bytes);
            documents += segment::document_bytes(1, *bytes);
        }
        self.segments.lock().end_at(left.ts);
        let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let entries = whole(gone.len() as u64);
        self.core.counts.show(-entries, -whole(documents));
    }

    /// All segments were removed but for an empty one: entries up to `lost` are missing.
    pub(crate) fn restarted(&self, segment: Arc<Segment>, lost: Timestamp) {
        let (mut entries, mut bytes) = (0, 0);
        {
            let mut segments = self.segments.lock();
            for placed in segments.all() {
                entries += placed.segment.entries();
                bytes += placed.segment.document_bytes();
            }
            segments.restart(segment, lost);
        }
        *self.last.lock() = OpTime::NONE;
        self.synced.end_at(lost);
        let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.core.counts.show(-whole(entries), -whole(bytes));
    }

    /// What of it the data has.
    pub(crate) fn applied(&self) -> &Applied {
        &self.applied
    }

    /// The last entry.
    pub(crate) fn last_entry(&self) -> OpTime {
        *self.last.lock()
    }

    /// Set the term of the entries that this member writes.
    pub(crate) fn set_term(&self, term: i64) {
        self.term.store(term, Ordering::Relaxed);
    }

    /// Entries of other members were appended, up to this one.
    pub(crate) fn appended(&self, last: OpTime, entries: u64, documents: u64) {
        self.segments.lock().skip(last.ts);
        self.slots.skip(last.ts);
        *self.last.lock() = last;
        let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.core.counts.show(whole(entries), whole(documents));
    }

    /// End the waits for visible entries.
    pub(crate) fn wake(&self, advanced: Advanced) {
        // A waiter holds this lock from reading the visible time until it waits.
        drop(self.ended.0.lock());
        self.ended.1.notify_all();
        self.core.writes.note(segment::number(self.visible()));
        self.core.writes.wake();
        let Advanced { times, touched } = advanced;
        self.streams.ended(&times, touched, || self.followed());
    }

    /// Call `body` with the last time while no entry is being put, and none is put meanwhile (see
    /// [`Slots::between`]); `None` if one still is at `deadline`. No entry gets a time up to
    /// `least` later.
    pub(crate) fn between<R>(
        &self,
        deadline: std::time::Instant,
        least: Timestamp,
        body: impl FnOnce(Timestamp) -> R,
    ) -> Option<R> {
        if self.applied.of_follower().is_some() {
            return self
                .applied
                .between(deadline, least, |applied| body(applied.ts));
        }
        self.slots.between(deadline, least, |time| {
            self.segments.lock().skip(time);
            body(time)
        })
    }

    /// Make the store a follower that has applied the last entry, while no entry is being put and
    /// none is put later; false if one still is at `deadline`.
    pub(crate) fn follow(&self, deadline: std::time::Instant) -> bool {
        let followed = self.slots.between(deadline, OpTime::NONE.ts, |_| {
            self.applied.set(Some(self.last_entry()));
        });
        followed.is_some()
    }

    /// What of it survives a power loss.
    pub(crate) fn synced(&self) -> &Synced {
        &self.synced
    }

    /// A wait for visible entries of what a change stream follows. It begins now: entries that are
    /// visible must be read after this call.
    pub(crate) fn awaiting(&self, followed: &str) -> Awaiting {
        Awaiting::stream(&self.streams, followed)
    }

    /// The shared parts of the collection that shows it.
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Issue no time up to the end of this second, which another clock may have issued (O3).
    pub(crate) fn begin_after(&self, second: u32) {
        self.segments.lock().begin_after(second);
    }

    /// Let a clock issue the times from now on. Only the first call has an effect.
    pub(crate) fn set_clock(&self, clock: Clock) {
        // The clock of the first call stays.
        drop(self.clock.set(clock));
    }

    /// Put an entry that changes nothing, with the time `least` if that is later than all times
    /// issued.
    ///
    /// # Errors
    /// `NotWritablePrimary` for a follower; errors of the engine.
    pub(crate) fn put_note(
        &self,
        txn: &mut (dyn Transaction + '_),
        least: Timestamp,
        note: &RawDocument,
    ) -> Result<Reserved<'_>> {
        let mut put = Put {
            log: self,
            txn,
            reserved: None,
        };
        let at = put.next_from("note", least)?;
        let operation = Operation::Nothing { ns: "", note };
        put.entry((at, wall()), None, |at, wall| {
            Entry::new(at, wall, operation)
        })?;
        Ok(put.reserved.expect("a time was reserved for the entry"))
    }

    /// The time up to which stored entries can be read, applied or not.
    pub(crate) fn readable(&self) -> Timestamp {
        match self.applied.of_follower() {
            Some(_) => self.last_entry().ts,
            None => self.slots.visible(),
        }
    }

    /// A position that all entries up to the visible time have reached: of a primary.
    pub(crate) fn last_visible(&self) -> OpTime {
        let (ts, last) = (self.slots.visible(), self.last_entry());
        match ts < last.ts {
            true => OpTime { ts, ..last },
            false => last,
        }
    }

    /// Wait until all entries with times up to `time` are committed or given up, or until
    /// `deadline`; whether they are. None gets such a time later if the clock has issued it.
    pub(crate) fn settle(&self, time: Timestamp, deadline: std::time::Instant) -> bool {
        let open = || {
            self.slots
                .oldest()
                .is_some_and(|oldest| oldest.time <= time)
        };
        let mut guard = self.ended.0.lock();
        while open() {
            if self.ended.1.wait_until(&mut guard, deadline).timed_out() {
                return !open();
            }
        }
        true
    }

    /// The oldest open slot.
    pub(crate) fn oldest_slot(&self) -> Option<Oldest> {
        self.slots.oldest()
    }

    /// The segments; the caller must not hold this lock while it waits.
    pub(crate) fn segments(&self) -> MutexGuard<'_, Segments> {
        self.segments.lock()
    }

    /// Wait until the visible time is after `seen`, or until `deadline`; returns the visible time.
    pub(crate) fn wait(&self, seen: Timestamp, deadline: std::time::Instant) -> Timestamp {
        let mut guard = self.ended.0.lock();
        while self.visible() <= seen {
            if self.ended.1.wait_until(&mut guard, deadline).timed_out() {
                break;
            }
        }
        self.visible()
    }

    /// The next time (O3), which is `least` if that is later, and the segment of its entry.
    fn tick(&self, least: Timestamp) -> (Timestamp, Arc<Segment>) {
        let mut segments = self.segments.lock();
        let time = match self.clock.get() {
            _ if segments.last() < least => least,
            Some(clock) => clock(segments.last()),
            None => {
                let now = u32::try_from(stdx::time::wall().as_secs()).unwrap_or(u32::MAX);
                after(segments.last(), now)
            }
        };
        (time, segments.place(time))
    }
}

impl Reserved<'_> {
    /// The position of its last entry.
    pub(crate) fn at(&self) -> OpTime {
        let term = self.log.term.load(Ordering::Relaxed);
        let ts = self.times.last().copied().unwrap_or(OpTime::NONE.ts);
        OpTime { ts, term }
    }

    /// End it after a commit, or a commit that failed.
    pub(crate) fn end(mut self, committed: bool) {
        if committed {
            if let Some(slot) = &self.slot {
                note_written(slot.time());
                let term = self.log.term.load(Ordering::Relaxed);
                let mut last = self.log.last.lock();
                if last.ts < slot.time() {
                    let ts = slot.time();
                    *last = OpTime { ts, term };
                }
            }
            for (_, entries, bytes) in self.put.drain(..) {
                let documents = segment::document_bytes(entries, bytes);
                let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
                self.log.core.counts.show(whole(entries), whole(documents));
            }
        }
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        for (segment, entries, bytes) in &self.put {
            segment.remove(*entries, *bytes);
        }
        self.slot = None;
        // Also after a commit that failed: what it has left behind may be visible.
        self.log.wake(Advanced {
            times: std::mem::take(&mut self.times),
            touched: std::mem::take(&mut self.touched),
        });
    }
}

/// Entries being put in a transaction.
struct Put<'l, 't> {
    log: &'l Log,
    txn: &'t mut (dyn Transaction + 't),
    reserved: Option<Reserved<'l>>,
}

/// The time of an entry, and its segment.
type At = (OpTime, Arc<Segment>);

impl Put<'_, '_> {
    /// The time and the segment of the next entry.
    ///
    /// # Errors
    /// `NotWritablePrimary` for a follower.
    fn next(&mut self, holder: &'static str) -> Result<At> {
        self.next_from(holder, OpTime::NONE.ts)
    }

    /// [`Put::next`] with the time `least`, if that is later than all times issued.
    ///
    /// # Errors
    /// As [`Put::next`].
    fn next_from(&mut self, holder: &'static str, least: Timestamp) -> Result<At> {
        let log = self.log;
        let mut chosen = None;
        let tick = || {
            let (time, segment) = log.tick(least);
            chosen = Some(segment);
            time
        };
        let ts = match self.reserved.as_mut().and_then(|r| r.slot.as_mut()) {
            Some(slot) => slot.extend(tick),
            None => {
                let slot = log.slots.reserve(holder, tick);
                let ts = slot.time();
                self.reserved = Some(Reserved {
                    log,
                    slot: Some(slot),
                    put: Vec::new(),
                    times: Vec::new(),
                    touched: Touched::default(),
                });
                ts
            }
        };
        if let Some(reserved) = &mut self.reserved {
            reserved.times.push(ts);
        }
        let segment = chosen.expect("the slots call `tick` once");
        // The role does not change while the slot is open.
        if log.applied.of_follower().is_some() {
            let message = "not primary: the oplog gets the entries of another member";
            return Err(Error::new(Code::NOT_WRITABLE_PRIMARY, message));
        }
        let term = log.term.load(Ordering::Relaxed);
        Ok((OpTime { ts, term }, segment))
    }

    fn entry<'e>(
        &mut self,
        ((at, segment), wall): (At, DateTime),
        hidden: Option<&RawDocument>,
        entry: impl FnOnce(OpTime, DateTime) -> Entry<'e>,
    ) -> Result<()> {
        let mut bytes = entry(at, wall).to_raw()?.into_bytes();
        if let Some(hidden) = hidden {
            bytes.extend_from_slice(hidden.as_bytes());
        }
        let bytes = bytes.as_slice();
        let put = self
            .txn
            .put_blind(segment.tree(), &segment::key(at.ts), bytes);
        put.map_err(error::engine)?;
        if let Some(reserved) = &mut self.reserved {
            reserved.add(segment, segment::size(bytes));
        }
        Ok(())
    }

    /// Put the undo record of the entry at a time, if records are kept.
    fn undo(&mut self, time: Timestamp, undo: &Undo) -> Result<()> {
        match self.log.undo.kept() {
            Some(tree) if !undo.is_empty() => undo.put(self.txn, (tree, time)),
            _ => Ok(()),
        }
    }

    fn chain(&mut self, pending: &Pending, hidden: Option<&RawDocument>) -> Result<()> {
        let operations = pending.operations();
        let most = match pending.is_transaction() {
            true => usize::MAX,
            false => GROUP_MAX,
        };
        let links = chain(operations, most)?;
        let linked = pending.is_transaction() || 1 < links.len();
        let mut previous = OpTime::NONE;
        for (index, link) in links.iter().enumerate() {
            let at = self.next(pending.holder())?;
            let hidden = hidden.filter(|_| index + 1 == links.len());
            let (time, wall) = (at.0, wall());
            let operation = Operation::Command {
                database: GROUPS,
                uuid: None,
                command: &link.command,
                replaced: None,
            };
            self.entry((at, wall), hidden, |at, wall| {
                let mut entry = Entry::new(at, wall, operation);
                entry.session = pending.session();
                entry.previous = linked.then_some(previous);
                entry
            })?;
            let images = pending.images();
            images.put(self.txn, (time.ts, wall), &link.operations)?;
            previous = time;
        }
        Ok(())
    }
}

impl Reserved<'_> {
    fn add(&mut self, segment: Arc<Segment>, bytes: u64) {
        segment.add(bytes);
        match self.put.last_mut() {
            Some((last, entries, sum)) if Arc::ptr_eq(last, &segment) => {
                *entries += 1;
                *sum += bytes;
            }
            _ => self.put.push((segment, 1, bytes)),
        }
    }
}

impl Pending {
    fn session(&self) -> Option<Session<'_>> {
        let (id, number) = self.session_parts()?;
        Some(Session { id, number })
    }
}

fn wall() -> DateTime {
    let millis = stdx::time::wall().as_millis();
    DateTime::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// The first time after `last` that is not before the second `now`.
fn after(last: Timestamp, now: u32) -> Timestamp {
    if last.time < now {
        return Timestamp {
            time: now,
            increment: 1,
        };
    }
    next(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: u32, increment: u32) -> Timestamp {
        Timestamp { time, increment }
    }

    /// O3.
    #[test]
    fn times_do_not_go_back_with_the_wall_clock() {
        let steps = [
            (at(0, 0), 7, at(7, 1)),
            (at(7, 1), 7, at(7, 2)),
            (at(7, 2), 3, at(7, 3)),
            (at(7, u32::MAX), 7, at(8, 1)),
            (at(8, 1), 9, at(9, 1)),
        ];
        for (last, now, next) in steps {
            assert_eq!(after(last, now), next, "{last:?} {now}");
        }
    }
}

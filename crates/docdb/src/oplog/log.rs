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
use query::Result;
use stdx::sync::{Condvar, Mutex, MutexGuard};

use super::entry::{Entry, GROUP_MAX, OpTime, Operation, Operations, Session, chain};
use super::pending::Pending;
use super::segment::{self, Segment};
use super::segments::{Limits, Segments};
use super::slots::{Oldest, Slot, Slots, next};
use super::synced::Synced;
use super::written::note_written;
use crate::collection::Core;
use crate::error;
use crate::writes::{Awaiting, Streams, Touched};

/// The term of all entries: a set of one member elects that member once.
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
    /// The oplog of a store, which may have none yet.
    ///
    /// # Errors
    /// Errors of the engine; damaged segments.
    pub(crate) fn open(engine: &dyn Engine, limits: Limits, used: bool) -> Result<Log> {
        let segments = Segments::open(engine, limits, used)?;
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
        })
    }

    /// Put the entries of a transaction's changes; none for a transaction without changes. The
    /// caller holds the reserved times until the commit has returned (O2).
    ///
    /// # Errors
    /// `TransactionTooLarge` or `BSONObjectTooLarge` for an operation that no entry can have;
    /// errors of the engine. The transaction must not be committed then.
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
        for command in pending.commands() {
            let at = put.next(pending.holder());
            let operation = Operation::parse(command)?;
            put.entry((at, wall()), |at, wall| Entry::new(at, wall, operation))?;
        }
        let operations = pending.operations();
        match operations.get(0) {
            None => {}
            Some(one) if operations.len() == 1 && !pending.is_transaction() => {
                let at = put.next(pending.holder());
                let (time, wall) = (at.0.ts, wall());
                let operation = Operation::parse(one)?;
                put.entry((at, wall), |at, wall| {
                    let mut entry = Entry::new(at, wall, operation);
                    entry.session = pending.session();
                    entry.statements = operations.statement_of(0).into_iter().collect();
                    entry
                })?;
                pending.images().put(put.txn, (time, wall), &(0..1))?;
            }
            Some(_) => put.chain(pending, operations)?,
        }
        if let Some(reserved) = &mut put.reserved {
            reserved.touched = pending.touched();
        }
        Ok(put.reserved)
    }

    /// The time up to which the oplog has no holes.
    pub(crate) fn visible(&self) -> Timestamp {
        self.slots.visible()
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
        self.slots.between(deadline, least, |time| {
            self.segments.lock().skip(time);
            body(time)
        })
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

    /// Put an entry that changes nothing.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn put_note(
        &self,
        txn: &mut (dyn Transaction + '_),
        note: &RawDocument,
    ) -> Result<Option<Reserved<'_>>> {
        let mut put = Put {
            log: self,
            txn,
            reserved: None,
        };
        let at = put.next("note");
        let operation = Operation::Nothing { ns: "", note };
        put.entry((at, wall()), |at, wall| Entry::new(at, wall, operation))?;
        Ok(put.reserved)
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

    /// The next time (O3), and the segment of its entry.
    fn tick(&self) -> (Timestamp, Arc<Segment>) {
        let mut segments = self.segments.lock();
        let time = match self.clock.get() {
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
    /// End it after a commit, or a commit that failed.
    pub(crate) fn end(mut self, committed: bool) {
        if committed {
            if let Some(slot) = &self.slot {
                note_written(slot.time());
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
        // A waiter holds this lock from reading the visible time until it waits.
        drop(self.log.ended.0.lock());
        self.log.ended.1.notify_all();
        self.log
            .core
            .writes
            .note(segment::number(self.log.visible()));
        self.log.core.writes.wake();
        // Also after a commit that failed: what it has left behind may be visible.
        let touched = std::mem::take(&mut self.touched);
        let visible = || self.log.visible();
        self.log.streams.ended(&self.times, touched, visible);
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
    fn next(&mut self, holder: &'static str) -> At {
        let log = self.log;
        let mut chosen = None;
        let tick = || {
            let (time, segment) = log.tick();
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
        (OpTime { ts, term: TERM }, segment)
    }

    fn entry<'e>(
        &mut self,
        ((at, segment), wall): (At, DateTime),
        entry: impl FnOnce(OpTime, DateTime) -> Entry<'e>,
    ) -> Result<()> {
        let bytes = entry(at, wall).to_raw()?;
        let bytes = bytes.as_bytes();
        let put = self
            .txn
            .put_blind(segment.tree(), &segment::key(at.ts), bytes);
        put.map_err(error::engine)?;
        if let Some(reserved) = &mut self.reserved {
            reserved.add(segment, segment::size(bytes));
        }
        Ok(())
    }

    fn chain(&mut self, pending: &Pending, operations: &Operations) -> Result<()> {
        let most = match pending.is_transaction() {
            true => usize::MAX,
            false => GROUP_MAX,
        };
        let links = chain(operations, most)?;
        let linked = pending.is_transaction() || 1 < links.len();
        let mut previous = OpTime::NONE;
        for link in &links {
            let at = self.next(pending.holder());
            let (time, wall) = (at.0, wall());
            let operation = Operation::Command {
                database: GROUPS,
                uuid: None,
                command: &link.command,
                replaced: None,
            };
            self.entry((at, wall), |at, wall| {
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

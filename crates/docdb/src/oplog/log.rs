//! The stored oplog: a tree of the engine, written by the transactions whose changes it records.
//!
//! The tree is `_oplog.0`. The key of an entry is its time, seconds and increment in 4 bytes each,
//! big-endian; the value is the entry (see `entry`).
//!
//! - O1. An entry is put in the engine transaction that makes its change: a store has both or
//!   neither, also after a crash.
//! - O2. The times of a transaction are reserved after its last change and held until its commit
//!   has returned (see `slots`). A transaction that changes what another one has changed is a
//!   conflict unless it began after that one's commit, so the entries of a document have the order
//!   of its changes.
//! - O3. Times increase, also over a restart and with the wall clock set back.

use std::ops::Bound;

use bson::{DateTime, RawDocument, RawDocumentBuf, Timestamp};
use kv::{Direction, Engine, KeyRange, Snapshot, Transaction, TreeId};
use query::Result;
use stdx::sync::Mutex;

use super::entry::{Entry, GROUP_MAX, OpTime, Operation, Session, chain};
use super::pending::Pending;
use super::slots::{Slot, Slots};
use crate::error;

/// Name of the tree.
pub(crate) const TREE: &str = "_oplog.0";

/// The term of all entries: a set of one member elects that member once.
const TERM: i64 = 1;

/// The database that the entries of several operations name, as in MongoDB.
const GROUPS: &str = "admin";

/// The oplog of a store.
#[derive(Debug)]
pub(crate) struct Log {
    tree: TreeId,
    slots: Slots,
    /// The last time issued; locked under the lock of the slots.
    last: Mutex<Timestamp>,
}

impl Log {
    /// The oplog in a tree, which may be empty.
    ///
    /// # Errors
    /// Errors of the engine; a key that is no time.
    pub(crate) fn open(engine: &dyn Engine, tree: TreeId) -> Result<Log> {
        let snapshot = engine.begin_read().map_err(error::engine)?;
        let cursor = snapshot.cursor(tree, KeyRange::ALL, Direction::Backward);
        let mut cursor = cursor.map_err(error::engine)?;
        let last = match cursor.advance().map_err(error::engine)? {
            true => time_of(cursor.key())?,
            false => OpTime::NONE.ts,
        };
        Ok(Log {
            tree,
            slots: Slots::new(last),
            last: Mutex::new(last),
        })
    }

    /// Put the entries of a transaction's changes; none for a transaction without changes. The
    /// caller holds the slot until the commit has returned (O2).
    ///
    /// # Errors
    /// `TransactionTooLarge` or `BSONObjectTooLarge` for an operation that no entry can have;
    /// errors of the engine. The transaction must not be committed then.
    pub(crate) fn put(
        &self,
        txn: &mut (dyn Transaction + '_),
        pending: &Pending,
    ) -> Result<Option<Slot<'_>>> {
        let mut put = Put {
            log: self,
            txn,
            slot: None,
        };
        for command in pending.commands() {
            let at = put.next(pending.holder());
            let operation = Operation::parse(command)?;
            put.entry(&Entry::new(at, wall(), operation))?;
        }
        match pending.operations() {
            [] => {}
            [one] if !pending.is_transaction() => {
                let at = put.next(pending.holder());
                let mut entry = Entry::new(at, wall(), Operation::parse(one)?);
                entry.session = pending.session();
                entry.statements = pending.statement_of(0).into_iter().collect();
                put.entry(&entry)?;
            }
            several => put.chain(pending, several)?,
        }
        Ok(put.slot)
    }

    /// The time up to which the oplog has no holes.
    pub(crate) fn visible(&self) -> Timestamp {
        self.slots.visible()
    }

    /// The first `most` entries with later times than `after`, up to `until`.
    ///
    /// # Errors
    /// Errors of the engine; bytes that are no entry.
    pub(crate) fn read(
        &self,
        snapshot: &dyn Snapshot,
        (after, until): (Timestamp, Timestamp),
        most: usize,
    ) -> Result<Vec<RawDocumentBuf>> {
        let (start, end) = (key(after), key(until));
        let range = KeyRange {
            start: Bound::Excluded(start.as_slice()),
            end: Bound::Included(end.as_slice()),
        };
        let mut entries = Vec::new();
        if until <= after {
            return Ok(entries);
        }
        let cursor = snapshot.cursor(self.tree, range, Direction::Forward);
        let mut cursor = cursor.map_err(error::engine)?;
        while entries.len() < most && cursor.advance().map_err(error::engine)? {
            entries.push(RawDocument::from_bytes(cursor.value())?.to_owned());
        }
        Ok(entries)
    }

    /// The next time (O3).
    fn tick(&self) -> Timestamp {
        let now = u32::try_from(stdx::time::wall().as_secs()).unwrap_or(u32::MAX);
        let mut last = self.last.lock();
        *last = after(*last, now);
        *last
    }
}

/// Entries being put in a transaction.
struct Put<'l, 't> {
    log: &'l Log,
    txn: &'t mut (dyn Transaction + 't),
    slot: Option<Slot<'l>>,
}

impl Put<'_, '_> {
    /// The time of the next entry.
    fn next(&mut self, holder: &'static str) -> OpTime {
        let log = self.log;
        let ts = match &mut self.slot {
            Some(slot) => slot.extend(|| log.tick()),
            None => {
                let slot = self.slot.insert(log.slots.reserve(holder, || log.tick()));
                slot.time()
            }
        };
        OpTime { ts, term: TERM }
    }

    fn entry(&mut self, entry: &Entry<'_>) -> Result<()> {
        let bytes = entry.to_raw()?;
        let key = key(entry.at.ts);
        let put = self.txn.put_blind(self.log.tree, &key, bytes.as_bytes());
        put.map_err(error::engine)
    }

    fn chain(&mut self, pending: &Pending, operations: &[RawDocumentBuf]) -> Result<()> {
        let most = match pending.is_transaction() {
            true => usize::MAX,
            false => GROUP_MAX,
        };
        let operations = pending.with_statements(operations);
        let commands = chain(&operations, most)?;
        let linked = pending.is_transaction() || 1 < commands.len();
        let mut previous = OpTime::NONE;
        for command in &commands {
            let at = self.next(pending.holder());
            let operation = Operation::Command {
                database: GROUPS,
                uuid: None,
                command,
                replaced: None,
            };
            let mut entry = Entry::new(at, wall(), operation);
            entry.session = pending.session();
            entry.previous = linked.then_some(previous);
            self.entry(&entry)?;
            previous = at;
        }
        Ok(())
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
    match last.increment.checked_add(1) {
        Some(increment) => Timestamp { increment, ..last },
        None => Timestamp {
            time: last.time.saturating_add(1),
            increment: 1,
        },
    }
}

fn key(time: Timestamp) -> [u8; 8] {
    let number = u64::from(time.time) << 32 | u64::from(time.increment);
    number.to_be_bytes()
}

fn time_of(key: &[u8]) -> Result<Timestamp> {
    let corrupt = |_| -> query::Error { error::corrupt("a key of the oplog") };
    let bytes: [u8; 8] = key.try_into().map_err(corrupt)?;
    let [a, b, c, d, e, f, g, h] = bytes;
    Ok(Timestamp {
        time: u32::from_be_bytes([a, b, c, d]),
        increment: u32::from_be_bytes([e, f, g, h]),
    })
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
            assert_eq!(time_of(&key(next)).unwrap(), next);
            assert!(key(last) < key(next), "keys have the order of the times");
        }
        time_of(b"short").unwrap_err();
    }
}

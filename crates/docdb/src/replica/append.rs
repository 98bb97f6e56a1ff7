//! Appending the entries of another member, and reading stored entries for one.

use bson::Timestamp;
use kv::Durability;
use query::{Code, Error, Result};

use super::role::{Replica, shown};
use crate::error;
use crate::oplog::entry::{Entry, OpTime};
use crate::oplog::{Stored, segment};
use crate::txn::Op;

/// Bytes of entries that one transaction appends; a larger batch takes several.
pub const APPEND_MAX: usize = 16 << 20;

/// Entries that one transaction appends.
const ENTRIES_MAX: usize = 5_000;

/// An entry as it is stored and as it travels.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEntry {
    /// Its position.
    pub at: OpTime,
    /// The entry, and the part that clients are not shown.
    pub value: Vec<u8>,
}

impl Replica<'_> {
    /// The stored entries with later times than `after`, also those that are not applied or not
    /// synced: at most `most` entries, and no more of them once they have `bytes` bytes.
    ///
    /// # Errors
    /// `CappedPositionLost` if some of them were removed; errors of the engine.
    pub fn stored_after(
        &self,
        after: Timestamp,
        most: usize,
        bytes: usize,
    ) -> Result<Vec<StoredEntry>> {
        let mut all = Vec::new();
        let mut left = bytes;
        self.visit(after, self.log.readable(), |at, value| {
            left = left.saturating_sub(value.len());
            let value = value.to_vec();
            all.push(StoredEntry { at, value });
            Ok(all.len() < most && 0 < left)
        })?;
        Ok(all)
    }

    /// Visit the stored entries with times after `after` and up to `until`, until `visit` returns
    /// false.
    pub(super) fn visit(
        &self,
        mut after: Timestamp,
        until: Timestamp,
        mut visit: impl FnMut(OpTime, &[u8]) -> Result<bool>,
    ) -> Result<()> {
        if until <= after {
            return Ok(());
        }
        let snapshot = self.store.engine().begin_read().map_err(error::engine)?;
        self.log
            .read(snapshot.as_ref(), (&mut after, until), |value| {
                let at = Entry::parse(Stored::split(value)?.entry)?.at;
                visit(at, value)
            })
    }

    /// Append entries as another member has stored them, the first of which follows `after` there:
    /// it must be the last entry here. They are not applied. Returns the last entry, which is
    /// durable once [`Replica::sync`] returns it.
    ///
    /// # Errors
    /// `IllegalOperation` for a primary; `BadValue` for entries that do not follow the last one;
    /// entries that are malformed, too large or of another version. All name the time of the entry,
    /// and of a batch with one such entry none is appended (Q1). Errors of the engine, after which
    /// the first entries may be appended.
    pub fn append(&self, op: &Op<'_>, after: OpTime, values: &[&[u8]]) -> Result<OpTime> {
        let _appends = self.locks().appends.lock();
        self.check_follows("append entries")?;
        let mut last = self.log.last_entry();
        if after != last {
            let message = format!(
                "entries that follow {} cannot be appended: the oplog ends at {}",
                shown(after),
                shown(last)
            );
            return Err(Error::bad_value(message));
        }
        let mut entries = Vec::with_capacity(values.len());
        for value in values {
            last = check(last, value)?;
            entries.push((last, *value));
        }
        let mut rest = entries.as_slice();
        while !rest.is_empty() {
            let (portion, later) = rest.split_at(portion(rest));
            self.put(op, portion)?;
            rest = later;
        }
        Ok(self.log.last_entry())
    }

    /// Append entries in one transaction.
    pub(super) fn put(&self, op: &Op<'_>, entries: &[(OpTime, &[u8])]) -> Result<()> {
        let _turn = self.store.turn(op)?;
        let before = self.log.last_entry();
        let mut last = before;
        let mut added = Vec::new();
        let mut put = || -> Result<()> {
            let mut txn = self.store.engine().begin_write().map_err(error::engine)?;
            for (at, value) in entries {
                let segment = self.log.segments().choose(last.ts);
                let key = segment::key(at.ts);
                let put = txn.put_blind(segment.tree(), &key, value);
                put.map_err(error::engine)?;
                segment.add(segment::size(value));
                added.push((segment, segment::size(value)));
                last = *at;
            }
            txn.commit(Durability::Interval).map_err(error::engine)
        };
        let done = put();
        if done.is_err() {
            for (segment, bytes) in added {
                segment.remove(1, bytes);
            }
            self.log.segments().end_at(before.ts);
            return done;
        }
        let count = entries.len() as u64;
        let bytes = entries.iter().map(|(_, value)| value.len() as u64).sum();
        self.log.appended(last, count, bytes);
        Ok(())
    }
}

/// How many of the next entries one transaction appends, at least one.
fn portion(entries: &[(OpTime, &[u8])]) -> usize {
    let mut bytes = 0;
    let fits = |(_, value): &&(OpTime, &[u8])| {
        bytes += value.len();
        bytes <= APPEND_MAX
    };
    let count = entries.iter().take(ENTRIES_MAX).take_while(fits).count();
    count.max(1)
}

/// Check an entry that is to follow `last`; returns its position (Q1).
pub(super) fn check(last: OpTime, value: &[u8]) -> Result<OpTime> {
    let stored = Stored::split(value)
        .and_then(|stored| stored.retry().map(|_| stored))
        .map_err(|error| error.within(format_args!("the entry after {}", shown(last))))?;
    let entry = Entry::parse(stored.entry)
        .map_err(|error| error.within(format_args!("the entry after {}", shown(last))))?;
    let at = entry.at;
    if stored.entry.get("v")?.is_none() || stored.entry.get("t")?.is_none() {
        let message = format!("the entry {} has no version or no term", shown(at));
        return Err(Error::new(Code::FAILED_TO_PARSE, message));
    }
    if at.ts <= last.ts || at.term < last.term {
        let message = format!(
            "the entry {} cannot follow {}: times increase, and terms do not decrease",
            shown(at),
            shown(last)
        );
        return Err(Error::bad_value(message));
    }
    Ok(at)
}

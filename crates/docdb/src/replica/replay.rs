//! Bringing a copy of a store to a time, by the archived entries of the store it is a copy of.
//!
//! ```text
//! the copy's oplog   ... a b c   e          d was being committed when the copy was made
//! the archive            b c d e f g ...
//!                          ^
//!                          the last position up to which both are equal: what follows is taken
//!                          back in the copy, and appended and applied from the archive
//! ```
//!
//! - W1. The copy has exactly the changes of the entries in its oplog, because both are written in
//!   one transaction; entries that a follower has not applied are removed first. So its content is
//!   compared with the archive entry by entry, and no time has to be known at which the copy was
//!   made.
//! - W2. What is taken back has undo records: it is later than an entry that was being committed,
//!   so it was not known to be committed when the copy was made.
//! - W3. The changes of an entry are in the result exactly if its time is not after `until`; those
//!   of a transaction if its last entry's is not. Of the changes that are not in the archive, none
//!   is.

use std::iter::Peekable;

use bson::Timestamp;
use query::{Code, Error, Result};

use super::append::{APPEND_MAX, StoredEntry};
use super::before;
use super::role::{Replica, shown};
use crate::oplog::entry::OpTime;
use crate::txn::Op;

/// Entries that are appended and applied together.
const ENTRIES_MAX: usize = 5_000;

/// Entries of the copy that are compared at a time, and their bytes.
const COMPARED: (usize, usize) = (1_000, 4 << 20);

/// What a replay has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The position of the copy: up to it, its oplog and the archive are equal.
    pub begin: OpTime,
    /// The last entry that the store has now.
    pub end: OpTime,
    /// Number of entries after `begin`.
    pub entries: u64,
    /// The first entry that was not applied; `None` if the archive has no later one.
    pub next: Option<OpTime>,
}

/// Entries in order, as an archive returns them.
type Entries<'e> = dyn Iterator<Item = Result<StoredEntry>> + 'e;

impl Replica<'_> {
    /// The last entry with a time up to `time`; [`OpTime::NONE`] if an oplog that is complete has
    /// none, and `None` if it was removed.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn last_at(&self, time: Timestamp) -> Result<Option<OpTime>> {
        let lost = self.log.segments().lost();
        let mut found = (lost == OpTime::NONE.ts).then_some(OpTime::NONE);
        self.visit_back(time, |_, at, _| {
            found = Some(at);
            Ok(false)
        })?;
        Ok(found)
    }

    /// The position behind which no entry was removed: [`OpTime::NONE`], or that of the first entry
    /// that is kept.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn oldest(&self) -> Result<OpTime> {
        let lost = self.log.segments().lost();
        if lost == OpTime::NONE.ts {
            return Ok(OpTime::NONE);
        }
        let first = self.stored_after(lost, 1, 1)?;
        Ok(first.first().map_or(OpTime::NONE, |entry| entry.at))
    }

    /// Whether the oplog has the entry at a position; also for [`OpTime::NONE`] if it is complete.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn has(&self, position: OpTime) -> Result<bool> {
        if position == OpTime::NONE {
            return Ok(self.log.segments().lost() == OpTime::NONE.ts);
        }
        Ok(self.stored_entry(position)?.is_some())
    }

    /// The entry at a position, if the oplog has it.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn stored_entry(&self, position: OpTime) -> Result<Option<StoredEntry>> {
        let mut found = None;
        if self.log.segments().lost() <= before(position.ts) {
            self.visit(before(position.ts), position.ts, |at, value| {
                found = (at == position).then(|| StoredEntry {
                    at,
                    value: value.to_vec(),
                });
                Ok(found.is_none())
            })?;
        }
        Ok(found)
    }

    /// Bring a copy, which is a follower ([`crate::Options::follower`]), to the time `until`:
    /// `archive` has the entries of the original after `from`, which the oplog of the copy has
    /// ([`Replica::has`]). All its entries up to `until` are applied (W3). `proceed` is called
    /// with the position after each batch; its error ends the replay.
    ///
    /// # Errors
    /// `BadValue` if the copy has writes after `until`, or after the last entry of the archive;
    /// `IllegalOperation` if an entry differs from the archive's and cannot be taken back; those of
    /// `archive`, of `proceed` and of [`Replica::apply_to`]. The store is at some position then.
    pub fn replay(
        &self,
        op: &Op<'_>,
        (from, until): (OpTime, Timestamp),
        archive: &mut Entries<'_>,
        proceed: &mut dyn FnMut(OpTime) -> Result<()>,
    ) -> Result<Replay> {
        self.check_follows("replay entries")?;
        // What the copy of a follower has not applied comes from the archive.
        if self.applied() != self.written() {
            self.roll_back_to(op, self.applied())?;
        }
        let mut archive = archive.peekable();
        let begin = self.agree(from, &mut archive)?;
        if until < begin.ts {
            let message = format!(
                "the backup has all writes up to {}, which is later than the time to restore to; \
                 use an earlier backup",
                shown(begin)
            );
            return Err(Error::bad_value(message));
        }
        if begin != self.written() {
            // W2.
            self.roll_back_to(op, begin)?;
        }
        let mut entries = 0;
        loop {
            op.check()?;
            let batch = batch(&mut archive, until)?;
            if batch.is_empty() {
                break;
            }
            let values: Vec<&[u8]> = batch.iter().map(|entry| &*entry.value).collect();
            let last = self.append(op, self.written(), &values)?;
            self.apply_to(op, last)?;
            entries += batch.len() as u64;
            // The oplog does not keep what is applied beyond its limits.
            self.set_committed(last);
            self.store.tend_oplog()?;
            proceed(last)?;
        }
        let next = archive.next().transpose()?.map(|entry| entry.at);
        Ok(Replay {
            begin,
            end: self.applied(),
            entries,
            next,
        })
    }

    /// The last position up to which the copy's oplog and the archive are equal (W1); `archive`
    /// continues behind it.
    fn agree(&self, from: OpTime, archive: &mut Peekable<&mut Entries<'_>>) -> Result<OpTime> {
        if !self.has(from)? {
            let message = format!(
                "the backup does not have the entry {} of the archive: it is the archive of \
                 another deployment",
                shown(from)
            );
            return Err(Error::bad_value(message));
        }
        let mut agreed = from;
        loop {
            let own = self.stored_after(agreed.ts, COMPARED.0, COMPARED.1)?;
            if own.is_empty() {
                return Ok(agreed);
            }
            for entry in own {
                let Some(archived) = peek(archive)? else {
                    let message = format!(
                        "the archive ends at {}, and the backup has later writes, up to {}; \
                         archive more of the oplog, or restore without it",
                        shown(agreed),
                        shown(self.written())
                    );
                    return Err(Error::bad_value(message));
                };
                if archived.at != entry.at {
                    return Ok(agreed);
                }
                if archived.value != entry.value {
                    let message = format!(
                        "the entry {} of the backup differs from that of the archive: it is the \
                         archive of another deployment",
                        shown(entry.at)
                    );
                    return Err(Error::new(Code::ILLEGAL_OPERATION, message));
                }
                agreed = entry.at;
                archive.next();
            }
        }
    }
}

/// The next entry of an archive.
fn peek<'a>(archive: &'a mut Peekable<&mut Entries<'_>>) -> Result<Option<&'a StoredEntry>> {
    match archive.peek() {
        None => Ok(None),
        Some(Ok(entry)) => Ok(Some(entry)),
        Some(Err(error)) => Err(error.clone()),
    }
}

/// The next entries up to a time; empty at the end.
fn batch(archive: &mut Peekable<&mut Entries<'_>>, until: Timestamp) -> Result<Vec<StoredEntry>> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while batch.len() < ENTRIES_MAX && bytes < APPEND_MAX {
        let within =
            |next: &Result<StoredEntry>| next.as_ref().map_or(true, |entry| entry.at.ts <= until);
        let Some(entry) = archive.next_if(within) else {
            break;
        };
        let entry = entry?;
        bytes += entry.value.len();
        batch.push(entry);
    }
    Ok(batch)
}

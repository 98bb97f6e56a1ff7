//! Taking back entries that a later primary has overruled.
//!
//! - K1. First the changes of applied entries are taken back, the newest first, and the mark moves
//!   back with them in the same engine transactions. Then the entries are removed, the newest
//!   first. A crash at any moment leaves a follower that has applied less than is written, and the
//!   same call completes the rollback.
//! - K2. An entry is removed only when its change is not applied, so what is applied never exceeds
//!   what is written.

use bson::Timestamp;
use kv::{Direction, Durability, KeyRange};
use query::{Code, Error, Result};
use std::ops::Bound;
use std::sync::Arc;

use super::removed::Removed;
use super::role::{Replica, shown};
use crate::error;
use crate::oplog::Stored;
use crate::oplog::entry::{Entry, OpTime};
use crate::oplog::segment::{self, Segment};
use crate::txn::Op;

/// Entries that one transaction removes.
const REMOVED_MAX: usize = 5_000;

impl Replica<'_> {
    /// Take back all entries after a position: their changes, and the entries themselves. The
    /// position must be that of an entry, or the time 0 in an oplog that is complete.
    /// Documents that are removed or changed are saved in files
    /// ([`crate::Options::rollback_dir`]).
    ///
    /// # Errors
    /// `IllegalOperation` for a primary, and for an applied entry without the undo record that it
    /// needs; `CappedPositionLost` for a position that the oplog does not have; the operation must
    /// end; errors of the engine. The next call continues.
    pub fn roll_back_to(&self, op: &Op<'_>, position: OpTime) -> Result<Removed> {
        let locks = self.locks();
        let _appends = locks.appends.lock();
        let _applies = locks.applies.lock();
        self.check_follows("take entries back")?;
        self.check_floor(position.ts)?;
        // The term before all entries has several numbers.
        let none = position.ts == OpTime::NONE.ts;
        let position = if none { OpTime::NONE } else { position };
        self.check_position(position)?;
        let mut removed = Removed::new(self.store, position.ts);
        self.take_back(op, position, &mut removed)?;
        loop {
            op.check()?;
            let last = self.written();
            if last.ts <= position.ts {
                return Ok(removed);
            }
            self.remove_last(op, position, last)?;
        }
    }

    /// Check that the oplog has the entry at a position.
    fn check_position(&self, position: OpTime) -> Result<()> {
        if self.has(position)? {
            return Ok(());
        }
        let message = format!(
            "cannot roll back to {}: the oplog has no such entry; copy this member again from \
             another",
            shown(position)
        );
        Err(Error::new(Code::CAPPED_POSITION_LOST, message))
    }

    /// Remove some of the last entries after a position, the newest first; `last` is the last one.
    fn remove_last(&self, op: &Op<'_>, position: OpTime, last: OpTime) -> Result<()> {
        assert!(
            self.applied().ts <= position.ts,
            "K2: what is removed is not applied"
        );
        let (gone, left) = self.newest(position, last, REMOVED_MAX)?;
        {
            let _turn = self.store.turn(op)?;
            let mut txn = self.store.engine().begin_write().map_err(error::engine)?;
            for (segment, time, _) in &gone {
                let deleted = txn.delete_blind(segment.tree(), &segment::key(*time));
                deleted.map_err(error::engine)?;
            }
            txn.commit(Durability::Interval).map_err(error::engine)?;
            self.log.removed_last(left, &gone);
            let mut segments: Vec<&Arc<Segment>> = gone.iter().map(|(s, ..)| s).collect();
            segments.dedup_by_key(|segment| segment.number());
            for segment in segments {
                segment.reopen();
                segment.save(self.store.engine(), left.ts)?;
            }
        }
        Ok(())
    }

    /// The newest entries after a position, at most `most`, with their segments and bytes; and the
    /// entry before them.
    fn newest(&self, position: OpTime, last: OpTime, most: usize) -> Result<(Vec<Gone>, OpTime)> {
        let mut gone: Vec<Gone> = Vec::new();
        let mut left = position;
        self.visit_back(last.ts, |segment, at, value| {
            if at.ts <= position.ts || gone.len() == most {
                left = at;
                return Ok(false);
            }
            gone.push((Arc::clone(segment), at.ts, segment::size(value)));
            Ok(true)
        })?;
        let left = if left.ts < position.ts {
            position
        } else {
            left
        };
        Ok((gone, left))
    }

    /// Visit the stored entries up to `until`, the newest first, until `visit` returns false.
    pub(super) fn visit_back(
        &self,
        until: Timestamp,
        mut visit: impl FnMut(&Arc<Segment>, OpTime, &[u8]) -> Result<bool>,
    ) -> Result<()> {
        let placed = self.log.segments().between(OpTime::NONE.ts, until);
        let snapshot = self.store.engine().begin_read().map_err(error::engine)?;
        let end = segment::key(until);
        for placed in placed.iter().rev() {
            let range = KeyRange {
                start: Bound::Unbounded,
                end: Bound::Included(end.as_slice()),
            };
            let segment = &placed.segment;
            let mut cursor = segment.cursor(snapshot.as_ref(), range, Direction::Backward)?;
            while cursor.advance().map_err(error::engine)? {
                let at = Entry::parse(Stored::split(cursor.value())?.entry)?.at;
                if !visit(segment, at, cursor.value())? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// A removed entry: its segment, its time, and its bytes there.
pub(crate) type Gone = (Arc<Segment>, Timestamp, u64);

//! The times of the oplog beyond its entries: the clock that issues them, notes, and waiting.

use bson::{RawDocument, Timestamp};
use kv::Durability;
use query::Result;

use crate::error;
use crate::oplog::Log;
use crate::oplog::entry::OpTime;
use crate::store::Store;
use crate::txn::Op;

impl Store {
    /// Let `clock` issue the times of oplog entries from now on. It receives the time of the last
    /// entry and must return a later one, without blocking. Only the first call has an effect.
    pub fn set_oplog_clock(&self, clock: Box<dyn Fn(Timestamp) -> Timestamp + Send + Sync>) {
        if let Some(oplog) = self.oplog() {
            oplog.set_clock(clock);
        }
    }

    /// The last time issued for an oplog entry, which may not be committed; `None` without an
    /// oplog.
    #[must_use]
    pub fn oplog_last(&self) -> Option<Timestamp> {
        Some(self.oplog()?.segments().last())
    }

    /// The time up to which a snapshot that was opened before this call may have changes, also of
    /// writes whose commit has not returned; `None` without an oplog. All changes up to
    /// [`Store::oplog_visible`] are in it for certain.
    #[must_use]
    pub fn oplog_seen(&self) -> Option<Timestamp> {
        Some(self.oplog()?.seen_until())
    }

    /// The position to wait for so that all entries up to `time` are committed: `time` itself while
    /// a write with such a time is under way, or if an entry at it or after it exists, and else the
    /// time of the last entry.
    #[must_use]
    pub fn oplog_reached(&self, time: Timestamp) -> Timestamp {
        self.oplog().map_or(time, |oplog| oplog.reached(time))
    }

    /// Put an oplog entry that changes nothing, with a note; does nothing without an oplog.
    ///
    /// # Errors
    /// The operation must end; errors of the engine.
    pub fn append_oplog_note(&self, op: &Op<'_>, note: &RawDocument) -> Result<()> {
        let Some(oplog) = self.oplog() else {
            return Ok(());
        };
        let _turn = self.turn(op)?;
        self.commit_note(oplog, (OpTime::NONE.ts, note), op.durability)?;
        Ok(())
    }

    /// Put a note in a transaction of its own, with the time `least` if that is later than all
    /// times issued; returns its position. The caller has the turn to write.
    ///
    /// # Errors
    /// `NotWritablePrimary` for a follower; errors of the engine.
    pub(crate) fn commit_note(
        &self,
        oplog: &Log,
        (least, note): (Timestamp, &RawDocument),
        durability: Durability,
    ) -> Result<OpTime> {
        let mut txn = self.engine().begin_write().map_err(error::engine)?;
        let reserved = oplog.put_note(txn.as_mut(), least, note)?;
        let at = reserved.at();
        let done = txn.commit(durability).map_err(error::engine);
        reserved.end(done.is_ok());
        done.map(|()| at)
    }

    /// Put a note if the oplog has got no entry since the time `seen`; returns its last time.
    /// Does nothing while another operation is the engine's one writer.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn note_if_idle(&self, seen: Timestamp) -> Result<Timestamp> {
        let last = self.oplog_last().unwrap_or(seen);
        if last == seen
            && let Some(oplog) = self.oplog()
            && oplog.applied().of_follower().is_none()
            && let Some(_turn) = self.turns().take_soon(&|| self.check_not_closed())?
        {
            let note = bson::rawdoc! { "msg": "periodic noop" };
            self.commit_note(oplog, (OpTime::NONE.ts, &note), Durability::Interval)?;
        }
        Ok(self.oplog_last().unwrap_or(seen))
    }

    /// Wait until no oplog entry with a time up to `time` is still to be committed, for a read that
    /// must include them.
    ///
    /// # Errors
    /// The operation must end.
    pub fn settle_oplog(&self, op: &Op<'_>, time: Timestamp) -> Result<()> {
        let Some(oplog) = self.oplog() else {
            return Ok(());
        };
        loop {
            let slice = stdx::time::now() + crate::patience::LOOK;
            if oplog.settle(time, slice) {
                return Ok(());
            }
            self.check_open(op)?;
        }
    }
}

//! Reading the oplog: a position, and what it needs of the store.
//!
//! - R1. A reader returns each entry once, in the order of the times, up to the visible time: later
//!   entries may still get others before them. Entries that a power loss could take back are made
//!   durable first (see `oplog::synced`).
//! - R2. A reader that needs entries that were removed gets an error, and never continues behind
//!   them.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use bson::{RawDocument, RawDocumentBuf, Timestamp};
use kv::{Direction, KeyRange, Snapshot};
use query::{Code, Error, Result};

use crate::error;
use crate::oplog::{Log, Stored, segment, slots};
use crate::store::Store;

/// A position in the oplog of a store. It holds no snapshot between two reads.
pub struct OplogReader {
    store: Arc<Store>,
    after: Timestamp,
    pin: Option<OplogPin>,
}

/// Keeps the entries after a time from being removed, until it is dropped.
#[must_use = "the entries are kept until it is dropped"]
pub struct OplogPin {
    store: Arc<Store>,
    after: Timestamp,
}

impl OplogReader {
    /// A reader of all entries that are kept; `None` if the store has no oplog.
    #[must_use]
    pub fn from_start(store: &Arc<Store>) -> Option<OplogReader> {
        let after = store.oplog()?.segments().lost();
        OplogReader::after(store, after)
    }

    /// A reader of the entries with later times than `time`; `None` if the store has no oplog. If
    /// entries after that time were removed, the first read fails.
    #[must_use]
    pub fn after(store: &Arc<Store>, time: Timestamp) -> Option<OplogReader> {
        store.oplog()?;
        Some(OplogReader {
            store: Arc::clone(store),
            after: time,
            pin: None,
        })
    }

    /// A reader of the entries from a time on, as [`OplogReader::after`].
    #[must_use]
    pub fn seek(store: &Arc<Store>, time: Timestamp) -> Option<OplogReader> {
        OplogReader::after(store, slots::before(time))
    }

    /// The time up to which it has returned all entries. After a read without a result, no entry
    /// with this time or an earlier one will appear any more.
    #[must_use]
    pub fn position(&self) -> Timestamp {
        self.after
    }

    /// Keep what it has not returned from being removed, from now on.
    ///
    /// # Errors
    /// `CappedPositionLost` if entries were removed that it has not returned (R2).
    pub fn keep(&mut self) -> Result<()> {
        self.pin = Some(self.store.pin_oplog(self.after)?);
        Ok(())
    }

    /// The next entries, at most `entries`, and no more of them once they have `bytes` bytes; empty
    /// if none are visible at this time.
    ///
    /// # Errors
    /// `CappedPositionLost` if entries were removed that it has not returned (R2); errors of the
    /// engine.
    pub fn next(&mut self, entries: usize, bytes: usize) -> Result<Vec<RawDocumentBuf>> {
        let mut all = Vec::new();
        let mut left = bytes;
        self.visit(|entry| {
            all.push(entry.to_owned());
            left = left.saturating_sub(entry.as_bytes().len());
            Ok(all.len() < entries && 0 < left)
        })?;
        Ok(all)
    }

    /// Call `visit` with the next entries until it returns false or no further one is visible. An
    /// entry for which it fails is not passed.
    ///
    /// # Errors
    /// As [`OplogReader::next`]; errors of `visit`.
    pub fn visit(&mut self, visit: impl FnMut(&RawDocument) -> Result<bool>) -> Result<()> {
        let until = self.store.confirm_oplog()?;
        let read = self.store.visit_oplog(&mut self.after, until, visit);
        if self.pin.is_some() {
            self.keep()?;
        }
        read
    }

    /// Wait until more may be visible than it has returned, or until `deadline`; whether it is.
    #[must_use]
    pub fn wait(&self, deadline: Instant) -> bool {
        let Some(oplog) = self.store.oplog() else {
            return false;
        };
        self.after < oplog.wait(self.after, deadline)
    }
}

impl Log {
    /// Visit the stored entries with later times than `after`, which follows, up to `until`.
    ///
    /// # Errors
    /// As [`OplogReader::visit`].
    pub(crate) fn read(
        &self,
        snapshot: &dyn Snapshot,
        (after, until): (&mut Timestamp, Timestamp),
        mut visit: impl FnMut(&[u8]) -> Result<bool>,
    ) -> Result<()> {
        let placed = {
            let segments = self.segments();
            if *after < segments.lost() {
                return Err(position_lost());
            }
            segments.between(*after, until)
        };
        for placed in placed {
            let (start, end) = (segment::key(*after), segment::key(until));
            let range = KeyRange {
                start: Bound::Excluded(start.as_slice()),
                end: Bound::Included(end.as_slice()),
            };
            let segment = &placed.segment;
            let mut cursor = segment.cursor(snapshot, range, Direction::Forward)?;
            while cursor.advance().map_err(error::engine)? {
                let time = segment.time_of(cursor.key())?;
                let more = visit(cursor.value())?;
                *after = time;
                if !more {
                    return Ok(());
                }
            }
        }
        *after = until.max(*after);
        Ok(())
    }
}

impl Store {
    /// Keep the oplog entries with later times than `after`, until the pin is dropped.
    ///
    /// # Errors
    /// `CappedPositionLost` if some were removed; `IllegalOperation` without an oplog.
    pub fn pin_oplog(self: &Arc<Store>, after: Timestamp) -> Result<OplogPin> {
        let Some(oplog) = self.oplog() else {
            return Err(Error::new(
                Code::ILLEGAL_OPERATION,
                "the store keeps no oplog",
            ));
        };
        if !oplog.segments().pin(after) {
            return Err(position_lost());
        }
        Ok(OplogPin {
            store: Arc::clone(self),
            after,
        })
    }

    /// The first `most` oplog entries with later times than `after`, also those that a power loss
    /// would still take back. Empty for a store without an oplog.
    ///
    /// # Errors
    /// As [`OplogReader::next`].
    pub fn oplog_after(&self, mut after: Timestamp, most: usize) -> Result<Vec<RawDocumentBuf>> {
        let mut all = Vec::new();
        let Some(until) = self.oplog_visible() else {
            return Ok(all);
        };
        self.visit_oplog(&mut after, until, |entry| {
            all.push(entry.to_owned());
            Ok(all.len() < most)
        })?;
        Ok(all)
    }

    /// Call `visit` with the entries with later times than `after`, which follows, up to `until`, a
    /// visible time of before, until it returns false.
    ///
    /// # Errors
    /// As [`OplogReader::visit`].
    pub(crate) fn visit_oplog(
        &self,
        after: &mut Timestamp,
        until: Timestamp,
        mut visit: impl FnMut(&RawDocument) -> Result<bool>,
    ) -> Result<()> {
        let Some(oplog) = self.oplog() else {
            return Ok(());
        };
        // It has all entries up to the time, which was visible before (R1).
        let snapshot = self.engine().begin_read().map_err(error::engine)?;
        let visit = |value: &[u8]| visit(Stored::split(value)?.entry);
        oplog.read(snapshot.as_ref(), (after, until), visit)
    }

    /// The time up to which the oplog has no holes; `None` without an oplog.
    #[must_use]
    pub fn oplog_visible(&self) -> Option<Timestamp> {
        Some(self.oplog()?.visible())
    }

    /// The number of oplog entries and their bytes; `None` without an oplog.
    #[must_use]
    pub fn oplog_totals(&self) -> Option<(u64, u64)> {
        let segments = self.oplog()?.segments();
        let totals = segments.all().iter().map(|placed| &placed.segment);
        Some(totals.fold((0, 0), |(entries, bytes), segment| {
            (entries + segment.entries(), bytes + segment.bytes())
        }))
    }

    /// The times of the oldest and the newest entry of the oplog; `None` without entries.
    ///
    /// # Errors
    /// As [`Store::oplog_after`].
    pub fn oplog_window(&self) -> Result<Option<(Timestamp, Timestamp)>> {
        let Some(oplog) = self.oplog() else {
            return Ok(None);
        };
        let (lost, last) = {
            let segments = oplog.segments();
            (segments.lost(), segments.last())
        };
        let first = self.oplog_after(lost, 1)?;
        let first = first
            .first()
            .and_then(|entry| entry.get_timestamp("ts").ok());
        Ok(first.map(|first| (first, last)))
    }

    /// The oldest open slot of the oplog, for which all readers wait.
    #[must_use]
    pub fn oplog_slots(&self) -> Option<slots::Oldest> {
        self.oplog()?.oldest_slot()
    }
}

impl Drop for OplogPin {
    fn drop(&mut self) {
        if let Some(oplog) = self.store.oplog() {
            oplog.segments().unpin(self.after);
        }
    }
}

impl fmt::Debug for OplogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OplogReader");
        shown.field("after", &self.after).field("pin", &self.pin);
        shown.finish_non_exhaustive()
    }
}

impl fmt::Debug for OplogPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OplogPin");
        shown.field("after", &self.after).finish_non_exhaustive()
    }
}

/// The error of a reader whose next entries were removed.
pub(super) fn position_lost() -> Error {
    Error::new(
        Code::CAPPED_POSITION_LOST,
        "The next entries of the oplog were removed: the reader was too slow for its size. Read \
         from its start, or raise oplogSizeMB or oplogMinRetentionHours",
    )
}

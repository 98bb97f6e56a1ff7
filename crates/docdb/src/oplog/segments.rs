//! The segments of an oplog, in order: where the next entry goes, where a time is found, and which
//! segment may be removed.
//!
//! - N3. The segment of an entry is chosen together with its time, so a later time is never in an
//!   earlier segment, whatever the order of the commits.
//! - N4. Only the oldest segment is removed, and none that has an open slot, an entry that a pin
//!   needs, or the newest entry.
//! - N5. Readers learn that changes have no entries: those before the first segment of a store that
//!   had data, which is not segment 0.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bson::Timestamp;
use kv::{Direction, Engine, KeyRange};
use query::Result;

use super::entry::{Entry, OpTime};
use super::segment::{self, Segment};
use super::slots::{self, next};
use super::stored::Stored;
use crate::error;

/// How much of the oplog is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of entries in a segment, after which the next one is used (default 256 MiB): the
    /// oplog is removed in pieces of this size.
    pub segment_bytes: u64,
    /// Bytes of entries that are kept (default 990 MiB); up to one segment more is stored.
    pub bytes: u64,
    /// Entries of this age are kept, however many bytes they are (default 0).
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            segment_bytes: 256 << 20,
            bytes: 990 << 20,
            age: Duration::ZERO,
        }
    }
}

/// A segment, and the time at which it begins: all its entries have this or later times.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) first: Timestamp,
    pub(crate) segment: Arc<Segment>,
}

/// The segments of an oplog.
#[derive(Debug)]
pub(crate) struct Segments {
    /// The last time issued.
    last: Timestamp,
    /// The segments in use, the oldest first; never empty. New entries go to the last one.
    placed: Vec<Placed>,
    /// The segment after those, made ahead of its use.
    ahead: Option<Arc<Segment>>,
    /// The times after which entries are needed, and by how many readers.
    pins: BTreeMap<Timestamp, usize>,
    /// A time at or after all entries that were removed.
    lost: Timestamp,
    pub(crate) limits: Limits,
}

impl Segments {
    /// The segments of a store; the first one is created if there is none. `used`: whether the
    /// store may have data.
    ///
    /// # Errors
    /// Errors of the engine; damaged segments.
    pub(crate) fn open(engine: &dyn Engine, limits: Limits, used: bool) -> Result<Segments> {
        let mut numbers = segment::numbers(engine)?;
        if numbers.is_empty() {
            // N5.
            let first = u64::from(used);
            Segment::create(engine, first)?;
            numbers.push(first);
        }
        let mut found = Vec::new();
        for number in numbers {
            found.push(Segment::open(engine, number)?);
        }
        // Segments behind the last entry were made ahead.
        let used = found.iter().rposition(|found| found.times.is_some());
        let mut unused = found.split_off(used.map_or(1, |last| last + 1));
        let mut segments = Segments {
            last: OpTime::NONE.ts,
            placed: Vec::new(),
            ahead: None,
            pins: BTreeMap::new(),
            lost: OpTime::NONE.ts,
            limits,
        };
        for found in found {
            let (first, last) = match found.times {
                Some(times) => times,
                None => (next(segments.last), segments.last),
            };
            if first <= segments.last {
                let what = "has entries that are not later than those of the segment before it";
                return Err(found.segment.damaged(what));
            }
            if segments.placed.is_empty() && found.segment.number() != 0 {
                segments.lost = slots::before(first);
            }
            segments.last = last;
            let segment = found.segment;
            segments.placed.push(Placed { first, segment });
        }
        if let ([only], None) = (segments.placed.as_mut_slice(), used)
            && only.segment.number() != 0
        {
            // N5: whatever was changed up to now has no entries.
            segments.last = Timestamp {
                time: u32::try_from(stdx::time::wall().as_secs()).unwrap_or(u32::MAX),
                increment: u32::MAX,
            };
            segments.lost = segments.last;
            only.first = next(segments.last);
        }
        if !unused.is_empty() {
            segments.ahead = Some(unused.remove(0).segment);
        }
        Ok(segments)
    }

    /// The last entry; [`OpTime::NONE`] without any.
    ///
    /// # Errors
    /// Errors of the engine; an entry that cannot be decoded.
    pub(crate) fn last_entry(&self, engine: &dyn Engine) -> Result<OpTime> {
        let snapshot = engine.begin_read().map_err(error::engine)?;
        for placed in self.placed.iter().rev() {
            let segment = &placed.segment;
            let mut cursor =
                segment.cursor(snapshot.as_ref(), KeyRange::ALL, Direction::Backward)?;
            if cursor.advance().map_err(error::engine)? {
                let stored = Stored::split(cursor.value())?;
                return Ok(Entry::parse(stored.entry)?.at);
            }
        }
        Ok(OpTime::NONE)
    }

    /// The last time issued.
    pub(crate) fn last(&self) -> Timestamp {
        self.last
    }

    /// Issue no time up to the end of a second.
    pub(crate) fn begin_after(&mut self, second: u32) {
        let end = Timestamp {
            time: second,
            increment: u32::MAX,
        };
        self.last = self.last.max(end);
        if self.lost != OpTime::NONE.ts
            && let [only] = self.placed.as_mut_slice()
            && only.first <= self.last
            && only.segment.entries() == 0
        {
            // N5.
            self.lost = self.last;
            only.first = next(self.last);
        }
    }

    /// Issue no time up to `time`.
    pub(crate) fn skip(&mut self, time: Timestamp) {
        self.last = self.last.max(time);
    }

    /// A time at or after all entries that were removed.
    pub(crate) fn lost(&self) -> Timestamp {
        self.lost
    }

    /// Issue a time, which must be later than the last one, and choose the segment of its entry
    /// (N3).
    pub(crate) fn place(&mut self, time: Timestamp) -> Arc<Segment> {
        assert!(self.last < time, "O3: {time:?} follows {:?}", self.last);
        let segment = self.choose(self.last);
        self.last = time;
        segment
    }

    /// Choose the segment of the next entry after `last` (N3), which is the last one.
    pub(crate) fn choose(&mut self, last: Timestamp) -> Arc<Segment> {
        let full = self.limits.segment_bytes <= self.current().bytes();
        if full && let Some(segment) = self.ahead.take() {
            let first = next(last);
            self.placed.push(Placed { first, segment });
        }
        Arc::clone(self.current())
    }

    /// Later entries than `last` were not put, or are removed: the next entry may have any time
    /// after it (N3).
    pub(crate) fn end_at(&mut self, last: Timestamp) {
        for placed in &mut self.placed {
            placed.first = placed.first.min(next(last));
        }
    }

    /// Use only this empty segment: all others were removed, with the entries up to `lost` (N5).
    pub(crate) fn restart(&mut self, segment: Arc<Segment>, lost: Timestamp) {
        assert!(segment.number() != 0, "N5: segment 0 begins with the store");
        let first = next(lost);
        self.placed = vec![Placed { first, segment }];
        self.ahead = None;
        self.lost = lost;
        self.last = self.last.max(lost);
    }

    fn current(&self) -> &Arc<Segment> {
        let last = self.placed.last().expect("`placed` is never empty");
        &last.segment
    }

    /// The segments in use, the oldest first.
    pub(crate) fn all(&self) -> &[Placed] {
        &self.placed
    }

    /// The segments that can have entries with times after `after` and up to `until`.
    pub(crate) fn between(&self, after: Timestamp, until: Timestamp) -> Vec<Placed> {
        let start = self.placed.partition_point(|placed| placed.first <= after);
        let placed = self.placed.iter().skip(start.saturating_sub(1));
        let within = placed.take_while(|placed| placed.first <= until);
        within.cloned().collect()
    }

    /// The number of the segment to make ahead: `None` while the current one is less than half
    /// full, or if it exists.
    pub(crate) fn to_make(&self) -> Option<u64> {
        let current = self.current();
        let soon = self.limits.segment_bytes / 2 <= current.bytes();
        (soon && self.ahead.is_none()).then(|| current.number() + 1)
    }

    /// Use a segment that was made ahead.
    pub(crate) fn made(&mut self, segment: Arc<Segment>) {
        self.ahead = Some(segment);
    }

    /// The segments that get no more entries and have no open slot, with the times of their last
    /// ones, if their totals are not stored.
    pub(crate) fn unfinished(&self, visible: Timestamp) -> Vec<(Arc<Segment>, Timestamp)> {
        let pairs = self.placed.windows(2).filter_map(|pair| match pair {
            [one, after] if !one.segment.is_finished() => {
                Some((Arc::clone(&one.segment), slots::before(after.first)))
            }
            _ => None,
        });
        pairs.filter(|(_, last)| *last <= visible).collect()
    }

    /// Take the oldest segment out if it is not to be kept at the second `now`, with this visible
    /// time (N4). Its tree is still to be dropped.
    pub(crate) fn remove_oldest(&mut self, visible: Timestamp, now: u32) -> Option<Arc<Segment>> {
        let [_, second, ..] = self.placed.as_slice() else {
            return None;
        };
        // Open transactions still put entries into both.
        let kept: u64 = self.placed.iter().skip(1).map(|p| p.segment.bytes()).sum();
        let fits = kept < self.limits.bytes;
        // The entries of the oldest segment are older than the first of the second one.
        let age = u64::from(now.saturating_sub(second.first.time));
        let last = slots::before(second.first);
        let needed = self.pins.keys().next().is_some_and(|pin| *pin < last);
        if fits || age < self.limits.age.as_secs() || needed || visible < last {
            return None;
        }
        self.lost = last;
        Some(self.placed.remove(0).segment)
    }

    /// Keep the entries with later times than `after`. Returns false if some are removed already.
    pub(crate) fn pin(&mut self, after: Timestamp) -> bool {
        if after < self.lost {
            return false;
        }
        *self.pins.entry(after).or_default() += 1;
        true
    }

    /// End a pin.
    pub(crate) fn unpin(&mut self, after: Timestamp) {
        if let Some(count) = self.pins.get_mut(&after) {
            *count -= 1;
            if *count == 0 {
                self.pins.remove(&after);
            }
        }
    }
}

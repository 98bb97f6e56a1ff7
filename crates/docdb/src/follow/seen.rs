//! The oplog as readers see it: one tree over all segments, up to the visible time.
//!
//! The tree exists in no engine. A view of the store ([`Seen`]) answers for it, so that a plan
//! reads the oplog as it reads the records of any collection: its keys are those of the entries,
//! and nothing after the visible time is in it.

use std::ops::Bound;
use std::time::Duration;

use bson::Timestamp;
use kv::{Cursor, Direction, KeyRange, Snapshot, TreeId};

use crate::collection::OPLOG;
use crate::error;
use crate::oplog::segments::Placed;
use crate::oplog::{Log, note_read, segment, shown};
use crate::store::Store;

const ZERO: Timestamp = Timestamp {
    time: 0,
    increment: 0,
};

/// How long new commits wait at a time for those that are under way, when a snapshot between them
/// is wanted: most take less, and writers hardly notice it.
const GATE: Duration = Duration::from_millis(50);

/// A snapshot in which the oplog is one tree.
pub(crate) struct Seen<'s> {
    snapshot: Box<dyn Snapshot + 's>,
    /// The visible time before the snapshot was opened, which thus has all entries up to then.
    until: Timestamp,
    /// The segments when it was opened, the oldest first: it has the trees of all of them. One that
    /// is removed later must not be passed over.
    segments: Vec<Placed>,
}

impl Seen<'_> {
    /// The segment whose period has a time.
    fn placed(&self, time: Timestamp) -> Option<&Placed> {
        let after = self.segments.partition_point(|placed| placed.first <= time);
        self.segments.get(after.checked_sub(1)?)
    }
}

impl Log {
    /// A snapshot that has all entries up to a visible time, as readers see it.
    fn seen<'s>(
        &self,
        snapshot: Box<dyn Snapshot + 's>,
        until: Timestamp,
    ) -> Box<dyn Snapshot + 's> {
        // After the snapshot was opened: the tree of a segment that is listed now was not dropped
        // before it. One without entries up to `until` may be newer.
        let segments = self.segments().between(ZERO, until);
        Box::new(Seen {
            snapshot,
            until,
            segments,
        })
    }
}

impl Store {
    /// A snapshot of now, in which the oplog, if there is one, is the tree [`OPLOG`].
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn see(&self) -> query::Result<Box<dyn Snapshot + '_>> {
        let seen = self.oplog().map(|log| (log, log.visible()));
        let snapshot = self.engine().begin_read().map_err(error::engine)?;
        Ok(match seen {
            None => snapshot,
            Some((log, until)) => {
                note_read(until);
                log.seen(snapshot, until)
            }
        })
    }

    /// As [`Store::see`], with exactly the changes of the entries up to the returned time: a
    /// snapshot of another moment may have later ones. The time is `least` or later. `None` without
    /// an oplog.
    ///
    /// # Errors
    /// Errors of the engine; those of `check`, which is called while it waits for commits.
    pub(crate) fn see_exactly(
        &self,
        least: Timestamp,
        check: &dyn Fn() -> query::Result<()>,
    ) -> query::Result<(Box<dyn Snapshot + '_>, Option<Timestamp>)> {
        let Some(log) = self.oplog() else {
            return Ok((self.see()?, None));
        };
        loop {
            let deadline = stdx::time::now() + GATE;
            let open = |time| (self.engine().begin_read(), time);
            let opened = log.between(deadline, least, open);
            if let Some((snapshot, until)) = opened {
                note_read(until);
                let snapshot = snapshot.map_err(error::engine)?;
                return Ok((log.seen(snapshot, until), Some(until)));
            }
            check()?;
            // Others write meanwhile.
            stdx::time::sleep(GATE);
        }
    }
}

impl Snapshot for Seen<'_> {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> kv::Result<bool> {
        if tree != OPLOG {
            return self.snapshot.get_into(tree, key, value);
        }
        value.clear();
        let Some(time) = segment::time_of(key).filter(|time| *time <= self.until) else {
            return Ok(false);
        };
        match self.placed(time) {
            Some(placed) => {
                let found = self.snapshot.get_into(placed.segment.tree(), key, value)?;
                value.truncate(shown(value).len());
                Ok(found)
            }
            None => Ok(false),
        }
    }

    fn get_many(
        &self,
        tree: TreeId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> kv::Result<()> {
        if tree != OPLOG {
            return self.snapshot.get_many(tree, keys, visit);
        }
        let mut value = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let found = self.get_into(tree, key, &mut value)?;
            visit(index, found.then_some(value.as_slice()));
        }
        Ok(())
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> kv::Result<Box<dyn Cursor + '_>> {
        if tree != OPLOG {
            return self.snapshot.cursor(tree, range, direction);
        }
        let until = segment::key(self.until);
        let end = match range.end {
            Bound::Included(end) if end <= until.as_slice() => Bound::Included(end.to_vec()),
            Bound::Excluded(end) if end <= until.as_slice() => Bound::Excluded(end.to_vec()),
            _ => Bound::Included(until.to_vec()),
        };
        let mut cursor = Concatenated {
            snapshot: self.snapshot.as_ref(),
            segments: &self.segments,
            start: range.start.map(<[u8]>::to_vec),
            end,
            direction,
            left: None,
            current: None,
        };
        let edge = match direction {
            Direction::Forward => &cursor.start,
            Direction::Backward => &cursor.end,
        };
        let first = match edge {
            Bound::Included(key) | Bound::Excluded(key) => cursor.place(key),
            Bound::Unbounded => Some(0),
        };
        cursor.left = first;
        Ok(Box::new(cursor))
    }
}

/// A cursor over segments, one after another.
struct Concatenated<'c> {
    snapshot: &'c dyn Snapshot,
    /// The oldest first.
    segments: &'c [Placed],
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    direction: Direction,
    /// The segment to open next.
    left: Option<usize>,
    current: Option<Box<dyn Cursor + 'c>>,
}

impl<'c> Concatenated<'c> {
    /// The segment whose period has a key; the oldest for earlier keys, and `None` without any
    /// segment.
    fn place(&self, key: &[u8]) -> Option<usize> {
        let begun = |placed: &Placed| segment::key(placed.first).as_slice() <= key;
        let at = self.segments.partition_point(begun).saturating_sub(1);
        (at < self.segments.len()).then_some(at)
    }

    /// The segment after another in the direction.
    fn following(&self, at: usize) -> Option<usize> {
        let next = match self.direction {
            Direction::Forward => at.checked_add(1),
            Direction::Backward => at.checked_sub(1),
        };
        next.filter(|next| *next < self.segments.len())
    }

    /// Open the next segment; false if none is left.
    fn open(&mut self) -> kv::Result<bool> {
        self.current = None;
        let Some(at) = self.left.take() else {
            return Ok(false);
        };
        let Some(placed) = self.segments.get(at) else {
            return Ok(false);
        };
        let range = KeyRange {
            start: self.start.as_ref().map(Vec::as_slice),
            end: self.end.as_ref().map(Vec::as_slice),
        };
        if !is_empty(range) {
            let (tree, range) = (placed.segment.tree(), segment::entries(range));
            self.current = Some(self.snapshot.cursor(tree, range, self.direction)?);
        }
        self.left = self.following(at);
        Ok(true)
    }
}

impl Cursor for Concatenated<'_> {
    fn advance(&mut self) -> kv::Result<bool> {
        loop {
            if let Some(cursor) = &mut self.current
                && cursor.advance()?
            {
                return Ok(true);
            }
            if !self.open()? {
                return Ok(false);
            }
        }
    }

    fn seek(&mut self, key: &[u8]) -> kv::Result<bool> {
        self.left = self.place(key);
        if !self.open()? {
            return Ok(false);
        }
        if let Some(cursor) = &mut self.current
            && cursor.seek(key)?
        {
            return Ok(true);
        }
        self.advance()
    }

    fn key(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |cursor| cursor.key())
    }

    fn value(&self) -> &[u8] {
        self.current
            .as_ref()
            .map_or(&[], |cursor| shown(cursor.value()))
    }
}

/// Whether a range has no key: some engines refuse one whose end is before its start.
fn is_empty(range: KeyRange<'_>) -> bool {
    match (range.start, range.end) {
        (Bound::Included(start), Bound::Included(end)) => end < start,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
        | (Bound::Excluded(start), Bound::Included(end)) => end <= start,
        _ => false,
    }
}

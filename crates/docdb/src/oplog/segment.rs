//! Segments: the trees of the oplog, each with the entries of a period.
//!
//! Tree `_oplog.N`, with increasing N. The key of an entry is its time, seconds and increment in 4
//! bytes each, big-endian; the value is the entry (see `entry`). The key of one zero byte, before
//! all others, has the header of the segment:
//!
//! ```text
//! 0        1               9              17         25
//! +--------+---------------+--------------+----------+
//! | form 2 | entries       | bytes        | up to    |    big-endian
//! +--------+---------------+--------------+----------+
//! ```
//!
//! `entries` and `bytes` (of keys and values) are the totals up to the time `up to`; what is later
//! is counted when the store is opened. After a crash the totals may miss the entries of commits
//! that were open when the header was written.
//!
//! - N1. The header is written before the first entry.
//! - N2. All times of a segment are later than those of the segments with lower numbers.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use bson::Timestamp;
use kv::{Batch, Cursor, Direction, Durability, Engine, ErrorKind, KeyRange, Snapshot};
use kv::{TreeId, TreeOptions};
use query::Result;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::entry::OpTime;
use crate::error;

/// Names of the trees begin with this.
pub(crate) const PREFIX: &str = "_oplog.";

/// Key of the header.
const HEADER: &[u8] = &[0];

/// The form of segments that this version writes. It reads form 1 as well, whose entries have no
/// hidden parts (see `stored`), and then writes this form into the header.
const FORM: u8 = 2;

/// A segment.
#[derive(Debug)]
pub(crate) struct Segment {
    number: u64,
    tree: TreeId,
    entries: AtomicU64,
    bytes: AtomicU64,
    /// Whether the header has the totals of all its entries.
    saved: AtomicBool,
}

/// A stored segment, as found when the store is opened.
pub(crate) struct Found {
    pub(crate) segment: Arc<Segment>,
    /// The first and the last time; `None` for a segment without entries.
    pub(crate) times: Option<(Timestamp, Timestamp)>,
}

/// The totals of a segment, as its header has them.
struct Header {
    entries: u64,
    bytes: u64,
    until: Timestamp,
}

impl Segment {
    /// Create a segment, or open one that a crash left without entries. On an engine with one
    /// writer the caller holds the turn.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn create(engine: &dyn Engine, number: u64) -> Result<Arc<Segment>> {
        let name = name(number);
        let tree = match engine.create_tree(&name, &TreeOptions::default()) {
            Err(e) if e.kind() == ErrorKind::Exists => engine.open_tree(&name),
            other => other,
        };
        let segment = Segment::new(number, tree.map_err(error::engine)?);
        segment.save(engine, OpTime::NONE.ts)?;
        Ok(Arc::new(segment))
    }

    fn new(number: u64, tree: TreeId) -> Segment {
        Segment {
            number,
            tree,
            entries: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            saved: AtomicBool::new(false),
        }
    }

    /// Open a stored segment.
    ///
    /// # Errors
    /// Errors of the engine; a segment that is damaged or has another form.
    pub(crate) fn open(engine: &dyn Engine, number: u64) -> Result<Found> {
        let tree = engine.open_tree(&name(number)).map_err(error::engine)?;
        let segment = Segment::new(number, tree);
        let snapshot = engine.begin_read().map_err(error::engine)?;
        let times = segment.times(snapshot.as_ref())?;
        let header = snapshot.get(tree, HEADER).map_err(error::engine)?;
        match (header, times) {
            (Some(bytes), _) => {
                segment.count(snapshot.as_ref(), &segment.header(&bytes)?)?;
                drop(snapshot);
                if bytes.first() != Some(&FORM) {
                    let last = times.map_or(OpTime::NONE.ts, |(_, last)| last);
                    segment.save(engine, last)?;
                }
            }
            // A crash came between the creation of the tree and its header (N1).
            (None, None) => {
                drop(snapshot);
                segment.save(engine, OpTime::NONE.ts)?;
            }
            (None, Some(_)) => return Err(segment.damaged("has entries and no header")),
        }
        let segment = Arc::new(segment);
        Ok(Found { segment, times })
    }

    fn times(&self, snapshot: &dyn Snapshot) -> Result<Option<(Timestamp, Timestamp)>> {
        let edge = |direction| -> Result<Option<Timestamp>> {
            let mut cursor = self.cursor(snapshot, KeyRange::ALL, direction)?;
            match cursor.advance().map_err(error::engine)? {
                true => Ok(Some(self.time_of(cursor.key())?)),
                false => Ok(None),
            }
        };
        Ok(edge(Direction::Forward)?.zip(edge(Direction::Backward)?))
    }

    /// Take the totals of a header, and count the later entries.
    fn count(&self, snapshot: &dyn Snapshot, header: &Header) -> Result<()> {
        let after = key(header.until);
        let range = KeyRange {
            start: Bound::Excluded(&after),
            end: Bound::Unbounded,
        };
        let (mut entries, mut bytes) = (header.entries, header.bytes);
        let mut cursor = self.cursor(snapshot, range, Direction::Forward)?;
        while cursor.advance().map_err(error::engine)? {
            self.time_of(cursor.key())?;
            entries = entries.saturating_add(1);
            bytes = bytes.saturating_add(size(cursor.value()));
        }
        self.entries.store(entries, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn header(&self, bytes: &[u8]) -> Result<Header> {
        let (form, totals) = bytes
            .split_first()
            .ok_or_else(|| self.damaged("has an empty header"))?;
        if !(1..=FORM).contains(form) {
            let what = format!("has the form {form}, and this version reads the forms 1 to {FORM}");
            return Err(self.damaged(what));
        }
        let totals: [u8; 24] = totals
            .try_into()
            .map_err(|_| self.damaged("has a header of another length"))?;
        let number = |at: usize| {
            let bytes = totals.get(at..at + 8).unwrap_or_default();
            bytes
                .iter()
                .fold(0_u64, |n, byte| n << 8 | u64::from(*byte))
        };
        Ok(Header {
            entries: number(0),
            bytes: number(8),
            until: from_number(number(16)),
        })
    }

    /// Store the header, with the present totals as those up to a time. On an engine with one
    /// writer the caller holds the turn.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn save(&self, engine: &dyn Engine, until: Timestamp) -> Result<()> {
        let mut bytes = vec![FORM];
        bytes.extend_from_slice(&self.entries().to_be_bytes());
        bytes.extend_from_slice(&self.bytes().to_be_bytes());
        bytes.extend_from_slice(&key(until));
        let mut batch = Batch::new();
        batch.put(self.tree, HEADER, &bytes);
        let written = engine.write(&batch, Durability::Interval);
        written.map_err(error::engine)
    }

    /// [`Segment::save`] for a segment that gets no more entries, the last of which has the time
    /// `last`; once.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn finish(&self, engine: &dyn Engine, last: Timestamp) -> Result<()> {
        if !self.is_finished() {
            self.save(engine, last)?;
            self.saved.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Entries of it were removed: its totals are to be saved again.
    pub(crate) fn reopen(&self) {
        self.saved.store(false, Ordering::Relaxed);
    }

    /// Whether [`Segment::finish`] has saved it.
    pub(crate) fn is_finished(&self) -> bool {
        self.saved.load(Ordering::Relaxed)
    }

    /// A cursor over the entries in a range of keys, without the header.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn cursor<'s>(
        &self,
        snapshot: &'s dyn Snapshot,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 's>> {
        let cursor = snapshot.cursor(self.tree, entries(range), direction);
        cursor.map_err(error::engine)
    }

    /// The number in its name.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The tree.
    pub(crate) fn tree(&self) -> TreeId {
        self.tree
    }

    /// The number of entries.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Bytes of the keys and the values.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the entries alone.
    pub(crate) fn document_bytes(&self) -> u64 {
        document_bytes(self.entries(), self.bytes())
    }

    /// Count an entry that is put.
    pub(crate) fn add(&self, bytes: u64) {
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Take back entries whose commit failed.
    pub(crate) fn remove(&self, entries: u64, bytes: u64) {
        self.entries.fetch_sub(entries, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The time of an entry from its key.
    ///
    /// # Errors
    /// A key that is no time.
    pub(crate) fn time_of(&self, key: &[u8]) -> Result<Timestamp> {
        time_of(key).ok_or_else(|| self.damaged("has a key that is no time"))
    }

    /// The error of a damaged segment.
    pub(crate) fn damaged(&self, what: impl fmt::Display) -> query::Error {
        error::corrupt(format_args!("segment {} of the oplog {what}", self.number))
    }
}

/// The tree of a segment.
pub(crate) fn name(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// The numbers of all segments of an engine, in order.
///
/// # Errors
/// Errors of the engine; a tree with a name that is not that of a segment; a missing segment.
pub(crate) fn numbers(engine: &dyn Engine) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for tree in engine.trees().map_err(error::engine)? {
        let Some(number) = tree.strip_prefix(PREFIX) else {
            continue;
        };
        match number.parse().ok().filter(|n| name(*n) == tree) {
            Some(number) => numbers.push(number),
            None => {
                let what = format!("the tree '{tree}' is no segment of the oplog");
                return Err(error::corrupt(what));
            }
        }
    }
    numbers.sort_unstable();
    let missing = numbers
        .windows(2)
        .find_map(|pair| pair.first().map(|n| n + 1).filter(|n| !pair.contains(n)));
    match missing {
        Some(number) => {
            let what = format!("segment {number} of the oplog is missing");
            Err(error::corrupt(what))
        }
        None => Ok(numbers),
    }
}

/// Remove all segments among the trees of an engine, the oldest first.
///
/// # Errors
/// Errors of the engine.
pub(crate) fn discard(engine: &dyn Engine, trees: &[String]) -> Result<()> {
    let mut named: Vec<&String> = trees.iter().filter(|t| t.starts_with(PREFIX)).collect();
    named.sort_unstable_by_key(|name| (name.len(), *name));
    for name in named {
        engine.drop_tree(name).map_err(error::engine)?;
    }
    Ok(())
}

/// Bytes that an entry counts.
pub(crate) fn size(value: &[u8]) -> u64 {
    8 + value.len() as u64
}

/// The bytes of values among the bytes of keys and values.
pub(crate) fn document_bytes(entries: u64, bytes: u64) -> u64 {
    bytes.saturating_sub(8 * entries)
}

/// A range of keys without that of the header.
pub(crate) fn entries(range: KeyRange<'_>) -> KeyRange<'_> {
    let before = match range.start {
        Bound::Unbounded => true,
        Bound::Included(start) | Bound::Excluded(start) => start <= HEADER,
    };
    let start = match before {
        true => Bound::Excluded(HEADER),
        false => range.start,
    };
    KeyRange { start, ..range }
}

/// The key of an entry.
pub(crate) fn key(time: Timestamp) -> [u8; 8] {
    number(time).to_be_bytes()
}

/// A time as a number, in the same order.
pub(crate) fn number(time: Timestamp) -> u64 {
    u64::from(time.time) << 32 | u64::from(time.increment)
}

/// The time of an entry with this key.
pub(crate) fn time_of(key: &[u8]) -> Option<Timestamp> {
    let bytes: [u8; 8] = key.try_into().ok()?;
    Some(from_number(u64::from_be_bytes(bytes)))
}

/// The time that is a number.
pub(crate) fn from_number(number: u64) -> Timestamp {
    let [a, b, c, d, e, f, g, h] = number.to_be_bytes();
    Timestamp {
        time: u32::from_be_bytes([a, b, c, d]),
        increment: u32::from_be_bytes([e, f, g, h]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_order_of_the_times_and_follow_the_header() {
        let at = |time, increment| Timestamp { time, increment };
        let times = [
            at(0, 0),
            at(0, 1),
            at(1, 0),
            at(1, u32::MAX),
            at(u32::MAX, 0),
        ];
        for pair in times.windows(2) {
            assert!(key(pair[0]) < key(pair[1]));
        }
        for time in times {
            assert_eq!(time_of(&key(time)), Some(time));
            assert!(HEADER < key(time).as_slice());
        }
        assert_eq!(time_of(b"short"), None);
        let range = entries(KeyRange::ALL);
        assert_eq!(range.start, Bound::Excluded(HEADER));
        let zero = key(at(0, 0));
        let range = KeyRange {
            start: Bound::Included(&zero[..]),
            end: Bound::Unbounded,
        };
        assert_eq!(entries(range).start, Bound::Included(&zero[..]));
    }
}

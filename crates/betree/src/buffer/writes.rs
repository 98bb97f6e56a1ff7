//! The writes of one transaction: a buffer without a lock, with one owner.
//!
//! The stamps of the store, commit numbers in a buffer, hold the mark `checked` here; there are no
//! versions, the last write of a key is the one that counts.

use std::ops::Bound;

use stdx::sync::Mutex;

use super::index::Index;
use super::order::{self, Ref};
use super::scan::{self, Range};
use super::store::Store;
use super::window::Window;
use crate::error::Result;
use crate::merge::Source;
use crate::types::{Direction, Entry, Op, Seq};

/// One write, as pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write<'a> {
    pub(crate) op: Op,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// Whether the key is checked for conflicts with other commits.
    pub(crate) checked: bool,
}

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct WriteSet {
    store: Store,
    /// In a lock, because reads sort, and shared references read a transaction, including cursors.
    index: Mutex<Index>,
}

impl Default for WriteSet {
    fn default() -> WriteSet {
        WriteSet::new()
    }
}

impl WriteSet {
    /// An empty set without memory.
    pub(crate) fn new() -> WriteSet {
        WriteSet {
            store: Store::new(0),
            index: Mutex::new(Index::default()),
        }
    }

    /// Add a write, which replaces earlier writes of the same key.
    pub(crate) fn push(&mut self, op: Op, key: &[u8], value: &[u8], checked: bool) {
        assert!(op == Op::Put || value.is_empty(), "a delete has no value");
        self.store.push(u64::from(checked), 0, op, key, value);
    }

    /// Get the last write of `key`; its value overwrites `value`.
    pub(crate) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Option<Op> {
        let mut index = self.index.lock();
        let entry = index.get(&self.store, key, Seq::MAX)?;
        value.clear();
        value.extend_from_slice(entry.value);
        Some(entry.op)
    }

    /// Copy the next `limit` keys from `from` on, in the direction, up to `to`: of each the last
    /// write. Their `seq` says nothing.
    pub(crate) fn window(
        &self,
        direction: Direction,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        limit: usize,
        out: &mut Window,
    ) {
        let range = Range {
            direction,
            from,
            to,
            snapshot: Seq::MAX,
            limit,
        };
        let mut index = self.index.lock();
        scan::window(&self.store, index.lanes(&self.store), range, out);
    }

    /// All writes in the order of the pushes, including replaced ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Write<'_>> {
        self.store.refs(0).map(|r| {
            let entry = self.store.entry(r.address());
            Write {
                op: entry.op,
                key: entry.key,
                value: entry.value,
                checked: entry.seq != Seq(0),
            }
        })
    }

    /// The last write of each key, in the order of the keys. Their seq is `plain`, or one more when
    /// any write of the key is checked.
    pub(crate) fn sorted(&self, plain: Seq) -> SortedWrites<'_> {
        let mut sorted = SortedWrites {
            store: &self.store,
            refs: order::sorted(&self.store, 0).into_iter(),
            plain,
            next: None,
            current: None,
        };
        sorted.next = sorted.refs.next();
        sorted.step();
        sorted
    }

    /// Number of pushes.
    pub(crate) fn entries(&self) -> usize {
        self.store.len()
    }

    /// Memory held for the writes, in bytes; reads take up to 16 bytes more per write.
    pub(crate) fn bytes(&self) -> usize {
        self.store.held()
    }
}

/// The writes of a set in the order of their keys.
pub(crate) struct SortedWrites<'a> {
    store: &'a Store,
    refs: std::vec::IntoIter<Ref>,
    plain: Seq,
    /// The first reference after those of the current key.
    next: Option<Ref>,
    current: Option<Entry<'a>>,
}

impl SortedWrites<'_> {
    /// Move to the next key, whose newest write comes first.
    fn step(&mut self) {
        self.current = None;
        let Some(newest) = self.next else { return };
        let entry = self.store.entry(newest.address());
        let mut checked = entry.seq != Seq(0);
        self.next = self.refs.next();
        while let Some(older) = self.next {
            let older = self.store.entry(older.address());
            if older.key != entry.key {
                break;
            }
            checked |= older.seq != Seq(0);
            self.next = self.refs.next();
        }
        let seq = Seq(self.plain.0 + u64::from(checked));
        self.current = Some(Entry { seq, ..entry });
    }
}

impl Source for SortedWrites<'_> {
    fn current(&self) -> Option<Entry<'_>> {
        self.current
    }

    fn advance(&mut self) -> Result<()> {
        self.step();
        Ok(())
    }
}

//! Cursors: the entries of a snapshot, read in chunks, merged with a transaction's own writes.
//!
//! The lock is held for one chunk at a time: at most [`CHUNK`] chains are visited and at most
//! [`ENTRIES_MAX`] entries or about [`BYTES_MAX`] bytes copied. Between chunks only the last
//! visited key is kept, so that commits may change the tree; the snapshot's sequence number keeps
//! the view.

use std::cmp::Ordering;
use std::collections::btree_map::Range;
use std::mem;
use std::ops::Bound;

use kv_types::{Direction, KeyRange, Result, TreeId};

use super::NAME;
use super::snapshot::MemorySnapshot;
use super::store::CHUNK;
use super::transaction::{Write, WriteSet};
use super::tree::Key;
use crate::engine::Cursor;

/// Maximum number of entries of the first chunk. Each chunk may have twice the entries of the one
/// before, so that a seek for one entry costs little and a long scan takes the lock rarely.
const ENTRIES_MIN: usize = 4;

/// Maximum number of entries of a chunk.
const ENTRIES_MAX: usize = 256;

/// A chunk ends when it holds more bytes than this (one entry may be larger).
const BYTES_MAX: usize = 64 << 10;

/// A key range, owned.
#[derive(Debug)]
struct Bounds {
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
}

impl Bounds {
    fn range(&self) -> KeyRange<'_> {
        KeyRange {
            start: self.start.as_ref().map(Vec::as_slice),
            end: self.end.as_ref().map(Vec::as_slice),
        }
    }
}

/// Replace the near end of `range` (the start for a forward walk) by `near`, unless `near` is
/// unbounded.
fn narrow<'a>(range: KeyRange<'a>, direction: Direction, near: Bound<&'a [u8]>) -> KeyRange<'a> {
    match (direction, near) {
        (_, Bound::Unbounded) => range,
        (Direction::Forward, start) => KeyRange { start, ..range },
        (Direction::Backward, end) => KeyRange { end, ..range },
    }
}

/// The committed entries ahead of the cursor.
struct Walk<'a> {
    snapshot: &'a MemorySnapshot<'a>,
    tree: TreeId,
    direction: Direction,
    bounds: Bounds,
    /// Where the next chunk begins; unbounded means at the near end of `bounds`.
    near: Bound<Vec<u8>>,
    chunk: Chunk,
    /// Maximum number of entries of the next chunk.
    size: usize,
    /// No chunk follows this one.
    exhausted: bool,
}

/// Entries copied out of the tree.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Key length and value length of each entry, in the order of `bytes`.
    lengths: Vec<(usize, usize)>,
    /// Index of the next entry in `lengths`, and the offset of its bytes in `bytes`.
    next: usize,
    offset: usize,
}

impl Chunk {
    fn peek(&self) -> Option<(&[u8], &[u8])> {
        let &(key, value) = self.lengths.get(self.next)?;
        let bytes = self.bytes.get(self.offset..self.offset + key + value)?;
        Some(bytes.split_at(key))
    }

    fn skip(&mut self) {
        if let Some((key, value)) = self.lengths.get(self.next) {
            self.offset += key + value;
            self.next += 1;
        }
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.lengths.push((key.len(), value.len()));
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.lengths.clear();
        (self.next, self.offset) = (0, 0);
    }
}

impl Walk<'_> {
    /// Load the next entry into the chunk, if there is one.
    fn fill(&mut self) -> Result<()> {
        while self.chunk.peek().is_none() && !self.exhausted {
            self.read_chunk()?;
        }
        Ok(())
    }

    fn read_chunk(&mut self) -> Result<()> {
        self.chunk.clear();
        let near = self.near.as_ref().map(Vec::as_slice);
        let range = narrow(self.bounds.range(), self.direction, near);
        if range.is_empty() {
            self.exhausted = true;
            return Ok(());
        }
        let (chunk, size, seq) = (&mut self.chunk, self.size, self.snapshot.seq);
        let state = self.snapshot.store.state.read();
        let tree = state.tree_at(self.tree, seq);
        let tree = tree.map_err(|e| e.with_engine(NAME).with_operation("cursor"))?;
        let mut entries = tree.map.range::<[u8], _>((range.start, range.end));
        let mut last = None;
        for looked_at in 0.. {
            let full = chunk.lengths.len() == size || BYTES_MAX < chunk.bytes.len();
            if full || looked_at == CHUNK {
                break;
            }
            let entry = match self.direction {
                Direction::Forward => entries.next(),
                Direction::Backward => entries.next_back(),
            };
            let Some((key, chain)) = entry else {
                self.exhausted = true;
                break;
            };
            if let Some(value) = chain.at(seq) {
                chunk.push(key, value);
            }
            last = Some(key);
        }
        if let Some(last) = last {
            let mut near = match mem::replace(&mut self.near, Bound::Unbounded) {
                Bound::Included(near) | Bound::Excluded(near) => near,
                Bound::Unbounded => Vec::new(),
            };
            near.clear();
            near.extend_from_slice(last);
            self.near = Bound::Excluded(near);
        }
        self.size = (size * 2).min(ENTRIES_MAX);
        Ok(())
    }

    /// Move before the first entry at or beyond `near`.
    fn restart(&mut self, near: Bound<&[u8]>) {
        self.near = near.map(<[u8]>::to_vec);
        self.chunk.clear();
        self.size = ENTRIES_MIN;
        self.exhausted = false;
    }
}

/// The transaction's own writes ahead of the cursor.
struct Own<'a> {
    ahead: Range<'a, Key, Write>,
    next: Option<(&'a Key, &'a Write)>,
}

impl<'a> Own<'a> {
    /// The writes in `range`; `None` when `range` is empty (`BTreeMap::range` would panic).
    fn new(set: &'a WriteSet, range: KeyRange<'_>, direction: Direction) -> Option<Own<'a>> {
        if range.is_empty() {
            return None;
        }
        let ahead = set.range::<[u8], _>((range.start, range.end));
        let mut own = Own { ahead, next: None };
        own.step(direction);
        Some(own)
    }

    fn step(&mut self, direction: Direction) {
        self.next = match direction {
            Direction::Forward => self.ahead.next(),
            Direction::Backward => self.ahead.next_back(),
        };
    }
}

/// The position of the cursor.
enum Current<'a> {
    /// Before the first entry, or at the end.
    Nowhere,
    /// At the next entry of the walk.
    Committed,
    /// At a write of the transaction.
    Own(&'a [u8], &'a [u8]),
}

/// A cursor over a snapshot and, for a transaction, its writes.
pub(super) struct MergeCursor<'a> {
    walk: Walk<'a>,
    set: Option<&'a WriteSet>,
    own: Option<Own<'a>>,
    current: Current<'a>,
    ended: bool,
}

impl<'a> MergeCursor<'a> {
    /// A cursor before the first entry of `range` in `direction`.
    pub(super) fn new(
        snapshot: &'a MemorySnapshot<'_>,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
        set: Option<&'a WriteSet>,
    ) -> Result<MergeCursor<'a>> {
        let checked = snapshot
            .store
            .state
            .read()
            .tree_at(tree, snapshot.seq)
            .err();
        if let Some(error) = checked {
            return Err(error.with_engine(NAME).with_operation("cursor"));
        }
        let (start, end) = range.to_owned();
        Ok(MergeCursor {
            walk: Walk {
                snapshot,
                tree,
                direction,
                bounds: Bounds { start, end },
                near: Bound::Unbounded,
                chunk: Chunk::default(),
                size: ENTRIES_MIN,
                exhausted: false,
            },
            set,
            own: set.and_then(|set| Own::new(set, range, direction)),
            current: Current::Nowhere,
            ended: false,
        })
    }
}

impl<'a> MergeCursor<'a> {
    /// Step to the next entry; own writes hide committed entries of the same key.
    fn step(&mut self) -> Result<bool> {
        let direction = self.walk.direction;
        loop {
            self.walk.fill()?;
            let committed = self.walk.chunk.peek().map(|(key, _)| key);
            let own = self.own.as_ref().and_then(|own| own.next);
            let order = match (own, committed) {
                (None, None) => {
                    self.ended = true;
                    return Ok(false);
                }
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some((own, _)), Some(committed)) => match direction {
                    Direction::Forward => own.as_ref().cmp(committed),
                    Direction::Backward => committed.cmp(own.as_ref()),
                },
            };
            let Some((key, write)) = own.filter(|_| order != Ordering::Greater) else {
                self.current = Current::Committed;
                return Ok(true);
            };
            if order == Ordering::Equal {
                self.walk.chunk.skip();
            }
            if let Some(own) = &mut self.own {
                own.step(direction);
            }
            if let Some(value) = &write.value {
                self.current = Current::Own(key, value);
                return Ok(true);
            }
        }
    }

    /// Leave the current entry, so that the next step moves past it.
    fn leave(&mut self) {
        if matches!(self.current, Current::Committed) {
            self.walk.chunk.skip();
        }
        self.current = Current::Nowhere;
    }
}

impl Cursor for MergeCursor<'_> {
    fn advance(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        self.leave();
        self.step()
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let direction = self.walk.direction;
        self.current = Current::Nowhere;
        self.ended = false;
        // A key before the near end of the range seeks to that end.
        let range = self.walk.bounds.range();
        let inside = match direction {
            Direction::Forward => range.after_start(key),
            Direction::Backward => range.before_end(key),
        };
        let near = if inside {
            Bound::Included(key)
        } else {
            Bound::Unbounded
        };
        let range = narrow(range, direction, near);
        self.own = self.set.and_then(|set| Own::new(set, range, direction));
        self.walk.restart(near);
        self.step()
    }

    fn key(&self) -> &[u8] {
        match self.current {
            Current::Nowhere => b"",
            Current::Committed => self.walk.chunk.peek().map_or(b"", |(key, _)| key),
            Current::Own(key, _) => key,
        }
    }

    fn value(&self) -> &[u8] {
        match self.current {
            Current::Nowhere => b"",
            Current::Committed => self.walk.chunk.peek().map_or(b"", |(_, value)| value),
            Current::Own(_, value) => value,
        }
    }
}

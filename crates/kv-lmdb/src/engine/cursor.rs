//! Cursors: an LMDB cursor confined to a range, in one direction.
//!
//! Keys and values are slices of the map; they are valid as long as the snapshot, which the cursor
//! borrows, so nothing is copied.

use std::ops::Bound;

use heed::types::Bytes;
use heed::{RoRange, RoRevRange};
use kv::{Cursor, Direction, KeyRange, Result};

use super::catalog::Tree;
use super::snapshot::View;

type Entry<'t> = (&'t [u8], &'t [u8]);

/// A start bound and an end bound, as `heed` takes them.
type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

enum Iter<'t> {
    Forward(RoRange<'t, Bytes, Bytes>),
    Backward(RoRevRange<'t, Bytes, Bytes>),
}

impl<'t> Iter<'t> {
    #[inline]
    fn next(&mut self) -> Option<heed::Result<Entry<'t>>> {
        match self {
            Iter::Forward(iter) => iter.next(),
            Iter::Backward(iter) => iter.next(),
        }
    }
}

/// An iterator over a range.
pub(super) struct Walk<'t> {
    view: View<'t>,
    tree: &'t Tree,
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    direction: Direction,
    /// `None` at the end.
    iter: Option<Iter<'t>>,
    key: &'t [u8],
    value: &'t [u8],
}

impl<'t> Walk<'t> {
    pub(super) fn new(
        view: View<'t>,
        tree: &'t Tree,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Walk<'t>> {
        let (start, end) = range.to_owned();
        let mut walk = Walk {
            view,
            tree,
            start,
            end,
            direction,
            iter: None,
            key: b"",
            value: b"",
        };
        walk.iter = walk.over(range)?;
        Ok(walk)
    }

    /// The current entry, valid as long as the snapshot.
    pub(super) fn entry(&self) -> Entry<'t> {
        (self.key, self.value)
    }

    /// An LMDB cursor before the first entry of `range`; `None` when no key can lie in it.
    fn over(&self, range: KeyRange<'_>) -> Result<Option<Iter<'t>>> {
        let Some(bounds) = bounds(range) else {
            return Ok(None);
        };
        let (db, txn) = (self.tree.db, self.view.txn);
        let made = match self.direction {
            Direction::Forward => db.range(txn, &bounds).map(Iter::Forward),
            Direction::Backward => db.rev_range(txn, &bounds).map(Iter::Backward),
        };
        made.map(Some).map_err(|e| self.error(e))
    }

    fn error(&self, error: heed::Error) -> kv::Error {
        let error = self.view.store.error(error, "cursor");
        error.with_tree(&*self.tree.name)
    }
}

impl Cursor for Walk<'_> {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        match self.iter.as_mut().and_then(Iter::next) {
            Some(Ok((key, value))) => {
                self.key = key;
                self.value = value;
                Ok(true)
            }
            end => {
                self.iter = None;
                self.key = b"";
                self.value = b"";
                match end {
                    Some(Err(e)) => Err(self.error(e)),
                    _ => Ok(false),
                }
            }
        }
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let whole = KeyRange {
            start: self.start.as_ref().map(Vec::as_slice),
            end: self.end.as_ref().map(Vec::as_slice),
        };
        let rest = match self.direction {
            Direction::Forward if whole.after_start(key) => KeyRange {
                start: Bound::Included(key),
                end: whole.end,
            },
            Direction::Backward if whole.before_end(key) => KeyRange {
                start: whole.start,
                end: Bound::Included(key),
            },
            // The key is before the start of the range in this direction, so the whole range is
            // beyond it.
            _ => whole,
        };
        self.iter = self.over(rest)?;
        self.advance()
    }

    fn key(&self) -> &[u8] {
        self.key
    }

    fn value(&self) -> &[u8] {
        self.value
    }
}

/// The bounds of `range` for LMDB, which has no empty key: a start at the empty key means no start
/// bound, and an end at it leaves an empty range. `None` for an empty range.
pub(super) fn bounds(range: KeyRange<'_>) -> Option<Bounds<'_>> {
    let start = match range.start {
        Bound::Included([]) | Bound::Excluded([]) => Bound::Unbounded,
        start => start,
    };
    match range.end {
        Bound::Included([]) | Bound::Excluded([]) => None,
        end if KeyRange { start, end }.is_empty() => None,
        end => Some((start, end)),
    }
}

//! Cursors over snapshots and transactions.
//!
//! RocksDB itself confines iterators to their bounds, but another layer of RocksDB merges in the
//! writes of the transaction, so each position is checked here again.

use kv::{Cursor, Direction, KeyRange, Result};

use super::bounds::Bounds;
use super::error::error;
use super::raw::{Iter, ReadOptions};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    On,
    End,
}

/// An iterator over a range. `iter` is `None` when the bounds make the range empty.
pub(super) struct Walk<'a> {
    iter: Option<Iter<'a>>,
    direction: Direction,
    place: Place,
}

impl<'a> Walk<'a> {
    /// An iterator over `range`, with the RocksDB iterator that `make` creates from `options`.
    pub(super) fn new(
        range: KeyRange<'_>,
        direction: Direction,
        options: impl FnOnce() -> ReadOptions<'a>,
        make: impl FnOnce(ReadOptions<'a>) -> Iter<'a>,
    ) -> Walk<'a> {
        let iter = Bounds::of(range).map(|bounds| {
            let mut options = options();
            options.bound(bounds.lower, bounds.upper);
            make(options)
        });
        Walk {
            iter,
            direction,
            place: Place::Start,
        }
    }

    /// Check the new position of the iterator.
    fn arrive(&mut self) -> Result<bool> {
        let inside = match &self.iter {
            None => false,
            Some(iter) if iter.valid() => is_inside(iter, self.direction),
            Some(iter) => {
                self.place = Place::End;
                iter.status().map_err(|status| error(status, "cursor"))?;
                false
            }
        };
        self.place = if inside { Place::On } else { Place::End };
        Ok(inside)
    }
}

impl Cursor for Walk<'_> {
    fn advance(&mut self) -> Result<bool> {
        let Some(iter) = &mut self.iter else {
            return Ok(false);
        };
        match (self.place, self.direction) {
            (Place::End, _) => return Ok(false),
            (Place::On, Direction::Forward) => iter.next(),
            (Place::On, Direction::Backward) => iter.prev(),
            (Place::Start, Direction::Forward) => first(iter),
            (Place::Start, Direction::Backward) => last(iter),
        }
        self.arrive()
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let Some(iter) = &mut self.iter else {
            return Ok(false);
        };
        match self.direction {
            Direction::Forward if iter.options().lower().is_some_and(|lower| key < lower) => {
                first(iter);
            }
            Direction::Forward => iter.seek(key),
            Direction::Backward if iter.options().upper().is_some_and(|upper| upper <= key) => {
                last(iter);
            }
            Direction::Backward => iter.seek_for_prev(key),
        }
        self.arrive()
    }

    fn key(&self) -> &[u8] {
        match (&self.iter, self.place) {
            (Some(iter), Place::On) => iter.key(),
            _ => b"",
        }
    }

    fn value(&self) -> &[u8] {
        match (&self.iter, self.place) {
            (Some(iter), Place::On) => iter.value(),
            _ => b"",
        }
    }
}

/// Move to the first entry at or after the lower bound.
fn first(iter: &mut Iter<'_>) {
    let Some(lower) = iter.options().lower().map(Box::<[u8]>::from) else {
        return iter.seek_to_first();
    };
    iter.seek(&lower);
}

/// Move to the last entry before the upper bound.
fn last(iter: &mut Iter<'_>) {
    let Some(upper) = iter.options().upper().map(Box::<[u8]>::from) else {
        return iter.seek_to_last();
    };
    iter.seek_for_prev(&upper);
    while iter.valid() && *upper <= *iter.key() {
        iter.prev();
    }
}

/// Whether the position is within the bound that the cursor moves towards.
#[inline]
fn is_inside(iter: &Iter<'_>, direction: Direction) -> bool {
    match direction {
        Direction::Forward => iter
            .options()
            .upper()
            .is_none_or(|upper| iter.key() < upper),
        Direction::Backward => iter
            .options()
            .lower()
            .is_none_or(|lower| lower <= iter.key()),
    }
}

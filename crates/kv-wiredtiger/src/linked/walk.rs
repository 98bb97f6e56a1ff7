//! A cursor over a range of a tree.
//!
//! - W1. While `Standing`, the cursor is at an entry inside the range.
//! - W2. Only `seek` leaves the state `Ended`.

use std::cmp::Ordering;
use std::ops::Bound;

use kv::{Cursor as KvCursor, Direction, KeyRange, Result, TreeId};

use super::cursor::Cursor;
use super::error::Called;
use super::pool::Mode;
use super::view::View;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the first entry.
    Before,
    /// On an entry (W1).
    Standing,
    /// Past the last entry (W2).
    Ended,
}

/// An open walk.
pub(super) struct Walk<'v, 'e> {
    view: &'v View<'e>,
    tree: TreeId,
    /// Present until the walk is dropped.
    cursor: Option<Cursor>,
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    empty: bool,
    direction: Direction,
    place: Place,
}

impl<'v, 'e> Walk<'v, 'e> {
    /// A walk with a cursor of `view` on `tree`, before the first entry.
    pub(super) fn new(
        view: &'v View<'e>,
        tree: TreeId,
        cursor: Cursor,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Walk<'v, 'e> {
        let (start, end) = range.to_owned();
        Walk {
            view,
            tree,
            cursor: Some(cursor),
            start,
            end,
            empty: range.is_empty(),
            direction,
            place: Place::Before,
        }
    }

    /// Run one step of the cursor; afterwards the walk is `Standing` if the step found an entry in
    /// the range.
    fn step(
        &mut self,
        operation: &'static str,
        step: impl FnOnce(&mut Cursor, Direction) -> Called<bool>,
    ) -> Result<bool> {
        self.place = Place::Ended;
        self.view.check(operation)?;
        let cursor = self
            .cursor
            .as_mut()
            .expect("there until the walk is dropped");
        let fault = |fault| self.view.error(fault, operation);
        if !step(cursor, self.direction).map_err(fault)? {
            return Ok(false);
        }
        let range = KeyRange {
            start: self.start.as_ref().map(Vec::as_slice),
            end: self.end.as_ref().map(Vec::as_slice),
        };
        let inside = range.contains(cursor.key().map_err(fault)?);
        if inside {
            self.place = Place::Standing;
        }
        Ok(inside)
    }

    /// Go to the first entry of the range.
    fn first(&mut self) -> Result<bool> {
        if self.empty {
            self.place = Place::Ended;
            return Ok(false);
        }
        let bound = match self.direction {
            Direction::Forward => self.start.clone(),
            Direction::Backward => self.end.clone(),
        };
        match bound {
            Bound::Unbounded => self.step("cursor", |cursor, direction| {
                cursor.reset()?;
                onward(cursor, direction)
            }),
            Bound::Included(key) => self.step("cursor", |c, d| reach(c, d, &key, true)),
            Bound::Excluded(key) => self.step("cursor", |c, d| reach(c, d, &key, false)),
        }
    }
}

impl KvCursor for Walk<'_, '_> {
    fn advance(&mut self) -> Result<bool> {
        match self.place {
            Place::Before => self.first(),
            Place::Standing => self.step("cursor", onward),
            Place::Ended => Ok(false),
        }
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let range = KeyRange {
            start: self.start.as_ref().map(Vec::as_slice),
            end: self.end.as_ref().map(Vec::as_slice),
        };
        let before_range = match self.direction {
            Direction::Forward => !range.after_start(key),
            Direction::Backward => !range.before_end(key),
        };
        if self.empty || before_range {
            return self.first();
        }
        self.step("seek", |cursor, direction| {
            reach(cursor, direction, key, true)
        })
    }

    fn key(&self) -> &[u8] {
        match (&self.cursor, self.place) {
            // W1: a cursor at an entry has a key.
            (Some(cursor), Place::Standing) => cursor.key().unwrap_or_default(),
            _ => b"",
        }
    }

    fn value(&self) -> &[u8] {
        match (&self.cursor, self.place) {
            (Some(cursor), Place::Standing) => cursor.value().unwrap_or_default(),
            _ => b"",
        }
    }
}

impl Drop for Walk<'_, '_> {
    fn drop(&mut self) {
        if let Some(mut cursor) = self.cursor.take()
            && cursor.reset().is_ok()
        {
            self.view.give_back(self.tree, Mode::Overwrite, cursor);
        }
    }
}

fn onward(cursor: &mut Cursor, direction: Direction) -> Called<bool> {
    match direction {
        Direction::Forward => cursor.next(),
        Direction::Backward => cursor.prev(),
    }
}

/// Move to the first entry beyond `key` in `direction`, or at `key` if `inclusive`. Returns false
/// if no such entry exists.
fn reach(cursor: &mut Cursor, direction: Direction, key: &[u8], inclusive: bool) -> Called<bool> {
    if key.is_empty() {
        // No entry has the empty key, and the library refuses to search for it.
        return match direction {
            Direction::Forward => {
                cursor.reset()?;
                cursor.next()
            }
            Direction::Backward => Ok(false),
        };
    }
    let Some(side) = cursor.search_near(key)? else {
        return Ok(false);
    };
    let mut side = match direction {
        Direction::Forward => side,
        Direction::Backward => side.reverse(),
    };
    // `Greater` means beyond `key`. The search stops at a neighbour on either side of `key`, so the
    // loop does at most one step, or two to get past an excluded key.
    while side == Ordering::Less || (side == Ordering::Equal && !inclusive) {
        if !onward(cursor, direction)? {
            return Ok(false);
        }
        let found = cursor.key()?.cmp(key);
        side = match direction {
            Direction::Forward => found,
            Direction::Backward => found.reverse(),
        };
    }
    Ok(true)
}

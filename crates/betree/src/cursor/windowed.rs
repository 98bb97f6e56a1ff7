//! Writes in memory as a source: copied out window by window.
//!
//! A buffer is appended to while it is read, so a cursor holds no place in it: it copies the next
//! few entries that its snapshot sees, and asks for those after the last of them when it has walked
//! through. What a snapshot sees of a buffer never changes, so windows taken at different times fit
//! together. The first window is small, for the many cursors that are advanced a few times; each is
//! 4 times the one before, up to 256 entries, which make the search for the place cheap.
//!
//! Invariants:
//! - I1: `at < window.len()` exactly when the source stands on an entry.
//! - I2: windows follow each other: the next begins beyond the last entry of the one before.

use std::ops::Bound;
use std::sync::Arc;

use super::bounds::{self, Edge};
use super::source::Source;
use crate::buffer::{Buffer, Window, WriteSet};
use crate::error::Result;
use crate::run::Direction;
use crate::types::{Entry, Seq};

/// Entries in the first window.
const FIRST: usize = 4;
/// How much larger than the last the next window is.
const GROWTH: usize = 4;
/// Entries in a window at most: some 10 KiB of small entries.
const MOST: usize = 256;

/// What windows are copied from.
pub(super) trait Windows {
    /// Copy the next `entries` entries within `from` and `to`, in `direction`, into `out`.
    fn window(
        &self,
        direction: Direction,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        entries: usize,
        out: &mut Window,
    );
}

/// A bucket's buffer as a snapshot sees it.
pub(super) struct Seen {
    pub(super) buffer: Arc<Buffer>,
    pub(super) snapshot: Seq,
}

impl Windows for Seen {
    fn window(
        &self,
        direction: Direction,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        entries: usize,
        out: &mut Window,
    ) {
        self.buffer
            .window(direction, from, to, self.snapshot, entries, out);
    }
}

impl Windows for &WriteSet {
    fn window(
        &self,
        direction: Direction,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        entries: usize,
        out: &mut Window,
    ) {
        WriteSet::window(self, direction, from, to, entries, out);
    }
}

/// The windows of `W` one after the other.
pub(super) struct Windowed<W> {
    writes: W,
    direction: Direction,
    limit: Edge,
    window: Window,
    at: usize,
    size: usize,
    last: Vec<u8>,
}

impl<W: Windows> Windowed<W> {
    /// The entries of `writes` in `direction`, up to `limit`.
    pub(super) fn new(writes: W, direction: Direction, limit: Edge) -> Windowed<W> {
        Windowed {
            writes,
            direction,
            limit,
            window: Window::default(),
            at: 0,
            size: FIRST,
            last: Vec::new(),
        }
    }

    /// Copy the next window, which begins within `from`.
    fn fill(&mut self, from: Bound<&[u8]>) {
        let to = bounds::lend(&self.limit);
        self.at = 0;
        self.writes
            .window(self.direction, from, to, self.size, &mut self.window);
        assert!(
            self.window.len() <= self.size,
            "a window holds no more than asked for"
        );
    }

    /// Copy the window after the current one, whose last entry has been walked over.
    #[inline(never)]
    fn refill(&mut self) {
        assert_eq!(
            self.at,
            self.window.len(),
            "I2: the window is walked through"
        );
        if self.window.exhausted() {
            return;
        }
        let before = self
            .at
            .checked_sub(1)
            .expect("I2: an empty window is exhausted");
        let mut last = std::mem::take(&mut self.last);
        last.clear();
        last.extend_from_slice(self.window.entry(before).key);
        self.size = (self.size * GROWTH).min(MOST);
        let from = Bound::Excluded(last.as_slice());
        let to = bounds::lend(&self.limit);
        let crossed = match self.direction {
            Direction::Forward => bounds::crossed(from, to),
            Direction::Backward => bounds::crossed(to, from),
        };
        if !crossed {
            self.fill(from);
        }
        self.last = last;
    }
}

impl<W: Windows> Source for Windowed<W> {
    fn seek(&mut self, from: Bound<&[u8]>) -> Result<()> {
        self.size = FIRST;
        self.fill(from);
        Ok(())
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        (self.at < self.window.len()).then(|| self.window.entry(self.at))
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        debug_assert!(self.at < self.window.len(), "I1: stands on an entry");
        self.at += 1;
        if self.at == self.window.len() {
            self.refill();
        }
        Ok(())
    }
}

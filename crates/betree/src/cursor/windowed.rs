//! Writes in memory as a source: copied window by window.
//!
//! A buffer is appended to while it is read, so a cursor holds no place in it: it copies the next
//! few entries that its snapshot sees, and asks for those after the last of them when it has walked
//! through. What a snapshot sees of a buffer never changes, so windows taken at different times fit
//! together. The first window is small, for the many cursors that are advanced a few times; each is
//! 4 times the one before, up to 256 entries, which make the search for the place cheap.
//!
//! It does not hold the buffer either: one that has been flushed gives its memory back however many
//! cursors rest in it. The keys that come next are then found in the run it has become.
//!
//! Invariants:
//! - I1: `at < window.len()` exactly when the source stands on an entry.
//! - I2: windows follow each other: the next begins beyond the last entry of the one before.

use std::ops::Bound;
use std::sync::Weak;

use super::bounds::{self, Edge};
use super::source::Source;
use super::stop::{Step, Stop};
use crate::buffer::{Buffer, Window, WriteSet};
use crate::types::{Direction, Entry, Seq};

/// Number of entries in the first window.
const FIRST: usize = 4;
/// Factor by which each window is larger than the previous one.
const GROWTH: usize = 4;
/// Maximum number of entries in a window: about 10 KiB of small entries.
const MOST: usize = 256;

/// The writes that windows are copied from.
pub(super) trait Windows {
    /// Copy the next `entries` entries within `from` and `to`, in `direction`, into `out`. Returns
    /// false and leaves `out` unchanged if the writes are no longer in memory.
    fn window(
        &self,
        direction: Direction,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        entries: usize,
        out: &mut Window,
    ) -> bool;
}

/// A bucket's buffer as a snapshot sees it.
pub(super) struct Seen {
    pub(super) buffer: Weak<Buffer>,
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
    ) -> bool {
        let Some(buffer) = self.buffer.upgrade() else {
            return false;
        };
        buffer.window(direction, from, to, self.snapshot, entries, out);
        true
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
    ) -> bool {
        WriteSet::window(self, direction, from, to, entries, out);
        true
    }
}

/// The windows of `W`, one after another.
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

    /// Copy the next window, which starts within `from`. Returns false if the writes are no longer
    /// in memory.
    fn fill(&mut self, from: Bound<&[u8]>) -> bool {
        let to = bounds::lend(&self.limit);
        let window = &mut self.window;
        if !self
            .writes
            .window(self.direction, from, to, self.size, window)
        {
            return false;
        }
        self.at = 0;
        assert!(
            self.window.len() <= self.size,
            "a window holds no more than asked for"
        );
        true
    }

    /// Copy the window behind the current one, whose last entry has been passed.
    #[inline(never)]
    fn refill(&mut self) -> Step {
        assert_eq!(
            self.at,
            self.window.len(),
            "I2: the window is walked through"
        );
        if self.window.exhausted() {
            return Ok(());
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
        if !crossed && !self.fill(from) {
            return Err(Stop::Gone(Some(last.into())));
        }
        self.last = last;
        Ok(())
    }
}

impl<W: Windows> Source for Windowed<W> {
    fn seek(&mut self, from: Bound<&[u8]>) -> Step {
        self.size = FIRST;
        if self.fill(from) {
            Ok(())
        } else {
            Err(Stop::Gone(None))
        }
    }

    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        (self.at < self.window.len()).then(|| self.window.entry(self.at))
    }

    #[inline]
    fn advance(&mut self) -> Step {
        debug_assert!(self.at < self.window.len(), "I1: stands on an entry");
        self.at += 1;
        if self.at == self.window.len() {
            return self.refill();
        }
        Ok(())
    }
}

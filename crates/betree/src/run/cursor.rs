//! A cursor over all versions in a run, in either direction.
//!
//! Forward order is that of [`Entry`]: ascending keys, newest version first. Backward order is its
//! exact reverse: descending keys, oldest version first.
//!
//! The cursor owns the page it is on, so entries are lent without a look into the cache, and so
//! are those that a seek finds in the same page. A cursor that has gone through several pages that
//! were not cached reads ahead, up to [`AHEAD_MAX`] at once; what it has read ahead it keeps, and
//! puts into the cache as it gets there.
//!
//! It does not hold the run: a reader that rests must not keep the space of what merges have
//! replaced. It holds the page it is on and what it has read ahead. Its caller either holds
//! the run, or asks after an error whether it is gone ([`RunCursor::is_gone`]) and finds the keys
//! that come next elsewhere.
//!
//! Invariants:
//! - I1: `slot` is below the length of the page exactly when there is a current entry.
//! - I2: pages read ahead follow `index` in the direction of the cursor, the nearest first.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Bound, Range};
use std::sync::{Arc, Weak};

use super::Run;
use crate::block::Fence;
use crate::error::{Error, ErrorKind, Result};
use crate::page::Page;
use crate::types::{Direction, Entry, Seq};

/// The `slot` of a cursor without a current entry.
const NOWHERE: usize = usize::MAX;

/// Number of consecutive pages after which a cursor reads ahead.
const AHEAD_AFTER: u32 = 2;
/// The stored bytes that are read at once double with each page, from four times this
const AHEAD_MIN: u64 = 16 << 10;
/// up to this.
const AHEAD_MAX: u64 = 256 << 10;

/// A cursor over a run.
pub(crate) struct RunCursor {
    page: Option<Arc<Page>>,
    slot: usize,
    direction: Direction,
    index: u32,
    run: Weak<Run>,
    /// Number of pages of the run.
    pages: u32,
    fence: Option<Arc<Fence>>,
    /// Number of consecutive pages read since the last seek to another page.
    turned: u32,
    ahead: VecDeque<Arc<Page>>,
}

impl fmt::Debug for RunCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunCursor")
            .field("direction", &self.direction)
            .field("index", &self.index)
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}

impl RunCursor {
    pub(super) fn new(run: &Arc<Run>, direction: Direction) -> RunCursor {
        RunCursor {
            page: None,
            slot: NOWHERE,
            direction,
            index: 0,
            pages: run.meta().pages,
            run: Arc::downgrade(run),
            fence: None,
            turned: 0,
            ahead: VecDeque::new(),
        }
    }

    /// The current entry.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        let page = self.page.as_ref()?;
        if self.slot < page.len() {
            Some(page.entry(self.slot))
        } else {
            None
        }
    }

    /// Go to the first entry in the direction of the cursor whose key is within the bound: forward
    /// that is at or after its key, backward at or before.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, or the run is gone; the cursor is then on no entry.
    pub(crate) fn seek(&mut self, bound: Bound<&[u8]>) -> Result<()> {
        self.slot = NOWHERE;
        let run = self.run()?;
        if self.outside(&run, bound) {
            return Ok(());
        }
        match self.direction {
            Direction::Forward => {
                if !self.within(bound) {
                    let index = self.first_candidate(&run, bound)?;
                    self.go(&run, index)?;
                }
                let (slot, len) = self.boundary(bound);
                self.slot = slot;
                if slot == len { self.turn() } else { Ok(()) }
            }
            Direction::Backward => {
                if !self.within(bound) {
                    let index = self.last_candidate(&run, bound)?;
                    self.go(&run, index)?;
                }
                match self.boundary(bound).0.checked_sub(1) {
                    Some(slot) => {
                        self.slot = slot;
                        Ok(())
                    }
                    None => self.turn(),
                }
            }
        }
    }

    /// Go to the next entry in the direction of the cursor; from none, to none.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; the cursor is then on no entry. Or the run is gone, and the cursor stays
    /// where it is.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<()> {
        let len = self.page.as_ref().map_or(0, |page| page.len());
        if len <= self.slot {
            return Ok(());
        }
        match self.direction {
            Direction::Forward if self.slot + 1 < len => self.slot += 1,
            Direction::Backward if 0 < self.slot => self.slot -= 1,
            _ => return self.turn(),
        }
        Ok(())
    }

    /// Whether no handle holds the run any more, which is final.
    pub(crate) fn is_gone(&self) -> bool {
        self.run.strong_count() == 0
    }

    /// The current key, or at the end the last one. The cursor must have had a current entry.
    pub(crate) fn passed(&self) -> &[u8] {
        let page = self.page.as_ref().expect("it has been on an entry");
        let last = match self.direction {
            Direction::Forward => page.len() - 1,
            Direction::Backward => 0,
        };
        page.key(if self.slot == NOWHERE {
            last
        } else {
            self.slot
        })
    }

    fn run(&self) -> Result<Arc<Run>> {
        let gone = || Error::new(ErrorKind::Closed, "the run was replaced, and is not held");
        self.run.upgrade().ok_or_else(gone)
    }

    /// Whether the run has no key within the bound, judged by its smallest and largest key.
    fn outside(&self, run: &Run, bound: Bound<&[u8]>) -> bool {
        let meta = run.meta();
        match (self.direction, bound) {
            (_, Bound::Unbounded) => false,
            (Direction::Forward, Bound::Included(key)) => *meta.max_key < *key,
            (Direction::Forward, Bound::Excluded(key)) => *meta.max_key <= *key,
            (Direction::Backward, Bound::Included(key)) => *key < *meta.min_key,
            (Direction::Backward, Bound::Excluded(key)) => *key <= *meta.min_key,
        }
    }

    /// Whether the current page contains the target of a seek, judged by the page's keys.
    fn within(&self, bound: Bound<&[u8]>) -> bool {
        let Some(page) = &self.page else {
            return false;
        };
        let (first, last) = (page.key(0), page.key(page.len() - 1));
        match bound {
            Bound::Unbounded => false,
            // Between two entries of this page lies the border "before all versions of the key",
            Bound::Included(key) if self.direction == Direction::Forward => {
                first < key && key <= last
            }
            Bound::Excluded(key) if self.direction == Direction::Backward => {
                first < key && key <= last
            }
            // or the border "after all versions of the key".
            Bound::Included(key) | Bound::Excluded(key) => first <= key && key < last,
        }
    }

    /// For a lower bound: the first page that may have an entry within the bound. The first entry
    /// of the next page is within it.
    fn first_candidate(&mut self, run: &Run, bound: Bound<&[u8]>) -> Result<u32> {
        Ok(match bound {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.fence(run)?.first_page(key),
            Bound::Excluded(key) => self.fence(run)?.last_page(key),
        })
    }

    /// For an upper bound: the last page that may have an entry within the bound. The last entry of
    /// the page before it is within it.
    fn last_candidate(&mut self, run: &Run, bound: Bound<&[u8]>) -> Result<u32> {
        Ok(match bound {
            Bound::Unbounded => self.pages - 1,
            Bound::Included(key) => self.fence(run)?.last_page(key),
            Bound::Excluded(key) => self.fence(run)?.first_page(key),
        })
    }

    /// The position of the bound among the page's entries, and the number of entries. Forward,
    /// entries within the bound start at the position; backward, they end there.
    fn boundary(&self, bound: Bound<&[u8]>) -> (usize, usize) {
        let page = self.page.as_ref().expect("a seek goes to a page first");
        let before = |key| page.lower_bound(key, Seq::MAX);
        let after = |key: &[u8]| {
            let oldest = page.lower_bound(key, Seq::ANCIENT);
            // A version older than all snapshots is the last one of its key.
            let ancient = oldest < page.len() && page.key(oldest) == key;
            oldest + usize::from(ancient)
        };
        let border = match (self.direction, bound) {
            (Direction::Forward, Bound::Unbounded) => 0,
            (Direction::Backward, Bound::Unbounded) => page.len(),
            (Direction::Forward, Bound::Included(key)) => before(key),
            (Direction::Forward, Bound::Excluded(key)) => after(key),
            (Direction::Backward, Bound::Included(key)) => after(key),
            (Direction::Backward, Bound::Excluded(key)) => before(key),
        };
        (border, page.len())
    }

    /// Move to the next page in the direction of the cursor, and to its first entry in that
    /// direction.
    #[cold]
    fn turn(&mut self) -> Result<()> {
        let next = match self.direction {
            Direction::Forward => Some(self.index + 1).filter(|it| *it < self.pages),
            Direction::Backward => self.index.checked_sub(1),
        };
        let Some(next) = next else {
            self.slot = NOWHERE;
            return Ok(());
        };
        // Before the cursor moves: if the run is gone, it stays where it is.
        let run = self.run()?;
        self.slot = NOWHERE;
        self.turned = self.turned.saturating_add(1);
        let page = self.next_page(&run, next)?;
        self.slot = match self.direction {
            Direction::Forward => 0,
            Direction::Backward => page.len() - 1,
        };
        debug_assert!(self.slot < page.len(), "I1: the cursor is on an entry");
        self.index = next;
        self.page = Some(page);
        Ok(())
    }

    /// Load page `index`; discard pages read ahead for another position.
    fn go(&mut self, run: &Run, index: u32) -> Result<()> {
        if self.page.is_some() && self.index == index {
            return Ok(());
        }
        let fence = self.fence(run)?;
        // I2: nothing read ahead for another place is kept.
        self.turned = 0;
        self.ahead.clear();
        self.page = Some(run.page(&fence, index)?);
        self.index = index;
        Ok(())
    }

    /// The next page, from the pages read ahead, the cache, or the file.
    fn next_page(&mut self, run: &Run, index: u32) -> Result<Arc<Page>> {
        let id = run.meta().id;
        let cache = run.store().cache();
        if let Some(page) = self.ahead.pop_front() {
            assert!(0 < page.len(), "I1: pages have entries");
            cache.insert_page(id, index, Arc::clone(&page));
            return Ok(page);
        }
        let fence = self.fence(run)?;
        if self.turned < AHEAD_AFTER {
            return run.page(&fence, index);
        }
        if let Some(page) = cache.page(id, index) {
            return Ok(page);
        }
        let pages = self.window(run, &fence, index)?;
        let mut read = VecDeque::from(run.load_many(&fence, pages)?);
        if self.direction == Direction::Backward {
            read.make_contiguous().reverse();
        }
        assert!(
            self.ahead.is_empty(),
            "I2: what was read ahead has been used up"
        );
        let page = read.pop_front().expect("a window has a page");
        self.ahead = read;
        cache.insert_page(id, index, Arc::clone(&page));
        Ok(page)
    }

    /// The pages to read at once: `index` and those that follow, up to one that is cached; more the
    /// farther the cursor has advanced.
    fn window(&self, run: &Run, fence: &Fence, index: u32) -> Result<Range<u32>> {
        let limit = AHEAD_MIN
            .saturating_mul(1 << self.turned.min(32))
            .min(AHEAD_MAX);
        assert!(AHEAD_AFTER <= self.turned, "only long scans read ahead");
        let own = run.span(fence, index)?;
        let mut pages = index..index + 1;
        loop {
            let beyond = match self.direction {
                Direction::Forward => Some(pages.end).filter(|it| *it < fence.pages()),
                Direction::Backward => pages.start.checked_sub(1),
            };
            let Some(beyond) = beyond else {
                return Ok(pages);
            };
            let span = run.span(fence, beyond)?;
            let bytes = own.end.max(span.end) - own.start.min(span.start);
            let cached = run.store().cache().holds_page(run.meta().id, beyond);
            if limit < bytes || cached {
                return Ok(pages);
            }
            match self.direction {
                Direction::Forward => pages.end += 1,
                Direction::Backward => pages.start -= 1,
            }
        }
    }

    fn fence(&mut self, run: &Run) -> Result<Arc<Fence>> {
        if let Some(fence) = &self.fence {
            return Ok(Arc::clone(fence));
        }
        let fence = run.fence()?;
        self.fence = Some(Arc::clone(&fence));
        Ok(fence)
    }
}

//! Pages of a run one after the other, in large reads that bypass the cache.
//!
//! Invariants:
//! - I1: `buffer[..filled]` holds the logical bytes from `base` on; `base <= at`.
//! - I2: every read begins and ends at a whole unit, so that direct I/O needs no copies of edges.

use std::ops::RangeInclusive;
use std::sync::Arc;

use vfs::Site;

use super::Run;
use super::frame::{self, Part};
use super::sites;
use super::store::Manner;
use crate::block::Fence;
use crate::error::{Error, Result};
use crate::page::{self, Page};
use crate::types::UNIT;

/// Sizes of the first and of the largest read: sizes double in between, because a merge of many
/// small runs should not read much more than necessary, while one of large runs needs large reads.
const READ_MIN: u64 = 256 << 10;
const READ_MAX: u64 = 1 << 20;

/// Reads pages in order.
pub(super) struct PageReader {
    run: Arc<Run>,
    site: Site,
    /// The number of the next page, and its logical offset.
    index: u32,
    at: u64,
    /// The end of the last requested page, and its number plus one.
    end: u64,
    pages: u32,
    buffer: Vec<u8>,
    filled: usize,
    base: u64,
    read_len: u64,
}

impl PageReader {
    /// A reader of all pages.
    pub(super) fn new(run: Arc<Run>, site: Site) -> PageReader {
        let (end, pages) = (run.meta().fence_offset, run.meta().pages);
        PageReader {
            run,
            site,
            index: 0,
            at: 0,
            end,
            pages,
            buffer: Vec::new(),
            filled: 0,
            base: 0,
            read_len: READ_MIN,
        }
    }

    /// A reader of a range of pages.
    pub(super) fn between(
        run: Arc<Run>,
        site: Site,
        fence: &Fence,
        pages: RangeInclusive<u32>,
    ) -> Result<PageReader> {
        assert!(pages.start() <= pages.end(), "there is a page to read");
        let at = run.span(fence, *pages.start())?.start;
        let end = run.span(fence, *pages.end())?.end;
        let mut reader = PageReader::new(run, site);
        reader.index = *pages.start();
        reader.pages = *pages.end() + 1;
        reader.at = at;
        reader.end = end;
        reader.base = at - at % UNIT;
        Ok(reader)
    }

    /// A reader of no pages.
    pub(super) fn empty(run: Arc<Run>, site: Site) -> PageReader {
        let mut reader = PageReader::new(run, site);
        reader.stop();
        reader
    }

    /// End before the next page.
    pub(super) fn stop(&mut self) {
        self.index = self.pages;
        self.at = self.end;
    }

    /// The logical offset of the next page.
    pub(super) fn offset(&self) -> u64 {
        self.at
    }

    /// Decode the next page into `page` and return its number; `None` after the last.
    pub(super) fn next(&mut self, page: &mut Page) -> Result<Option<u32>> {
        if self.index == self.pages && self.at == self.end {
            return Ok(None);
        }
        let left = self.end - self.at;
        let sealed = self.run.opener()?.is_some();
        let head = if sealed {
            frame::HEAD
        } else {
            page::HEADER_LEN
        };
        if self.index == self.pages || left < head as u64 {
            return Err(self.damage(&"the pages do not end where they should"));
        }
        self.fill(head)?;
        let stored = if sealed {
            frame::stored_len(self.bytes(head)).map_err(|why| self.damage(&why))?
        } else {
            page::stored_len(self.bytes(head)).map_err(|why| self.damage(&why))?
        };
        if stored == 0 || left < stored as u64 {
            return Err(self.damage(&"it is longer than what is left of the run"));
        }
        self.fill(stored)?;
        let ident = self.run.page_ident(self.index);
        if sealed {
            self.open(stored)?;
            let plain = self.bytes(stored).get(head..).unwrap_or_default();
            page.decode_into(plain, ident)
        } else {
            page.decode_into(self.bytes(stored), ident)
        }
        .map_err(|why| self.damage(&why))?;
        if page.len() == 0 {
            return Err(self.damage(&"it is empty"));
        }
        let index = self.index;
        self.index += 1;
        self.at += stored as u64;
        Ok(Some(index))
    }

    /// Decrypt the next `len` bytes, which are in the buffer and are read once only.
    fn open(&mut self, len: usize) -> Result<()> {
        let start = self.passed();
        let frame = self.buffer.get_mut(start..start + len);
        let frame = frame.expect("I1: the bytes have been read");
        self.run
            .open_frame(frame, Part::Page(self.index))
            .map(|_| ())
    }

    fn damage(&self, why: &dyn std::fmt::Display) -> Error {
        self.run
            .damage(&format!("page {}", self.index), self.at, why)
    }

    /// The next `len` bytes, which are in the buffer.
    fn bytes(&self, len: usize) -> &[u8] {
        let start = self.passed();
        assert!(start + len <= self.filled, "I1: the bytes have been read");
        self.buffer
            .get(start..start + len)
            .expect("filled is at most its length")
    }

    /// Bytes in the buffer before the next page.
    fn passed(&self) -> usize {
        usize::try_from(self.at - self.base).expect("I1: base <= at, within the buffer")
    }

    /// Read until the buffer has `len` bytes from `at` on.
    fn fill(&mut self, len: usize) -> Result<()> {
        let needed = self.at + len as u64;
        let have = self.base + self.filled as u64;
        if needed <= have {
            return Ok(());
        }
        assert!(needed <= self.end, "what is needed is a part of the pages");
        // Keep whole units, so that the next read starts at one (I2).
        let passed = usize::try_from((self.at - self.base) / UNIT * UNIT).expect("within it");
        if passed < self.filled {
            self.buffer.copy_within(passed..self.filled, 0);
        }
        self.filled = self.filled.saturating_sub(passed);
        self.base += passed as u64;
        assert!(have.is_multiple_of(UNIT), "I2: reads begin at whole units");
        let limit = self.end.next_multiple_of(UNIT);
        let to = (have + self.read_len)
            .max(needed.next_multiple_of(UNIT))
            .min(limit);
        self.read_len = (self.read_len * 2).min(READ_MAX);
        let add = usize::try_from(to - have).expect("what is read at once fits into memory");
        if self.buffer.len() < self.filled + add {
            self.buffer.resize(self.filled + add, 0);
        }
        let target = self
            .buffer
            .get_mut(self.filled..self.filled + add)
            .expect("resized");
        let store = self.run.store();
        let how = (self.site, Manner::InOrder);
        store.read(how, self.run.meta(), target, have)?;
        self.filled += add;
        if self.site == sites::MERGE_READ {
            // The page cache need not keep them: they are in the buffer, and the run will be
            // replaced.
            store.forget(self.run.meta(), have, to - have);
        }
        Ok(())
    }
}

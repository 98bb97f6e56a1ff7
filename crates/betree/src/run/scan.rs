//! All versions in a run, or in a key range of it, in order: the input of merges.
//!
//! Entries are lent from one page that is decoded again and again into the same memory.
//!
//! Invariant I1: `slot < limit` exactly when there is a current entry; entries of the page from
//! `limit` on are not wanted.

use std::sync::Arc;

use vfs::Site;

use super::Run;
use super::pages::PageReader;
use crate::error::Result;
use crate::merge::Source;
use crate::page::Page;
use crate::types::{Entry, Seq};

/// A sequential reader of a run.
pub(crate) struct RunScan {
    page: Page,
    slot: usize,
    limit: usize,
    hi: Option<Box<[u8]>>,
    reader: PageReader,
}

impl RunScan {
    /// A scan at the first entry of `reader`'s pages whose key is at least `lo`, if that key is
    /// below `hi`.
    pub(super) fn new(reader: PageReader, lo: Option<&[u8]>, hi: Option<&[u8]>) -> Result<RunScan> {
        let mut scan = RunScan {
            page: Page::default(),
            slot: 0,
            limit: 0,
            hi: hi.map(Box::from),
            reader,
        };
        scan.turn()?;
        if let Some(lo) = lo {
            let first = scan.page.lower_bound(lo, Seq::MAX);
            scan.slot = first;
            // If the position is behind the last page, there is no entry.
            if scan.limit <= first && first == scan.page.len() {
                scan.turn()?;
            }
        }
        Ok(scan)
    }

    /// A scan without entries.
    pub(super) fn empty(run: Arc<Run>, site: Site) -> RunScan {
        RunScan {
            page: Page::default(),
            slot: 0,
            limit: 0,
            hi: None,
            reader: PageReader::empty(run, site),
        }
    }

    /// Move to the next page.
    #[cold]
    fn turn(&mut self) -> Result<()> {
        self.slot = 0;
        self.limit = 0;
        if self.reader.next(&mut self.page)?.is_none() {
            return Ok(());
        }
        self.limit = self.page.len();
        if let Some(hi) = &self.hi {
            self.limit = self.page.lower_bound(hi, Seq::MAX);
            if self.limit < self.page.len() {
                self.reader.stop();
            }
            debug_assert!(
                self.limit <= self.page.len(),
                "I1: the limit is within the page"
            );
        }
        Ok(())
    }
}

impl Source for RunScan {
    #[inline]
    fn current(&self) -> Option<Entry<'_>> {
        if self.slot < self.limit {
            Some(self.page.entry(self.slot))
        } else {
            None
        }
    }

    /// After an error (`Corrupt`, `Io`) the scan has no current entry.
    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.slot += 1;
        if self.slot < self.limit {
            Ok(())
        } else {
            self.turn()
        }
    }
}

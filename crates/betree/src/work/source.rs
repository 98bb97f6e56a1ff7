//! The input of merges: scans of runs, one after another if they do not overlap.

use std::collections::VecDeque;
use std::sync::Arc;

use vfs::Site;

use crate::error::Result;
use crate::merge::Source;
use crate::run::{Run, RunScan};
use crate::types::Entry;

/// The site of reads by merges.
const READ: Site = Site("merge.read");

/// Non-overlapping runs in key order as one source; each is opened when the previous one ends.
pub(crate) struct Chain {
    rest: VecDeque<Arc<Run>>,
    lo: Arc<[u8]>,
    hi: Option<Arc<[u8]>>,
    scan: Option<RunScan>,
}

impl Chain {
    /// The entries of `runs` from `lo` up to `hi`.
    pub(crate) fn new(
        runs: impl IntoIterator<Item = Arc<Run>>,
        lo: Arc<[u8]>,
        hi: Option<Arc<[u8]>>,
    ) -> Result<Chain> {
        let mut chain = Chain {
            rest: runs.into_iter().collect(),
            lo,
            hi,
            scan: None,
        };
        chain.open_next()?;
        Ok(chain)
    }

    fn open_next(&mut self) -> Result<()> {
        while self.scan.as_ref().is_none_or(|s| s.current().is_none()) {
            let Some(run) = self.rest.pop_front() else {
                self.scan = None;
                return Ok(());
            };
            self.scan = Some(run.scan_from(READ, &self.lo, self.hi.as_deref())?);
        }
        debug_assert!(
            self.current().is_none_or(|entry| *self.lo <= *entry.key),
            "keys below the range are left out"
        );
        Ok(())
    }
}

impl Source for Chain {
    #[inline]
    fn current(&self) -> Option<Entry<'_>> {
        self.scan.as_ref()?.current()
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let Some(scan) = &mut self.scan else {
            return Ok(());
        };
        scan.advance()?;
        if scan.current().is_some() {
            return Ok(());
        }
        self.open_next()
    }
}

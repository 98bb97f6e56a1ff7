//! A buffer that takes no more writes: read without its lock, sorted once for all readers.

use std::ops::Bound;
use std::sync::Arc;

use stdx::sync::OnceLock;

use super::order::{self, Ref};
use super::scan::{Lanes, lower, upper};
use super::store::Store;
use crate::error::Result;
use crate::merge::Source;
use crate::types::Entry;

/// Number of entries whose payloads are prefetched: payloads are in the order of writes, so each is
/// in another cache line when read in key order.
const AHEAD: usize = 16;

/// The entries of a frozen buffer, and their sorted order after the first reader needed it.
#[derive(Debug)]
pub(super) struct Frozen {
    pub(super) store: Store,
    refs: OnceLock<Vec<Ref>>,
}

impl Frozen {
    pub(super) fn new(store: Store) -> Frozen {
        Frozen {
            store,
            refs: OnceLock::new(),
        }
    }

    /// All references in order; for each key and sequence number only the last one pushed. The
    /// first caller sorts, concurrent callers wait for it.
    pub(super) fn refs(&self) -> &[Ref] {
        self.refs.get_or_init(|| {
            let mut refs = order::sorted(&self.store, 0);
            refs.dedup_by(|older, newer| self.replaced(*older, *newer));
            assert!(
                refs.len() <= self.store.len(),
                "a slot is in the order once"
            );
            refs
        })
    }

    fn replaced(&self, older: Ref, newer: Ref) -> bool {
        older.head() == newer.head() && {
            debug_assert!(
                older.index() != newer.index(),
                "two slots, the newer one first"
            );
            let older = self.store.entry(older.address());
            let newer = self.store.entry(newer.address());
            older.key == newer.key && older.seq == newer.seq
        }
    }

    pub(super) fn lanes(&self) -> Lanes<'_> {
        let mut lanes = Lanes::default();
        lanes.push(self.refs());
        lanes
    }
}

/// All versions of a frozen buffer in order: ascending keys, of each key the newest version first.
#[derive(Clone, Debug)]
pub(crate) struct SortedBuffer {
    frozen: Arc<Frozen>,
    /// Index of the current reference, and the end.
    position: usize,
    end: usize,
}

impl SortedBuffer {
    pub(super) fn new(frozen: Arc<Frozen>) -> SortedBuffer {
        let end = frozen.refs().len();
        SortedBuffer {
            frozen,
            position: 0,
            end,
        }
    }

    /// The remaining entries with keys in `lo..hi` (no upper bound if `None`).
    #[must_use]
    pub(crate) fn range(mut self, lo: &[u8], hi: Option<&[u8]>) -> SortedBuffer {
        let (store, refs) = (&self.frozen.store, self.frozen.refs());
        let start = lower(store, refs, Bound::Included(lo));
        let end = upper(store, refs, hi.map_or(Bound::Unbounded, Bound::Excluded));
        self.position = self.position.max(start);
        self.end = self.end.min(end).max(self.position);
        assert!(
            self.position <= self.end,
            "an empty range ends where it begins"
        );
        assert!(self.end <= refs.len(), "a part of all entries");
        self
    }

    /// Number of remaining entries, including the current one.
    pub(crate) fn remaining(&self) -> usize {
        self.end - self.position
    }

    #[cfg(test)]
    /// The smallest and the largest remaining key; `None` without entries.
    pub(crate) fn bounds(&self) -> Option<(&[u8], &[u8])> {
        let refs = self.frozen.refs().get(self.position..self.end)?;
        let key = |r: &Ref| self.frozen.store.key(r.address());
        Some((key(refs.first()?), key(refs.last()?)))
    }
}

impl Source for SortedBuffer {
    #[inline]
    fn current(&self) -> Option<Entry<'_>> {
        if self.end <= self.position {
            return None;
        }
        let r = self.frozen.refs().get(self.position)?;
        Some(self.frozen.store.entry(r.address()))
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.position = (self.position + 1).min(self.end);
        if let Some(r) = self.frozen.refs().get(self.position + AHEAD) {
            self.frozen.store.prefetch(r.address());
        }
        Ok(())
    }
}

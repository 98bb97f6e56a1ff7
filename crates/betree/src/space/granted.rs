//! Space that the file system has granted and that is not used: the holes below `backed`, and what
//! lies between the end and `backed`. On a full disk there is no other.
//!
//! A part of it may be *kept* for flushes ([`Space::keep`]): what was committed must find room when
//! memory is emptied. Everything else leaves that part alone. Only what lets the next checkpoint be
//! made goes before it: an image for which the reserve is too short, and a reserve in place of the
//! one that was drawn on.

use stdx::sync::atomic::Ordering;

use super::{Space, State, round_up};
use crate::types::{Extent, UNIT};

/// What an extent is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A flush, which uses what is kept.
    Flush,
    /// Anything else, which leaves it.
    Other,
}

impl Space {
    /// An extent of `len` bytes that the file system has granted: the lowest that fits. Else the
    /// length that the file must be granted for it; then try again, since others may be faster.
    pub(crate) fn allocate_granted(&self, len: u64, purpose: Purpose) -> Result<Extent, u64> {
        let len = round_up(len);
        self.change(|state| {
            let leave = self.left_by(purpose);
            let fits = len.saturating_add(leave) <= state.granted_free();
            let Some(extent) = fits.then(|| state.take_granted(len)).flatten() else {
                return Err(state.length_for(len, leave));
            };
            assert!(
                purpose == Purpose::Flush || leave <= state.granted_free(),
                "only flushes use what is kept for them"
            );
            state.used += len;
            self.use_kept(purpose, len);
            Ok(extent)
        })
    }

    /// The longest extent up to `most` bytes that the file system has granted; `None` when that is
    /// not even a unit.
    pub(crate) fn allocate_longest(&self, most: u64, purpose: Purpose) -> Option<Extent> {
        self.change(|state| {
            let spare = state.granted_free().saturating_sub(self.left_by(purpose));
            let len = most.min(spare).min(state.longest_granted()) / UNIT * UNIT;
            let extent = (0 < len).then(|| state.take_granted(len))??;
            assert!(extent.len <= most, "no longer than asked for");
            state.used += len;
            self.use_kept(purpose, len);
            Some(extent)
        })
    }

    /// Keep `bytes` for flushes if that and `more` bytes are granted and free; else the length that
    /// the file must be granted for it.
    pub(crate) fn keep(&self, bytes: u64, more: u64) -> Result<(), u64> {
        self.change(|state| {
            let wanted = bytes.saturating_add(more);
            if state.granted_free() < wanted {
                return Err(state.length_for(0, wanted));
            }
            assert!(bytes <= state.granted_free(), "what is kept is granted");
            self.kept.store(bytes, Ordering::Relaxed);
            Ok(())
        })
    }

    /// Flushes need `bytes` now, and no more than that is kept for them.
    pub(crate) fn still_keep(&self, bytes: u64) {
        self.change(|_| self.kept.store(bytes, Ordering::Relaxed));
    }

    /// Bytes kept for flushes.
    pub(crate) fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    fn left_by(&self, purpose: Purpose) -> u64 {
        match purpose {
            Purpose::Flush => 0,
            Purpose::Other => self.kept(),
        }
    }

    /// A flush uses `len` bytes of what was kept for it. Under the lock.
    fn use_kept(&self, purpose: Purpose, len: u64) {
        if purpose == Purpose::Flush {
            let left = self.kept().saturating_sub(len);
            self.kept.store(left, Ordering::Relaxed);
        }
    }
}

impl State {
    /// What is granted behind the end.
    pub(super) fn tail(&self) -> u64 {
        self.backed.saturating_sub(self.end) / UNIT * UNIT
    }

    /// What is granted and free, in any number of pieces.
    pub(super) fn granted_free(&self) -> u64 {
        if self.end <= self.backed {
            return self.holes.bytes() + self.tail();
        }
        let beyond = self.holes.iter().filter(|hole| self.backed < hole.end());
        let beyond = beyond.map(|hole| hole.end() - self.backed.max(hole.offset));
        let beyond: u64 = beyond.sum();
        assert!(beyond <= self.holes.bytes(), "a part of the holes");
        self.holes.bytes() - beyond
    }

    /// The longest piece that is granted and free; at least as long as that.
    pub(super) fn longest_granted(&self) -> u64 {
        self.holes.largest().max(self.tail())
    }

    /// The length that the file must be granted for an extent of `len` bytes behind the end that
    /// leaves `leave` bytes.
    pub(super) fn length_for(&self, len: u64, leave: u64) -> u64 {
        let missing = (len.saturating_add(leave)).saturating_sub(self.granted_free());
        let enough = self.end.max(self.backed).saturating_add(missing);
        let length = enough.max(self.end.saturating_add(len));
        debug_assert!(self.end <= length, "a file is as long as what it holds");
        // A file system grants no such length; its error says so.
        length.checked_next_multiple_of(UNIT).unwrap_or(length)
    }
}

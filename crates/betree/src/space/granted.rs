//! What the file system has granted and nobody uses: the holes below `backed`, and what lies
//! between the end and `backed`. On a full disk it is all there is.

use super::{Space, State};
use crate::types::{Extent, UNIT};

impl Space {
    /// An extent of `most` bytes, or as long as can be, of what the file system has granted, so
    /// that `leave` bytes of that are left. `None` when not even a unit can be had.
    pub(crate) fn allocate_granted(&self, most: u64, leave: u64) -> Option<Extent> {
        self.change(|state| {
            let spare = state.granted_free().saturating_sub(leave);
            let most = most.min(spare) / UNIT * UNIT;
            let longest = state.holes.largest().max(state.tail());
            let extent = (0 < most.min(longest)).then(|| state.take_granted(most.min(longest)))?;
            let given = extent.map_or(0, |extent| extent.len);
            assert!(given <= most, "no longer than asked for");
            assert!(leave <= state.granted_free() || given == 0, "that is left");
            state.used += given;
            extent
        })
    }

    /// The length the file must be granted for `bytes` of what is granted to be free; `None` when
    /// they are.
    pub(crate) fn lacks(&self, bytes: u64) -> Option<u64> {
        let state = self.state.lock();
        let free = state.granted_free();
        let missing = bytes.checked_sub(free).filter(|missing| 0 < *missing)?;
        assert!(free < bytes, "something is missing");
        let length = state.end.max(state.backed).checked_add(missing)?;
        Some(length.next_multiple_of(UNIT))
    }
}

impl State {
    /// What is granted behind the end.
    pub(super) fn tail(&self) -> u64 {
        self.backed.saturating_sub(self.end) / UNIT * UNIT
    }

    fn granted_free(&self) -> u64 {
        if self.end <= self.backed {
            return self.holes.bytes() + self.tail();
        }
        let beyond = self.holes.iter().filter(|hole| self.backed < hole.end());
        let beyond: u64 = beyond.map(|hole| hole.len).sum();
        assert!(beyond <= self.holes.bytes(), "a part of the holes");
        self.holes.bytes() - beyond
    }
}

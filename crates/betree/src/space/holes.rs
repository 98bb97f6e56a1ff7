//! The free extents, searchable by address (to join neighbors) and by length (to allocate).
//!
//! Invariants:
//! - I1: holes neither overlap nor touch: neighbours are joined at once.
//! - I2: `bytes` is the sum of their lengths.
//! - I3: every hole is in exactly one class, and [`Lowest`] knows the first of each class.

use std::collections::{BTreeMap, BTreeSet};

use super::lowest::{CLASSES, Lowest};
use crate::types::{Extent, UNIT};

/// The free extents; see the module documentation.
#[derive(Debug)]
pub(super) struct Holes {
    by_offset: BTreeMap<u64, u64>,
    classes: Vec<BTreeSet<u64>>,
    lowest: Lowest,
    bytes: u64,
}

impl Holes {
    /// No holes.
    pub(super) fn new() -> Holes {
        Holes {
            by_offset: BTreeMap::new(),
            classes: vec![BTreeSet::new(); CLASSES],
            lowest: Lowest::new(),
            bytes: 0,
        }
    }

    /// Total length.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Length of what lies below `limit`.
    pub(super) fn bytes_below(&self, limit: u64) -> u64 {
        let last = self.by_offset.range(..limit).next_back();
        let over = last.map_or(0, |(&offset, &len)| (offset + len).saturating_sub(limit));
        let beyond: u64 = self.by_offset.range(limit..).map(|(_, len)| len).sum();
        self.bytes - beyond - over
    }

    /// All holes in ascending order of offset.
    pub(super) fn iter(&self) -> impl Iterator<Item = Extent> + '_ {
        let extent = |(&offset, &len)| Extent { offset, len };
        self.by_offset.iter().map(extent)
    }

    /// Length of the longest hole; 0 if there is none.
    pub(super) fn largest(&self) -> u64 {
        let Some(class) = self.classes.iter().rev().find(|class| !class.is_empty()) else {
            return 0;
        };
        let len = |offset| self.by_offset.get(offset).copied().unwrap_or(0);
        class.iter().map(len).max().unwrap_or(0)
    }

    /// Whether a hole overlaps `extent`.
    pub(super) fn overlaps(&self, extent: Extent) -> bool {
        let before = self.by_offset.range(..extent.end()).next_back();
        before.is_some_and(|(&offset, &len)| extent.offset < offset + len)
    }

    /// Add a hole and join it with adjacent ones.
    pub(super) fn insert(&mut self, extent: Extent) {
        assert!(!self.overlaps(extent), "I1: {extent:?} is free already");
        let mut joined = extent;
        if let Some((&offset, &len)) = self.by_offset.range(..extent.offset).next_back()
            && offset + len == extent.offset
        {
            self.remove(Extent { offset, len });
            joined = Extent {
                offset,
                len: len + joined.len,
            };
        }
        if let Some(&len) = self.by_offset.get(&extent.end()) {
            self.remove(Extent {
                offset: extent.end(),
                len,
            });
            joined.len += len;
        }
        self.add(joined);
    }

    /// Take `len` bytes from the front of the lowest hole that is long enough, if they end at or
    /// before `limit`.
    pub(super) fn take(&mut self, len: u64, limit: u64) -> Option<Extent> {
        assert!(UNIT <= len, "an extent has at least a unit");
        assert_eq!(len % UNIT, 0, "an extent is whole units");
        let hole = self.first_fit(len)?;
        if limit < hole.offset + len {
            return None;
        }
        self.remove(hole);
        if len < hole.len {
            self.add(Extent {
                offset: hole.offset + len,
                len: hole.len - len,
            });
        }
        Some(Extent {
            offset: hole.offset,
            len,
        })
    }

    /// Take the hole that ends at `end`, if there is one.
    pub(super) fn take_ending_at(&mut self, end: u64) -> Option<Extent> {
        let (&offset, &len) = self.by_offset.range(..end).next_back()?;
        let hole = Extent { offset, len };
        if hole.end() != end {
            return None;
        }
        self.remove(hole);
        Some(hole)
    }

    fn first_fit(&self, len: u64) -> Option<Extent> {
        let class = class_of(len);
        let hole = |offset: u64| {
            let len = self.by_offset.get(&offset).copied();
            let len = len.expect("I3: a hole in a class is a hole");
            Extent { offset, len }
        };
        if class + 1 < CLASSES || len == UNIT * CLASSES as u64 {
            let found = hole(self.lowest.from(class)?);
            assert!(len <= found.len, "I3: {found:?} is too short for {len}");
            return Some(found);
        }
        // The holes of the last class differ in length. They are few: at least 4 MiB each.
        let long = self.classes.get(class)?;
        long.iter()
            .map(|&offset| hole(offset))
            .find(|hole| len <= hole.len)
    }

    fn add(&mut self, hole: Extent) {
        self.by_offset.insert(hole.offset, hole.len);
        self.bytes += hole.len;
        let class = class_of(hole.len);
        if let Some(members) = self.classes.get_mut(class) {
            members.insert(hole.offset);
            self.lowest.set(class, members.first().copied());
        }
    }

    fn remove(&mut self, hole: Extent) {
        let removed = self.by_offset.remove(&hole.offset);
        assert_eq!(removed, Some(hole.len), "{hole:?} is a hole");
        assert!(hole.len <= self.bytes, "I2: more taken than there is");
        self.bytes -= hole.len;
        let class = class_of(hole.len);
        if let Some(members) = self.classes.get_mut(class) {
            assert!(members.remove(&hole.offset), "I3: {hole:?} is in no class");
            self.lowest.set(class, members.first().copied());
        }
    }
}

/// The class of holes of `len` bytes: 0 for one unit, and so on.
fn class_of(len: u64) -> usize {
    let units = usize::try_from(len / UNIT).unwrap_or(usize::MAX);
    units.clamp(1, CLASSES) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(unit: u64, units: u64) -> Extent {
        Extent {
            offset: unit * UNIT,
            len: units * UNIT,
        }
    }

    #[test]
    fn neighbours_are_joined_on_both_sides() {
        let mut holes = Holes::new();
        holes.insert(at(1, 1));
        holes.insert(at(3, 1));
        holes.insert(at(2, 1));
        assert_eq!(holes.iter().collect::<Vec<_>>(), [at(1, 3)]);
        assert_eq!((holes.bytes(), holes.largest()), (3 * UNIT, 3 * UNIT));
        assert!(holes.overlaps(at(3, 9)) && holes.overlaps(at(0, 2)));
        assert!(!holes.overlaps(at(0, 1)) && !holes.overlaps(at(4, 1)));
    }

    #[test]
    fn the_lowest_that_fits_is_taken_among_exact_and_among_long_ones() {
        let mut holes = Holes::new();
        for hole in [
            at(1, 2),
            at(10, 5),
            at(100, 1500),
            at(5000, 3000),
            at(20, 3),
        ] {
            holes.insert(hole);
        }
        assert_eq!(holes.take(3 * UNIT, u64::MAX), Some(at(10, 3)));
        assert_eq!(holes.take(1024 * UNIT, u64::MAX), Some(at(100, 1024)));
        assert_eq!(holes.take(1025 * UNIT, u64::MAX), Some(at(5000, 1025)));
        assert_eq!(holes.take(2000 * UNIT, u64::MAX), None);
        assert_eq!(holes.take(400 * UNIT, 1123 * UNIT), None, "limit");
        assert_eq!(holes.take(UNIT, u64::MAX), Some(at(1, 1)));
        assert_eq!(holes.largest(), 1975 * UNIT);
        assert_eq!(holes.take_ending_at(7999 * UNIT), None);
        assert_eq!(holes.take_ending_at(8000 * UNIT), Some(at(6025, 1975)));
    }
}

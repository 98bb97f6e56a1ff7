//! Extents that wait for a checkpoint before they may be given out again.
//!
//! Invariants:
//! - I1: pending extents do not overlap.
//! - I2: `bytes` is the sum of their lengths.
//! - I3: all of an epoch leave together, and no epoch returns after it left.

use std::collections::BTreeMap;

use super::Epoch;
use crate::types::Extent;

/// Extents that wait; see the module documentation.
#[derive(Debug)]
pub(super) struct Pending {
    /// By offset: the length, and the checkpoint that the extent waits for.
    by_offset: BTreeMap<u64, (u64, Epoch)>,
    bytes: u64,
    /// The last epoch whose extents have left.
    durable: Epoch,
}

impl Pending {
    /// No pending extents.
    pub(super) fn new() -> Pending {
        Pending {
            by_offset: BTreeMap::new(),
            bytes: 0,
            durable: Epoch(0),
        }
    }

    /// Total length.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All pending extents in ascending order of offset.
    pub(super) fn iter(&self) -> impl Iterator<Item = Extent> {
        let all = self.by_offset.iter();
        all.map(|(&offset, &(len, _))| Extent { offset, len })
    }

    /// Whether a pending extent overlaps `extent`.
    pub(super) fn overlaps(&self, extent: Extent) -> bool {
        let before = self.by_offset.range(..extent.end()).next_back();
        before.is_some_and(|(&offset, &(len, _))| extent.offset < offset + len)
    }

    /// Add an extent that waits for the checkpoint `epoch`.
    pub(super) fn insert(&mut self, extent: Extent, epoch: Epoch) {
        assert!(self.durable < epoch, "I3: {epoch:?} is durable already");
        assert!(!self.overlaps(extent), "I1: {extent:?} waits already");
        self.by_offset.insert(extent.offset, (extent.len, epoch));
        self.bytes += extent.len;
    }

    /// Remove and return the extents that wait for `epoch` or an earlier checkpoint.
    pub(super) fn take_up_to(&mut self, epoch: Epoch) -> Vec<Extent> {
        let mut taken = Vec::new();
        self.by_offset.retain(|&offset, &mut (len, waits)| {
            let stays = epoch < waits;
            if !stays {
                taken.push(Extent { offset, len });
            }
            stays
        });
        let bytes: u64 = taken.iter().map(|extent| extent.len).sum();
        assert!(bytes <= self.bytes, "I2: more taken than there is");
        self.bytes -= bytes;
        self.durable = self.durable.max(epoch);
        taken
    }
}

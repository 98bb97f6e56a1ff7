//! The register of open snapshots, by sequence number.

use std::collections::BTreeMap;

/// Number of open snapshots at each sequence number.
#[derive(Debug, Default)]
pub(super) struct Live {
    counts: BTreeMap<u64, usize>,
}

impl Live {
    /// Register a snapshot at `seq`.
    pub(super) fn add(&mut self, seq: u64) {
        *self.counts.entry(seq).or_insert(0) += 1;
    }

    /// Remove a snapshot at `seq` from the register. Returns true when this changed the oldest
    /// registered sequence number.
    pub(super) fn remove(&mut self, seq: u64) -> bool {
        let oldest = self.oldest();
        let count = self.counts.get_mut(&seq);
        let count = count.expect("a snapshot is registered until it is removed, once");
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&seq);
        }
        self.oldest() != oldest
    }

    /// The sequence number of the oldest open snapshot, if one is open.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.counts.first_key_value().map(|(&seq, _)| seq)
    }

    /// Whether a snapshot below `seq` is open.
    pub(super) fn any_below(&self, seq: u64) -> bool {
        self.oldest().is_some_and(|oldest| oldest < seq)
    }

    /// Whether a snapshot at or above `from`, but below `to`, is open.
    pub(super) fn any_within(&self, from: u64, to: u64) -> bool {
        self.counts.range(from..to).next().is_some()
    }

    /// The number of open snapshots.
    pub(super) fn len(&self) -> usize {
        self.counts.values().sum()
    }
}

//! Which keys were written lately by transactions: a table of the newest commit per hash.
//!
//! A transaction asks before it commits whether a key it wrote was written since its snapshot. The
//! table answers "certainly not" for nearly all keys without a read; a hit is confirmed by an exact
//! read before it aborts anyone, because different keys share places.

use std::sync::atomic::{AtomicU64, Ordering};

use stdx::hash::hash64_seeded;

use crate::types::{Seq, TreeId};

/// Number of places in the table: 512 KiB, which fit in the second-level cache. With a thousand
/// keys written during each transaction, one lookup in 64 causes an unnecessary exact read.
const PLACES: usize = 1 << 16;

/// The table. Written under the commit lock; any thread may read it.
pub(crate) struct Recent {
    places: Box<[AtomicU64]>,
}

impl Recent {
    pub(crate) fn new() -> Recent {
        let places = (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        Recent { places }
    }

    fn place(&self, tree: TreeId, key: &[u8]) -> &AtomicU64 {
        let hash = hash64_seeded(key, u64::from(tree.0));
        let index = usize::try_from(hash % PLACES as u64).expect("below PLACES");
        self.places.get(index).expect("index is below PLACES")
    }

    /// Record that commit `seq` writes `key`.
    pub(crate) fn note(&self, tree: TreeId, key: &[u8], seq: Seq) {
        self.place(tree, key).store(seq.0, Ordering::Relaxed);
    }

    /// Whether `key`, or another key with the same place, was written after `snapshot`.
    pub(crate) fn perhaps_newer(&self, tree: TreeId, key: &[u8], snapshot: Seq) -> bool {
        snapshot.0 < self.place(tree, key).load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_never_denied() {
        let recent = Recent::new();
        for i in 1..=1000_u64 {
            recent.note(TreeId(1), &i.to_be_bytes(), Seq(i));
        }
        for i in 1..=1000_u64 {
            let key = i.to_be_bytes();
            assert!(recent.perhaps_newer(TreeId(1), &key, Seq(i - 1)));
        }
        assert!(!recent.perhaps_newer(TreeId(1), b"other", Seq(1000)));
    }
}

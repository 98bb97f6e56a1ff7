//! Recent range deletes, for the conflict check of open transactions.
//!
//! RocksDB's conflict check looks up single keys, and does not notice a range delete that covered a
//! key whose versions are only in files. So each batch with range deletes adds a note here, and a
//! commit with an older snapshot checks whether its transaction wrote into the range.
//!
//! A note is removed when no snapshot is older than it; this is checked whenever a note is added.

use std::sync::atomic::{AtomicBool, Ordering};

use kv::TreeId;
use stdx::sync::Mutex;

/// A range that was deleted.
#[derive(Debug)]
pub(super) struct Note {
    pub(super) tree: TreeId,
    /// The first key of the range.
    pub(super) from: Box<[u8]>,
    /// The first key after the range.
    pub(super) to: Box<[u8]>,
}

/// The notes, with the sequence number from which on snapshots see the deletion.
#[derive(Default)]
pub(super) struct RangeDeletes {
    any: AtomicBool,
    notes: Mutex<Vec<(u64, Note)>>,
}

impl RangeDeletes {
    /// Add notes for ranges that snapshots from `sequence` on see as deleted. Removes the notes
    /// whose ranges all snapshots from `oldest` on see as deleted.
    pub(super) fn add(&self, sequence: u64, oldest: u64, ranges: Vec<Note>) {
        let mut notes = self.notes.lock();
        notes.retain(|(deleted, _)| oldest < *deleted);
        notes.extend(ranges.into_iter().map(|note| (sequence, note)));
        self.any.store(true, Ordering::Release);
    }

    /// Whether `touches` is true for a range whose deletion the snapshot `sequence` does not see.
    pub(super) fn conflict(&self, sequence: u64, touches: impl Fn(&Note) -> bool) -> bool {
        if !self.any.load(Ordering::Acquire) {
            return false;
        }
        let notes = self.notes.lock();
        notes
            .iter()
            .any(|(deleted, note)| sequence < *deleted && touches(note))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(from: &[u8], to: &[u8]) -> Note {
        Note {
            tree: TreeId(1),
            from: from.into(),
            to: to.into(),
        }
    }

    #[test]
    fn a_note_concerns_older_snapshots_only_and_is_forgotten() {
        let deletes = RangeDeletes::default();
        assert!(!deletes.conflict(1, |_| true));
        deletes.add(10, 5, vec![note(b"a", b"b")]);
        assert!(deletes.conflict(9, |n| *n.from == *b"a"));
        assert!(!deletes.conflict(10, |_| true));
        deletes.add(20, 15, vec![note(b"c", b"d")]);
        assert!(!deletes.conflict(9, |n| *n.from == *b"a"));
        assert_eq!(deletes.notes.lock().len(), 1);
    }
}

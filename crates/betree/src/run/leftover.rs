//! The versions that a run contains only for snapshots, and when a merge can drop them.
//!
//! A *horizon* is the oldest live snapshot, or the newest visible commit where that is older. It
//! never goes back: a new snapshot is of the newest commit. As soon as it has reached the number
//! of a newer version of a key, no reader sees the older one; as soon as it has reached the number
//! of a tombstone with nothing below it, no reader needs the tombstone.
//!
//! - I1. A merge at a horizon leaves runs whose leftovers go at a later one only, so none is merged
//!   again for nothing.
//!
//! A run that was written since the store was opened knows its leftovers exactly. The image holds
//! no more than the largest number in a run and how many tombstones it has, so a run that was
//! opened from one is taken for one that can drop something if it has numbers at all.

use super::RunMeta;
use crate::types::{Entry, Op, Seq};

/// Versions that a newer one replaces, and tombstones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leftovers {
    /// The lowest horizon at which one of them can be dropped.
    at: Seq,
    /// Their number.
    entries: u64,
}

impl Leftovers {
    /// No such versions.
    pub(super) const NONE: Leftovers = Leftovers {
        at: Seq::MAX,
        entries: 0,
    };

    /// The versions that a run read from an image may contain, according to its description.
    pub(super) fn guess(meta: &RunMeta) -> Leftovers {
        if meta.max_seq == Seq::ANCIENT && meta.tombstones == 0 {
            return Leftovers::NONE;
        }
        Leftovers {
            at: meta.max_seq,
            entries: meta.tombstones.max(1),
        }
    }

    /// Count the next entry of a run; `newer` is the sequence number of the previous entry, if it
    /// has the same key.
    #[inline]
    pub(super) fn count(&mut self, entry: Entry<'_>, newer: Option<Seq>) {
        let dead = (entry.op == Op::Delete).then_some(entry.seq);
        if let Some(at) = dead.or(newer) {
            self.at = self.at.min(at);
            self.entries += 1;
        }
    }

    /// The lowest horizon at which one can be dropped; [`Seq::MAX`] if there are none.
    pub(crate) fn at(&self) -> Seq {
        self.at
    }

    /// Their number; for a run read from an image an upper bound.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(versions: &[(&[u8], u64, Op)]) -> Leftovers {
        let mut leftovers = Leftovers::NONE;
        let mut last: Option<(&[u8], Seq)> = None;
        for (key, seq, op) in versions {
            let entry = Entry {
                key,
                seq: Seq(*seq),
                op: *op,
                value: &[],
            };
            let newer = last.filter(|(before, _)| before == key).map(|(_, seq)| seq);
            leftovers.count(entry, newer);
            last = Some((key, Seq(*seq)));
        }
        leftovers
    }

    #[test]
    fn an_older_version_goes_when_everybody_sees_the_newer_one() {
        let one = counted(&[(b"a", 9, Op::Put), (b"a", 4, Op::Put), (b"b", 2, Op::Put)]);
        assert_eq!((one.at(), one.entries()), (Seq(9), 1));
        let two = counted(&[(b"a", 9, Op::Put), (b"a", 4, Op::Put), (b"a", 0, Op::Put)]);
        assert_eq!((two.at(), two.entries()), (Seq(4), 2));
    }

    #[test]
    fn a_tombstone_goes_when_everybody_sees_it() {
        let dead = counted(&[(b"a", 9, Op::Delete), (b"a", 0, Op::Put)]);
        assert_eq!((dead.at(), dead.entries()), (Seq(9), 2));
        let below = counted(&[(b"a", 9, Op::Put), (b"a", 5, Op::Delete)]);
        assert_eq!((below.at(), below.entries()), (Seq(5), 1));
    }

    #[test]
    fn single_versions_are_no_leftovers() {
        let single = counted(&[(b"a", 9, Op::Put), (b"b", 4, Op::Put), (b"c", 0, Op::Put)]);
        assert_eq!(single, Leftovers::NONE);
    }
}

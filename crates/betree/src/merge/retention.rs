//! Which versions of a key are still needed, and with which sequence number.
//!
//! A reader is a live snapshot, or one that will be taken: of `now`, or later. A reader of snapshot
//! `r` sees of each key the newest version with seq <= r.
//!
//! Invariants, for the versions of one key, which come newest first:
//! - I1: a version newer than `now` is kept as it is: commits up to it are not all visible yet.
//! - I2: another version is kept if and only if it is the newest one <= `now`, or the newest one
//!   <= some live snapshot. All other versions are seen by no reader, now or ever.
//! - I3: a kept version has its seq rewritten to 0 if and only if it is <= `now` and <= every live
//!   snapshot: then every reader, now or ever, sees it or a newer one. No older version of its key
//!   is kept then: it would be seen by no reader (I2).
//! - I4: at the bottom, where nothing older lies below, a tombstone whose seq would be rewritten to
//!   0 is dropped: it hides nothing, as no older version is kept (I3). Elsewhere it stays.
//!
//! `now` must be read before the list of live snapshots, or both under one lock: a snapshot taken
//! between the two is then in the list, or not older than `now`.

use crate::plant::{Plant, planted};
use crate::types::{Entry, Op, Seq};

/// Decides for each version of a sorted sequence in turn. See the module documentation.
#[derive(Debug)]
pub(crate) struct Retention {
    /// `now` and the live snapshots, ascending.
    readers: Vec<Seq>,
    now: Seq,
    bottom: bool,
    key: Vec<u8>,
    /// Sequence number of the last version of `key`, kept or not; `None` before the first entry.
    newer: Option<Seq>,
}

impl Retention {
    /// For the live `snapshots` (ascending) and `now`, the newest visible commit. `bottom` if no
    /// older version of any key lies below.
    pub(crate) fn new(snapshots: Vec<Seq>, now: Seq, bottom: bool) -> Retention {
        assert!(snapshots.is_sorted(), "snapshots ascend");
        let mut readers = snapshots;
        let place = readers.partition_point(|&reader| reader <= now);
        readers.insert(place, now);
        readers.dedup();
        assert_eq!(
            readers.binary_search(&now).map(|_| ()),
            Ok(()),
            "`now` reads"
        );
        Retention {
            readers,
            now,
            bottom,
            key: Vec::new(),
            newer: None,
        }
    }

    /// The sequence number to keep this version with; `None` to drop it. Entries arrive in the
    /// order of keys and, for one key, newest first.
    #[inline]
    pub(crate) fn keep(&mut self, entry: Entry<'_>) -> Option<Seq> {
        let newer = match self.newer {
            Some(newer) if self.key == entry.key => {
                assert!(entry.seq < newer, "seq {} after {newer}", entry.seq);
                Some(newer)
            }
            _ => {
                debug_assert!(
                    self.newer.is_none() || self.key.as_slice() < entry.key,
                    "keys ascend"
                );
                self.key.clear();
                self.key.extend_from_slice(entry.key);
                None
            }
        };
        self.newer = Some(entry.seq);
        let kept = self.judge(entry.seq, newer, entry.op);
        debug_assert!(
            kept.is_none_or(|seq| seq == entry.seq || seq == Seq::ANCIENT),
            "I3: a seq stays or becomes 0"
        );
        kept
    }

    /// The decision on a version, from the sequence number of the next newer version of its key.
    fn judge(&self, seq: Seq, newer: Option<Seq>, op: Op) -> Option<Seq> {
        if self.now < seq {
            return Some(seq); // I1
        }
        // The version is seen by readers from its sequence number up to that of the next newer
        // version.
        let first = self.readers.partition_point(|&reader| reader < seq);
        let reader = *self
            .readers
            .get(first)
            .expect("`now` is one, and not below");
        if newer.is_some_and(|newer| newer <= reader) {
            return None; // I2
        }
        if planted(Plant::DropTombstoneEarly) && self.bottom && op == Op::Delete {
            return None;
        }
        if 0 < first {
            return Some(seq);
        }
        assert!(seq <= self.now, "I3: seq {seq}, now {}", self.now);
        match op {
            Op::Delete if self.bottom => None, // I4
            _ => Some(Seq::ANCIENT),
        }
    }
}

//! A model of a buffer: all versions in a map.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::*;

/// Key and seq, newest first.
type Place = (Vec<u8>, Reverse<Seq>);

/// The last pushed version for each key and sequence number.
#[derive(Default)]
pub(super) struct Model {
    versions: BTreeMap<Place, (Op, Vec<u8>)>,
}

impl Model {
    pub(super) fn push(&mut self, version: Version) {
        let place = (version.key, Reverse(version.seq));
        self.versions.insert(place, (version.op, version.value));
    }

    pub(super) fn all(&self) -> Vec<Version> {
        let versions = self.versions.iter();
        versions
            .map(|((key, seq), (op, value))| Version {
                key: key.clone(),
                seq: seq.0,
                op: *op,
                value: value.clone(),
            })
            .collect()
    }

    /// The versions that `snapshot` sees, in ascending order.
    pub(super) fn seen(&self, snapshot: Seq) -> Vec<Version> {
        let mut seen = self.all();
        seen.retain(|version| version.seq <= snapshot);
        seen.dedup_by(|later, first| later.key == first.key);
        seen
    }

    pub(super) fn get(&self, key: &[u8], snapshot: Seq) -> Option<Version> {
        let seen = self.seen(snapshot).into_iter();
        seen.into_iter().find(|version| version.key == key)
    }

    /// The whole range in the direction.
    pub(super) fn range(
        &self,
        direction: Direction,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        snapshot: Seq,
    ) -> Vec<Version> {
        let (low, high) = match direction {
            Direction::Forward => (from, to),
            Direction::Backward => (to, from),
        };
        let above = |key: &[u8]| match low {
            Bound::Unbounded => true,
            Bound::Included(low) => low <= key,
            Bound::Excluded(low) => low < key,
        };
        let below = |key: &[u8]| match high {
            Bound::Unbounded => true,
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
        };
        let mut seen = self.seen(snapshot);
        seen.retain(|version| above(&version.key) && below(&version.key));
        if direction == Direction::Backward {
            seen.reverse();
        }
        seen
    }
}

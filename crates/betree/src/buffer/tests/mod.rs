//! Buffers against a sorted model of all versions, under random pushes and reads.

mod model;
mod random;
mod threads;
mod whole;
mod write_set;

use std::ops::Bound;

use super::*;

/// An owned entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) key: Vec<u8>,
    pub(super) seq: Seq,
    pub(super) op: Op,
    pub(super) value: Vec<u8>,
}

impl From<Entry<'_>> for Version {
    fn from(entry: Entry<'_>) -> Version {
        Version {
            key: entry.key.to_vec(),
            seq: entry.seq,
            op: entry.op,
            value: entry.value.to_vec(),
        }
    }
}

pub(super) fn entries(window: &Window) -> Vec<Version> {
    (0..window.len()).map(|i| window.entry(i).into()).collect()
}

pub(super) fn drain(mut source: SortedBuffer) -> Vec<Version> {
    use crate::merge::Source;
    let mut out = Vec::new();
    while let Some(entry) = source.current() {
        out.push(entry.into());
        source.advance().unwrap();
    }
    assert_eq!(source.remaining(), 0);
    out
}

pub(super) fn bound(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

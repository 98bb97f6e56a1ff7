//! A bucket as a reader holds it, and how a reader finds the next bucket.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::error::Result;
use crate::run::Run;
use crate::types::{Op, Seq};

/// One bucket as of the moment it was asked for. Its holder can keep reading what is in it,
/// whatever is flushed, merged, split or retired meanwhile.
///
/// Invariant: what is earlier in the order buffers, deltas, base (and within the first two) is
/// newer: for one key it has no version older than any of what is later. Buffers and runs may hold
/// keys outside of `lo` and `hi`; these do not count.
#[derive(Clone)]
pub(crate) struct View {
    /// The active buffer, then the frozen ones, newest first.
    pub(crate) buffers: Vec<Arc<Buffer>>,
    /// The runs of changes, newest first.
    pub(crate) deltas: Vec<Arc<Run>>,
    /// The runs of the base, ascending and disjoint.
    pub(crate) base: Arc<[Arc<Run>]>,
    /// The lower bound of the bucket, inclusive.
    pub(crate) lo: Arc<[u8]>,
    /// The upper bound of the bucket, exclusive; `None` for the last one.
    pub(crate) hi: Option<Arc<[u8]>>,
}

impl View {
    /// Whether `key` is in the range of the bucket.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        *self.lo <= *key && self.hi.as_deref().is_none_or(|hi| key < hi)
    }
}

/// The requested bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At<'a> {
    /// The bucket of the least keys.
    First,
    /// The bucket of the greatest keys.
    Last,
    /// The bucket for this key.
    Key(&'a [u8]),
    /// The bucket for the greatest keys below this key.
    Before(&'a [u8]),
}

/// The buckets of one tree as they are now: each call may see another division into buckets, but
/// all keys always belong to exactly one.
pub(crate) trait Buckets {
    /// The bucket at `at`. None only for `Before` the empty key: nothing is less.
    ///
    /// # Errors
    /// The tree has been dropped; the snapshot has become too old.
    fn view(&self, at: At<'_>) -> Result<Option<View>>;
}

/// Read the value that `snapshot` sees of `key`, which belongs to `view`, into `value` (cleared
/// first). False when it is absent.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(crate) fn get(view: &View, key: &[u8], snapshot: Seq, value: &mut Vec<u8>) -> Result<bool> {
    debug_assert!(view.holds(key), "the key belongs to another bucket");
    value.clear();
    let found = find(view, key, snapshot, value)?.map(|(_, op)| op);
    if found != Some(Op::Put) {
        value.clear();
    }
    Ok(found == Some(Op::Put))
}

/// The commit of the newest version of `key`, including tombstones; 0 if it is older than all
/// snapshots.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(crate) fn newest(view: &View, key: &[u8]) -> Result<Option<Seq>> {
    let mut value = Vec::new();
    Ok(find(view, key, Seq::MAX, &mut value)?.map(|(seq, _)| seq))
}

/// Find the newest version of `key` that `snapshot` sees, and its operation.
fn find(view: &View, key: &[u8], snapshot: Seq, value: &mut Vec<u8>) -> Result<Option<(Seq, Op)>> {
    for buffer in &view.buffers {
        if let Some((seq, op)) = buffer.get(key, snapshot, value) {
            debug_assert!(seq <= snapshot, "a buffer answers within the snapshot");
            return Ok(Some((seq, op)));
        }
    }
    let below = view.base.partition_point(|run| *run.meta().max_key < *key);
    for run in view.deltas.iter().chain(view.base.get(below)) {
        if let Some((seq, op)) = run.get(key, snapshot, value)? {
            debug_assert!(seq <= snapshot, "a run answers within the snapshot");
            return Ok(Some((seq, op)));
        }
    }
    Ok(None)
}

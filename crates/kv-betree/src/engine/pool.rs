//! Batches in the store's encoding, reused so that their memory need not grow again.
//!
//! The list is behind a lock that is held for one push or pop.

use kv::{Batch, KeyRange, Op};
use stdx::sync::Mutex;

use super::{bounds, handle};

/// Maximum number of batches kept: more writers at the same time are rare, and then allocate.
const KEPT_MAX: usize = 8;

/// The largest batch kept, in bytes: together they hold much less than any cache.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Unused batches.
#[derive(Default)]
pub(super) struct Pool {
    kept: Mutex<Vec<betree::Batch>>,
}

/// A batch borrowed from a [`Pool`]; dropping it returns it.
pub(super) struct Lent<'a> {
    pool: &'a Pool,
    batch: betree::Batch,
}

impl Pool {
    /// `batch` in the store's encoding.
    pub(super) fn translate(&self, batch: &Batch) -> Lent<'_> {
        let mut translated = self.kept.lock().pop().unwrap_or_default();
        assert!(translated.is_empty(), "kept batches are empty");
        for op in batch.ops() {
            match op {
                Op::Put { tree, key, value } => translated.put(handle(tree), key, value),
                Op::Delete { tree, key } => translated.delete(handle(tree), key),
                Op::DeleteRange { tree, range } => delete_range(&mut translated, tree, range),
            }
        }
        debug_assert_eq!(translated.len(), batch.len(), "one change for one");
        Lent {
            pool: self,
            batch: translated,
        }
    }
}

fn delete_range(batch: &mut betree::Batch, tree: kv::TreeId, range: KeyRange<'_>) {
    let (start, end) = bounds(range);
    batch.delete_range(handle(tree), start, end);
}

impl std::ops::Deref for Lent<'_> {
    type Target = betree::Batch;

    fn deref(&self) -> &betree::Batch {
        &self.batch
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if KEPT_BYTES_MAX < self.batch.byte_len() {
            return;
        }
        self.batch.clear();
        let batch = std::mem::take(&mut self.batch);
        let mut kept = self.pool.kept.lock();
        if kept.len() < KEPT_MAX {
            kept.push(batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use betree::Change;
    use kv::TreeId;
    use std::ops::Bound::{Excluded, Included};

    #[test]
    fn changes_are_translated_one_for_one() {
        let pool = Pool::default();
        let mut batch = Batch::new();
        batch.put(TreeId(1), b"k", b"v");
        batch.delete(TreeId(2), b"d");
        batch.delete_range(TreeId(2), KeyRange::half_open(b"a", b"b"));
        batch.delete_range(TreeId(2), KeyRange::half_open(b"b", b"a"));
        let (one, two) = (betree::TreeId(1), betree::TreeId(2));
        let range = |start, end| Change::DeleteRange {
            tree: two,
            start,
            end,
        };
        let expected = [
            Change::Put {
                tree: one,
                key: b"k",
                value: b"v",
            },
            Change::Delete {
                tree: two,
                key: b"d",
            },
            range(Included(b"a"), Excluded(b"b")),
            range(Included(b""), Excluded(b"")),
        ];
        for _ in 0..2 {
            let lent = pool.translate(&batch);
            assert!(lent.ops().eq(expected));
        }
        assert_eq!(pool.kept.lock().len(), 1, "it was given back");
    }
}

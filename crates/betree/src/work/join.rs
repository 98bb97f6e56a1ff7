//! Joining small neighbours: deletes, and versions that snapshots had held back, leave buckets that
//! hold little, where a store loaded with the same data would have few.
//!
//! Only settled buckets are joined, by `settle` and by a store without other work. Nothing is
//! read for it: the runs of all become the base of one. If they are so small that much of their
//! last units is unused, they are then merged into one run like leftovers are.
//!
//! - I1. What is joined is at most half a bucket, so that the parts of a cut, of 30 % and more, are
//!   not joined again.
//! - I2. Nothing of the buckets is in memory only, so that the newest of their `flushed` is true of
//!   all of them.

use std::sync::Arc;

use super::leftovers;
use crate::db::Core;
use crate::run::Run;
use crate::tree::{Bucket, State, Tree};

/// Maximum number of buckets joined at once, because their states are locked together.
const MOST: usize = 64;

impl Core {
    /// Join adjacent settled buckets that are small together. Returns false if there are none.
    pub(super) fn join_small(&self) -> bool {
        let trees = self.catalog.all();
        let mut any = false;
        for tree in &trees {
            any |= self.join_small_of(tree);
        }
        any
    }

    fn join_small_of(&self, tree: &Arc<Tree>) -> bool {
        let most = self.options.bucket() / 2;
        let routing = tree.routing();
        let (mut any, mut bytes) = (false, 0);
        let mut stretch: Vec<Arc<Bucket>> = Vec::new();
        for bucket in routing.buckets() {
            let size = settled_bytes(bucket, &bucket.state());
            let fits = size.is_some_and(|size| bytes + size <= most) && stretch.len() < MOST;
            if !fits {
                any |= self.join_all(tree, &stretch);
                stretch.clear();
                bytes = 0;
            }
            if let Some(size) = size {
                bytes += size;
                stretch.push(Arc::clone(bucket));
            }
        }
        any | self.join_all(tree, &stretch)
    }

    /// Replace `stretch`, adjacent buckets, by one bucket, if all of them still exist and are
    /// settled. Returns false otherwise, or if there is only one.
    fn join_all(&self, tree: &Arc<Tree>, stretch: &[Arc<Bucket>]) -> bool {
        let (Some(first), Some(last)) = (stretch.first(), stretch.last()) else {
            return false;
        };
        if stretch.len() < 2 {
            return false;
        }
        // Routings are replaced, and buffers written, under this lock only.
        let _committer = self.commit.lock();
        let routing = tree.routing();
        let there = routing.buckets().iter().skip(routing.find(&first.lo));
        let same = there
            .zip(stretch)
            .filter(|(one, other)| Arc::ptr_eq(one, other));
        if same.count() < stretch.len() {
            return false;
        }
        // In key order, like everywhere where several states are locked.
        let mut states: Vec<_> = stretch.iter().map(|bucket| bucket.state()).collect();
        let settled = |(bucket, state): (&Arc<Bucket>, &_)| settled_bytes(bucket, state).is_some();
        if !stretch
            .iter()
            .zip(states.iter().map(|state| &**state))
            .all(settled)
        {
            return false;
        }
        let base: Arc<[Arc<Run>]> = states
            .iter()
            .flat_map(|state| state.base.to_vec())
            .collect();
        let in_runs = states
            .iter()
            .all(|state| state.frozen.is_empty() && state.active.entries() == 0);
        assert!(in_runs, "I2: nothing is in memory only");
        let flushed = states.iter().map(|state| state.flushed).max();
        let flushed = flushed.expect("there are two at least");
        let lo = Arc::clone(&first.lo);
        let touch = |one: &Arc<Bucket>, next: &Arc<Bucket>| one.hi.as_deref() == Some(&*next.lo);
        assert!(stretch.is_sorted_by(touch), "they are neighbours");
        let ordered = |one: &Arc<Run>, next: &Arc<Run>| one.meta().max_key < next.meta().min_key;
        assert!(base.is_sorted_by(ordered), "a base is in key order");
        let new = Bucket::with_runs(lo, last.hi.clone(), flushed, Vec::new(), base);
        tree.replace(stretch, vec![Arc::new(new)]);
        states.iter_mut().for_each(|state| state.retire());
        drop(states);
        self.merges.look_again();
        self.counters.absorbed.add(stretch.len() as u64 - 1);
        true
    }
}

/// Stored bytes of a bucket that may be joined or split; `None` if it has pending work or work
/// in progress.
pub(super) fn settled_bytes(bucket: &Bucket, state: &State) -> Option<u64> {
    let buffered = !state.frozen.is_empty() || 0 < state.active.entries();
    let busy = buffered || state.broken || !state.is_free() || !state.deltas.is_empty();
    // Keys outside of the bucket are ignored in it, but would count in a larger bucket.
    let within =
        |run: &Arc<Run>| bucket.holds(&run.meta().min_key) && bucket.holds(&run.meta().max_key);
    let may = !busy && state.base.iter().all(within);
    may.then(|| state.base_bytes())
}

/// Whether the runs of a base leave much of their space unused, which a single run would not.
pub(super) fn is_scattered(state: &State) -> bool {
    let allocated = || state.base.iter().map(|run| run.meta().allocated());
    let bytes = state.base_bytes();
    1 < state.base.len() && bytes / leftovers::SPARE < allocated().sum::<u64>() - bytes
}

//! Giving up empty buckets: a tree whose old end is deleted while it grows at the other, or that is
//! filled and emptied again and again, does not collect them.
//!
//! A bucket without runs and buffers is absorbed by a neighbour at the end of the merge that made
//! it empty. When that cannot be (the neighbour is busy, or shares a run that spans both) it is
//! tried again: by the next merge of a neighbour, by `settle`, and by a store without other work.
//!
//! - I1. `left` is set while a bucket without runs stands beside another one, except while all
//!   buckets are looked at.

use std::sync::Arc;

use stdx::sync::MutexGuard;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::db::{Committer, Core};
use crate::plant::{Plant, planted};
use crate::run::Run;
use crate::tree::{Bucket, State, Tree};

/// Whether there are empty buckets that could not be absorbed.
pub(crate) struct Empties {
    left: AtomicBool,
    /// Number of catalog changes at the last attempt.
    tried: AtomicU64,
}

impl Empties {
    /// The state for a store whose buckets were not examined.
    pub(super) fn new() -> Empties {
        Empties {
            left: AtomicBool::new(true),
            tried: AtomicU64::new(u64::MAX),
        }
    }
}

impl Core {
    /// Give the range of an empty bucket to a neighbor, preferably the left one. Returns false if
    /// neither can take it now; it is then retried later.
    pub(super) fn absorb(&self, tree: &Arc<Tree>, empty: &Arc<Bucket>) -> bool {
        let committer = self.commit.lock();
        let routing = tree.routing();
        let buckets = routing.buckets();
        let at = routing.find(&empty.lo);
        if !buckets.get(at).is_some_and(|it| Arc::ptr_eq(it, empty)) {
            return false;
        }
        let left = at.checked_sub(1).and_then(|index| buckets.get(index));
        let right = buckets.get(at + 1);
        let done = left.is_some_and(|left| self.join(&committer, tree, [left, empty], empty))
            || right.is_some_and(|right| self.join(&committer, tree, [empty, right], empty));
        let alone = left.is_none() && right.is_none();
        if !done && !alone {
            self.merges.empties.left.store(true, Ordering::Relaxed);
        }
        done
    }

    /// Replace two neighbors, one of which is `empty`, by one bucket. Refused if either is busy, or
    /// if the other one shares runs or buffers with keys in the range of the empty one: they are
    /// outdated there and would reappear.
    fn join(
        &self,
        committer: &MutexGuard<'_, Committer>,
        tree: &Arc<Tree>,
        [first, second]: [&Arc<Bucket>; 2],
        empty: &Arc<Bucket>,
    ) -> bool {
        assert!(first.hi.as_ref() == Some(&second.lo), "neighbours adjoin");
        // In key order, like everywhere where two states are locked.
        let (mut first_state, mut second_state) = (first.state(), second.state());
        let (gone, kept, kept_bucket) = if Arc::ptr_eq(first, empty) {
            (&mut *first_state, &mut *second_state, second)
        } else {
            (&mut *second_state, &mut *first_state, first)
        };
        if !may_join(gone, kept, empty) {
            return false;
        }
        let job = self.freeze_state(tree, kept_bucket, kept, committer.last);
        let new = Bucket::with_runs(
            Arc::clone(&first.lo),
            second.hi.clone(),
            kept.flushed,
            kept.deltas.clone(),
            Arc::clone(&kept.base),
        );
        new.state().frozen.clone_from(&kept.frozen);
        let empty_too = kept.deltas.is_empty() && kept.base.is_empty();
        tree.replace(
            &[Arc::clone(first), Arc::clone(second)],
            vec![Arc::new(new)],
        );
        gone.retire();
        kept.retire();
        drop((first_state, second_state));
        self.enqueue(job);
        self.counters.absorbed.add(1);
        if empty_too {
            self.merges.empties.left.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Absorb the neighbors of the buckets that replaced `merged`, if they are empty: that was
    /// impossible during the merge.
    pub(super) fn absorb_beside(&self, tree: &Arc<Tree>, merged: &Bucket) {
        if !self.merges.empties.left.load(Ordering::Relaxed) {
            return;
        }
        let routing = tree.routing();
        let buckets = routing.buckets();
        let first = routing.find(&merged.lo);
        let behind = buckets.iter().skip(first);
        let last = behind
            .map(|bucket| &bucket.hi)
            .position(|hi| *hi == merged.hi);
        let before = first.checked_sub(1).and_then(|index| buckets.get(index));
        let after = last.and_then(|more| buckets.get(first + more + 1));
        for bucket in before.into_iter().chain(after) {
            if bucket.state().is_empty() {
                self.absorb(tree, bucket);
            }
        }
    }

    /// Absorb all empty buckets that can be absorbed now. Returns false if there was none.
    pub(super) fn absorb_empties(&self) -> bool {
        if !self.merges.empties.left.swap(false, Ordering::Relaxed) {
            return false;
        }
        let mut any = false;
        for tree in self.catalog.all() {
            let routing = tree.routing();
            for bucket in routing.buckets() {
                let without_runs = {
                    let state = bucket.state();
                    state.deltas.is_empty() && state.base.is_empty() && !state.dropped
                };
                any |= without_runs && self.absorb(&tree, bucket);
            }
        }
        any
    }

    /// Absorb empty buckets, split large ones and join small ones, if the catalog has changed since
    /// the last attempt. For a store without other work.
    pub(super) fn tidy_after_changes(&self) -> bool {
        let empties = &self.merges.empties;
        let changes = self.changes();
        let tried = empties.tried.swap(changes, Ordering::Relaxed);
        tried != changes && (self.absorb_empties() || self.split_large() || self.join_small())
    }
}

/// Whether a bucket with state `kept` can take over the range of its neighbor `empty`, which has
/// state `gone`.
fn may_join(gone: &State, kept: &State, empty: &Bucket) -> bool {
    if !gone.is_empty() || !gone.is_free() || !kept.is_free() || !kept.frozen.is_empty() {
        return false;
    }
    let mut runs = kept.deltas.iter().chain(kept.base.iter());
    let outdated = runs.any(|run| may_hold_keys_of(run, empty));
    !outdated || planted(Plant::AbsorbIgnoresSharedRuns)
}

/// Whether a run may contain keys in the range of `bucket`.
fn may_hold_keys_of(run: &Run, bucket: &Bucket) -> bool {
    let meta = run.meta();
    let below = bucket.hi.as_deref().is_none_or(|hi| *meta.min_key < *hi);
    below && *bucket.lo <= *meta.max_key
}

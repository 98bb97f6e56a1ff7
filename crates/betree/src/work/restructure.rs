//! Replacing buckets by others: splits, the cutting of a bucket that grows at its end, and the
//! giving up of one that is empty.

use std::sync::Arc;

use super::queue::Job;
use crate::db::{Committer, Core};
use crate::plant::{Plant, planted};
use crate::run::Run;
use crate::tree::{Bucket, State, Tree};

/// One of the buckets that take the place of another.
pub(crate) struct Part {
    /// Where it begins.
    pub(crate) lo: Arc<[u8]>,
    /// Its base.
    pub(crate) base: Vec<Arc<Run>>,
}

impl Core {
    /// Put buckets of `parts` in the place of `bucket`, under the commit lock and with its state
    /// locked. They inherit its deltas and frozen buffers, shared; its active buffer is frozen and
    /// shared too, and to be queued when the state is let go. The bucket is retired.
    pub(crate) fn replace(
        &self,
        committer: &Committer,
        tree: &Arc<Tree>,
        bucket: &Arc<Bucket>,
        state: &mut State,
        parts: Vec<Part>,
    ) -> Option<Job> {
        assert!(!state.retired, "a bucket is replaced once");
        assert!(!state.flushing, "a bucket is not replaced under a flush");
        assert!(
            parts.first().is_some_and(|p| p.lo == bucket.lo),
            "the parts begin where it does"
        );
        assert!(1 < parts.len(), "a bucket is replaced by several");
        assert!(
            parts.iter().all(|part| bucket.holds(&part.lo)),
            "the parts begin within it"
        );
        let job = self.freeze_state(tree, bucket, state, committer.last);
        debug_assert_eq!(state.active.entries(), 0, "all of it is shared");
        for run in &state.deltas {
            if planted(Plant::SharingForgotten) {
                break;
            }
            self.sharing.add(run.meta().id, parts.len() - 1);
        }
        let ends: Vec<Option<Arc<[u8]>>> = parts
            .iter()
            .skip(1)
            .map(|p| Some(Arc::clone(&p.lo)))
            .chain([bucket.hi.clone()])
            .collect();
        let mut replacements = Vec::with_capacity(parts.len());
        for (part, hi) in parts.into_iter().zip(ends) {
            let deltas = state.deltas.clone();
            let new = Bucket::with_runs(part.lo, hi, state.flushed, deltas, part.base.into());
            new.state().frozen.clone_from(&state.frozen);
            if planted(Plant::SplitLosesBuffer) && new.hi == bucket.hi {
                new.state().frozen.drain(..1.min(state.frozen.len()));
            }
            replacements.push(Arc::new(new));
        }
        self.counters.splits.add(1);
        tree.splits.add(1);
        tree.replace(std::slice::from_ref(bucket), replacements);
        state.retired = true;
        job
    }

    /// Give the range of an empty bucket to a neighbour, so that a tree whose old end is deleted
    /// while it grows at the other does not collect empty buckets. Nothing happens when either is
    /// busy, or when the neighbour shares runs or buffers that hold keys of the range: they are out
    /// of date there, and would come back.
    pub(crate) fn absorb(&self, tree: &Arc<Tree>, empty: &Arc<Bucket>) {
        let committer = self.commit.lock();
        let routing = tree.routing();
        let at = routing.find(&empty.lo);
        let there = routing.buckets().get(at);
        if !there.is_some_and(|bucket| Arc::ptr_eq(bucket, empty)) {
            return;
        }
        let left = at
            .checked_sub(1)
            .and_then(|index| routing.buckets().get(index));
        let pair = match (left, routing.buckets().get(at + 1)) {
            (Some(left), _) => [left, empty],
            (None, Some(right)) => [empty, right],
            (None, None) => return,
        };
        // In key order, as everybody who holds two.
        let [first, second] = pair;
        assert!(first.hi.as_ref() == Some(&second.lo), "neighbours adjoin");
        let (mut first_state, mut second_state) = (first.state(), second.state());
        let (gone, kept) = if Arc::ptr_eq(first, empty) {
            (&mut *first_state, &mut *second_state)
        } else {
            (&mut *second_state, &mut *first_state)
        };
        if !gone.is_empty() || !gone.is_free() || !kept.is_free() || !kept.frozen.is_empty() {
            return;
        }
        let mut runs = kept.deltas.iter().chain(kept.base.iter());
        let outdated = runs.any(|run| may_hold_keys_of(run, empty));
        if outdated && !planted(Plant::AbsorbIgnoresSharedRuns) {
            return;
        }
        let kept_bucket = if Arc::ptr_eq(first, empty) {
            second
        } else {
            first
        };
        let job = self.freeze_state(tree, kept_bucket, kept, committer.last);
        let new = Bucket::with_runs(
            Arc::clone(&first.lo),
            second.hi.clone(),
            kept.flushed,
            kept.deltas.clone(),
            Arc::clone(&kept.base),
        );
        new.state().frozen.clone_from(&kept.frozen);
        tree.replace(
            &[Arc::clone(first), Arc::clone(second)],
            vec![Arc::new(new)],
        );
        gone.retired = true;
        kept.retired = true;
        drop((first_state, second_state));
        self.enqueue(job);
        self.counters.absorbed.add(1);
    }
}

/// Whether a run may hold keys of the range of `bucket`.
fn may_hold_keys_of(run: &Run, bucket: &Bucket) -> bool {
    let meta = run.meta();
    let below = bucket.hi.as_deref().is_none_or(|hi| *meta.min_key < *hi);
    below && *bucket.lo <= *meta.max_key
}

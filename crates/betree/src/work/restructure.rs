//! Replacing a bucket by several: splits, and cutting a bucket that grows at its upper end.

use std::sync::Arc;

use super::queue::Job;
use crate::db::{Committer, Core};
use crate::plant::{Plant, planted};
use crate::run::Run;
use crate::tree::{Bucket, State, Tree};

/// One of the buckets that replace another.
pub(crate) struct Part {
    /// Its lower bound.
    pub(crate) lo: Arc<[u8]>,
    /// Its base.
    pub(crate) base: Vec<Arc<Run>>,
}

impl Core {
    /// Keep room for a split of a bucket into `parts`, before [`Core::replace`] and under the same
    /// locks. Each part may get a buffer of its own, and flushes of those that are shared write a
    /// run for each part.
    ///
    /// # Errors
    /// The length that the file must have: without that room a store without a log could not make
    /// the checkpoint that frees any. The bucket stays whole.
    pub(crate) fn room_to_split(&self, state: &State, parts: usize) -> Result<(), u64> {
        if parts < 2 {
            return Ok(());
        }
        let shared = state.frozen.len() + usize::from(0 < state.active.entries());
        self.split_buffers(shared * (parts - 1), parts - 1)
    }

    /// Put buckets of `parts` in the place of `bucket`, under the commit lock and with its state
    /// locked. They inherit its deltas and frozen buffers, shared; its active buffer is frozen and
    /// shared too, and to be queued when the state is unlocked. The bucket is retired.
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
        state.retire();
        job
    }
}

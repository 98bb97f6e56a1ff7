//! Merging versions that were kept for closed snapshots.
//!
//! A merge keeps the versions and tombstones that a live snapshot needs, in the base of its bucket.
//! When the snapshot is gone nothing is written into that bucket for its sake, so the base itself
//! says from which horizon on it is worth merging alone ([`crate::run::Run::leftovers`]): an idle
//! store does so after it has merged all deltas, `settle` and `compact` at once, and a busy store
//! in the shadow of what is committed.
//!
//! Numbers alone cost little, so only `settle` and `compact` merge a base that has versions with
//! numbers but nothing to drop: ascending keys that were written under a snapshot are else written
//! once.
//!
//! - I1. `due` is never above the least horizon at which the base of a bucket that may be merged
//!   can drop something, except while a look at all buckets is under way.
//! - I2. What is merged alone is not counted by the pace: it pays back space, not deltas.
//!
//! Lock order: the register of snapshots is a leaf, and asked under a bucket's state at most.

use std::sync::Arc;

use stdx::sync::atomic::{AtomicU64, Ordering};

use super::join::is_scattered;
use super::pick::Zeal;
use crate::db::Core;
use crate::plant::{Plant, planted};
use crate::run::Run;
use crate::tree::{Bucket, State, Tree};
use crate::types::Seq;

/// While commits arrive, merges of bases alone write at most one byte per this number of committed
/// bytes of keys and values.
const COMMITTED_FOR_EACH: u64 = 4;
/// The runs of a base may leave this fraction of their bytes unused in their last units.
pub(super) const SPARE: u64 = 16;

/// When a base may be merged alone.
pub(crate) struct Leftovers {
    /// The lowest horizon at which a base can drop something (I1).
    due: AtomicU64,
    /// Committed bytes at which a busy store may start the next merge.
    next: AtomicU64,
}

impl Leftovers {
    /// The state for a store whose buckets were not examined.
    pub(super) fn new() -> Leftovers {
        Leftovers {
            due: AtomicU64::new(0),
            next: AtomicU64::new(0),
        }
    }

    /// Record runs that were added to a base.
    pub(super) fn came(&self, runs: &[Arc<Run>]) {
        if let Some(at) = runs.iter().map(|run| run.leftovers().at()).min() {
            self.due.fetch_min(at.0, Ordering::Relaxed);
        }
    }

    /// Examine all bases again, because there may be new reasons to merge one alone.
    pub(super) fn look_again(&self) {
        self.due.store(0, Ordering::Relaxed);
    }

    fn due(&self) -> Seq {
        Seq(self.due.load(Ordering::Relaxed))
    }
}

impl Core {
    /// The base that gains most from a merge alone, if there is one and such a merge is due.
    pub(super) fn pick_leftovers(&self, zeal: Zeal) -> Option<(Arc<Tree>, Arc<Bucket>)> {
        let leftovers = &self.merges.leftovers;
        let committed = self.counters.user_bytes.get();
        let waits = match zeal {
            Zeal::Paced => committed < leftovers.next.load(Ordering::Relaxed),
            Zeal::Idle | Zeal::Settle => false,
        };
        if waits || zeal != Zeal::Settle && leftovers.due() == Seq::MAX {
            return None;
        }
        if planted(Plant::LeftoversStay) {
            return None;
        }
        let horizon = self.snapshots.horizon_only(self.vfs.now());
        if zeal != Zeal::Settle && horizon < leftovers.due() {
            return None;
        }
        let found = self.most_leftovers(horizon, zeal);
        if zeal == Zeal::Paced {
            // A search that finds nothing must not be repeated at once either.
            let bytes = found.as_ref().map_or(self.options.bucket(), |it| it.0);
            let next = committed.saturating_add(bytes.saturating_mul(COMMITTED_FOR_EACH));
            leftovers.next.store(next, Ordering::Relaxed);
        } else if found.is_some() {
            // There may be other bases that `due` does not cover.
            leftovers.look_again();
        }
        found.map(|(_, tree, bucket)| (tree, bucket))
    }

    /// Search all buckets for the base with the largest share of droppable entries, and return its
    /// bytes; or for a base that `zeal` considers worth merging although it has none.
    fn most_leftovers(&self, horizon: Seq, zeal: Zeal) -> Option<(u64, Arc<Tree>, Arc<Bucket>)> {
        let leftovers = &self.merges.leftovers;
        // Before the search, so that it does not lose what is recorded during it (I1).
        leftovers.due.store(Seq::MAX.0, Ordering::Relaxed);
        let mut best: Option<(u64, f64)> = None;
        let mut found = None;
        for tree in self.catalog.all() {
            for bucket in tree.routing().buckets() {
                let state = bucket.state();
                if state.retired {
                    // The buckets that replaced it are in another routing: search again (I1).
                    leftovers.look_again();
                }
                if state.broken || state.retired || state.dropped {
                    continue;
                }
                leftovers.came(&state.base);
                // Its base is merged together with its deltas, at the pace of commits.
                if state.merging || !state.deltas.is_empty() {
                    continue;
                }
                let scattered = zeal != Zeal::Paced && is_scattered(&state);
                if !scattered && !can_drop(&state, horizon, zeal == Zeal::Settle) {
                    continue;
                }
                let (share, bytes, lacked) = (share(&state), state.base_bytes(), state.lacked);
                drop(state);
                // What lacked room does not hide what may find some.
                let better =
                    |&(other, most): &(u64, f64)| lacked < other || lacked == other && most < share;
                if best.as_ref().is_none_or(better) {
                    best = Some((lacked, share));
                    found = Some((bytes, Arc::clone(&tree), Arc::clone(bucket)));
                }
            }
        }
        found
    }

    /// Whether a merge of the base in `state` alone would now drop something, including sequence
    /// numbers, or save space.
    pub(super) fn base_can_drop(&self, state: &State) -> bool {
        if is_scattered(state) {
            return true;
        }
        let with_numbers = |run: &Arc<Run>| run.leftovers().at() != Seq::MAX || numbered(run);
        // Most bases contain nothing of this kind; then the register of snapshots is not locked.
        state.base.iter().any(with_numbers) && {
            let horizon = self.snapshots.horizon_only(self.vfs.now());
            can_drop(state, horizon, true)
        }
    }

    /// Bytes of bases that wait to be merged alone.
    pub(crate) fn leftover_bytes(state: &State, horizon: Seq) -> u64 {
        let idle = !state.broken && can_drop(state, horizon, false);
        if idle { state.base_bytes() } else { 0 }
    }
}

/// Whether a merge of the base alone at `horizon` drops something, or, with `numbers`, resets
/// sequence numbers to 0.
fn can_drop(state: &State, horizon: Seq, numbers: bool) -> bool {
    state.base.iter().any(|run| {
        let only_numbers = numbers && numbered(run) && run.meta().max_seq <= horizon;
        only_numbers || run.leftovers().at() <= horizon
    })
}

/// Whether a version in the run has a sequence number.
fn numbered(run: &Run) -> bool {
    run.meta().max_seq != Seq::ANCIENT
}

/// Droppable entries per entry of the base.
fn share(state: &State) -> f64 {
    let runs = || state.base.iter();
    let dead: u64 = runs().map(|run| run.leftovers().entries()).sum();
    let all: u64 = runs().map(|run| run.meta().entries).sum();
    dead as f64 / all.max(1) as f64
}

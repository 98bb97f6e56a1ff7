//! Which bucket is merged next, and whether any should be.
//!
//! The lane is paced by `rho`: it may rewrite `rho` bytes for each byte flushed as a delta. Paced
//! merging costs a little more in all than merging only what must be merged, and buys flatness:
//! no wave of merges that come due together. A bucket with `k_cap` runs is merged regardless, and
//! an idle store is merged until no bucket has a delta. So is a bucket whose deltas have cost reads
//! as much as the merge will cost, whatever the pace. What bases hold for snapshots that are gone
//! comes last ([`super::leftovers`]).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use stdx::sync::atomic::Ordering;

use crate::db::Core;
use crate::tree::{Bucket, State, Tree};

/// Each further run makes a merge this much more urgent: a read pays for runs, not for bytes.
const RUN_WEIGHT: f64 = 0.15;
/// Reads that meet deltas double the urgency after this many.
const HEAT_UNIT: f64 = 1000.0;

/// What a read pays for each delta it meets, in bytes that a merge rewrites in the same time: about
/// 2.5 microseconds at 100 MB/s.
const READ_BYTES: f64 = 256.0;
/// A bucket of tombstones only is this much more urgent: scans pay for keys that do not exist.
const TOMBSTONE_WEIGHT: f64 = 4.0;
/// Tombstones for this share of the base force a merge, as in a queue that is consumed at one end:
/// it writes little, since most of what it reads is dead.
const TOMBSTONES_FORCE: f64 = 0.5;

/// Which merges are considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zeal {
    /// Merges that the pace allows, and forced ones.
    Paced,
    /// All merges that drop or merge anything.
    Idle,
    /// The same, and bases whose versions have sequence numbers that no reader needs.
    Settle,
}

/// One search of all buckets serves for this fraction of them.
const SHARE: usize = 16;
/// Interval of searches while the pace allows no merges: reads may have forced one.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How much a merge of a bucket is worth.
struct Worth {
    score: f64,
    /// Whether it is due independent of the pace.
    forced: bool,
    /// Bytes that it reads.
    bytes: f64,
    /// When the bucket's merge last lacked room, as a number; 0 if it did not.
    lacked: u64,
}

impl Core {
    /// The bucket to merge next.
    pub(crate) fn pick_merge(&self, zeal: Zeal) -> Option<(Arc<Tree>, Arc<Bucket>)> {
        if self.merges.waiting_bytes() == 0 {
            if self.merges.open() == 0 {
                self.forgive();
            }
            return self.pick_leftovers(zeal);
        }
        if zeal == Zeal::Paced && !self.is_crowded() {
            // First, because otherwise deltas would always precede it; it is rarely due.
            if let Some(found) = self.pick_leftovers(zeal) {
                return Some(found);
            }
        }
        let found = self.pick_deltas(zeal != Zeal::Paced || 0.0 < self.merge_allowance());
        match zeal {
            Zeal::Paced => found,
            Zeal::Idle | Zeal::Settle => found.or_else(|| self.pick_leftovers(zeal)),
        }
    }

    /// The bucket whose deltas are merged next: any bucket if `paced`, else a forced one.
    fn pick_deltas(&self, paced: bool) -> Option<(Arc<Tree>, Arc<Bucket>)> {
        let mut found = self.merges.found.lock();
        while let Some((tree, bucket)) = found.pop() {
            if self
                .worth(&bucket)
                .is_some_and(|worth| paced || worth.forced)
            {
                return Some((tree, bucket));
            }
        }
        if !paced && !self.should_look() {
            return None;
        }
        *found = self.find_merges(paced);
        found.pop()
    }

    /// Whether a bucket may now be forced that was not at the last search. New runs force a merge
    /// at once, reads within [`LOOK_AGAIN`].
    fn should_look(&self) -> bool {
        let changes = self.changes();
        let before = self.merges.looked.swap(changes, Ordering::Relaxed);
        let timer = &self.timers.looked;
        before != changes || super::step::due(timer, self.vfs.now(), LOOK_AGAIN)
    }

    /// The buckets most worth merging, the best last: as many as one search serves for, at most a
    /// fraction of all buckets, and together at most a fraction of a bucket's size. Those whose
    /// merges lacked room come after the others, in turn, so that they do not hide smaller ones.
    fn find_merges(&self, paced: bool) -> Vec<(Arc<Tree>, Arc<Bucket>)> {
        let trees = self.catalog.all();
        let mut all = Vec::new();
        let mut owed = false;
        for tree in &trees {
            for bucket in tree.routing().buckets() {
                let Some(worth) = self.worth(bucket) else {
                    continue;
                };
                owed = true;
                if paced || worth.forced {
                    all.push((worth, tree, Arc::clone(bucket)));
                }
            }
        }
        if !owed && 0 == self.merges.open() {
            self.forgive();
        }
        all.sort_unstable_by(|(a, ..), (b, ..)| {
            let turn = a.lacked.cmp(&b.lacked);
            turn.then_with(|| b.score.total_cmp(&a.score))
        });
        all.truncate(all.len().div_ceil(SHARE));
        let mut bytes = 0.0;
        let most = self.options.bucket() as f64 / 4.0;
        let few = all.into_iter().take_while(|(worth, ..)| {
            let first = bytes == 0.0;
            bytes += worth.bytes;
            first || bytes <= most
        });
        let mut found: Vec<_> = few
            .map(|(_, tree, bucket)| (Arc::clone(tree), bucket))
            .collect();
        found.reverse();
        found
    }

    /// Forgive the remaining allowance when there is nothing to merge; otherwise it would be used
    /// up at once later.
    fn forgive(&self) {
        let left = self.merge_allowance();
        if 0.0 < left {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "positive, and a fraction of a byte is dropped"
            )]
            self.counters.forgiven_bytes.add(left as u64);
        }
    }

    /// How much a merge of the bucket is worth; `None` if there is nothing to merge or a merge is
    /// in progress.
    fn worth(&self, bucket: &Bucket) -> Option<Worth> {
        let state = bucket.state();
        let busy = state.merging || state.broken || state.retired || state.dropped;
        if state.deltas.is_empty() || busy {
            return None;
        }
        let deltas = state.delta_bytes() as f64;
        let all = (deltas + state.base_bytes() as f64).max(1.0);
        let runs = state.deltas.len();
        let heat = 1.0 + f64::from(bucket.heat()) / HEAT_UNIT;
        let dead = tombstone_share(&state);
        let urgency = (1.0 + RUN_WEIGHT * runs as f64) * heat * (1.0 + TOMBSTONE_WEIGHT * dead);
        let score = deltas / all * urgency;
        debug_assert!(score.is_finite(), "scores can be compared");
        // Reads have cost as much because of the deltas as a merge would have. So a tree that is
        // mostly read settles whatever the pace.
        let paid = f64::from(bucket.heat()) * runs as f64 * READ_BYTES;
        let forced = self.tuning.k_cap <= runs || TOMBSTONES_FORCE <= dead || all <= paid;
        // Among buckets beyond their cap the one with the most runs comes first, however small,
        // because commits wait for it.
        let over = runs.saturating_sub(self.tuning.k_cap);
        let first = if forced {
            1000.0 * (1 + over) as f64
        } else {
            0.0
        };
        Some(Worth {
            score: score + first,
            forced,
            bytes: all,
            lacked: state.lacked,
        })
    }

    /// Bytes that may still be rewritten; negative if merges are ahead of the pace.
    pub(crate) fn merge_allowance(&self) -> f64 {
        let flushed = self.counters.delta_bytes.get() as f64;
        let spent = self.counters.merged_bytes.get() + self.counters.forgiven_bytes.get();
        flushed * self.options.rho() - spent as f64
    }

    /// Count the existing deltas when the store is opened, in total and per bucket. The first pick
    /// searches the bases.
    pub(crate) fn count_deltas(&self) {
        let mut seen = BTreeSet::new();
        for (_, bucket) in self.buckets() {
            let state = bucket.state();
            self.crowd.came(state.deltas.len());
            for run in &state.deltas {
                if seen.insert(run.meta().id) {
                    self.merges.delta_came(run.meta().bytes);
                }
            }
        }
    }

    /// Whether nothing was committed since the last call, and no commit is waiting piece by piece
    /// or being executed in chunks: such a commit is counted at its end only.
    pub(crate) fn is_idle(&self) -> bool {
        let counters = &self.counters;
        let waits = counters.memory_full.get().0 + counters.merge_debt.get().0;
        let commits = counters.commits.get() + waits;
        let same = self.merges.seen.swap(commits, Ordering::Relaxed) == commits;
        same && !self.commit.lock().bulk
    }
}

/// Tombstones in the deltas for each entry of the base.
fn tombstone_share(state: &State) -> f64 {
    let dead: u64 = state.deltas.iter().map(|r| r.meta().tombstones).sum();
    let base: u64 = state.base.iter().map(|r| r.meta().entries).sum();
    dead as f64 / base.max(dead).max(1) as f64
}

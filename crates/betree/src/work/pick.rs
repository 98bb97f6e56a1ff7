//! Which bucket is merged next, and whether one should be at all.
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

/// How eagerly a bucket is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zeal {
    /// Only what the pace allows, or what is forced.
    Paced,
    /// Whatever has anything to drop or to merge.
    Idle,
    /// That, and bases in which versions have numbers that no reader needs.
    Settle,
}

/// One look at all buckets may stand for this part of them.
const SHARE: usize = 16;
/// How often all buckets are looked at while the pace allows nothing: it may be that reads force a
/// merge.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What a merge of a bucket is worth.
struct Worth {
    score: f64,
    /// It is due whatever the pace.
    forced: bool,
    /// What it reads.
    bytes: f64,
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
            // First, or deltas would always be before it; it is seldom its turn.
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

    /// The bucket whose deltas are merged next: any if `paced`, else one that is forced.
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

    /// Whether a bucket may be forced by now that was not at the last look. Runs that came force at
    /// once, reads within [`LOOK_AGAIN`].
    fn should_look(&self) -> bool {
        let changes = self.changes();
        let before = self.merges.looked.swap(changes, Ordering::Relaxed);
        let timer = &self.timers.looked;
        before != changes || super::step::due(timer, self.vfs.now(), LOOK_AGAIN)
    }

    /// The buckets that are worth most, the best last: those that one look may stand for, which are
    /// a part of all, and together no more than a part of a bucket.
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
        all.sort_unstable_by(|(a, ..), (b, ..)| b.score.total_cmp(&a.score));
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

    /// Nothing is left to merge: what the pace would still allow is not owed any more, or it would
    /// be spent all at once later.
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

    /// What a merge of the bucket is worth; `None` when there is nothing to merge or it is being
    /// merged.
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
        // Reads have paid as much for the deltas as a merge would have cost: beyond that it would
        // have been cheaper to merge. So a tree that is mostly read settles whatever the pace.
        let paid = f64::from(bucket.heat()) * runs as f64 * READ_BYTES;
        let forced = self.tuning.k_cap <= runs || TOMBSTONES_FORCE <= dead || all <= paid;
        // Of buckets beyond their cap the one with the most runs is first, however small they are:
        // commits wait for it.
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
        })
    }

    /// Bytes the lane may still rewrite; negative when it is ahead.
    pub(crate) fn merge_allowance(&self) -> f64 {
        let flushed = self.counters.delta_bytes.get() as f64;
        let spent = self.counters.merged_bytes.get() + self.counters.forgiven_bytes.get();
        flushed * self.options.rho() - spent as f64
    }

    /// Count the deltas that are there when the store is opened, and those of each bucket. What
    /// bases hold for snapshots is looked for by the first pick.
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

    /// Whether nothing was committed since the last time this was asked, and no commit is under
    /// way that waits (piece by piece) or is done in parts: it counts as a commit at its end only.
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

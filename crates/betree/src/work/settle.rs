//! Completing all pending work, on request.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use super::pick::Zeal;
use crate::db::Core;
use crate::error::Result;
use crate::run::Run;
use crate::tree::{Bucket, Tree};
use crate::types::{RunId, Seq, TreeId};

/// Sleep of a caller that waits for background threads, between two checks.
const LOOK: Duration = Duration::from_millis(1);

impl Core {
    /// Flush everything, merge every bucket into one run a key, drop what no snapshot needs, remove
    /// empty buckets, split large ones and join small ones, make a checkpoint, cut the file. Helps
    /// the background threads. False when `limit` passed before.
    ///
    /// # Errors
    /// As the work.
    pub(crate) fn settle(&self, limit: Duration) -> Result<bool> {
        self.health.check_writable()?;
        let start = self.vfs.now();
        let in_time = || self.vfs.now().saturating_sub(start) < limit;
        self.freeze_older_than(crate::types::Seq::MAX);
        while in_time() {
            if self.flush_or_free()? {
                continue;
            }
            let merged = self.merge_slice(|| self.pick_merge(Zeal::Settle));
            if self.or_free(merged)? {
                continue;
            }
            if !self.queue.is_idle() || 0 < self.merges.open() {
                self.wake.wait_for_room(LOOK);
                continue;
            }
            if self.absorb_empties() || self.split_large() || self.join_small() {
                continue;
            }
            return self.tidy_up().map(|()| true);
        }
        Ok(false)
    }

    /// A checkpoint frees what merges have replaced; then the ends of the files are cut, and what
    /// buffers took is left to the page cache.
    fn tidy_up(&self) -> Result<()> {
        self.forget_dropped();
        self.shrink_log()?;
        self.checkpoint()?;
        self.give_memory_back();
        self.cut_file()
    }

    /// Have the allocator return freed memory to the system. A store without threads leaves that to
    /// the caller that steps it.
    pub(super) fn give_memory_back(&self) {
        if self.has_threads() {
            stdx::memory::release();
        }
    }

    /// Flush all buffers frozen up to commit `through`, without waiting for other flushes.
    fn flush_through(&self, through: Seq) -> Result<()> {
        while !self.queue.is_past(through) {
            self.health.check_writable()?;
            if !self.flush_or_free()? {
                // Another thread is flushing the last ones, or a cut holds them back.
                self.wake.wait_for_room(LOOK);
            }
        }
        Ok(())
    }

    /// Merge what every bucket of `tree` with keys in the range holds at the call. What is written
    /// meanwhile may stay as it is, so this ends however much that is. `watch` gets the bytes done
    /// and to do, and returns whether to continue. False when it did not.
    ///
    /// # Errors
    /// `Invalid` for a dropped tree; as the work.
    pub(crate) fn compact(
        &self,
        tree: TreeId,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        watch: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<bool> {
        self.health.check_writable()?;
        let tree = self.catalog.tree(tree)?;
        self.freeze_older_than(Seq::MAX);
        let through = self.commit.lock().last;
        self.flush_through(through)?;
        let mut buckets = within(&tree, start, end);
        let there: BTreeSet<RunId> = buckets.iter().flat_map(|bucket| runs(bucket)).collect();
        let bytes = |b: &Arc<Bucket>| {
            let state = b.state();
            state.delta_bytes() + state.base_bytes()
        };
        let total: u64 = buckets.iter().map(bytes).sum();
        let mut done = 0;
        if !watch(done, total) {
            return Ok(false);
        }
        while !buckets.is_empty() {
            for bucket in buckets {
                let size = bytes(&bucket);
                let mut offer = Some((Arc::clone(&tree), Arc::clone(&bucket)));
                while !self.bucket_is_merged(&bucket, &there) {
                    let merged = self.merge_slice(|| offer.take());
                    if !self.or_free(merged)? {
                        // Another thread is working on this bucket, or it was not free when it was
                        // offered.
                        self.wake.wait_for_room(LOOK);
                        offer = Some((Arc::clone(&tree), Arc::clone(&bucket)));
                    }
                    if !watch(done.min(total), total) {
                        return Ok(false);
                    }
                }
                done += size;
            }
            // A bucket that absorbed an empty neighbor keeps the deltas that it had before.
            buckets = within(&tree, start, end);
            buckets.retain(|bucket| !self.bucket_is_merged(bucket, &there));
        }
        self.checkpoint()?;
        Ok(watch(done, total.max(done)))
    }

    /// Whether the bucket has none of the runs `there` left to merge or to drop, or is no longer in
    /// the tree.
    fn bucket_is_merged(&self, bucket: &Bucket, there: &BTreeSet<RunId>) -> bool {
        let state = bucket.state();
        if state.retired || state.broken || state.dropped {
            return true;
        }
        let was_there = |run: &Arc<Run>| there.contains(&run.meta().id);
        let can_drop = || state.base.iter().any(was_there) && self.base_can_drop(&state);
        !state.deltas.iter().any(was_there) && !can_drop()
    }
}

/// The buckets that may contain keys of the range.
fn within(tree: &Tree, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Vec<Arc<Bucket>> {
    let routing = tree.routing();
    let within = |b: &&Arc<Bucket>| overlaps(b, start, end);
    routing.buckets().iter().filter(within).cloned().collect()
}

/// The runs of a bucket, deltas and base.
fn runs(bucket: &Bucket) -> Vec<RunId> {
    let state = bucket.state();
    let runs = state.deltas.iter().chain(state.base.iter());
    runs.map(|run| run.meta().id).collect()
}

fn overlaps(bucket: &Bucket, start: Bound<&[u8]>, end: Bound<&[u8]>) -> bool {
    let begins_before_end = match end {
        Bound::Unbounded => true,
        Bound::Included(key) => *bucket.lo <= *key,
        Bound::Excluded(key) => *bucket.lo < *key,
    };
    let ends_after_start = match (start, bucket.hi.as_deref()) {
        (Bound::Unbounded, _) | (_, None) => true,
        (Bound::Included(key) | Bound::Excluded(key), Some(hi)) => key < hi,
    };
    begins_before_end && ends_after_start
}

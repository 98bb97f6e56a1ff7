//! Doing all work that is owed, on request.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use super::pick::Zeal;
use crate::db::Core;
use crate::error::Result;
use crate::tree::Bucket;
use crate::types::TreeId;

/// How long whoever waits for background threads sleeps between looks.
const LOOK: Duration = Duration::from_millis(1);

impl Core {
    /// Flush everything, merge every bucket into one run a key, make a checkpoint, cut the file.
    /// Helps the background threads. False when `limit` passed before.
    ///
    /// # Errors
    /// As the work.
    pub(crate) fn settle(&self, limit: Duration) -> Result<bool> {
        self.health.check_writable()?;
        let start = self.vfs.now();
        let in_time = || self.vfs.now().saturating_sub(start) < limit;
        self.freeze_older_than(crate::types::Seq::MAX);
        while in_time() {
            if self.flush_one()? {
                continue;
            }
            if self.merge_slice(|| self.pick_merge(Zeal::Idle))? {
                continue;
            }
            if !self.queue.is_idle() || 0 < self.merges.open() {
                self.wake.wait_for_room(LOOK);
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

    /// Empty buffers have freed their memory; have the allocator let go of it. A store without
    /// threads leaves that to who steps it.
    pub(super) fn give_memory_back(&self) {
        if self.has_threads() {
            stdx::memory::release();
        }
    }

    /// Merge every bucket of `tree` that has keys in the range. `watch` gets the bytes done and to
    /// do, and says whether to go on. False when it did not.
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
        self.freeze_older_than(crate::types::Seq::MAX);
        self.flush_until_idle()?;
        let buckets: Vec<Arc<Bucket>> = {
            let routing = tree.routing();
            let within = |b: &&Arc<Bucket>| overlaps(b, start, end);
            routing.buckets().iter().filter(within).cloned().collect()
        };
        let bytes = |b: &Arc<Bucket>| {
            let state = b.state();
            state.delta_bytes() + state.base_bytes()
        };
        let total: u64 = buckets.iter().map(bytes).sum();
        let mut done = 0;
        if !watch(done, total) {
            return Ok(false);
        }
        for bucket in buckets {
            let size = bytes(&bucket);
            let mut offer = Some((Arc::clone(&tree), Arc::clone(&bucket)));
            while !bucket_is_merged(&bucket) {
                if !self.merge_slice(|| offer.take())? {
                    // Another thread is at this bucket, or it was not free when it was offered.
                    self.wake.wait_for_room(LOOK);
                    offer = Some((Arc::clone(&tree), Arc::clone(&bucket)));
                }
                if !watch(done, total) {
                    return Ok(false);
                }
            }
            done += size;
        }
        self.checkpoint()?;
        Ok(watch(done, total.max(done)))
    }
}

/// Whether nothing is left to merge in a bucket, or it is not there any more.
fn bucket_is_merged(bucket: &Bucket) -> bool {
    let state = bucket.state();
    state.retired || state.broken || (state.deltas.is_empty() && !state.merging)
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

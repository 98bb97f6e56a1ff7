//! Which buffer is frozen, and when.
//!
//! The fullest first: with P buckets and M bytes of buffers a flush then takes 2M/P bytes, four
//! times what sealing all of memory at once would give each bucket. But the oldest first when the
//! log grows beyond its limit, because the oldest unflushed entry is what keeps the log.

use std::sync::Arc;

use stdx::sync::Mutex;

use super::queue::Job;
use crate::db::Core;
use crate::tree::{Bucket, State, Tree};
use crate::types::Seq;

/// One search of all buckets finds this fraction of them, the fullest: they are frozen one by one
/// without another search. If fills are spread evenly, the last of them is nearly as full as the
/// first, and hundreds of freezes share the cost of a search of thousands of buckets.
const SHARE: usize = 16;

/// The fullest buckets at the last search, the fullest last. Used under the commit lock only.
#[derive(Default)]
pub(crate) struct Fullest {
    found: Mutex<Vec<(Arc<Tree>, Arc<Bucket>)>>,
}

impl Core {
    /// Freeze and queue the buffer of `bucket`, under the commit lock.
    pub(crate) fn freeze(&self, tree: &Arc<Tree>, bucket: &Arc<Bucket>, through: Seq) {
        let job = self.freeze_state(tree, bucket, &mut bucket.state(), through);
        self.enqueue(job);
    }

    /// Freeze the buffer in `state`, under the commit lock. The caller queues the returned job
    /// after it unlocks the state and before it releases the commit lock.
    pub(crate) fn freeze_state(
        &self,
        tree: &Arc<Tree>,
        bucket: &Arc<Bucket>,
        state: &mut State,
        through: Seq,
    ) -> Option<Job> {
        let buffer = bucket.freeze(state, through)?;
        let bytes = buffer.bytes();
        assert!(0 < bytes, "entries take memory");
        assert!(
            state.has_frozen(&buffer),
            "I1 of the bucket: it is read until it is flushed"
        );
        debug_assert_eq!(state.active.entries(), 0, "another buffer takes the writes");
        self.memory.freeze(bytes);
        if !state.broken {
            self.crowd.came(state.deltas.len() + state.frozen.len());
        }
        Some(Job {
            tree: Arc::clone(tree),
            buffer,
            lo: Arc::clone(&bucket.lo),
            hi: bucket.hi.clone(),
            through,
            bytes,
            drawn: 0,
        })
    }

    /// Queue a frozen buffer.
    pub(crate) fn enqueue(&self, job: Option<Job>) {
        if let Some(job) = job {
            self.queue.push(job);
            self.wake.work();
        }
    }

    /// Freeze the fullest buffers while memory requires it, under the commit lock. `through` is the
    /// newest commit.
    pub(crate) fn freeze_when_full(&self, through: Seq) {
        while self.memory.wants_freeze(self.space.used_bytes()) {
            let Some((tree, bucket)) = self.fullest() else {
                return;
            };
            self.freeze(&tree, &bucket, through);
        }
    }

    /// Freeze every buffer with entries older than `before`; takes the commit lock.
    pub(crate) fn freeze_older_than(&self, before: Seq) {
        let committer = self.commit.lock();
        for (tree, bucket) in self.buckets() {
            let first = bucket.active().first_seq();
            if first.is_some_and(|first| first < before) {
                self.freeze(&tree, &bucket, committer.last);
            }
        }
    }

    /// Freeze the fullest buffer; takes the commit lock. Returns false if all are empty.
    pub(crate) fn freeze_fullest(&self) -> bool {
        let committer = self.commit.lock();
        match self.fullest() {
            None => {
                // While this thread holds the lock, no other writes to a buffer or freezes one, and
                // a finished flush gives its memory back before it leaves the queue. So if the
                // queue is empty here, nothing is buffered, however many commits come before and
                // after.
                let idle = self.queue.len() == (0, 0);
                assert!(
                    !idle || !self.memory.is_full(),
                    "full buffers are not all empty"
                );
                false
            }
            Some((tree, bucket)) => {
                self.freeze(&tree, &bucket, committer.last);
                true
            }
        }
    }

    /// A bucket with one of the fullest buffers, under the commit lock. Includes dropped trees that
    /// are still read, so that the memory they hold does not block commits as long as they are
    /// read.
    fn fullest(&self) -> Option<(Arc<Tree>, Arc<Bucket>)> {
        let mut found = self.fullest.found.lock();
        loop {
            while let Some((tree, bucket)) = found.pop() {
                let useful = {
                    let state = bucket.state();
                    !state.retired && !state.dropped && 0 < state.active.entries()
                };
                if useful {
                    return Some((tree, bucket));
                }
            }
            *found = self.find_fullest();
            if found.is_empty() {
                return None;
            }
        }
    }

    /// The fullest buckets, in ascending order.
    fn find_fullest(&self) -> Vec<(Arc<Tree>, Arc<Bucket>)> {
        let trees = self.catalog.all();
        let lingering = self.catalog.lingering();
        let lingering = lingering.iter().map(|(tree, _)| tree);
        let mut all = Vec::new();
        for tree in trees.iter().chain(lingering) {
            for bucket in tree.routing().buckets() {
                let state = bucket.state();
                if 0 < state.active.entries() {
                    all.push((state.active.bytes(), tree, Arc::clone(bucket)));
                }
            }
        }
        let rest = all.len() - all.len().div_ceil(SHARE);
        if 0 < rest {
            all.select_nth_unstable_by_key(rest, |(bytes, _, _)| *bytes);
        }
        let mut found = all.split_off(rest);
        found.sort_unstable_by_key(|(bytes, _, _)| *bytes);
        debug_assert_eq!(all.len(), rest, "the others are less full");
        let pair = |(_, tree, bucket): (usize, &Arc<Tree>, Arc<Bucket>)| (Arc::clone(tree), bucket);
        found.into_iter().map(pair).collect()
    }

    /// All buckets of all trees.
    pub(crate) fn buckets(&self) -> Vec<(Arc<Tree>, Arc<Bucket>)> {
        let mut all = Vec::new();
        for tree in self.catalog.all() {
            for bucket in tree.routing().buckets() {
                all.push((Arc::clone(&tree), Arc::clone(bucket)));
            }
        }
        all
    }

    /// The oldest commit that is only in memory, if there is one.
    pub(crate) fn oldest_unflushed(&self) -> Option<Seq> {
        let all = self.buckets();
        all.iter()
            .filter_map(|(_, b)| b.state().oldest_unflushed())
            .min()
    }
}

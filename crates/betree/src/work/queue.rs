//! Frozen buffers that wait for their flush, oldest first.
//!
//! - I1. Of one bucket, buffers are flushed in the order in which they were frozen: a buffer is
//!   taken only when it is the oldest of each bucket that names it.
//! - I2. While a buffer is being flushed its buckets are marked, so that they are not retired.

use std::collections::VecDeque;
use std::sync::Arc;

use stdx::sync::Mutex;

use crate::buffer::Buffer;
use crate::plant::{Plant, planted};
use crate::tree::{Bucket, Tree};
use crate::types::Seq;

/// A frozen buffer on its way.
pub(crate) struct Job {
    pub(crate) tree: Arc<Tree>,
    pub(crate) buffer: Arc<Buffer>,
    /// The range of the bucket it was the buffer of; since then that may have been split.
    pub(crate) lo: Arc<[u8]>,
    pub(crate) hi: Option<Arc<[u8]>>,
    /// The newest commit when it was frozen.
    pub(crate) through: Seq,
    /// Its memory, as counted when it was frozen.
    pub(crate) bytes: usize,
}

/// A job that was taken, with the buckets it goes to (marked, I2).
pub(crate) struct Taken {
    pub(crate) job: Job,
    pub(crate) buckets: Vec<Arc<Bucket>>,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    /// What jobs being done are up to, and the memory of their buffers.
    taken: Vec<Seq>,
    taken_bytes: usize,
    /// Nothing frozen later than this is taken.
    until: Option<Seq>,
}

impl Jobs {
    /// A taken job is not being done any more.
    fn give_up(&mut self, through: Seq, bytes: usize) {
        let at = self.taken.iter().position(|taken| *taken == through);
        let at = at.expect("what ends was taken");
        self.taken.swap_remove(at);
        assert!(bytes <= self.taken_bytes, "what ends was taken");
        self.taken_bytes -= bytes;
    }
}

/// The queue.
#[derive(Default)]
pub(crate) struct FlushQueue {
    jobs: Mutex<Jobs>,
}

impl FlushQueue {
    /// Add a job at the end.
    pub(crate) fn push(&self, job: Job) {
        let mut jobs = self.jobs.lock();
        let last = jobs.waiting.back();
        assert!(
            last.is_none_or(|last| last.through <= job.through),
            "I1: the oldest come first"
        );
        jobs.waiting.push_back(job);
    }

    /// Take the first job whose turn it is (I1), and mark its buckets.
    pub(crate) fn take(&self) -> Option<Taken> {
        let mut jobs = self.jobs.lock();
        for index in 0..jobs.waiting.len() {
            let job = jobs.waiting.get(index)?;
            if jobs.until.is_some_and(|until| until < job.through) {
                continue;
            }
            if let Some(buckets) = mark(job) {
                let job = jobs.waiting.remove(index)?;
                jobs.taken.push(job.through);
                jobs.taken_bytes += job.bytes;
                return Some(Taken { job, buckets });
            }
        }
        None
    }

    /// A taken job, of a buffer of `bytes` frozen at `through`, is done.
    pub(crate) fn done(&self, through: Seq, bytes: usize) {
        self.jobs.lock().give_up(through, bytes);
    }

    /// A taken job failed: it is the first to be tried again, in the buckets that still have it.
    /// The others may be marked by another thread by now.
    pub(crate) fn put_back(&self, taken: Taken) {
        for bucket in &taken.buckets {
            let mut state = bucket.state();
            if state.has_frozen(&taken.job.buffer) || planted(Plant::PutBackClearsMark) {
                state.flushing = false;
            }
        }
        let mut jobs = self.jobs.lock();
        jobs.give_up(taken.job.through, taken.job.bytes);
        jobs.waiting.push_front(taken.job);
    }

    /// Take nothing that was frozen after `through`, until what is returned is dropped. One at a
    /// time: the caller holds the checkpoint's lock.
    pub(crate) fn hold_after(&self, through: Seq) -> HeldBack<'_> {
        let before = self.jobs.lock().until.replace(through);
        assert!(before.is_none(), "one cut at a time");
        HeldBack { queue: self }
    }

    /// Take nothing any more: the store is closed.
    pub(crate) fn close(&self) {
        self.jobs.lock().until = Some(Seq::ANCIENT);
    }

    /// Forget the jobs of a tree that is gone; the bytes of their buffers.
    pub(crate) fn forget(&self, tree: &Arc<Tree>) -> usize {
        let mut jobs = self.jobs.lock();
        let mut bytes = 0;
        jobs.waiting.retain(|job| {
            let keep = !Arc::ptr_eq(&job.tree, tree);
            if !keep {
                bytes += job.bytes;
            }
            keep
        });
        bytes
    }

    /// Memory of the buffers that wait, and of those being flushed.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let jobs = self.jobs.lock();
        (
            jobs.waiting.iter().map(|job| job.bytes).sum(),
            jobs.taken_bytes,
        )
    }

    /// Jobs that wait, and jobs being done.
    pub(crate) fn len(&self) -> (usize, usize) {
        let jobs = self.jobs.lock();
        (jobs.waiting.len(), jobs.taken.len())
    }

    /// Whether nothing waits that may be taken, and nothing is being done.
    pub(crate) fn is_idle(&self) -> bool {
        let jobs = self.jobs.lock();
        let may = |job: &Job| jobs.until.is_none_or(|until| job.through <= until);
        jobs.taken.is_empty() && !jobs.waiting.iter().any(may)
    }

    /// Whether nothing that was frozen up to `through` waits or is being flushed.
    pub(crate) fn is_past(&self, through: Seq) -> bool {
        let jobs = self.jobs.lock();
        let waiting = jobs.waiting.iter().map(|job| job.through);
        waiting
            .chain(jobs.taken.iter().copied())
            .all(|of| through < of)
    }
}

/// While this lives, what was frozen later is not flushed.
#[must_use]
pub(crate) struct HeldBack<'a> {
    queue: &'a FlushQueue,
}

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        self.queue.jobs.lock().until = None;
    }
}

/// Mark all buckets that the job still has to go to, or none.
fn mark(job: &Job) -> Option<Vec<Arc<Bucket>>> {
    let routing = job.tree.routing();
    let first = routing.find(&job.lo);
    let mut marked: Vec<Arc<Bucket>> = Vec::new();
    for bucket in routing.buckets().iter().skip(first) {
        if job.hi.as_deref().is_some_and(|hi| hi <= &*bucket.lo) {
            break;
        }
        let mut state = bucket.state();
        if !state.retired && !state.has_frozen(&job.buffer) {
            // An attempt before this one got that far.
            continue;
        }
        let oldest = state.frozen.last();
        let ours = oldest.is_some_and(|f| Arc::ptr_eq(&f.buffer, &job.buffer));
        if state.retired || state.flushing || !ours {
            drop(state);
            for bucket in &marked {
                bucket.state().flushing = false;
            }
            return None;
        }
        state.flushing = true;
        drop(state);
        marked.push(Arc::clone(bucket));
    }
    assert!(!marked.is_empty(), "a job that waits is not done");
    Some(marked)
}

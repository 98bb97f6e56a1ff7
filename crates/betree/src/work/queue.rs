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

/// A frozen buffer to be flushed.
pub(crate) struct Job {
    pub(crate) tree: Arc<Tree>,
    pub(crate) buffer: Arc<Buffer>,
    /// The range of the bucket when the buffer was frozen; the bucket may have been split since.
    pub(crate) lo: Arc<[u8]>,
    pub(crate) hi: Option<Arc<[u8]>>,
    /// The newest commit when it was frozen.
    pub(crate) through: Seq,
    /// Its memory, as counted when it was frozen.
    pub(crate) bytes: usize,
    /// Bytes of the file that its runs take, those of earlier attempts included.
    pub(crate) drawn: u64,
}

/// A job that a thread has taken, with its marked buckets (I2).
pub(crate) struct Taken {
    pub(crate) job: Job,
    pub(crate) buckets: Vec<Arc<Bucket>>,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    /// The `through` of each job in progress, and the memory of their buffers.
    taken: Vec<Seq>,
    taken_bytes: usize,
    /// Buffers frozen later than this are not taken.
    until: Option<Seq>,
}

impl Jobs {
    /// Record that a taken job is no longer in progress.
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

    /// Take the first job that may be taken (I1), and mark its buckets.
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

    /// Record that a taken job, for a buffer of `bytes` frozen at `through`, is complete.
    pub(crate) fn done(&self, through: Seq, bytes: usize) {
        self.jobs.lock().give_up(through, bytes);
    }

    /// Return a failed job to the front of the queue, for the buckets that still have its buffer.
    /// Another thread may have marked the other buckets by now.
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

    /// Hold back buffers frozen after `through` until the returned guard is dropped. The caller
    /// holds the checkpoint lock, so there is one at a time.
    pub(crate) fn hold_after(&self, through: Seq) -> HeldBack<'_> {
        let before = self.jobs.lock().until.replace(through);
        assert!(before.is_none(), "one cut at a time");
        HeldBack { queue: self }
    }

    /// Let no job be taken any more: the store is closed.
    pub(crate) fn close(&self) {
        self.jobs.lock().until = Some(Seq::ANCIENT);
    }

    /// Remove the jobs of a dropped tree; returns the bytes of their buffers.
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

    /// Memory of the waiting buffers, and of those being flushed.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let jobs = self.jobs.lock();
        (
            jobs.waiting.iter().map(|job| job.bytes).sum(),
            jobs.taken_bytes,
        )
    }

    /// Number of waiting jobs, and of jobs in progress.
    pub(crate) fn len(&self) -> (usize, usize) {
        let jobs = self.jobs.lock();
        (jobs.waiting.len(), jobs.taken.len())
    }

    /// Whether no job is waiting that may be taken, and none is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        let jobs = self.jobs.lock();
        let may = |job: &Job| jobs.until.is_none_or(|until| job.through <= until);
        jobs.taken.is_empty() && !jobs.waiting.iter().any(may)
    }

    /// Whether no buffer frozen up to `through` is waiting or being flushed.
    pub(crate) fn is_past(&self, through: Seq) -> bool {
        let jobs = self.jobs.lock();
        let waiting = jobs.waiting.iter().map(|job| job.through);
        waiting
            .chain(jobs.taken.iter().copied())
            .all(|of| through < of)
    }
}

/// While this lives, buffers frozen later are not flushed.
#[must_use]
pub(crate) struct HeldBack<'a> {
    queue: &'a FlushQueue,
}

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        self.queue.jobs.lock().until = None;
    }
}

/// Mark all remaining buckets of the job, or none.
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
            // An earlier attempt has flushed this bucket.
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

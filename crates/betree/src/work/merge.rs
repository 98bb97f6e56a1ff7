//! The merge lane: the deltas and the base of a bucket become a new base.
//!
//! A merge proceeds in slices of a few thousand entries, so that a flush never waits for one. When
//! the new base is too large for one bucket it is cut at drawn points into several (unequal, so
//! that buckets do not come due together). Whatever was flushed into the bucket meanwhile is newer
//! than everything merged, and stays as it is.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use stdx::rng::Rng;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::claim::Claimed;
use super::empties::Empties;
use super::leftovers::Leftovers;
use super::restructure::Part;
use super::source::Chain;
use crate::db::Core;
use crate::error::{ErrorKind, Result};
use crate::merge::{Merger, Retention, Source};
use crate::plant::{Plant, planted};
use crate::run::{Run, RunOptions, RunWriter};
use crate::space::{Purpose, Space};
use crate::tree::{Bucket, Short, Tree};
use crate::types::{Entry, Seq};

/// A merge in progress.
pub(crate) struct MergeJob {
    tree: Arc<Tree>,
    bucket: Arc<Bucket>,
    deltas: Vec<Arc<Run>>,
    base: Arc<[Arc<Run>]>,
    merger: Merger<Chain>,
    retention: Retention,
    /// The horizon: versions that were replaced before it are dropped. It is the oldest snapshot,
    /// or the newest commit.
    horizon: Seq,
    writer: Option<RunWriter>,
    outputs: Vec<Arc<Run>>,
    /// Room for what is still to be written; `None` when it is done.
    claimed: Option<Claimed>,
    /// Encoded sizes at which the output is split, in order; the last part has no limit.
    cuts: Vec<u64>,
    last_key: Vec<u8>,
    /// Bytes written and reported to the pace.
    reported: u64,
    /// Bytes of them for which the pace already knows how long writing took.
    timed: u64,
    /// Writing time that the pace does not know yet.
    took: Duration,
    done: bool,
}

impl MergeJob {
    /// Check the invariants of a finished merge.
    fn check(&self) {
        assert!(self.done, "all has been merged");
        assert!(self.writer.is_none(), "the last output is finished");
        let entries = |runs: &[Arc<Run>]| runs.iter().map(|r| r.meta().entries).sum::<u64>();
        assert!(
            entries(&self.outputs) <= entries(&self.deltas) + entries(&self.base),
            "a merge makes nothing up"
        );
        for run in &self.outputs {
            assert!(self.bucket.holds(&run.meta().min_key), "keys of the bucket");
            assert!(self.bucket.holds(&run.meta().max_key), "keys of the bucket");
        }
        assert!(
            self.outputs
                .is_sorted_by(|a, b| a.meta().max_key < b.meta().min_key),
            "I2 of the bucket: in key order, and apart"
        );
        assert!(
            self.outputs.iter().all(|run| {
                let seq = run.meta().max_seq;
                let plain = seq == Seq::ANCIENT || self.horizon < seq;
                plain && self.horizon < run.leftovers().at()
            }),
            "I1 of leftovers: what can be dropped now is dropped"
        );
    }

    /// Whether it merges a base alone.
    fn is_alone(&self) -> bool {
        self.deltas.is_empty()
    }

    /// Bytes written so far, approximately.
    fn written(&self) -> u64 {
        let whole: u64 = self.outputs.iter().map(|run| run.meta().bytes).sum();
        whole + self.writer.as_ref().map_or(0, RunWriter::stored_bytes)
    }

    /// Bytes of the data file that its outputs take.
    fn taken(&self) -> u64 {
        self.outputs.iter().map(|run| run.meta().allocated()).sum()
    }

    /// Whether it waits for the end of a flush: its output is complete and splits the bucket. The
    /// flushing thread continues it.
    fn is_blocked(&self) -> bool {
        self.done && 1 < self.outputs.len() && {
            let state = self.bucket.state();
            state.flushing && !state.dropped
        }
    }

    /// Discard the merge: neither a bucket nor an image refers to its outputs, so their space is
    /// free at once.
    fn give_up(self, space: &Space) {
        self.outputs.iter().for_each(|run| run.discard());
        let taken = self.taken();
        drop(self);
        space.end_merge(taken);
    }
}

/// What a merge with several outputs does where there is no room for a split.
#[derive(Clone, Copy)]
enum Split {
    /// It is not published yet.
    IfRoom,
    /// The bucket stays whole.
    OrWhole,
}

/// What became of a complete merge.
enum Published {
    Done,
    /// A flush of the bucket is in progress.
    Blocked(MergeJob),
    /// The file must have this length for a split.
    Lacks(MergeJob, u64),
}

/// The state of the merge lane.
pub(crate) struct Merges {
    /// Merges that wait for a thread to continue them, or, if complete, for the end of a flush
    /// ([`MergeJob::is_blocked`]).
    pub(super) paused: Mutex<Vec<MergeJob>>,
    running: AtomicUsize,
    /// Bytes of all deltas.
    waiting: AtomicU64,
    rng: Mutex<Rng>,
    /// Buckets worth merging at the last search, the best last.
    pub(super) found: Mutex<Vec<(Arc<Tree>, Arc<Bucket>)>>,
    /// Number of catalog changes at the last search.
    pub(super) looked: AtomicU64,
    /// Versions in bases that were kept for closed snapshots.
    pub(super) leftovers: Leftovers,
    pub(super) empties: Empties,
    /// Commits and their waits at the last check whether the store is idle.
    pub(super) seen: AtomicU64,
    /// Number of merges that lacked room.
    lacked: AtomicU64,
}

impl Merges {
    /// The state without merges; `seed` seeds its random numbers.
    pub(crate) fn new(seed: u64) -> Merges {
        Merges {
            paused: Mutex::new(Vec::new()),
            running: AtomicUsize::new(0),
            waiting: AtomicU64::new(0),
            rng: Mutex::new(Rng::new(seed)),
            found: Mutex::new(Vec::new()),
            looked: AtomicU64::new(0),
            leftovers: Leftovers::new(),
            empties: Empties::new(),
            seen: AtomicU64::new(0),
            lacked: AtomicU64::new(0),
        }
    }

    /// Bytes of all deltas, each counted once even if several buckets share it.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Record a new delta of `bytes`.
    pub(crate) fn delta_came(&self, bytes: u64) {
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Record runs that were added to a base.
    pub(crate) fn base_came(&self, runs: &[Arc<Run>]) {
        self.leftovers.came(runs);
    }

    /// Examine all bases again, because bases were joined.
    pub(super) fn look_again(&self) {
        self.leftovers.look_again();
    }

    /// Record that no bucket refers to a delta of `bytes` any more.
    pub(crate) fn delta_went(&self, bytes: u64) {
        let before = self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        assert!(bytes <= before, "what goes has come");
    }

    /// Number of merges in progress.
    pub(crate) fn open(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Record that `count` merges have ended.
    fn over(&self, count: usize) {
        let before = self.running.fetch_sub(count, Ordering::Relaxed);
        assert!(count <= before, "what ends was begun");
    }

    /// The newest merge that a thread can continue.
    fn resume(&self) -> Option<MergeJob> {
        let mut paused = self.paused.lock();
        let at = paused.iter().rposition(|job| !job.is_blocked())?;
        Some(paused.remove(at))
    }

    /// Discard all merges that no thread is working on.
    pub(crate) fn abandon(&self, space: &Space) {
        let jobs = std::mem::take(&mut *self.paused.lock());
        self.over(jobs.len());
        for job in jobs {
            job.bucket.state().merging = false;
            job.give_up(space);
        }
    }

    /// A random number from `[low, high)`.
    fn draw(&self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.rng.lock().unit()
    }
}

impl Core {
    /// Merge a slice of a merge in progress, or of a new one if `pick` finds a bucket. Returns
    /// false if there is nothing to merge, or if it must wait for merges of other threads.
    ///
    /// # Errors
    /// The device's, or `Corrupt`; the merge is given up and its bucket left as it was.
    pub(crate) fn merge_slice(
        &self,
        pick: impl FnOnce() -> Option<(Arc<Tree>, Arc<Bucket>)>,
    ) -> Result<bool> {
        let mut job = match self.merges.resume() {
            Some(job) => job,
            None => match pick() {
                None => return Ok(false),
                Some((tree, bucket)) => match self.begin_merge(tree, bucket)? {
                    ControlFlow::Continue(job) => job,
                    ControlFlow::Break(other_work) => return Ok(other_work),
                },
            },
        };
        let start = self.vfs.now();
        let result = self.merge_some(&mut job);
        job.took += self.vfs.now().saturating_sub(start);
        // Reported slice by slice; otherwise the debt would fall in steps of a whole bucket.
        let more = job.written().saturating_sub(job.reported);
        job.reported += more;
        // Merges of a base alone are not part of the debt (I2 of leftovers).
        if !job.is_alone() {
            self.counters.merged_bytes.add(more);
        }
        match result {
            Err(error) => {
                let short = job.claimed.as_ref().and_then(|claimed| claimed.short);
                self.end_merge(&job.bucket, error.kind(), short);
                job.give_up(&self.space);
                return Err(error);
            }
            Ok(()) if !job.done => self.merges.paused.lock().push(job),
            // While a flush of the bucket is in progress the merge stays there, and is not picked
            // up.
            Ok(()) => {
                self.count_time(&mut job);
                if let Some(job) = self.publish_with_room(job) {
                    self.merges.paused.lock().push(job);
                }
            }
        }
        Ok(true)
    }

    /// Count the time of a merge when it is complete, because runs are written at its end.
    fn count_time(&self, job: &mut MergeJob) {
        assert!(job.done, "all is written");
        assert!(job.timed <= job.reported, "time is counted once");
        let (took, bytes) = (std::mem::take(&mut job.took), job.reported - job.timed);
        job.timed = job.reported;
        if !job.is_alone() {
            self.counters.merge_nanos.add_nanos(took);
            self.counters.timed_bytes.add(bytes);
        }
    }

    /// End a merge that failed. `short` is what it found if it had less room than it needs.
    fn end_merge(&self, bucket: &Bucket, why: ErrorKind, short: Option<Short>) {
        let mut state = bucket.state();
        assert!(state.merging, "what ends was begun");
        state.merging = false;
        state.broken |= why == ErrorKind::Corrupt;
        if why == ErrorKind::Full {
            state.lacked = 1 + self.merges.lacked.fetch_add(1, Ordering::Relaxed);
            state.short = short.or(state.short);
        }
        drop(state);
        self.merges.over(1);
    }

    /// Begin to merge `bucket`. Else whether there may be other work: false if the merge must wait
    /// for others to end, true if another thread already does it, or there is nothing to merge.
    fn begin_merge(
        &self,
        tree: Arc<Tree>,
        bucket: Arc<Bucket>,
    ) -> Result<ControlFlow<bool, MergeJob>> {
        let (deltas, base, short) = {
            let mut state = bucket.state();
            let nothing = state.deltas.is_empty() && !self.base_can_drop(&state);
            let busy = state.retired || state.merging || state.broken || state.dropped;
            if busy || nothing {
                return Ok(ControlFlow::Break(true));
            }
            state.merging = true;
            (state.deltas.clone(), Arc::clone(&state.base), state.short)
        };
        self.merges.running.fetch_add(1, Ordering::Relaxed);
        let runs: Vec<&Arc<Run>> = deltas.iter().chain(base.iter()).collect();
        let opened = match self.claim_outputs(&runs, short) {
            Ok(None) => {
                self.end_merge(&bucket, ErrorKind::Full, None);
                return Ok(ControlFlow::Break(false));
            }
            Ok(Some(claimed)) => {
                bucket.cool();
                self.open_merge(&tree, &bucket, deltas, base, claimed)
            }
            Err(error) => Err(error),
        };
        match opened {
            Ok(job) => Ok(ControlFlow::Continue(job)),
            Err(error) => {
                self.end_merge(&bucket, error.kind(), None);
                Err(error)
            }
        }
    }

    fn open_merge(
        &self,
        tree: &Arc<Tree>,
        bucket: &Arc<Bucket>,
        deltas: Vec<Arc<Run>>,
        base: Arc<[Arc<Run>]>,
        claimed: Claimed,
    ) -> Result<MergeJob> {
        let chain =
            |runs: Vec<Arc<Run>>| Chain::new(runs, Arc::clone(&bucket.lo), bucket.hi.clone());
        let mut sources = Vec::with_capacity(deltas.len() + 1);
        for run in &deltas {
            sources.push(chain(vec![Arc::clone(run)])?);
        }
        sources.push(chain(base.to_vec())?);
        let bytes = deltas
            .iter()
            .chain(base.iter())
            .map(|r| r.meta().bytes)
            .sum();
        let horizon = self.horizon();
        Ok(MergeJob {
            tree: Arc::clone(tree),
            bucket: Arc::clone(bucket),
            merger: Merger::new(sources),
            horizon: horizon.oldest(),
            retention: Retention::new(horizon.snapshots, horizon.now, true),
            writer: None,
            outputs: Vec::new(),
            claimed: Some(claimed),
            cuts: self.cuts(bytes),
            last_key: Vec::new(),
            reported: 0,
            timed: 0,
            took: Duration::ZERO,
            done: false,
            deltas,
            base,
        })
    }

    /// Sizes at which a base of about `bytes` is split: not at all up to the size of a bucket
    /// (varied randomly between 75 and 125 %), else into parts of 30 to 70 % of it. In reverse
    /// order, for popping.
    fn cuts(&self, bytes: u64) -> Vec<u64> {
        let target = self.options.bucket() as f64;
        let mut cuts = Vec::new();
        let mut rest = bytes as f64;
        while target * self.merges.draw(0.75, 1.25) < rest {
            let part = (target * self.merges.draw(0.6, 1.4) / 2.0)
                .min(rest * 0.7)
                .max(1.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "1 to bucket"
            )]
            cuts.push(part as u64);
            rest -= part;
        }
        cuts.reverse();
        cuts
    }

    fn merge_some(&self, job: &mut MergeJob) -> Result<()> {
        for _ in 0..self.tuning.merge_slice {
            let Some(entry) = job.merger.current() else {
                if let Some(writer) = job.writer.take() {
                    job.outputs.push(writer.finish()?);
                }
                job.done = true;
                job.claimed = None;
                return Ok(());
            };
            if let Some(seq) = job.retention.keep(entry) {
                let due = match (&job.writer, job.cuts.last()) {
                    (Some(writer), Some(&cut)) => {
                        cut <= writer.stored_bytes() && entry.key != job.last_key.as_slice()
                    }
                    _ => false,
                };
                if due {
                    job.cuts.pop();
                    if let Some(writer) = job.writer.take() {
                        job.outputs.push(writer.finish()?);
                    }
                }
                if job.writer.is_none() {
                    let claimed = job.claimed.as_ref().expect("until it is done");
                    let options = self.merge_options(Purpose::Merge(claimed.claim()));
                    let id = self.next_run();
                    job.writer = Some(RunWriter::new(&self.runs, job.tree.id, id, options));
                }
                let writer = job.writer.as_mut().expect("made above");
                writer.push(Entry { seq, ..entry })?;
                // Only keys at which the output may be split need to be kept.
                if !job.cuts.is_empty() {
                    job.last_key.clear();
                    job.last_key.extend_from_slice(entry.key);
                }
            }
            job.merger.advance()?;
        }
        Ok(())
    }

    fn merge_options(&self, purpose: Purpose) -> RunOptions {
        RunOptions {
            codec: self.options.codec(),
            page_raw: self.tuning.page,
            filter_bits: self.tuning.base_filter_bits,
            purpose,
        }
    }

    /// Publish a merge: where the disk has no room for the buffers of several buckets, without the
    /// split. Returns the job if a flush is in progress and the bucket must be split.
    fn publish_with_room(&self, job: MergeJob) -> Option<MergeJob> {
        let mut published = self.publish_merge(job, Split::IfRoom);
        if let Published::Lacks(job, length) = published {
            let split = match self.runs.grow(length) {
                Ok(()) => Split::IfRoom,
                Err(_) => Split::OrWhole,
            };
            published = self.publish_merge(job, split);
        }
        if let Published::Lacks(job, _) = published {
            // Something else took what the file grew by.
            published = self.publish_merge(job, Split::OrWhole);
        }
        match published {
            Published::Blocked(job) => Some(job),
            Published::Done => None,
            Published::Lacks(..) => unreachable!("it is published whole"),
        }
    }

    /// Replace the merged runs by the outputs, in one step for readers, unless that must wait.
    fn publish_merge(&self, job: MergeJob, split: Split) -> Published {
        job.check();
        let committer = self.commit.lock();
        let mut state = job.bucket.state();
        assert!(
            state.merging && !state.retired,
            "a bucket under a merge is not replaced"
        );
        if state.dropped {
            state.merging = false;
            drop(state);
            job.give_up(&self.space);
            self.merges.over(1);
            return Published::Done;
        }
        if 1 < job.outputs.len() && state.flushing {
            drop(state);
            return Published::Blocked(job);
        }
        let room = self.room_to_split(&state, job.outputs.len());
        if let (Err(length), Split::IfRoom) = (room, split) {
            drop(state);
            return Published::Lacks(job, length);
        }
        self.crowd.went(state.deltas.len() + state.frozen.len());
        let merged = |run: &Arc<Run>, of: &[Arc<Run>]| of.iter().any(|r| Arc::ptr_eq(r, run));
        state.deltas.retain(|run| !merged(run, &job.deltas));
        let others = state.base.iter().filter(|run| !merged(run, &job.base));
        let appended: Vec<Arc<Run>> = others.cloned().collect();
        state.merging = false;
        state.lacked = 0;
        state.short = None;
        self.merges.base_came(&job.outputs);
        let taken = job.taken();
        let mut parts = parts(&job.bucket, job.outputs, room.is_ok());
        if let Some(last) = parts.last_mut() {
            last.base.extend(appended.iter().cloned());
        }
        let mut frozen = None;
        if parts.len() < 2 {
            let base = parts.pop().map_or(appended, |part| part.base);
            state.base = base.into();
        } else {
            frozen = self.replace(&committer, &job.tree, &job.bucket, &mut state, parts);
        }
        let empty = !state.retired && state.is_empty();
        drop(state);
        self.enqueue(frozen);
        self.let_go(&job.deltas, &job.base);
        drop(committer);
        self.after_merge(&job.tree, &job.bucket, empty);
        // Before the merge counts as ended, because a caller that waits for its end needs the
        // space.
        drop((job.merger, job.deltas, job.base, job.bucket));
        self.space.end_merge(taken);
        self.merges.over(1);
        Published::Done
    }

    /// Look for empty buckets after a merge, and count it.
    fn after_merge(&self, tree: &Arc<Tree>, bucket: &Arc<Bucket>, empty: bool) {
        if empty {
            self.absorb(tree, bucket);
        } else {
            self.absorb_beside(tree, bucket);
        }
        self.counters.merges.add(1);
        tree.merges.add(1);
    }

    /// Record that a bucket does not refer to these runs any more. Under the commit lock.
    pub(crate) fn let_go(&self, deltas: &[Arc<Run>], base: &[Arc<Run>]) {
        for run in deltas {
            if self.sharing.remove(run) {
                self.merges.delta_went(run.meta().bytes);
            }
        }
        for run in base {
            self.sharing.remove(run);
        }
    }
}

/// The buckets that replace `bucket`: one per output, the first with its lower bound; or one
/// with all outputs.
fn parts(bucket: &Bucket, outputs: Vec<Arc<Run>>, split: bool) -> Vec<Part> {
    if !split {
        return vec![Part {
            lo: Arc::clone(&bucket.lo),
            base: outputs,
        }];
    }
    let part = |(index, run): (usize, Arc<Run>)| Part {
        lo: match index {
            0 => Arc::clone(&bucket.lo),
            _ if planted(Plant::PivotOffByOne) => {
                run.meta().min_key.iter().copied().chain([0]).collect()
            }
            _ => Arc::from(&*run.meta().min_key),
        },
        base: vec![run],
    };
    outputs.into_iter().enumerate().map(part).collect()
}

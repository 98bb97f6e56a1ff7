//! The flush lane: a frozen buffer becomes a run.
//!
//! A flush sorts, drops versions that no snapshot sees, encodes and writes at most a few megabytes;
//! it reads nothing, needs no merge before it and no other bucket. So inserts wait for processor
//! time or for the device, never for each other's merges.
//!
//! When all keys of the buffer are above those in the bucket's runs, the run becomes part of the
//! base at once: ascending keys are written once and never merged. A bucket that has grown beyond
//! its size this way is cut there, so the next keys begin a bucket of their own.

use std::sync::Arc;
use std::time::Duration;

use super::queue::Taken;
use super::restructure::Part;
use crate::db::Core;
use crate::error::Result;
use crate::merge::{Retention, Source};
use crate::plant::{Plant, planted};
use crate::run::{Run, RunOptions, RunWriter};
use crate::space::Purpose;
use crate::tree::{Bucket, Tree};
use crate::types::{Entry, Seq};

impl Core {
    /// Flush one frozen buffer. Returns false if none is waiting.
    ///
    /// # Errors
    /// The device's; the buffer then waits again.
    pub(crate) fn flush_one(&self) -> Result<bool> {
        let Some(mut taken) = self.queue.take() else {
            return Ok(false);
        };
        let start = self.vfs.now();
        for index in 0..taken.buckets.len() {
            let bucket = taken.buckets.get(index).expect("an index of it");
            match self.flush_into(&taken, bucket) {
                Ok(bytes) => taken.job.drawn += bytes,
                Err(error) => {
                    self.forget_ceiling();
                    self.queue.put_back(taken);
                    return Err(error);
                }
            }
        }
        let took = self.vfs.now().saturating_sub(start);
        self.finish_flush(taken, took);
        Ok(true)
    }

    /// End a flush that has written all its runs.
    fn finish_flush(&self, taken: Taken, took: Duration) {
        let drift = if planted(Plant::CounterDrift) { 8 } else { 0 };
        {
            let _committer = self.commit.lock();
            self.settle_room(taken.job.bytes, taken.job.drawn);
            self.memory.flushed(taken.job.bytes - drift, took);
        }
        let (through, bytes) = (taken.job.through, taken.job.bytes);
        let buffer = Arc::downgrade(&taken.job.buffer);
        drop(taken);
        self.pinned.flushed(buffer, bytes);
        self.queue.done(through, bytes);
        self.counters.flushes.add(1);
        self.counters.flush_nanos.add_nanos(took);
        self.wake.room();
    }

    /// Flush the part of the buffer that belongs to `bucket`, unless an earlier attempt did.
    /// Returns the bytes of the file that it takes.
    fn flush_into(&self, taken: &Taken, bucket: &Arc<Bucket>) -> Result<u64> {
        let job = &taken.job;
        // The buffer is sorted once; each bucket takes its range.
        let source = job.buffer.sorted().range(&bucket.lo, bucket.hi.as_deref());
        let append = {
            let state = bucket.state();
            debug_assert!(!state.retired, "I2 of the queue: it is marked");
            let Some(oldest) = state.frozen.last() else {
                return Ok(0);
            };
            if !Arc::ptr_eq(&oldest.buffer, &job.buffer) {
                return Ok(0);
            }
            match source.current() {
                None => false,
                Some(entry) => state.deltas.is_empty() && state.runs_end_before(entry.key),
            }
        };
        let run = self.write_run(&job.tree, source, append)?;
        let newest = run.as_ref().map(|run| run.meta().max_seq);
        assert!(
            newest <= Some(job.through),
            "I3 of the bucket: flushed up to there"
        );
        let drawn = run.as_ref().map_or(0, |run| run.meta().allocated());
        self.publish_flush(&job.tree, bucket, run, job.through);
        Ok(drawn)
    }

    /// Write the entries that must be kept; `None` if there are none.
    fn write_run(
        &self,
        tree: &Arc<Tree>,
        mut source: impl Source,
        append: bool,
    ) -> Result<Option<Arc<Run>>> {
        let horizon = self.horizon();
        let mut retention = Retention::new(horizon.snapshots, horizon.now, append);
        let options = self.run_options(tree, append);
        let mut writer = RunWriter::new(&self.runs, tree.id, self.next_run(), options);
        let mut seen = 0;
        while let Some(entry) = source.current() {
            seen += 1;
            if let Some(seq) = retention.keep(entry) {
                writer.push(Entry { seq, ..entry })?;
            }
            source.advance()?;
        }
        assert!(writer.entries() <= seen, "a flush makes nothing up");
        if writer.entries() == 0 {
            return Ok(None);
        }
        writer.finish().map(Some)
    }

    fn run_options(&self, tree: &Tree, append: bool) -> RunOptions {
        let options = &self.options;
        RunOptions {
            codec: if append {
                options.codec()
            } else {
                options.delta_codec()
            },
            page_raw: self.tuning.page,
            // Appended runs are found by their key range and need no filter.
            filter_bits: if append {
                0
            } else {
                self.tuning.delta_filter_bits(tree.options)
            },
            purpose: Purpose::Flush,
        }
    }

    /// Replace the buffer by the run, in one step for readers.
    fn publish_flush(
        &self,
        tree: &Arc<Tree>,
        bucket: &Arc<Bucket>,
        run: Option<Arc<Run>>,
        through: Seq,
    ) {
        let committer = self.commit.lock();
        let mut state = bucket.state();
        assert!(!state.retired, "a bucket under a flush is not retired");
        let flushed = state
            .frozen
            .pop()
            .expect("the flushed buffer is the oldest");
        assert_eq!(
            flushed.through, through,
            "I1 of the queue: in order of freezing"
        );
        state.flushing = false;
        assert!(state.flushed <= through, "buffers are flushed in order");
        state.flushed = through;
        let Some(run) = run else {
            return;
        };
        if state.dropped {
            run.retire();
            return;
        }
        let append = state.deltas.is_empty() && state.runs_end_before(&run.meta().min_key);
        if !append {
            self.counters.delta_bytes.add(run.meta().bytes);
            self.merges.delta_came(run.meta().bytes);
            let at = state.deltas.len() * usize::from(planted(Plant::DeltaAtTheEnd));
            state.deltas.insert(at, run);
            return;
        }
        self.counters.appends.add(1);
        self.merges.base_came(std::slice::from_ref(&run));
        let due = !state.base.is_empty()
            && !state.merging
            && self.options.bucket() < state.base_bytes() + run.meta().bytes;
        // Without room it is cut at a later flush.
        if !due || self.room_to_split(&state, 2).is_err() {
            state.base = state.base.iter().cloned().chain([run]).collect();
            return;
        }
        let parts = vec![
            Part {
                lo: Arc::clone(&bucket.lo),
                base: state.base.to_vec(),
            },
            Part {
                lo: Arc::from(&*run.meta().min_key),
                base: vec![run],
            },
        ];
        let job = self.replace(&committer, tree, bucket, &mut state, parts);
        drop(state);
        self.enqueue(job);
    }
}

//! Room for the flushes of what is in memory.
//!
//! What a commit put into the buffers takes space when they are flushed, and on a full disk it must
//! not turn out then that there is none: memory could not be emptied, no merge could begin, and a
//! store without a log, whose checkpoints flush everything first, could not even be closed without
//! losing what it acknowledged. So the file system grants the room for one flush of all buffers,
//! and for the image that names their runs, before a commit adds to them. A commit that cannot have
//! its part answers `Full` while the room of those before it is still there. Merges and
//! transactions leave it alone ([`crate::run::RunStore::keep`]).
//!
//! Puts leave some more: for the flushes of deletes, and for the merge of a bucket, which takes
//! room before it gives room back. So what deletes free comes free on a full disk.
//!
//! The need is estimated: twice the memory of the buffers and five fourths of what comes, for what
//! does not compress and for headers and fences, and a unit of each buffer that has anything in it,
//! for padding.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::checkpoint;
use crate::db::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::types::UNIT;

/// Bytes that a flush writes, for a byte of memory, for a change that comes, and for a buffer.
const WRITTEN_PER_BYTE: u64 = 2;
const WRITTEN_PER_CHANGE: u64 = 64;
const WRITTEN_PER_BUFFER: u64 = UNIT + 256;
/// Asked for at once: this, and this part of the need.
const STEP: u64 = 64 << 10;
const STEP_PART: u64 = 4;
/// Puts leave room for the flush of this part of the buffers to deletes, and of so many buffers,
/// and for the merge of so many times what a bucket should hold; of each not more than this part of
/// what is stored.
const DELETES_PART: u64 = 8;
const DELETES_BUFFERS: u64 = 64;
const MERGE_BUCKETS: u64 = 2;
const STORED_PART: u64 = 4;

/// How long a commit waits for a flush, which has taken what was kept for it.
const FLUSH_WAIT: Duration = Duration::from_millis(1);

/// What a commit brings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight {
    pub(crate) bytes: usize,
    pub(crate) changes: usize,
    /// It deletes at least as much as it puts.
    pub(crate) mostly_deletes: bool,
}

/// What the estimate goes by.
#[derive(Default)]
pub(crate) struct Kept {
    /// Changes that were counted when everything was flushed last: later ones are in at most so
    /// many buffers.
    flushed: AtomicU64,
    /// What the log held when the store was opened may be in any buffer.
    replayed: AtomicBool,
    /// Changes of the catalog that the last image has.
    imaged: AtomicU64,
    /// Buckets, and what told that there may be others.
    buckets: AtomicU64,
    counted_at: AtomicU64,
}

impl Kept {
    /// There is one more tree.
    pub(crate) fn tree_came(&self) {
        self.buckets.fetch_add(1, Ordering::Relaxed);
    }
}

impl Core {
    /// Have room for the flush of what a commit of this `weight` brings. Without any lock.
    ///
    /// # Errors
    /// `Full`. With a log, deletes are not refused here: memory is their limit.
    pub(crate) fn keep_room(&self, weight: Weight) -> Result<()> {
        if self.flush_need(Some(weight)) <= self.runs.kept() {
            return Ok(());
        }
        loop {
            match self.try_keep(weight) {
                Err(error) if error.kind() == ErrorKind::Full => {
                    self.health.check_writable()?;
                    if 0 < self.queue.len().1 {
                        // It gives more back than it takes.
                        self.wake.wait_for_room(FLUSH_WAIT);
                    } else if !self.free_space()? && !self.flush_for_room()? {
                        return self.refuse(weight, error);
                    }
                }
                kept => return kept,
            }
        }
    }

    fn try_keep(&self, weight: Weight) -> Result<()> {
        let left = if weight.mostly_deletes {
            0
        } else {
            self.room_for_deletes()
        };
        self.keep_image_room()?;
        let need = self.flush_need(Some(weight));
        debug_assert!(weight.bytes as u64 <= need, "what comes is flushed");
        let ahead = self.runs.keep(need + need / STEP_PART + STEP, left);
        ahead.or_else(|_| self.runs.keep(need, left))
    }

    fn refuse(&self, weight: Weight, error: Error) -> Result<()> {
        assert_eq!(error.kind(), ErrorKind::Full, "nothing else is refused");
        // Merges do not wait for their pace now.
        self.refused.room.note(self.vfs.now());
        self.wake.work();
        if weight.mostly_deletes && self.log.is_some() {
            return Ok(());
        }
        Err(error)
    }

    /// The image of the next checkpoint names the runs that were made since the last, and those of
    /// the buffers: its reserve grows with them.
    fn keep_image_room(&self) -> Result<()> {
        let imaged = self.kept.imaged.load(Ordering::Relaxed);
        let made = self.changes().saturating_sub(imaged);
        let image = self.checkpoints.shown().image_bytes;
        let runs = made.saturating_mul(2) + self.filled_buffers(0);
        checkpoint::grow_reserve(&*self.file, &self.data_path(), &self.space, image, runs)
    }

    /// Make of the room that is kept for the buffers what their runs really take, and of the rest
    /// room for others. False when there is nothing to be had, or that was done a moment ago.
    fn flush_for_room(&self) -> Result<bool> {
        let now = self.vfs.now();
        if self.memory.buffered() == 0 || self.refused.emptying.is_recent(now) {
            return Ok(false);
        }
        self.refused.emptying.note(now);
        let flushed = match &self.log {
            Some(_) => self.flush(),
            None => self.checkpoint(),
        };
        match flushed {
            Err(error) if error.kind() == ErrorKind::Full => Ok(false),
            flushed => flushed.map(|()| true),
        }
    }

    /// Whether space is so short that merges should not wait for their pace, and come one by one.
    pub(super) fn is_short_of_space(&self) -> bool {
        self.refused.flush.stands() || self.refused.room.is_recent(self.vfs.now())
    }

    /// A flush has ended, one way or the other: keep what the others need.
    pub(super) fn settle_room(&self) {
        self.runs.still_keep(self.flush_need(None));
    }

    /// Changes counted so far.
    pub(super) fn changes_counted(&self) -> u64 {
        self.counters.puts.get() + self.counters.deletes.get()
    }

    /// What was there at so many changes is in runs.
    pub(super) fn flushed_through(&self, changes: u64) {
        self.kept.flushed.store(changes, Ordering::Relaxed);
        self.kept.replayed.store(false, Ordering::Relaxed);
        self.settle_room();
    }

    /// What the log held is in the buffers.
    pub(crate) fn replayed(&self) {
        let some = 0 < self.memory.buffered();
        self.kept.replayed.store(some, Ordering::Relaxed);
        self.settle_room();
    }

    /// An image has what the catalog was at so many changes of it.
    pub(super) fn imaged_through(&self, changes: u64) {
        self.kept.imaged.store(changes, Ordering::Relaxed);
    }

    /// Bytes that the flush of all buffers takes at most, with `weight` in them.
    fn flush_need(&self, weight: Option<Weight>) -> u64 {
        let (bytes, changes) = weight.map_or((0, 0), |w| (w.bytes as u64, w.changes as u64));
        let coming = bytes + bytes / 4 + WRITTEN_PER_CHANGE * changes;
        let there = WRITTEN_PER_BYTE * self.memory.buffered() as u64;
        there + coming + WRITTEN_PER_BUFFER * self.filled_buffers(changes)
    }

    /// Buffers that have anything in them, at most, after so many more changes.
    fn filled_buffers(&self, more: u64) -> u64 {
        if self.memory.buffered() == 0 && more == 0 {
            return 0;
        }
        let flushed = self.kept.flushed.load(Ordering::Relaxed);
        let since = self.changes_counted().saturating_sub(flushed);
        if self.kept.replayed.load(Ordering::Relaxed) {
            return self.bucket_count();
        }
        self.bucket_count().min(since + more)
    }

    /// What puts leave.
    fn room_for_deletes(&self) -> u64 {
        let most = self.space.used_bytes() / STORED_PART;
        let flushes = WRITTEN_PER_BYTE * self.tuning.buffers as u64 / DELETES_PART
            + WRITTEN_PER_BUFFER * DELETES_BUFFERS;
        let merge = MERGE_BUCKETS * self.options.bucket();
        let left = flushes.min(most) + merge.min(most);
        debug_assert!(left <= 2 * most, "a part of what is stored");
        left
    }

    /// How many buckets there are.
    fn bucket_count(&self) -> u64 {
        let kept = &self.kept;
        let now = self.changes() + 1;
        if kept.counted_at.load(Ordering::Relaxed) != now {
            let trees = self.catalog.all();
            let count = trees
                .iter()
                .map(|tree| tree.routing().buckets().len() as u64);
            kept.buckets.store(count.sum(), Ordering::Relaxed);
            kept.counted_at.store(now, Ordering::Relaxed);
        }
        kept.buckets.load(Ordering::Relaxed)
    }
}

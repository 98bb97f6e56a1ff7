//! Room for the flushes of what is in memory.
//!
//! What a commit puts into the buffers takes space when they are flushed. If that failed on a full
//! disk, memory could not be emptied, no merge could begin, and a store without a log, whose
//! checkpoints flush everything first, could not be closed without losing commits. So before a
//! commit adds to the buffers, the file system grants the room for one flush of all of them and for
//! the image that names their runs. A commit that cannot get its part is refused with `Full` while
//! the room of those before it exists. Merges and transactions that spill leave that room alone
//! ([`crate::space::Purpose`]).
//!
//! Puts leave some more: for the flushes of deletes, and for the merge of a bucket, which takes
//! room before it gives room back. So deletes free space on a full disk.
//!
//! The need is an upper estimate: twice the memory of the buffers, for what does not compress and
//! for headers and fences; a unit for each buffer in each bucket, for padding; and the same of
//! commits that were let in and are not in the buffers yet.

use std::sync::Arc;
use std::time::Duration;

use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::checkpoint;
use crate::db::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::plant::{Plant, planted};
use crate::tree::Tree;
use crate::types::{Batch, UNIT};

/// Bytes that a flush writes at most, for a byte of memory, for a change that comes, and for a
/// buffer.
const WRITTEN_PER_BYTE: u64 = 2;
const WRITTEN_PER_CHANGE: u64 = 64;
const WRITTEN_PER_BUFFER: u64 = UNIT + 256;
/// Granted beyond the need, so that few commits ask the file system: this, and this part of it.
const AHEAD: u64 = 64 << 10;
const AHEAD_PART: u64 = 4;
/// Puts leave deletes room for the flush of 1/`DELETES_PART` of the buffers' memory, and of
/// `DELETES_BUFFERS` buffers, at most 1/`STORED_PART` of what is stored; and for the merge of
/// `MERGE_BUCKETS` times what a bucket should hold, at most what is stored: a store of one bucket
/// writes all of it in one merge.
const DELETES_PART: u64 = 8;
const DELETES_BUFFERS: u64 = 64;
const MERGE_BUCKETS: u64 = 2;
const STORED_PART: u64 = 4;

/// How long a commit waits for a flush, which has taken what was kept for it.
const FLUSH_WAIT: Duration = Duration::from_millis(1);

/// What a commit brings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weight {
    pub(crate) bytes: u64,
    pub(crate) puts: u64,
    pub(crate) deletes: u64,
}

impl Weight {
    /// That of a batch.
    pub(crate) fn of(batch: &Batch) -> Weight {
        let mut weight = Weight::default();
        weight.add(batch);
        weight
    }

    /// A batch more.
    pub(crate) fn add(&mut self, batch: &Batch) {
        let counts = batch.counts();
        self.bytes += batch.payload().len() as u64;
        self.puts += counts.puts as u64;
        self.deletes += (counts.deletes + counts.range_deletes) as u64;
    }

    /// Whether it takes away at least as many keys as it puts.
    pub(crate) fn mostly_deletes(self) -> bool {
        0 < self.deletes && self.puts <= self.deletes
    }
}

/// What the estimate goes by.
pub(crate) struct Kept {
    /// Bytes for the flushes of commits that were let in and are not in the buffers yet.
    coming: AtomicU64,
    /// Frozen buffers, each counted once for every bucket that has it.
    frozen: AtomicU64,
    /// Buckets when they were counted last, and trees that came since.
    buckets: AtomicU64,
    /// Changes that were counted when all buffers were frozen last. More than there will be in a
    /// store that was just opened: what its log held may be in any buffer.
    emptied: AtomicU64,
    /// Trees that were created since the store was opened.
    trees: AtomicU64,
    /// [`Core::catalog_changes`] that the last image has.
    imaged: AtomicU64,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept {
            coming: AtomicU64::new(0),
            frozen: AtomicU64::new(0),
            buckets: AtomicU64::new(0),
            emptied: AtomicU64::new(u64::MAX),
            trees: AtomicU64::new(0),
            imaged: AtomicU64::new(0),
        }
    }
}

impl Kept {
    /// There is one more tree.
    pub(crate) fn tree_came(&self) {
        self.buckets.fetch_add(1, Ordering::Relaxed);
        self.trees.fetch_add(1, Ordering::Relaxed);
    }

    /// A bucket, or one more, has `count` frozen buffers more.
    pub(crate) fn froze(&self, count: usize) {
        self.frozen.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// A bucket has `count` frozen buffers less.
    pub(crate) fn flushed(&self, count: usize) {
        let before = self.frozen.fetch_sub(count as u64, Ordering::Relaxed);
        assert!(count as u64 <= before, "what is flushed was frozen");
    }
}

/// Room for the flush of a commit, held until the commit is in the buffers.
#[must_use]
pub(crate) struct Room<'a> {
    kept: &'a Kept,
    bytes: u64,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let before = self.kept.coming.fetch_sub(self.bytes, Ordering::Relaxed);
        assert!(self.bytes <= before, "a commit gives back what it took");
    }
}

impl Core {
    /// Have room for the flush of what a commit of this `weight` brings. Without any lock.
    ///
    /// # Errors
    /// `Full`. With a log, deletes are not refused here: memory is their limit.
    pub(crate) fn keep_room(&self, weight: Weight) -> Result<Room<'_>> {
        let room = self.count_coming(weight);
        if self.space.kept() < self.flush_need() && !planted(Plant::RoomForgotten) {
            self.health.check_writable()?;
            self.make_kept_room(weight.mostly_deletes())?;
        }
        Ok(room)
    }

    /// The same for a bulk commit. Without a log it asks for room when it knows its changes, of
    /// which range deletes say little ([`Core::keep_granted_room`]).
    ///
    /// # Errors
    /// `Full`.
    pub(crate) fn keep_room_ahead(&self, weight: Weight) -> Result<Option<Room<'_>>> {
        match &self.log {
            Some(_) => self.keep_room(weight).map(Some),
            None => Ok(None),
        }
    }

    /// As [`Core::keep_room`], in the turn of a bulk commit: nothing is freed for it.
    ///
    /// # Errors
    /// `Full`.
    pub(crate) fn keep_granted_room(&self, weight: Weight) -> Result<Room<'_>> {
        let room = self.count_coming(weight);
        match self.try_keep(weight.mostly_deletes()) {
            Err(error) if error.kind() == ErrorKind::Full => Err(error),
            // As in make_kept_room.
            _ => Ok(room),
        }
    }

    /// As far as the disk has room, have it granted for the flush of what was replayed at opening,
    /// before the log takes any. The half may do: the need is an upper estimate.
    pub(crate) fn keep_replayed_room(&self) {
        self.count_buckets();
        // What is missing is asked for again by the next commit.
        let _ = self.keep_image_room();
        let need = self.flush_need();
        let _ = self
            .runs
            .keep(need, 0)
            .or_else(|_| self.runs.keep(need / 2, 0));
    }

    fn count_coming(&self, weight: Weight) -> Room<'_> {
        let kept = &self.kept;
        let changes = weight.puts + weight.deletes;
        let buffers = changes.min(kept.buckets.load(Ordering::Relaxed));
        let bytes = weight.bytes
            + weight.bytes / 4
            + WRITTEN_PER_CHANGE * changes
            + WRITTEN_PER_BUFFER * buffers;
        assert!(weight.bytes <= bytes, "a flush of it writes no less");
        kept.coming.fetch_add(bytes, Ordering::Relaxed);
        Room { kept, bytes }
    }

    /// Have the room that the buffers need now granted; free some for it on a full disk.
    #[cold]
    fn make_kept_room(&self, deletes: bool) -> Result<()> {
        loop {
            let error = match self.try_keep(deletes) {
                Err(error) if error.kind() == ErrorKind::Full => error,
                // Any other failure the flush meets again, and reports.
                _ => return Ok(()),
            };
            self.health.check_writable()?;
            if 0 < self.queue.len().1 {
                // It gives more back than it takes.
                self.wake.wait_for_room(FLUSH_WAIT);
            } else if !self.free_space()? && !self.flush_for_room()? {
                return self.refuse(deletes, error);
            }
        }
    }

    fn try_keep(&self, deletes: bool) -> Result<()> {
        self.count_buckets();
        self.keep_image_room()?;
        let left = if deletes { 0 } else { self.room_for_deletes() };
        let need = self.flush_need();
        debug_assert!(need <= with_more(need), "ahead of the need");
        let ahead = self.runs.keep(with_more(need), left);
        ahead.or_else(|_| self.runs.keep(need, left))
    }

    fn refuse(&self, deletes: bool, error: Error) -> Result<()> {
        assert_eq!(error.kind(), ErrorKind::Full, "nothing else is refused");
        // Merges do not wait for their pace now.
        self.refused.room.note(self.vfs.now());
        self.wake.work();
        if deletes && self.log.is_some() {
            return Ok(());
        }
        Err(error)
    }

    /// The image of the next checkpoint names the runs that were made since the last, those of the
    /// buffers, and new trees: its reserve grows with them.
    ///
    /// # Errors
    /// `Full`: the reserve is what could be had.
    pub(crate) fn keep_image_room(&self) -> Result<()> {
        let imaged = self.kept.imaged.load(Ordering::Relaxed);
        let made = self.catalog_changes().saturating_sub(imaged);
        let image = self.checkpoints.shown().image_bytes;
        let coming = self.kept.coming.load(Ordering::Relaxed) / WRITTEN_PER_BUFFER;
        let runs = made.saturating_mul(2) + self.filled_buffers() + coming;
        checkpoint::grow_reserve(&*self.file, &self.data_path(), &self.space, image, runs)
    }

    /// Whether the reserve is too short for what the next image has to name, which is less after a
    /// checkpoint.
    pub(super) fn lacks_image_room(&self) -> bool {
        let imaged = self.kept.imaged.load(Ordering::Relaxed);
        imaged < self.catalog_changes() && self.keep_image_room().is_err()
    }

    /// Flush everything: runs take less than the room that is kept for buffers; and make a
    /// checkpoint where the next image has too much to name for its reserve. False when there is
    /// nothing to do, that fails for lack of space, or a commit lacked room a moment ago.
    pub(super) fn flush_for_room(&self) -> Result<bool> {
        let now = self.vfs.now();
        if self.refused.room.is_recent(now) {
            return Ok(false);
        }
        let lacks = self.lacks_image_room();
        if self.memory.buffered() == 0 && !lacks {
            return Ok(false);
        }
        self.refused.room.note(now);
        let flushed = match &self.log {
            Some(_) if lacks => self.flush().and_then(|()| self.checkpoint()),
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

    /// A flush has ended, one way or the other: keep what the others need, and more for those that
    /// come as far as that is granted.
    pub(super) fn settle_room(&self) {
        let need = self.flush_need();
        let ahead = self.space.keep(with_more(need), self.room_for_deletes());
        if ahead.is_err() {
            self.space.still_keep(need);
        }
    }

    /// Changes counted so far.
    pub(super) fn changes_counted(&self) -> u64 {
        self.counters.puts.get() + self.counters.deletes.get()
    }

    /// All buffers were frozen when `changes` were counted.
    pub(super) fn emptied_at(&self, changes: u64) {
        self.kept.emptied.store(changes, Ordering::Relaxed);
    }

    /// A number that grows whenever the next image has more to name.
    pub(super) fn catalog_changes(&self) -> u64 {
        self.changes() + self.kept.trees.load(Ordering::Relaxed)
    }

    /// An image has the catalog as of change number `catalog_changes`.
    pub(super) fn imaged_through(&self, catalog_changes: u64) {
        self.kept.imaged.store(catalog_changes, Ordering::Relaxed);
    }

    /// Bytes that the flush of all buffers takes at most.
    fn flush_need(&self) -> u64 {
        let coming = self.kept.coming.load(Ordering::Relaxed);
        coming + flushed_at_most(self.memory.buffered() as u64, self.filled_buffers())
    }

    /// Buffers that have anything in them, at most, each counted once for every bucket it is of.
    fn filled_buffers(&self) -> u64 {
        if self.memory.buffered() == 0 {
            return 0;
        }
        let kept = &self.kept;
        let emptied = kept.emptied.load(Ordering::Relaxed);
        let since = self.changes_counted().checked_sub(emptied);
        let active = kept.buckets.load(Ordering::Relaxed);
        active.min(since.unwrap_or(u64::MAX)) + kept.frozen.load(Ordering::Relaxed)
    }

    /// What puts leave.
    fn room_for_deletes(&self) -> u64 {
        let stored = self.space.used_bytes();
        let flushes = WRITTEN_PER_BYTE * self.tuning.buffers as u64 / DELETES_PART
            + WRITTEN_PER_BUFFER * DELETES_BUFFERS;
        let merge = (MERGE_BUCKETS * self.options.bucket()).min(stored);
        flushes.min(stored / STORED_PART) + merge
    }

    /// Count the buckets, of dropped trees too that are still read.
    fn count_buckets(&self) {
        let count = |tree: &Arc<Tree>| tree.routing().buckets().len() as u64;
        let live: u64 = self.catalog.all().iter().map(count).sum();
        let lingering = self.catalog.lingering();
        let lingering: u64 = lingering.iter().map(|(tree, _)| count(tree)).sum();
        let all = live + lingering;
        self.kept.buckets.store(all, Ordering::Relaxed);
    }
}

/// Bytes that a flush of `memory` bytes in this many buffers takes at most.
pub(super) fn flushed_at_most(memory: u64, buffers: u64) -> u64 {
    WRITTEN_PER_BYTE * memory + WRITTEN_PER_BUFFER * buffers
}

/// What is asked for where `need` bytes are needed.
fn with_more(need: u64) -> u64 {
    need + need / AHEAD_PART + AHEAD
}

//! Commits larger than what is planned, logged and applied in one piece: streamed in chunks, so
//! that memory stays within its limit however large the commit is.
//!
//! 1. Take the turn: until it is given back no other commit gets in, but flushes, merges and
//!    readers continue. The commit lock is held for a chunk at a time only.
//! 2. Check for conflicts.
//! 3. Log every chunk as a record with a number of its own: parts, the last one marked.
//! 4. Apply every chunk under its number, making room by flushing where memory is full, and sleep
//!    before each for the merges that it costs ([`crate::work`], `pace`).
//! 5. Publish the number of the last: readers see all of it from then on, and saw nothing before.
//!
//! - I1. Nothing is applied before all is logged, so a failure before leaves nothing behind but
//!   parts without an end, which recovery passes over.
//! - I2. What is logged is applied: a flush that fails meanwhile makes the memory limit give way,
//!   not the commit. Only if the changes cannot be read a second time the store is closed for
//!   writes; opening it again applies them from the log.
//! - I3. The numbers of a bulk commit are above every snapshot there is until the last is
//!   published, and flushes and merges keep versions above what is visible as they are.
//! - I4. With a log, a checkpoint may be made meanwhile: it captures half of the commit, but the
//!   log is kept from the first part on (nothing above the visible commit is released), and is
//!   synced up to the last part before the image is written. Without a log there would be only the
//!   half, so checkpoints are held off.

use std::time::Duration;

use stdx::sync::{MutexGuard, lock_announced};

use super::commit::{RECORD_BATCH, RECORD_LAST, RECORD_PART};
use super::core::{Committer, Core};
use super::plan::Plan;
use crate::error::{Error, ErrorKind, Result};
use crate::log::Position;
use crate::types::{Batch, Change, Durability, Seq, TreeId};
use crate::work::Ask;

/// Wait for flushes of other threads between two checks.
const ROOM_WAIT: Duration = Duration::from_millis(1);

/// Changes that can be iterated several times with the same result.
pub(crate) trait Changes {
    /// Pass all changes to `out`, in order.
    fn pass(&self, out: &mut Chunks<'_>) -> Result<()>;
}

/// Receives a chunk, and whether it is the last.
type Take<'a> = &'a mut dyn FnMut(&Batch, bool) -> Result<()>;

/// Divides changes into chunks: non-empty batches without range deletes.
pub(crate) struct Chunks<'a> {
    batch: Batch,
    most: usize,
    take: Take<'a>,
}

impl<'a> Chunks<'a> {
    fn each(changes: &dyn Changes, most: usize, take: Take<'a>) -> Result<()> {
        let batch = Batch::new();
        let mut chunks = Chunks { batch, most, take };
        changes.pass(&mut chunks)?;
        if chunks.batch.is_empty() {
            return Ok(());
        }
        (chunks.take)(&chunks.batch, true)
    }

    /// Add a put.
    pub(crate) fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.make_room()?;
        self.batch.put(tree, key, value);
        Ok(())
    }

    /// Add a delete.
    pub(crate) fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.make_room()?;
        self.batch.delete(tree, key);
        Ok(())
    }

    fn make_room(&mut self) -> Result<()> {
        if self.batch.payload().len() < self.most {
            return Ok(());
        }
        (self.take)(&self.batch, false)?;
        self.batch.clear();
        Ok(())
    }
}

/// The exclusive right to commit, held for longer than the commit lock.
struct Turn<'a> {
    core: &'a Core,
    /// The newest commit when the right was acquired.
    last: Seq,
}

impl<'a> Turn<'a> {
    fn take(core: &'a Core) -> Turn<'a> {
        let mut committer = core.committer();
        committer.bulk = true;
        let last = committer.last;
        Turn { core, last }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut committer = self.core.commit.lock();
        assert!(committer.bulk, "a turn is given back once");
        committer.bulk = false;
        self.core.turn.notify_all();
    }
}

impl Core {
    /// Acquire the commit lock for a commit; waits for the end of a bulk commit.
    pub(crate) fn committer(&self) -> MutexGuard<'_, Committer> {
        // It may be held while the log is written.
        let mut committer = lock_announced(&self.commit);
        while committer.bulk {
            self.turn.wait(&mut committer);
        }
        committer
    }

    /// Commit `changes` in chunks if `check`, which gets the newest commit, succeeds. Other commits
    /// wait meanwhile.
    pub(crate) fn commit_bulk(
        &self,
        changes: &dyn Changes,
        ask: &Ask,
        durability: Durability,
        check: &mut dyn FnMut(Seq) -> Result<()>,
    ) -> Result<()> {
        self.check_durability(durability)?;
        self.health.check_writable()?;
        let held_off = self.log.is_none().then(|| self.checkpoints.hold());
        let turn = Turn::take(self);
        self.health.check_writable()?;
        if !ask.may_be_more() {
            self.check_room(ask)?;
        }
        check(turn.last)?;
        if ask.may_be_more() {
            // Before any of it is in the log.
            self.measure(changes, ask)?;
            self.check_room(ask)?;
        }
        let (chunks, position) = self.log_chunks(changes, ask, turn.last)?;
        if self.log.is_none() {
            // Nothing was logged, and how much it is was not known before.
            self.check_room(ask)?;
        }
        if chunks == 0 {
            drop(turn);
            return self.make_past_durable(durability);
        }
        self.apply_chunks(changes, turn.last, chunks)
            .map_err(|e| unreadable(&e))
            .inspect_err(|e| self.health.poison(e))?;
        self.counters.commits.add(1);
        drop(turn);
        drop(held_off);
        self.make_durable(position, durability)
    }

    /// Find out how much `changes` are, and how many buckets they go to if that matters.
    fn measure(&self, changes: &dyn Changes, ask: &Ask) -> Result<()> {
        let (mut bytes, mut buckets) = (0, 0);
        Chunks::each(changes, self.tuning.chunk, &mut |batch, _| {
            bytes += batch.payload().len();
            if ask.is_alone() {
                // One that two chunks go to counts twice.
                buckets += Plan::new(self, batch.ops(), batch.len())?.buckets();
            }
            Ok(())
        })?;
        ask.is_really(bytes);
        if ask.is_alone() {
            ask.touches(buckets);
        }
        Ok(())
    }

    /// Log all chunks; returns their number and the position of the last.
    fn log_chunks(
        &self,
        changes: &dyn Changes,
        ask: &Ask,
        last: Seq,
    ) -> Result<(u64, Option<Position>)> {
        let (mut chunks, mut position, mut bytes) = (0, None, 0);
        let logged = Chunks::each(changes, self.tuning.chunk, &mut |batch, end| {
            self.check_trees(batch)?;
            bytes += batch.payload().len();
            let index = u32::try_from(chunks).expect("chunks are large");
            let kind = if end { RECORD_LAST } else { RECORD_PART };
            let seq = Seq(last.0 + chunks + 1);
            position = if end && index == 0 {
                self.append(seq, &[&[RECORD_BATCH], batch.payload()])?
            } else {
                self.append(seq, &[&[kind], &index.to_le_bytes(), batch.payload()])?
            };
            chunks += 1;
            Ok(())
        });
        if logged.is_err() && self.log.is_some() && 0 < chunks {
            // I1: the numbers of the parts are used, with nothing behind them.
            let mut committer = self.commit.lock();
            committer.last = Seq(last.0 + chunks);
            self.snapshots.publish(committer.last);
        }
        ask.is_really(bytes);
        logged.map(|()| (chunks, position))
    }

    /// Refuse changes of dropped trees. No tree can be dropped during the turn.
    fn check_trees(&self, batch: &Batch) -> Result<()> {
        let mut checked = None;
        for change in batch.ops() {
            let tree = match change {
                Change::Put { tree, .. } | Change::Delete { tree, .. } => tree,
                Change::DeleteRange { .. } => unreachable!("range deletes are expanded before"),
            };
            if checked != Some(tree) {
                self.catalog.tree(tree)?;
                checked = Some(tree);
            }
        }
        Ok(())
    }

    /// Apply all logged chunks and publish them.
    fn apply_chunks(&self, changes: &dyn Changes, last: Seq, chunks: u64) -> Result<()> {
        let mut seq = last;
        Chunks::each(changes, self.tuning.chunk, &mut |batch, _| {
            seq = Seq(seq.0 + 1);
            self.make_bulk_room();
            self.slow_chunk(batch.payload().len());
            let mut committer = self.commit.lock();
            let plan = Plan::new(self, batch.ops(), batch.len())?;
            self.apply(&plan, seq);
            committer.last = seq;
            self.freeze_when_full(seq);
            let counts = batch.counts();
            self.counters.puts.add(counts.puts as u64);
            self.counters.deletes.add(counts.deletes as u64);
            self.counters.user_bytes.add(batch.payload().len() as u64);
            Ok(())
        })?;
        assert_eq!(seq.0, last.0 + chunks, "what is applied is what was logged");
        let committer = self.commit.lock();
        assert_eq!(committer.last, seq, "no other commit gets in during a turn");
        self.snapshots.publish(seq);
        Ok(())
    }

    /// Flush until there is room, as far as that is possible (I2).
    fn make_bulk_room(&self) {
        while self.memory.is_full() {
            match self.flush_one() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => return self.health.worry(&error),
            }
            if self.freeze_fullest() {
                continue;
            }
            if self.queue.is_idle() {
                return;
            }
            self.wake.wait_for_room(ROOM_WAIT);
        }
    }
}

/// I2: logged, and not to be read a second time.
fn unreadable(error: &Error) -> Error {
    let message = format!(
        "a commit is in the log but could not be applied ({error}); open the store again, which \
         applies it"
    );
    Error::new(ErrorKind::Io, message)
}

//! How a commit becomes durable and visible.
//!
//! 1. Outside of any lock: wait if memory is filling ([`super::memory`]), plan where each operation
//!    goes ([`super::plan`]).
//! 2. Under the commit lock: take the next number; append to the log's buffer in memory; push into
//!    the buffers of the buckets; let readers see it; freeze buffers that are full.
//! 3. Outside again: wait until the log is durable, as the level asks.
//!
//! A commit beyond a size is done in chunks instead ([`super::bulk`]).
//!
//! - I1. Commits are numbered, logged, applied and made visible in one order.
//! - I2. What cannot be logged is not applied: an error from step 2 leaves nothing behind.

use std::sync::Arc;
use std::time::Duration;

use super::core::{Committer, Core};
use super::expand::Expanded;
use super::plan::Plan;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{COMMIT_MAX, KEY_MAX, VALUE_MAX};
use crate::log::Position;
use crate::plant::{Plant, planted};
use crate::types::{Batch, Durability, Seq};
use crate::work::Ask;

/// The first byte of a log record, which states its kind.
pub(crate) const RECORD_BATCH: u8 = 1;
/// The creation of a tree.
pub(crate) const RECORD_CREATE: u8 = 2;
/// The drop of a tree.
pub(crate) const RECORD_DROP: u8 = 3;
/// A chunk of a bulk commit other than the last: its index (4 bytes, little-endian), then a batch.
pub(crate) const RECORD_PART: u8 = 4;
/// The last chunk, in the same form. Without it the preceding chunks are ignored.
pub(crate) const RECORD_LAST: u8 = 5;

/// Wait of a commit for room between two checks.
const ROOM_WAIT: Duration = Duration::from_millis(10);

/// A check made under the commit lock, before anything is logged.
pub(crate) type Check<'a> = &'a mut dyn FnMut(&Committer) -> Result<()>;

impl Core {
    /// Commit a batch.
    pub(crate) fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        if batch.is_empty() {
            self.check_durability(durability)?;
            return self.health.check_writable();
        }
        if batch.counts().range_deletes == 0 && batch.payload().len() <= self.tuning.bulk {
            return self.commit(batch, durability, &mut |_| Ok(())).map(|_| ());
        }
        check_sizes(batch)?;
        let ask = match batch.counts().range_deletes {
            0 => Ask::new(batch.payload().len(), mostly_deletes(batch)),
            _ => Ask::at_least(batch.payload().len(), mostly_deletes(batch)),
        };
        self.wait_for_room(batch.payload().len(), mostly_deletes(batch))?;
        // What fails for lack of space has failed before anything was applied.
        self.with_room(&ask, || {
            let changes = Expanded::new(self, batch);
            self.commit_bulk(&changes, &ask, durability, &mut |last| {
                changes.look(last);
                Ok(())
            })
        })?;
        self.counters
            .range_deletes
            .add(batch.counts().range_deletes as u64);
        Ok(())
    }

    /// Commit `batch`, which has no range deletes, if `check` succeeds.
    pub(crate) fn commit(
        &self,
        batch: &Batch,
        durability: Durability,
        check: Check<'_>,
    ) -> Result<Seq> {
        self.check_durability(durability)?;
        self.health.check_writable()?;
        check_sizes(batch)?;
        let mut plan = Plan::new(self, batch.ops(), batch.len())?;
        self.wait_for_memory(batch)?;
        let ask = Ask::new(batch.payload().len(), mostly_deletes(batch));
        let (seq, position) = self.with_room(&ask, || {
            let mut committer = self.committer();
            self.health.check_writable()?;
            if !plan.is_current(self)? && !planted(Plant::StalePlan) {
                plan = Plan::new(self, batch.ops(), batch.len())?;
            }
            if ask.is_alone() {
                ask.touches(plan.buckets());
            }
            self.check_room(&ask)?;
            check(&committer)?;
            let position = self.enter(&mut committer, batch, &plan)?;
            Ok((committer.last, position))
        })?;
        self.make_durable(position, durability)?;
        Ok(seq)
    }

    /// Log, apply and publish, under the commit lock, with a current plan.
    fn enter(
        &self,
        committer: &mut Committer,
        batch: &Batch,
        plan: &Plan<'_>,
    ) -> Result<Option<Position>> {
        assert!(!committer.bulk, "no other commit begins during a turn");
        debug_assert_eq!(batch.counts().range_deletes, 0, "they were written out");
        let seq = Seq(committer.last.0 + 1);
        let position = self.append(seq, &[&[RECORD_BATCH], batch.payload()])?;
        assert!(
            position.is_none_or(|it| it.0 == seq),
            "I1: logged under its number"
        );
        if planted(Plant::VisibleBeforeApplied) {
            self.snapshots.publish(seq);
        }
        self.apply(plan, seq);
        committer.last = seq;
        if !planted(Plant::VisibleBeforeApplied) {
            self.snapshots.publish(seq);
        }
        self.freeze_when_full(seq);
        self.counters.commits.add(1);
        let counts = batch.counts();
        self.counters.puts.add(counts.puts as u64);
        self.counters.deletes.add(counts.deletes as u64);
        self.counters.user_bytes.add(batch.payload().len() as u64);
        Ok(position)
    }

    /// Append a record to the log, if there is one, under the commit lock.
    pub(crate) fn append(&self, seq: Seq, parts: &[&[u8]]) -> Result<Option<Position>> {
        match &self.log {
            None => Ok(None),
            Some(log) => {
                let before = log.append_waited();
                let appended = log.append(seq, parts);
                // Appends run one at a time, so the increase is the wait of this one.
                let waited = log.append_waited().saturating_sub(before);
                if !waited.is_zero() {
                    self.counters.log_buffer.add(waited);
                }
                appended.map(Some).inspect_err(|e| {
                    if e.kind() != ErrorKind::Full {
                        self.health.poison(e);
                    }
                })
            }
        }
    }

    /// Push the operations of `plan` as commit `seq`, under the commit lock; freeze buffers that
    /// exceed the size of one flush.
    pub(crate) fn apply(&self, plan: &Plan<'_>, seq: Seq) {
        let most = self.tuning.buffer_max;
        let mut large = Vec::new();
        plan.apply(self, seq, |tree, bucket, bytes| {
            if most < bytes {
                large.push((Arc::clone(tree), Arc::clone(bucket)));
            }
        });
        for (tree, bucket) in large {
            self.freeze(&tree, &bucket, seq);
        }
    }

    /// For a delete that found nothing: an earlier commit may have removed the key. That commit
    /// must be as durable as the delete, or a crash would restore a key that was reported as
    /// missing.
    pub(crate) fn make_past_durable(&self, durability: Durability) -> Result<()> {
        let position = self.log.as_ref().map(|log| Position(log.appended()));
        self.make_durable(position, durability)
    }

    /// Wait until the log is durable up to `position`, as `durability` requires.
    pub(crate) fn make_durable(
        &self,
        position: Option<Position>,
        durability: Durability,
    ) -> Result<()> {
        let (Some(log), Some(position)) = (&self.log, position) else {
            return Ok(());
        };
        if durability < Durability::Group {
            let written = match durability {
                Durability::Interval => log.write_through(position),
                _ if self.has_threads() => Ok(()),
                _ => log.write_ready(),
            };
            written.inspect_err(|e| self.health.poison(e))?;
            if !self.has_threads() {
                log.prepare_ahead();
            }
            return Ok(());
        }
        if planted(Plant::AcknowledgeBeforeSync) {
            return Ok(());
        }
        let start = self.vfs.now();
        let result = log.sync_to(position);
        self.counters
            .log_sync
            .add(self.vfs.now().saturating_sub(start));
        result.inspect_err(|e| self.health.poison(e))?;
        if !self.has_threads() {
            log.prepare_ahead();
        }
        Ok(())
    }

    /// Make everything committed so far durable.
    pub(crate) fn sync_log(&self) -> Result<()> {
        self.health.check_writable()?;
        match &self.log {
            Some(log) => log.sync().inspect_err(|e| self.health.poison(e)),
            None => self.checkpoint(),
        }
    }

    /// Close. What was committed is durable when this returns, and no file of the store is written
    /// any more: transactions that are under way got in before, or are refused.
    ///
    /// # Errors
    /// As syncing the log; the store is closed all the same.
    pub(crate) fn shut_down(&self) -> Result<()> {
        self.crowd.close();
        self.merges.abandon(&self.space);
        let before = {
            // A bulk commit in progress ends first.
            let _committer = self.committer();
            let before = self.health.check_writable();
            self.health.close();
            before
        };
        let synced = before.and_then(|()| match &self.log {
            Some(log) => log.sync(),
            None => self.make_checkpoint(),
        });
        // Commits that wait for memory may be flushing.
        self.queue.close();
        while 0 < self.queue.len().1 {
            self.wake.wait_for_room(ROOM_WAIT);
        }
        // A checkpoint may be in progress; later ones are refused under its lock.
        self.checkpoints.wait();
        debug_assert!(
            self.health.check_open().is_err(),
            "no call is let in any more"
        );
        if let Some(log) = &self.log {
            log.close();
        }
        // Transactions may be spilling.
        self.gate.close();
        synced
    }

    /// Refuse a durability level that the store cannot provide.
    pub(crate) fn check_durability(&self, durability: Durability) -> Result<()> {
        if self.log.is_some() || durability == Durability::None {
            return Ok(());
        }
        let message =
            format!("durability {durability} without a log; commit at none, or open with a log");
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// Back-pressure: nothing while there is room, then ever longer sleeps, and at the limit a wait
    /// for room.
    fn wait_for_memory(&self, batch: &Batch) -> Result<()> {
        let bytes = batch.payload().len();
        if self.wait_for_room(bytes, mostly_deletes(batch))? {
            self.slow_down(bytes);
        }
        Ok(())
    }

    /// Wait until memory is not full. On a full disk there is no room to wait for: then commits of
    /// `bytes` that mostly delete may take as much again, since only they can make room, and false
    /// is returned.
    pub(crate) fn wait_for_room(&self, bytes: usize, mostly_deletes: bool) -> Result<bool> {
        let may_overdraw = |e: &Error| {
            let full = e.kind() == ErrorKind::Full;
            full && mostly_deletes && self.memory.overdraw(bytes)
        };
        while self.memory.must_wait() {
            self.health.check_writable()?;
            let start = self.vfs.now();
            if self.has_threads() {
                match self.flush_trouble() {
                    Some(e) if may_overdraw(&e) => return Ok(false),
                    Some(trouble) => return Err(trouble),
                    None => {}
                }
                self.wake.work();
                self.wake.wait_for_room(ROOM_WAIT);
            } else {
                match self.make_room() {
                    Err(e) if may_overdraw(&e) => return Ok(false),
                    made => made?,
                }
            }
            self.counters
                .memory_full
                .add(self.vfs.now().saturating_sub(start));
        }
        Ok(true)
    }
}

/// Whether a batch deletes at least as many keys as it puts.
fn mostly_deletes(batch: &Batch) -> bool {
    let counts = batch.counts();
    let deletes = counts.deletes + counts.range_deletes;
    0 < deletes && counts.puts <= deletes
}

fn check_sizes(batch: &Batch) -> Result<()> {
    let checks = [
        ("a commit", batch.payload().len(), COMMIT_MAX),
        ("a key", batch.longest_key(), KEY_MAX),
        ("a value", batch.longest_value(), VALUE_MAX),
    ];
    for (what, length, most) in checks {
        if most < length {
            let message = format!("{what} has at most {most} bytes, this one has {length}");
            return Err(Error::invalid(message));
        }
    }
    Ok(())
}

//! How a commit becomes durable and visible.
//!
//! 1. Outside of any lock: wait if memory is filling ([`super::memory`]), plan where each operation
//!    goes ([`super::plan`]).
//! 2. Under the commit lock: take the next number; append to the log's buffer in memory; push into
//!    the buffers of the buckets; let readers see it; freeze buffers that are full.
//! 3. Outside again: wait until the log is durable, as the level asks.
//!
//! - I1. Commits are numbered, logged, applied and made visible in one order.
//! - I2. What cannot be logged is not applied: an error from step 2 leaves nothing behind.

use std::sync::Arc;
use std::time::Duration;

use super::core::{Committer, Core};
use super::plan::Plan;
use crate::batch::Batch;
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::COMMIT_MAX;
use crate::log::Position;
use crate::types::Seq;

/// The first byte of a log record: what the rest is.
pub(crate) const RECORD_BATCH: u8 = 1;
/// A tree was created.
pub(crate) const RECORD_CREATE: u8 = 2;
/// A tree was dropped.
pub(crate) const RECORD_DROP: u8 = 3;

/// How long a commit waits for room before it looks again.
const ROOM_WAIT: Duration = Duration::from_millis(10);

/// A check made under the commit lock, before anything is logged.
pub(crate) type Check<'a> = &'a mut dyn FnMut(&Committer) -> Result<()>;

impl Core {
    /// Commit `batch`, which has no range deletes, if `check` agrees.
    pub(crate) fn commit(
        &self,
        batch: &Batch,
        durability: Durability,
        check: Check<'_>,
    ) -> Result<Seq> {
        self.check_durability(durability)?;
        self.health.check_writable()?;
        if COMMIT_MAX < batch.encoded().len() {
            let message = format!(
                "a commit has at most {COMMIT_MAX} bytes, this one {}; split it",
                batch.encoded().len()
            );
            return Err(Error::invalid(message));
        }
        let mut plan = Plan::new(self, batch)?;
        self.wait_for_memory(batch.encoded().len())?;
        let (seq, position) = {
            let mut committer = self.commit.lock();
            self.health.check_writable()?;
            if !plan.is_current(self)? {
                plan = Plan::new(self, batch)?;
            }
            check(&committer)?;
            let seq = Seq(committer.last.0 + 1);
            let position = self.append(seq, &[&[RECORD_BATCH], batch.encoded()])?;
            self.apply(&plan, seq);
            committer.last = seq;
            self.snapshots.publish(seq);
            self.freeze_when_full(&committer);
            (seq, position)
        };
        self.counters.commits.add(1);
        self.counters.user_bytes.add(batch.byte_len() as u64);
        self.make_durable(position, durability)?;
        Ok(seq)
    }

    /// Append a record to the log, if there is one. Under the commit lock.
    pub(crate) fn append(&self, seq: Seq, parts: &[&[u8]]) -> Result<Option<Position>> {
        match &self.log {
            None => Ok(None),
            Some(log) => log.append(seq, parts).map(Some).inspect_err(|e| {
                if e.kind() != ErrorKind::Full {
                    self.health.poison(e);
                }
            }),
        }
    }

    /// Push the operations of `plan` as commit `seq`, under the commit lock; freeze buffers that
    /// have grown beyond what one flush should take.
    pub(crate) fn apply(&self, plan: &Plan<'_>, seq: Seq) {
        let most = self.options.buffer_max();
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

    /// Wait until the log is durable up to `position`, as far as `durability` asks.
    pub(crate) fn make_durable(
        &self,
        position: Option<Position>,
        durability: Durability,
    ) -> Result<()> {
        let (Some(log), Some(position)) = (&self.log, position) else {
            return Ok(());
        };
        if durability < Durability::Group {
            return Ok(());
        }
        let start = self.vfs.now();
        let result = log.sync_to(position);
        self.counters.log_sync.add(self.vfs.now().saturating_sub(start));
        result.inspect_err(|e| self.health.poison(e))
    }

    /// Refuse a level that cannot be had.
    pub(crate) fn check_durability(&self, durability: Durability) -> Result<()> {
        if self.log.is_some() || durability == Durability::None {
            return Ok(());
        }
        let message = "opened without a log, so only durability none can be had; commit at none, \
                       or open with a log";
        Err(Error::invalid(message))
    }

    /// Back-pressure: nothing while there is room, then ever longer sleeps, and at the limit a wait
    /// for room.
    fn wait_for_memory(&self, bytes: usize) -> Result<()> {
        while self.memory.is_full() {
            self.health.check_writable()?;
            let start = self.vfs.now();
            if self.has_threads() {
                if let Some(trouble) = self.health.trouble() {
                    return Err(trouble);
                }
                self.wake.work();
                self.wake.wait_for_room(ROOM_WAIT);
            } else {
                self.make_room()?;
            }
            self.counters.memory_full.add(self.vfs.now().saturating_sub(start));
        }
        if !self.has_threads() {
            return Ok(());
        }
        // What a byte of the batch takes in a buffer, roughly: slots and growth.
        let pressure = self.memory.delay(bytes * 2);
        let debt = self.merge_delay(bytes);
        if let Some(sleep) = self.memory.owe(pressure + debt) {
            self.vfs.sleep(sleep);
            let wait = if debt < pressure {
                &self.counters.pressure
            } else {
                &self.counters.merge_debt
            };
            wait.add(sleep);
        }
        Ok(())
    }
}

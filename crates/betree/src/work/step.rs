//! One unit of background work, chosen by urgency.
//!
//! 1. Flush a frozen buffer: commits may be waiting for its memory.
//! 2. Sync the log, when the interval has passed.
//! 3. Make a checkpoint, when one is due.
//! 4. Freeze more, when memory or the log's length asks for it.
//! 5. Merge a slice, when the pace allows, a bucket must be merged, or the store is idle.
//!
//! What fails for lack of space does not keep the rest from being done, which may free some
//! ([`super::room`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::pick::Zeal;
use crate::db::Core;
use crate::error::{ErrorKind, Result};
use crate::types::Seq;

/// Minimum interval of checks whether the store is idle: a commit within this time means that it is
/// not.
const IDLE_AFTER: Duration = Duration::from_millis(100);

/// Time that a commit in a store without threads waits for flushes of other callers before it
/// checks again.
const ROOM_WAIT: Duration = Duration::from_millis(1);

/// A kind of work: false when there is none now.
type Work = fn(&Core) -> Result<bool>;

/// When each periodic task last ran, in nanoseconds of the store's clock.
#[derive(Default)]
pub(crate) struct Timers {
    synced: AtomicU64,
    asked_idle: AtomicU64,
    idle: AtomicU64,
    pub(super) looked: AtomicU64,
    /// The last flush for a put that found no room.
    pub(super) pressed: AtomicU64,
    /// The search for the most crowded bucket.
    pub(super) crowd: AtomicU64,
}

impl Timers {
    /// Whether the store considered itself idle at the last check.
    #[cfg(test)]
    pub(super) fn looks_idle(&self) -> bool {
        self.idle.load(Ordering::Relaxed) == 1
    }
}

/// Whether `period` has passed since `last`; if so, `last` is set to now, for one caller only.
pub(super) fn due(last: &AtomicU64, now: Duration, period: Duration) -> bool {
    let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    let before = last.load(Ordering::Relaxed);
    nanos(period) <= nanos(now).saturating_sub(before)
        && last
            .compare_exchange(before, nanos(now), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
}

impl Core {
    /// Do one unit of background work. Returns false if there is none.
    ///
    /// # Errors
    /// What the work failed on; it will be tried again, except after a failed sync.
    pub(crate) fn step(&self) -> Result<bool> {
        self.health.check_writable()?;
        let result = self.step_by_urgency();
        match &result {
            Ok(_) if !self.refused.flush.stands() => self.health.relax(),
            // The flush lacked space and other work was done: commits that wait must know.
            Ok(_) => {}
            Err(error) => self.health.worry(error),
        }
        result
    }

    fn step_by_urgency(&self) -> Result<bool> {
        let mut works: [Work; 6] = [
            Core::flush_or_free,
            Core::sync_step,
            Core::checkpoint_step,
            |core| Ok(core.freeze_if_asked()),
            |core| Ok(core.forget_dropped()),
            Core::merge_step,
        ];
        if self.refused.flush.is_recent(self.vfs.now()) {
            works.rotate_left(1);
        }
        let mut full = None;
        for work in works {
            match work(self) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) if error.kind() == ErrorKind::Full => full = full.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        full.map_or(Ok(false), Err)
    }

    fn sync_step(&self) -> Result<bool> {
        // A store with threads has one thread for the log alone.
        Ok(!self.has_threads() && self.sync_interval()?)
    }

    fn checkpoint_step(&self) -> Result<bool> {
        if !self.checkpoint_due() {
            return Ok(false);
        }
        let idle = self.idle_for_a_while();
        if idle {
            self.shrink_log()?;
        }
        self.checkpoint()?;
        if idle {
            self.give_memory_back();
        }
        Ok(true)
    }

    fn merge_step(&self) -> Result<bool> {
        // A store whose commits are refused does not look idle while they are tried again.
        let idle = self.idle_for_a_while() || self.refused.commit.stands();
        let zeal = if idle { Zeal::Idle } else { Zeal::Paced };
        let merged = self.merge_slice(|| self.pick_merge(zeal));
        Ok(self.or_free(merged)? || idle && self.tidy_after_changes())
    }

    fn idle_for_a_while(&self) -> bool {
        let timers = &self.timers;
        if due(&timers.asked_idle, self.vfs.now(), IDLE_AFTER) {
            timers
                .idle
                .store(u64::from(self.is_idle()), Ordering::Relaxed);
        }
        timers.idle.load(Ordering::Relaxed) == 1
    }

    /// Sync the log if its interval has passed.
    pub(crate) fn sync_interval(&self) -> Result<bool> {
        let Some(log) = &self.log else {
            return Ok(false);
        };
        if log.durable() == log.appended() {
            return Ok(false);
        }
        if !due(&self.timers.synced, self.vfs.now(), self.options.interval()) {
            return Ok(false);
        }
        log.sync().inspect_err(|e| self.health.poison(e))?;
        Ok(true)
    }

    fn freeze_if_asked(&self) -> bool {
        if self.memory.wants_freeze(self.space.used_bytes()) {
            return self.freeze_fullest();
        }
        let Some(log) = &self.log else {
            return false;
        };
        // The log may hold twice what checkpoints leave it before old buffers are made to move.
        if log.bytes_held() <= self.options.log_max() || !self.queue.is_idle() {
            return false;
        }
        let Some(oldest) = self.oldest_unflushed() else {
            return false;
        };
        // Half of what is only in memory, by age: the next checkpoint then frees that part of the
        // log.
        let newest = self.snapshots.visible();
        self.freeze_older_than(Seq(oldest.0 + (newest.0 - oldest.0.min(newest.0)) / 2 + 1));
        true
    }

    /// Release dropped trees that no snapshot sees any more.
    pub(crate) fn forget_dropped(&self) -> bool {
        if !self.catalog.has_dropped() {
            return false;
        }
        // Removed from the catalog and from the counters in one step.
        let committer = self.commit.lock();
        let forgotten = self
            .catalog
            .forgotten(self.snapshots.oldest(self.vfs.now()));
        for tree in &forgotten {
            self.forget_tree(&committer, tree);
        }
        !forgotten.is_empty()
    }

    /// Make room in the buffers of a store without threads.
    ///
    /// # Errors
    /// The device's: the commit that needs room cannot have it.
    pub(crate) fn make_room(&self) -> Result<()> {
        self.make_room_with(|| self.flush_or_free())
    }

    /// The same while the log is replayed, when no checkpoint can be made.
    ///
    /// # Errors
    /// The device's.
    pub(crate) fn make_replay_room(&self) -> Result<()> {
        self.make_room_with(|| self.flush_one())
    }

    fn make_room_with(&self, flush: impl FnOnce() -> Result<bool>) -> Result<()> {
        match flush() {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) if error.kind() == ErrorKind::Closed => return Err(error),
            Err(error) => {
                self.health.worry(&error);
                return Err(self.health.trouble().unwrap_or(error));
            }
        }
        if !self.freeze_fullest() {
            // Other threads are flushing all buffers, or a cut holds them back.
            self.wake.wait_for_room(ROOM_WAIT);
        }
        Ok(())
    }
}

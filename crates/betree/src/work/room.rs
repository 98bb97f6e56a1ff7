//! Room on a full disk: what is done before a lack of space is reported.
//!
//! What merges replaced, and log that no bucket needs, is on the disk until the next checkpoint.
//! So work that failed with `Full` makes a checkpoint if anything waits for one, and is tried again
//! ([`Core::or_free`], [`Core::or_freed`]). The checkpoint itself needs room for its image only,
//! which is kept in reserve ([`crate::space`]); without a log it needs room for a flush, too.
//! What commits must find before they are let in is the matter of [`super::admit`].
//!
//! - I1. Nothing here is called within a checkpoint or the turn of a bulk commit: a checkpoint may
//!   wait for either.
//! - I2. Commits that wait for memory fail for lack of space only when the flush does
//!   ([`Core::flush_trouble`]): what else lacks space does not keep memory full.

use std::time::Duration;

use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::db::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::types::Seq;

/// For how long what was refused for lack of space comes last instead of first, and is not tried
/// harder, so that what may free space is done meanwhile.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// How often space is freed for one piece of work. The first checkpoint may only set segments of
/// the log aside, which are removed the second time; and other work may take what was freed, once.
const FREED_MAX: usize = 4;

/// When some work was last refused for lack of space.
#[derive(Default)]
pub(crate) struct Refusal {
    /// Nanoseconds of the store's clock, and one; 0 when it was done since.
    at: AtomicU64,
}

/// What was refused for lack of space, by kind of work.
#[derive(Default)]
pub(crate) struct Refused {
    pub(super) flush: Refusal,
    pub(super) checkpoint: Refusal,
    /// Commits, until puts are let in again: what frees space is then merged as in an idle store.
    pub(super) commit: Refusal,
}

impl Refusal {
    pub(super) fn note(&self, now: Duration) {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.at.store(now.saturating_add(1), Ordering::Relaxed);
    }

    /// It was done, or there is nothing to do any more.
    pub(super) fn forget(&self) {
        if self.stands() {
            self.at.store(0, Ordering::Relaxed);
        }
    }

    /// Whether it has not been done since.
    pub(super) fn stands(&self) -> bool {
        self.at.load(Ordering::Relaxed) != 0
    }

    /// Whether that was a moment ago.
    pub(super) fn is_recent(&self, now: Duration) -> bool {
        let at = Duration::from_nanos(self.at.load(Ordering::Relaxed));
        self.stands() && now.saturating_sub(at) < PATIENCE
    }
}

impl Core {
    /// Flush one frozen buffer; on a full disk free what can be freed instead. False when nothing
    /// waits for a flush.
    ///
    /// # Errors
    /// As the flush: `Full` when nothing could be freed.
    pub(crate) fn flush_or_free(&self) -> Result<bool> {
        let flushed = self.flush_one();
        let flushed = self.or_free(flushed);
        match &flushed {
            Err(error) if error.kind() == ErrorKind::Full => {
                self.refused.flush.note(self.vfs.now());
                self.health.worry(error);
            }
            Ok(true) => self.refused.flush.forget(),
            Ok(false) if self.queue.len() == (0, 0) => self.refused.flush.forget(),
            _ => {}
        }
        flushed
    }

    /// The error of background work that keeps memory full (I2).
    pub(crate) fn flush_trouble(&self) -> Option<Error> {
        let trouble = self.health.trouble()?;
        let lasts = trouble.kind() != ErrorKind::Full || self.refused.flush.stands();
        lasts.then_some(trouble)
    }

    /// `done`; or that there was work, when it failed for lack of space and some was freed.
    pub(crate) fn or_free(&self, done: Result<bool>) -> Result<bool> {
        match done {
            Err(error) if error.kind() == ErrorKind::Full && self.free_room()? => Ok(true),
            done => done,
        }
    }

    /// What `attempt` gives; while it fails for lack of space and some can be freed, it is
    /// repeated, at most [`FREED_MAX`] times.
    ///
    /// # Errors
    /// Those of `attempt`.
    pub(crate) fn or_freed<T>(&self, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
        for _ in 0..FREED_MAX {
            match attempt() {
                Err(error) if error.kind() == ErrorKind::Full && self.free_room()? => {}
                done => return done,
            }
        }
        attempt()
    }

    /// Free what is neither data nor needed. False when there is no such thing.
    ///
    /// # Errors
    /// As a checkpoint, but `Full`.
    pub(crate) fn free_space(&self) -> Result<bool> {
        self.health.check_writable()?;
        if self.checkpoint_for_space()? {
            return Ok(true);
        }
        let Some(log) = &self.log else {
            return Ok(false);
        };
        let freed = log.give_up_spares()?;
        if freed {
            // It may have room now.
            self.refused.checkpoint.forget();
        }
        Ok(freed)
    }

    /// The same, and what is kept for flushes in excess of what they need, if other work lacks it.
    fn free_room(&self) -> Result<bool> {
        let released = self.runs.lacked_room() && self.release_excess();
        Ok(self.free_space()? || released)
    }

    /// Whether a checkpoint would free anything.
    pub(super) fn waits_for_checkpoint(&self) -> bool {
        if 0 < self.space.pending_bytes() {
            return true;
        }
        let Some(log) = &self.log else { return false };
        let next = Seq(self.snapshots.visible().0 + 1);
        log.could_release(self.oldest_unflushed().unwrap_or(next).min(next))
    }
}

//! Which commits are let in as the disk fills up.
//!
//! What is buffered must be flushed some day: without a log by the checkpoint that keeps it, with a
//! log by the one that releases the log. So room for a flush of all buffers is kept in the data
//! file *before* a commit is applied, and a commit that finds none is refused with `Full` while
//! there still is enough for what was accepted.
//!
//! ```text
//!  buffered bytes   0 ......................... ceiling
//!                   |  room for a flush is kept  |  commits ask for more, or are refused
//! ```
//!
//! Looking is one comparison; only the commit that reaches the ceiling counts the buffers, makes
//! the file grow and raises the ceiling. A flush lowers it by the bytes that it frees.
//!
//! Deletes are what frees space in the end. They are let in where puts are not: what puts must find
//! beyond the kept room is the *margin*, for one tombstone in each bucket and a merge. And they may
//! use a part of the log's reserve.
//!
//! What is kept suffices for a flush of as many bytes as the ceiling, in all buckets; both are
//! raised under the commit lock, where commits look. A commit is tried at most [`TRIES`] times.

use std::cell::Cell;

use stdx::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::db::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::plant::{Plant, planted};
use crate::types::UNIT;

/// How often a commit is tried: room, pending space, spare segments, a flush of everything and the
/// log's reserve may each be found once, and lost to another commit once.
const TRIES: usize = 10;

/// Least bytes by which the ceiling is raised for puts.
const STEP_MIN: usize = 64 << 10;

/// The part of the limit of the buffers by which the ceiling is raised: buffers are counted that
/// often while memory fills up.
const STEP_PART: usize = 16;

/// Bytes that a flush may need for a buffer beyond an eighth more than the buffer's bytes, for the
/// unused end of the run's last unit. The eighth is for headers, fences and filters; most buffers
/// need much less, because they count slots and unused memory, and runs are compressed.
const PER_BUFFER: u64 = UNIT;

/// Bytes of the margin besides those for the buckets.
const MARGIN_MIN: u64 = 64 << 10;

/// Part of the used bytes that the margin holds for a merge, at most a bucket.
const MERGE_PART: u64 = 8;

/// Up to how many buffered bytes room for a flush is kept.
#[derive(Default)]
pub(crate) struct Ceiling {
    bytes: AtomicUsize,
    /// Whether the last commit that asked for a step found no room for it.
    low: AtomicBool,
}

/// What a commit asks for.
pub(crate) struct Ask {
    /// Bytes of its keys and values, as far as they are known.
    /// 0: it takes no buffers.
    bytes: Cell<usize>,
    /// Whether it deletes at least as much as it puts.
    deletes: bool,
    /// Whether the last attempt was refused for lack of kept room, and not by the log.
    lacked: Cell<bool>,
}

/// Numbers of buffers, each of which a flush of everything makes a run.
#[derive(Default)]
struct Buffers {
    now: u64,
    /// When every bucket that holds anything has an active one.
    next: u64,
    /// Buckets that hold anything.
    buckets: u64,
}

impl Ask {
    /// Room for `bytes` of keys and values.
    pub(crate) fn new(bytes: usize, deletes: bool) -> Ask {
        Ask {
            bytes: Cell::new(bytes),
            deletes,
            lacked: Cell::new(false),
        }
    }

    /// It turned out to be `bytes`.
    pub(crate) fn is_really(&self, bytes: usize) {
        self.bytes.set(bytes.max(self.bytes.get()));
    }
}

impl Ceiling {
    /// Record that a flush has freed `bytes`.
    pub(crate) fn lower(&self, bytes: usize) {
        let less = |ceiling: usize| Some(ceiling.saturating_sub(bytes));
        let done = self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        debug_assert!(done.is_ok(), "it is always changed");
    }

    /// Record that what is kept is not known to suffice any more: the next commit counts.
    pub(crate) fn forget(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    fn raise(&self, to: usize) {
        self.bytes.store(to, Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    fn set_low(&self, low: bool) {
        self.low.store(low, Ordering::Relaxed);
    }
}

/// Room for a flush of `bytes` in `buffers` buffers.
fn cost(bytes: usize, buffers: u64) -> u64 {
    flush_bytes(bytes).saturating_add(buffers.saturating_mul(PER_BUFFER))
}

/// The same without what each buffer needs.
fn flush_bytes(bytes: usize) -> u64 {
    let bytes = bytes as u64;
    bytes.saturating_add(bytes / 8)
}

impl Core {
    /// Refuse a commit for which no room is kept, under the commit lock.
    ///
    /// # Errors
    /// `Full`: [`Core::with_room`] looks for room.
    #[inline]
    pub(crate) fn check_room(&self, ask: &Ask) -> Result<()> {
        let fits = self.fits(ask) || planted(Plant::CommitsNeedNoRoom);
        ask.lacked.set(!fits);
        match fits {
            true => Ok(()),
            false => Err(no_room()),
        }
    }

    #[inline]
    fn fits(&self, ask: &Ask) -> bool {
        self.with(ask) <= self.ceiling.get()
    }

    /// About what will be buffered with a commit: twice its bytes, for slots and unused memory, of
    /// what memory can hold at once. A bulk commit flushes the rest as it goes.
    #[inline]
    fn with(&self, ask: &Ask) -> usize {
        let bytes = ask.bytes.get();
        let more = bytes.saturating_add(bytes.min(self.tuning.buffers));
        self.memory.buffered().saturating_add(more)
    }

    /// What `attempt` gives. While it fails for lack of space and some can be found, it is
    /// repeated, at most [`TRIES`] times.
    ///
    /// # Errors
    /// Those of `attempt`, or of a checkpoint.
    pub(crate) fn with_room<T>(
        &self,
        ask: &Ask,
        mut attempt: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        for _ in 1..TRIES {
            match attempt() {
                Err(error) if error.kind() == ErrorKind::Full && self.make_way(ask)? => {}
                done => return done,
            }
        }
        attempt()
    }

    /// Find what a commit lacks: room for its flush, or space for the log. False if there is none.
    fn make_way(&self, ask: &Ask) -> Result<bool> {
        self.health.check_writable()?;
        // As the attempt found it, under the lock: another commit may have made room since.
        let lacks_room = ask.lacked.replace(false);
        if lacks_room && self.keep_room(ask)? || self.free_space()? {
            return Ok(true);
        }
        if lacks_room {
            return Ok(ask.deletes && self.flush_for_space()?);
        }
        let Some(log) = &self.log else {
            return Ok(false);
        };
        if log.has_older() && self.flush_for_space()? {
            return Ok(true);
        }
        log.draw_reserve(ask.bytes.get() as u64, ask.deletes)
    }

    /// Raise the ceiling for a commit, if there is room for a step and the margin, so that the next
    /// ones need not ask; else by what it needs. False if there is no room for that.
    ///
    /// While the last step found no room, deletes do not ask for one: it would take room that only
    /// they may use.
    fn keep_room(&self, ask: &Ask) -> Result<bool> {
        let step = STEP_MIN.max(self.tuning.buffers / STEP_PART);
        if !ask.deletes || !self.ceiling.is_low() {
            let raised = self.raise_ceiling(ask, step, true)?;
            self.ceiling.set_low(!raised);
            if raised {
                return Ok(true);
            }
        }
        self.raise_ceiling(ask, 0, !ask.deletes)
    }

    /// Raise it by `step` more than the commit needs, if there is room, and a margin beyond it.
    fn raise_ceiling(&self, ask: &Ask, step: usize, margin: bool) -> Result<bool> {
        let buffers = self.count_buffers();
        let merge = self
            .options
            .bucket()
            .min(self.space.used_bytes() / MERGE_PART);
        let margin = match margin {
            true => MARGIN_MIN + buffers.buckets * PER_BUFFER + merge,
            false => 0,
        };
        for _ in 0..TRIES {
            let missing = {
                // Not during a bulk commit, which has asked for all that it needs.
                let _committer = self.committer();
                if self.fits(ask) {
                    // Another commit has raised it.
                    return Ok(true);
                }
                let ceiling = self.with(ask).saturating_add(step);
                match self.space.keep(cost(ceiling, buffers.next), margin) {
                    Ok(()) => {
                        self.ceiling.raise(ceiling);
                        return Ok(true);
                    }
                    Err(length) => length,
                }
            };
            match self.runs.grow(missing) {
                Err(error) if error.kind() == ErrorKind::Full => return Ok(false),
                grown => grown?,
            }
        }
        Ok(false)
    }

    fn count_buffers(&self) -> Buffers {
        let mut found = Buffers::default();
        for (_, bucket) in self.buckets() {
            let state = bucket.state();
            let frozen = state.frozen.len() as u64;
            found.now += frozen + u64::from(0 < state.active.entries());
            if !state.is_empty() {
                found.buckets += 1;
                found.next += frozen + 1;
            }
        }
        // The first entry of an empty bucket.
        found.next += 1;
        found
    }

    /// Flush everything and make a checkpoint. False if nothing was buffered, or if there was no
    /// space for it.
    fn flush_for_space(&self) -> Result<bool> {
        if self.memory.buffered() == 0 {
            return Ok(false);
        }
        match self.flush().and_then(|()| self.checkpoint()) {
            Err(error) if error.kind() == ErrorKind::Full => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Account for a flush that has written runs of `drawn` bytes for a buffer of `bytes`, under
    /// the commit lock.
    pub(crate) fn settle_room(&self, bytes: usize, drawn: u64) {
        match flush_bytes(bytes).checked_sub(drawn) {
            Some(unused) => {
                self.ceiling.lower(bytes);
                self.space.keep_less(unused);
            }
            // Small runs take what is kept for the next buffers of their buckets.
            None => self.ceiling.forget(),
        }
    }

    /// Keep no more room than a flush of what is buffered now needs: others lack it, and the next
    /// commit asks again. False if no more is kept.
    pub(crate) fn release_excess(&self) -> bool {
        let needed = self.count_buffers();
        let committer = self.commit.lock();
        if committer.bulk {
            // It has asked for what it will buffer.
            return false;
        }
        let least = cost(self.memory.buffered(), needed.now);
        let kept = self.space.kept();
        if kept <= least {
            return false;
        }
        self.ceiling.forget();
        self.space.keep_less(kept - least);
        true
    }
}

fn no_room() -> Error {
    let message = "the disk is full: there is no room to flush another commit; free some space";
    Error::new(ErrorKind::Full, message)
}

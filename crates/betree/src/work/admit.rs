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
//! raised in one step under the commit lock, where commits look. What takes of the kept room more
//! than its bytes, or adds buffers, lowers the ceiling. A commit is tried at most [`TRIES`] times.

use std::cell::Cell;

use super::room::PATIENCE;
use super::step::due;
use crate::db::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::plant::{Plant, planted};
use crate::space::Margin;
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

/// Part of the used bytes that the margin holds for a merge, at most a bucket and a quarter, which
/// is how long a base may grow before it is cut.
const MERGE_PART: u64 = 8;

/// What a commit asks for.
pub(crate) struct Ask {
    /// Bytes of its keys and values, as far as they are known.
    /// 0: it takes no buffers.
    bytes: Cell<usize>,
    /// Whether it deletes at least as much as it puts.
    deletes: bool,
    /// Whether it may turn out to be more.
    more: bool,
    /// Maximum number of buckets that it writes to, as far as that is known.
    touches: Cell<u64>,
    /// Whether it asks for its own buffers only: there is no room for one in each bucket.
    alone: Cell<bool>,
    /// The length that the file must have for that, if it must grow.
    length: Cell<Option<u64>>,
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
            more: false,
            touches: Cell::new(u64::MAX),
            alone: Cell::new(false),
            length: Cell::new(None),
            lacked: Cell::new(false),
        }
    }

    /// Room for `bytes`, and for what range deletes turn out to be.
    pub(crate) fn at_least(bytes: usize, deletes: bool) -> Ask {
        Ask {
            more: true,
            ..Ask::new(bytes, deletes)
        }
    }

    /// Whether it may turn out to be more than it asked for so far.
    pub(crate) fn may_be_more(&self) -> bool {
        self.more
    }

    /// It turned out to be `bytes`.
    pub(crate) fn is_really(&self, bytes: usize) {
        self.bytes.set(bytes.max(self.bytes.get()));
    }

    /// It writes to at most this many buckets.
    pub(crate) fn touches(&self, buckets: usize) {
        self.touches.set(buckets as u64);
    }

    /// Whether the number of buckets that it writes to matters.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.get()
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
        let fits = self.fits(ask)
            || ask.is_alone() && self.keep_for(ask)
            || planted(Plant::CommitsNeedNoRoom);
        ask.lacked.set(!fits);
        match fits {
            true => Ok(()),
            false => Err(no_room()),
        }
    }

    #[inline]
    fn fits(&self, ask: &Ask) -> bool {
        self.with(ask) <= self.space.ceiling().get()
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
        if lacks_room && (self.keep_room(ask)? || self.may_ask_alone(ask)?) || self.free_space()? {
            return Ok(true);
        }
        if lacks_room {
            return self.make_way_by_flush(ask);
        }
        let Some(log) = &self.log else {
            return Ok(false);
        };
        if log.has_older() && self.flush_for_space()? {
            return Ok(true);
        }
        log.draw_reserve(ask.bytes.get() as u64, ask.deletes)
    }

    /// Whether a commit that deletes should be tried with room for its own buffers only, or for the
    /// file to be grown for them: a store of many small buckets may not have room for a buffer in
    /// each.
    fn may_ask_alone(&self, ask: &Ask) -> Result<bool> {
        if !ask.deletes {
            return Ok(false);
        }
        if !ask.alone.replace(true) {
            return Ok(true);
        }
        let Some(length) = ask.length.take() else {
            return Ok(false);
        };
        match self.runs.grow(length) {
            Err(error) if error.kind() == ErrorKind::Full => Ok(false),
            grown => grown.map(|()| true),
        }
    }

    /// Keep room for one commit, under the commit lock and before it is applied: the next one must
    /// ask again.
    #[cold]
    fn keep_for(&self, ask: &Ask) -> bool {
        let buffers = self.count_buffers();
        let more = ask.touches.get().min(buffers.next - buffers.now);
        let needed = cost(self.with(ask), buffers.now + more);
        let kept = self.space.keep(needed, Margin::Bytes(self.merge_room()), 0);
        ask.length.set(kept.err());
        kept.is_ok()
    }

    /// Flush what is buffered: tombstones free what they hide only when they are merged. For puts,
    /// which may be tried again and again on a disk that stays full, not more often than
    /// [`PATIENCE`]. When that is of no use, background work merges what frees space.
    fn make_way_by_flush(&self, ask: &Ask) -> Result<bool> {
        let may = ask.deletes || due(&self.timers.pressed, self.vfs.now(), PATIENCE);
        if may && self.flush_for_space()? {
            return Ok(true);
        }
        self.refused.commit.note(self.vfs.now());
        self.wake.work();
        Ok(false)
    }

    /// Raise the ceiling for a commit, if there is room for a step and the margin, so that the next
    /// ones need not ask; else by what it needs. False if there is no room for that.
    ///
    /// While the last step found no room, deletes do not ask for one: it would take room that only
    /// they may use.
    fn keep_room(&self, ask: &Ask) -> Result<bool> {
        let step = STEP_MIN.max(self.tuning.buffers / STEP_PART);
        if !ask.deletes || !self.space.ceiling().is_low() {
            let raised = self.raise_ceiling(ask, step, true)?;
            self.space.ceiling().set_low(!raised);
            if raised {
                self.refused.commit.forget();
                return Ok(true);
            }
        }
        let raised = self.raise_ceiling(ask, 0, !ask.deletes)?;
        if raised && !ask.deletes {
            self.refused.commit.forget();
        }
        Ok(raised)
    }

    /// Raise it by `step` more than the commit needs, if there is room, and a margin beyond it.
    fn raise_ceiling(&self, ask: &Ask, step: usize, margin: bool) -> Result<bool> {
        for _ in 0..TRIES {
            let missing = {
                // Not during a bulk commit, which has asked for all that it needs.
                let _committer = self.committer();
                if self.fits(ask) {
                    // Another commit has raised it.
                    return Ok(true);
                }
                // Counted under the lock: what freezes or splits meanwhile would lower nothing.
                let buffers = self.count_buffers();
                let margin = match margin {
                    true => Margin::AndClaims(self.margin(&buffers)),
                    false => Margin::Bytes(self.merge_room()),
                };
                let ceiling = self.with(ask).saturating_add(step);
                match self
                    .space
                    .keep(cost(ceiling, buffers.next), margin, ceiling)
                {
                    Ok(()) => return Ok(true),
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

    /// What puts must find beyond the kept room: a tombstone in each bucket, and a merge.
    fn margin(&self, buffers: &Buffers) -> u64 {
        MARGIN_MIN + buffers.buckets * PER_BUFFER + self.merge_room()
    }

    /// What deletes leave: without room for a merge nothing that they hide would be freed.
    fn merge_room(&self) -> u64 {
        let bucket = self.options.bucket() / 4 * 5;
        bucket.min(self.space.used_bytes() / MERGE_PART)
    }

    /// Keep room for what a replay has buffered, before merges can take it: all there is, if that
    /// is less.
    ///
    /// # Errors
    /// The device's, but `Full`.
    pub(crate) fn keep_replayed(&self) -> Result<()> {
        let buffered = self.memory.buffered();
        if buffered == 0 {
            return Ok(());
        }
        let needed = cost(buffered, self.count_buffers().next);
        while let Err(length) = self.space.keep(needed, Margin::Bytes(0), buffered) {
            match self.runs.grow(length) {
                Err(error) if error.kind() == ErrorKind::Full => {
                    self.space.keep_what_there_is(needed);
                    return Ok(());
                }
                grown => grown?,
            }
        }
        Ok(())
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
        let needed = flush_bytes(bytes);
        // Small runs take what is kept for the next buffers of their buckets.
        self.lower_ceiling(bytes, drawn.saturating_sub(needed));
        self.space.keep_less(needed.saturating_sub(drawn));
    }

    /// Account for a split that makes `frozen` more buffers of what is buffered, and lets `active`
    /// more begin, under the commit lock.
    ///
    /// # Errors
    /// The length that the file must have for it: a flush of what is buffered would lack room, and
    /// nothing has changed.
    pub(crate) fn split_buffers(&self, frozen: usize, active: usize) -> Result<(), u64> {
        let room = |buffers: usize| PER_BUFFER.saturating_mul(buffers as u64);
        let all = room(frozen + active);
        let left = (self.space.ceiling().get() as u64).saturating_sub(all);
        if self.memory.buffered() as u64 <= left {
            // What is kept suffices for that, too.
            self.lower_ceiling(0, all);
            return Ok(());
        }
        self.space.keep_more(room(frozen))?;
        self.lower_ceiling(0, room(active));
        Ok(())
    }

    /// Lower the ceiling by `bytes`, and by as much as `room` bytes of what is kept suffice for.
    fn lower_ceiling(&self, bytes: usize, room: u64) {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        self.space.ceiling().lower(bytes.saturating_add(room));
    }

    /// Let commits ask again, because what is kept did not suffice for a flush.
    pub(crate) fn forget_ceiling(&self) {
        let _committer = self.commit.lock();
        self.space.ceiling().forget();
    }

    /// What must be kept for a flush of what is buffered now.
    pub(super) fn least_kept(&self) -> u64 {
        cost(self.memory.buffered(), self.count_buffers().now)
    }

    /// Keep no more room than a flush of what is buffered now needs: others lack it, and the next
    /// commit asks again. False if no more is kept.
    pub(crate) fn release_excess(&self) -> bool {
        let committer = self.commit.lock();
        if committer.bulk {
            // It has asked for what it will buffer.
            return false;
        }
        let excess = self.space.kept().saturating_sub(self.least_kept());
        if excess < UNIT {
            return false;
        }
        self.space.ceiling().forget();
        self.space.keep_less(excess);
        true
    }
}

fn no_room() -> Error {
    let message = "the disk is full: there is no room to flush another commit; free some space";
    Error::new(ErrorKind::Full, message)
}

//! Room: what the file system has granted and nothing uses, and who may have it.
//!
//! The *room* is what is free below `backed`, without the reserve of the checkpoint. A part of it
//! is *kept* for flushes, so that what is buffered can be flushed though the disk is full
//! ([`Space::keep`]). Merges and writes of transactions may take the rest. When they need more
//! than that, the file grows. A part of the rest is *claimed* by merges in progress ([`claims`]).
//!
//! ```text
//!  granted:  used | pending | reserve | room: kept | claimed | rest
//!  image                      takes                  takes     takes
//!  flush                                takes        takes     takes
//!  merge                                             its own   takes
//!  others                                                      takes
//! ```
//!
//! [`claims`]: super::claims
//!
//! An extent that fits nowhere as a whole is given out in parts, so that only the sum counts.
//!
//! A merge holds its outputs and what they replace at once. So the room is short while it runs, and
//! its *taken* bytes count as if they were free where only a later merge needs them.
//!
//! - I6. `kept` is at most the room. What a flush takes of the room it takes of `kept`, and what it
//!   gives back is kept again.

use std::io;

use super::{Ceiling, Claim, Space, State, round_up};
use crate::plant::{Plant, planted};
use crate::types::{Extent, UNIT};

/// How far ahead of its use the file grows: an eighth of its length within these limits, so that a
/// small store stays small and a large one is allocated in long extents.
const GROW_MIN: u64 = 256 << 10;
const GROW_MAX: u64 = 32 << 20;

/// What an extent is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A flush may take all of the room.
    Flush,
    /// A merge leaves what is kept, and what other merges have claimed. What it has taken returns
    /// in the end: if it fails, at once; else what its outputs replace is freed
    /// ([`Space::end_merge`]).
    Merge(Claim),
    /// The writes of a transaction leave what is kept or claimed.
    Other,
}

/// What must be left beside what is kept for flushes. What merges in progress have taken counts as
/// a part of it, because it returns when they end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Margin {
    /// This number of bytes.
    Bytes(u64),
    /// This number of bytes, and what merges have claimed.
    AndClaims(u64),
}

impl Space {
    /// An extent of `len` bytes (not 0) for `purpose`, rounded up to whole units, that the file
    /// system has granted.
    ///
    /// # Errors
    /// The length that the file must have for it ([`Space::grow`]).
    pub(crate) fn take(&self, purpose: Purpose, len: u64) -> Result<Extent, u64> {
        self.change(|state| state.take_for(purpose, round_up(len)))
    }

    /// The longest extent of at most `len` bytes, rounded up to whole units, if the room has
    /// all of them for `purpose`, but not in one piece.
    pub(crate) fn take_part(&self, purpose: Purpose, len: u64) -> Option<Extent> {
        self.change(|state| state.take_part(purpose, round_up(len)))
    }

    /// Keep `kept` bytes of the room for flushes, in place of those kept so far, if the room has
    /// `margin` beyond them: that suffices for `ceiling` buffered bytes.
    ///
    /// # Errors
    /// The length that the file must have for it; nothing has changed then.
    pub(crate) fn keep(&self, kept: u64, margin: Margin, ceiling: usize) -> Result<(), u64> {
        let kept = round_up(kept);
        self.change(|state| {
            let least = kept.saturating_add(state.left_by(margin));
            let room = state.room();
            if room < least {
                return Err(state.length_for(least - room));
            }
            state.kept = kept;
            self.ceiling.raise(ceiling);
            Ok(())
        })
    }

    /// Keep `kept` bytes, or all the room there is if that is less: it is not known for how much
    /// that suffices.
    pub(crate) fn keep_what_there_is(&self, kept: u64) {
        self.change(|state| {
            state.kept = round_up(kept).min(state.room() / UNIT * UNIT);
            self.ceiling.forget();
        });
    }

    /// Keep `bytes` more for flushes, if the room has them.
    ///
    /// # Errors
    /// As [`Space::keep`].
    pub(crate) fn keep_more(&self, bytes: u64) -> Result<(), u64> {
        let bytes = round_up(bytes);
        self.change(|state| {
            let kept = state.kept.saturating_add(bytes);
            let (least, room) = (kept.saturating_add(state.claims.bytes()), state.room());
            if 0 < bytes && room < least {
                return Err(state.length_for(least - room));
            }
            state.kept = kept;
            Ok(())
        })
    }

    /// Claim `bytes` of the room for the outputs of a merge.
    ///
    /// # Errors
    /// The length that the file must have for it.
    pub(crate) fn claim(&self, bytes: u64) -> Result<Claim, u64> {
        let bytes = round_up(bytes);
        self.change(|state| {
            let others = state.kept_from_merges() + state.claims.bytes();
            let (least, room) = (others.saturating_add(bytes), state.room());
            if room < least {
                return Err(state.length_for(least - room));
            }
            Ok(state.claims.begin(bytes))
        })
    }

    /// Claim the rest of the room, if no other merge has a claim, and it is more than `failed`
    /// bytes. Returns its bytes, too.
    pub(crate) fn claim_rest(&self, failed: Option<u64>) -> Option<(Claim, u64)> {
        self.change(|state| {
            let rest = state.room() - state.kept_from_merges();
            let enough = failed.is_none_or(|failed| failed < rest);
            (enough && state.claims.is_empty()).then(|| (state.claims.begin(rest), rest))
        })
    }

    /// Whether a merge has a claim.
    pub(crate) fn is_claimed(&self) -> bool {
        !self.state.lock().claims.is_empty()
    }

    /// The merge of `claim` takes no more.
    pub(crate) fn end_claim(&self, claim: Claim) {
        self.change(|state| state.claims.end(claim));
    }

    /// Keep `bytes`, rounded down to whole units, less for flushes.
    pub(crate) fn keep_less(&self, bytes: u64) {
        let units = bytes / UNIT * UNIT;
        self.change(|state| state.kept = state.kept.saturating_sub(units));
    }

    /// For how many buffered bytes that suffices.
    pub(crate) fn ceiling(&self) -> &Ceiling {
        &self.ceiling
    }

    /// Free extents as [`Space::discard`], which were taken for `purpose`.
    pub(crate) fn give_back(&self, purpose: Purpose, extents: &[Extent]) {
        self.change(|state| {
            for &extent in extents {
                state.leave_used(extent);
                state.free(extent);
                match purpose {
                    Purpose::Flush => state.kept += extent.len,
                    Purpose::Merge(claim) => {
                        state.merged(extent.len);
                        state.claims.put_back(claim, extent.len);
                    }
                    Purpose::Other => {}
                }
            }
        });
    }

    /// A merge has ended whose outputs take `bytes`: they have been discarded, or what they replace
    /// has been released.
    pub(crate) fn end_merge(&self, bytes: u64) {
        self.change(|state| state.merged(bytes));
    }

    /// Have the file system grant the file's bytes up to `length`, and some ahead if it can.
    ///
    /// # Errors
    /// Those of `allocate`, which is `File::allocate` (offset, length).
    pub(crate) fn grow(
        &self,
        length: u64,
        mut allocate: impl FnMut(u64, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let _length = self.length.lock();
        if length <= self.backed() {
            return Ok(());
        }
        let ahead = (length / 8).clamp(GROW_MIN, GROW_MAX) / UNIT * UNIT;
        // Nearly full: the required space may be available although the space ahead is not.
        self.grant(length + ahead, &mut allocate)
            .or_else(|_| self.grant(length, &mut allocate))
    }

    /// Bytes of the room that are kept for flushes.
    pub(crate) fn kept(&self) -> u64 {
        self.state.lock().kept
    }
}

impl State {
    /// Granted bytes that nothing uses, outside of the reserve.
    pub(super) fn room(&self) -> u64 {
        self.holes.bytes_below(self.backed) + self.tail()
    }

    /// Granted bytes behind the end.
    pub(super) fn tail(&self) -> u64 {
        self.backed.saturating_sub(self.end) / UNIT * UNIT
    }

    /// The length of the file at which the room is `more` bytes larger.
    pub(super) fn length_for(&self, more: u64) -> u64 {
        self.backed.max(self.end).saturating_add(more)
    }

    /// Bytes that a commit leaves.
    fn left_by(&self, margin: Margin) -> u64 {
        let (Margin::Bytes(bytes) | Margin::AndClaims(bytes)) = margin;
        let left = bytes.next_multiple_of(UNIT).saturating_sub(self.merging);
        match margin {
            Margin::Bytes(_) => left,
            Margin::AndClaims(_) => left.max(self.claims.bytes()),
        }
    }

    /// What merges leave for flushes.
    fn kept_from_merges(&self) -> u64 {
        match planted(Plant::MergesTakeKeptRoom) {
            true => 0,
            false => self.kept,
        }
    }

    /// Whether `len` bytes may be taken for `purpose`; else how many are missing.
    fn may_take(&self, purpose: Purpose, len: u64) -> Result<(), u64> {
        let left = match purpose {
            Purpose::Flush => 0,
            Purpose::Merge(claim) => self.kept_from_merges() + self.claims.others(claim, len),
            Purpose::Other if planted(Plant::SpillsTakeKeptRoom) => 0,
            Purpose::Other => self.kept + self.claims.bytes(),
        };
        let least = left.saturating_add(len);
        let room = self.room();
        if room < least {
            Err(least - room)
        } else {
            Ok(())
        }
    }

    /// Take `len` bytes for `purpose`; or the length that the file must have for it.
    fn take_for(&mut self, purpose: Purpose, len: u64) -> Result<Extent, u64> {
        if let Err(missing) = self.may_take(purpose, len) {
            // As a whole where the file ends, unless a hole is long enough.
            let whole = if self.holes.largest() < len {
                self.end.saturating_add(len)
            } else {
                0
            };
            return Err(self.length_for(missing).max(whole));
        }
        let Some(extent) = self.take_granted(len) else {
            return Err(self.end.saturating_add(len));
        };
        self.draw(purpose, extent);
        Ok(extent)
    }

    /// Take the longest piece that is free and at most `len` bytes, if `len` bytes may be taken.
    fn take_part(&mut self, purpose: Purpose, len: u64) -> Option<Extent> {
        self.may_take(purpose, len).ok()?;
        let longest = self.holes.largest().max(self.tail()).min(len);
        let extent = (0 < longest).then(|| self.take_granted(longest))??;
        self.draw(purpose, extent);
        Some(extent)
    }

    /// Merges have `bytes` less of what they took.
    fn merged(&mut self, bytes: u64) {
        assert!(bytes <= self.merging, "what a merge gives up it has taken");
        self.merging -= bytes;
    }

    fn draw(&mut self, purpose: Purpose, extent: Extent) {
        self.used += extent.len;
        match purpose {
            Purpose::Flush => self.kept = self.kept.saturating_sub(extent.len),
            Purpose::Merge(claim) => {
                self.merging += extent.len;
                self.claims.take(claim, extent.len);
            }
            Purpose::Other => {}
        }
        if planted(Plant::MergesTakeKeptRoom) || planted(Plant::SpillsTakeKeptRoom) {
            self.kept = self.kept.min(self.room());
        }
        assert!(self.kept <= self.room(), "I6: others leave what is kept");
    }
}

//! The allocator of the data file: which extents are in use, free, or waiting for a checkpoint.
//!
//! Extents are given out in units of 4 KiB, first fit at the lowest address, so that the data stays
//! at the front of the file and its end can be cut off. Nothing of this is on disk: at open it is
//! rebuilt from the extents that the image names ([`Space::rebuild`]).
//!
//! # Epochs
//! An extent that the last durable image names must not be overwritten before another image that
//! does not name it is durable. So [`Space::release`] marks extents as *pending* under the number
//! of the next checkpoint to begin; [`Space::begin_checkpoint`], called just before the image is
//! captured, returns that number and steps it; [`Space::finish_checkpoint`] frees what was released
//! under this number or an earlier one. What is released later waits for a later checkpoint, since
//! this image may name it. A checkpoint that failed is never finished, and the next one frees its
//! share. [`Space::discard`] is for extents that no image ever
//! named: they are free at once.
//!
//! # The reserve: a full disk must not prevent a checkpoint
//! A checkpoint writes one thing that needs space, the image (the superblock has its place). So an
//! extent as long as an image is kept aside, and only [`Space::allocate_reserved`] draws on it. For
//! the promise to hold on a full disk that extent must already be backed by blocks of the file
//! system: a reserve beyond what `File::allocate` has granted would be a hope. Hence `backed`, the
//! length up to which the file is known to be granted: it grows only by [`Space::grow`] and
//! [`Space::set_reserve`], which call `File::allocate` through a closure and count what succeeded.
//! When that fails the reserve is what can be had, and the caller gets `StorageFull`.
//!
//! The arithmetic: after a checkpoint of an image of `n` bytes, ask for `n + n / 4 + 64 KiB`: the
//! image grows by about 150 bytes for each new run, and a reserve is needed exactly when the disk
//! is full and nothing grows much. A checkpoint that drew on the reserve frees the image before it,
//! and [`Space::finish_checkpoint`] makes that the new reserve in the same step, before anyone else
//! can have it. So even on a full disk two extents as long as an image take turns; while there is
//! room there is a third, the reserve proper. Where no free extent is long enough the reserve
//! consists of several, so that what images leave between them is not lost to others.
//! What else is free and granted is divided by [`room`].
//!
//! # Invariants
//! - I1: `data_start + used + free + pending + reserved = end`, after every call.
//! - I2: no byte is in two of used, free, pending and reserved. What is freed lies below the end
//!   and overlaps nothing free, pending or reserved.
//! - I3: no hole ends at `end`: the end sinks instead.
//! - I4: the reserve lies below `backed`.
//! - I5: a pending extent's epoch is later than every durable one.
//! - I6: see [`room`].
//!
//! The mutex `state` guards all of it. It is a leaf: no other lock is taken under it, and no I/O
//! happens under it but the cut of the file's tail. The mutex `length` is taken before it by those
//! that change the file's length (`grow`, `set_reserve`, `cut`), and held across that I/O: of two
//! that ran at once, one could count as granted what the other has cut.

mod ceiling;
mod claims;
mod holes;
mod lowest;
mod pending;
mod rebuild;
mod room;

#[cfg(test)]
mod tests;

use std::io;

use stdx::sync::Mutex;

use self::ceiling::Ceiling;
pub(crate) use self::claims::Claim;
use self::claims::Claims;
use self::holes::Holes;
use self::pending::Pending;
pub(crate) use self::rebuild::Owner;
pub(crate) use self::room::{Margin, Purpose};
use crate::plant::{Plant, planted};
use crate::types::{Extent, UNIT};

/// The number of a checkpoint that was started, within the life of one [`Space`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(u64);

/// The state of the allocator at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) data_start: u64,
    pub(crate) end: u64,
    pub(crate) used: u64,
    /// In ascending order of offset.
    pub(crate) free: Vec<Extent>,
    /// In ascending order of offset.
    pub(crate) pending: Vec<Extent>,
    pub(crate) reserve: Vec<Extent>,
}

/// The allocator; see the module documentation.
#[derive(Debug)]
pub(crate) struct Space {
    /// Held while the file's length changes.
    length: Mutex<()>,
    state: Mutex<State>,
    /// Raised under `state`.
    ceiling: Ceiling,
}

#[derive(Debug)]
struct State {
    data_start: u64,
    /// The end of the last extent that is not free.
    end: u64,
    /// The length up to which the file system has allocated the file.
    backed: u64,
    used: u64,
    holes: Holes,
    pending: Pending,
    /// One extent, or several while no free extent is as long as the reserve should be.
    reserve: Vec<Extent>,
    /// Bytes of the room that only flushes may take.
    kept: u64,
    /// Bytes that merges in progress have taken.
    merging: u64,
    /// What they have asked for beyond that.
    claims: Claims,
    /// The next checkpoint to start: extents released now wait for it.
    epoch: Epoch,
}

impl Space {
    /// An allocator without used extents; the first usable byte is at `data_start`, a multiple of
    /// the unit.
    pub(crate) fn new(data_start: u64) -> Space {
        assert_eq!(data_start % UNIT, 0, "data begins at a whole unit");
        Space {
            length: Mutex::new(()),
            state: Mutex::new(State {
                data_start,
                end: data_start,
                backed: data_start,
                used: 0,
                holes: Holes::new(),
                pending: Pending::new(),
                reserve: Vec::new(),
                kept: 0,
                merging: 0,
                claims: Claims::default(),
                epoch: Epoch(1),
            }),
            ceiling: Ceiling::default(),
        }
    }

    /// An extent of `len` bytes (not 0), rounded up to whole units: the lowest that fits, else at
    /// the end of the file, granted or not. Never touches the reserve.
    #[cfg(test)]
    pub(crate) fn allocate(&self, len: u64) -> Extent {
        self.change(|state| state.allocate(round_up(len)))
    }

    /// The same for a checkpoint: what the file system has granted goes first, then the reserve,
    /// and only a request longer than that grows the file.
    pub(crate) fn allocate_reserved(&self, len: u64) -> Extent {
        self.change(|state| {
            let kept = state.kept;
            let extent = state.allocate_reserved(round_up(len));
            if state.kept < kept {
                // The image has outgrown its reserve, and goes first: commits must ask again.
                self.ceiling.forget();
            }
            extent
        })
    }

    /// Free extents, or whole units of them, that no image has ever referred to.
    pub(crate) fn discard(&self, extents: &[Extent]) {
        self.change(|state| {
            for &extent in extents {
                state.leave_used(extent);
                state.free(extent);
            }
        });
    }

    /// Free extents when the next checkpoint to start, or a later one, is durable.
    pub(crate) fn release(&self, extents: &[Extent]) {
        self.change(|state| {
            for &extent in extents {
                state.leave_used(extent);
                if planted(Plant::ReuseBeforePublish) {
                    state.free(extent);
                    continue;
                }
                state.pending.insert(extent, state.epoch);
            }
        });
    }

    /// To be called just before the image is captured: it names no extent released before.
    pub(crate) fn begin_checkpoint(&self) -> Epoch {
        self.change(|state| {
            let begun = state.epoch;
            state.epoch = Epoch(begun.0 + 1);
            begun
        })
    }

    /// Call it once the superblock durably names the image of `epoch`: extents released before that
    /// image become free, and so do `extents`, which held the image before it. The reserve is made
    /// `bytes` long, or as long as is possible without growing the file, before other callers can
    /// allocate the freed space.
    pub(crate) fn finish_checkpoint(&self, epoch: Epoch, extents: &[Extent], bytes: u64) {
        self.change(|state| {
            state.durable(epoch);
            for &extent in extents {
                state.leave_used(extent);
                state.free(extent);
            }
            // An error only means that it could be longer if the file grew.
            let _ = state.set_reserve(bytes);
        });
    }

    /// The same for tests that have no image; the reserve stays as it is.
    #[cfg(test)]
    pub(crate) fn checkpoint_durable(&self, epoch: Epoch) {
        self.finish_checkpoint(epoch, &[], self.reserved_bytes());
    }

    /// Keep `bytes` aside for [`Space::allocate_reserved`], in place of the reserve there is.
    /// `allocate` is `File::allocate` (offset, length), called when the file must grow for it.
    ///
    /// # Errors
    /// Those of `allocate`; the reserve is then as long as can be without growing the file, and not
    /// shorter than it was.
    pub(crate) fn set_reserve(
        &self,
        bytes: u64,
        mut allocate: impl FnMut(u64, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let _length = self.length.lock();
        // Retry: other callers may take what was just allocated before the reserve gets it.
        while let Err(length) = self.change(|state| state.set_reserve(bytes)) {
            self.grant(length, &mut allocate)?;
        }
        Ok(())
    }

    /// Have the file system grant the file's bytes up to `length`, if it has not: `allocate` is
    /// `File::allocate` (offset, length).
    ///
    /// # Errors
    /// Those of `allocate`.
    #[cfg(test)]
    pub(crate) fn back(
        &self,
        length: u64,
        mut allocate: impl FnMut(u64, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        if length <= self.backed() {
            return Ok(());
        }
        let _length = self.length.lock();
        self.grant(length, &mut allocate)
    }

    /// Under the lock `length`.
    fn grant(
        &self,
        length: u64,
        allocate: &mut impl FnMut(u64, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let backed = self.backed();
        if backed < length {
            allocate(backed, length - backed)?;
            self.change(|state| state.backed = length);
        }
        Ok(())
    }

    /// The length up to which the file system has allocated the file.
    pub(crate) fn backed(&self) -> u64 {
        self.state.lock().backed
    }

    /// Truncate the file to its end plus `keep` bytes, if it is longer: calls `set_len` with the
    /// new length, if there is something to cut.
    ///
    /// # Errors
    /// Those of `set_len`.
    pub(crate) fn cut(
        &self,
        keep: u64,
        set_len: impl FnOnce(u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let _length = self.length.lock();
        // Under the lock, because an extent allocated now could be written before the truncation
        // and be lost.
        let mut state = self.state.lock();
        let needed = state.kept.saturating_add(state.claims.bytes());
        let tail = needed.saturating_sub(state.holes.bytes());
        let length = state.end.saturating_add(round_up(keep.max(tail)));
        if state.backed <= length {
            return Ok(());
        }
        // Set first: after a failed truncation it is unknown what is still allocated.
        state.backed = length;
        state.check();
        set_len(length)
    }

    #[cfg(test)]
    /// The end of the last extent that is used, pending or reserved: the file may be truncated
    /// here.
    pub(crate) fn end(&self) -> u64 {
        self.state.lock().end
    }

    /// Free bytes below the end.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.state.lock().holes.bytes()
    }

    /// Bytes that wait for a checkpoint.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.state.lock().pending.bytes()
    }

    /// Bytes in use.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.state.lock().used
    }

    #[cfg(test)]
    /// Bytes reserved for a checkpoint.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.state.lock().reserved()
    }

    #[cfg(test)]
    /// The free extents in ascending order of offset.
    pub(crate) fn free_list(&self) -> Vec<Extent> {
        self.state.lock().holes.iter().collect()
    }

    /// The state at one moment.
    pub(crate) fn layout(&self) -> Layout {
        let state = self.state.lock();
        Layout {
            data_start: state.data_start,
            end: state.end,
            used: state.used,
            free: state.holes.iter().collect(),
            pending: state.pending.iter().collect(),
            reserve: state.reserve.clone(),
        }
    }

    /// Length of the longest free extent; 0 if there is none.
    pub(crate) fn largest_free(&self) -> u64 {
        self.state.lock().holes.largest()
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let result = change(&mut state);
        state.check();
        result
    }
}

impl State {
    fn allocate(&mut self, len: u64) -> Extent {
        let fit = self.holes.take(len, u64::MAX);
        let extent = fit.unwrap_or_else(|| self.append(len));
        self.used += len;
        if 0 < self.kept {
            self.kept = self.kept.min(self.room());
        }
        extent
    }

    fn allocate_reserved(&mut self, len: u64) -> Extent {
        // Claims are no obstacle: a reserve that shrinks ends all checkpoints, and so all merges.
        if self.kept.saturating_add(len) <= self.room()
            && let Some(extent) = self.take_granted(len)
        {
            self.used += len;
            return extent;
        }
        // The shortest that suffices: the next image may be longer.
        let pieces = self.reserve.iter_mut().filter(|piece| len <= piece.len);
        match pieces.min_by_key(|piece| piece.len) {
            Some(piece) => {
                let offset = piece.offset;
                piece.offset += len;
                piece.len -= len;
                self.reserve.retain(|piece| 0 < piece.len);
                self.used += len;
                Extent { offset, len }
            }
            None => self.allocate(len),
        }
    }

    /// `len` bytes that the file system has granted, outside of the reserve.
    fn take_granted(&mut self, len: u64) -> Option<Extent> {
        let hole = self.holes.take(len, self.backed);
        hole.or_else(|| {
            let fits = self.end.checked_add(len)? <= self.backed;
            fits.then(|| self.append(len))
        })
    }

    fn set_reserve(&mut self, bytes: u64) -> Result<(), u64> {
        let wanted = if bytes == 0 { 0 } else { round_up(bytes) };
        let old = std::mem::take(&mut self.reserve);
        let least: u64 = old.iter().map(|piece| piece.len).sum();
        if let [old] = *old
            && wanted <= old.len
        {
            // The front stays, so a reserve that is long enough is never moved.
            if 0 < wanted {
                self.reserve.push(Extent {
                    offset: old.offset,
                    len: wanted,
                });
            }
            if let Some(rest) = after(old, wanted) {
                self.free(rest);
            }
            return Ok(());
        }
        // Freed first, so that the new reserve may extend it in place.
        old.into_iter().for_each(|piece| self.free(piece));
        if wanted == 0 {
            return Ok(());
        }
        // I6: the old reserve was no part of the room, so the new one may be as long.
        let room = self.room();
        let most = (room - self.kept) / UNIT * UNIT;
        if wanted <= most
            && let Some(whole) = self.take_granted(wanted)
        {
            self.reserve.push(whole);
            return Ok(());
        }
        let missing = self.kept.saturating_add(wanted).saturating_sub(room);
        let length = self.length_for(missing);
        let length = length.max(self.end.saturating_add(wanted));
        self.reserve_pieces(wanted.min(most));
        assert!(
            least.min(wanted) <= self.reserved(),
            "I4: the old reserve was backed"
        );
        Err(length)
    }

    /// Reserve `bytes`, which the room has, in pieces as long as possible: what is not reserved now
    /// would be taken by others, and the reserve would be shorter with each image that draws on it.
    fn reserve_pieces(&mut self, bytes: u64) {
        let (mut missing, mut longest) = (bytes, bytes);
        while 0 < missing {
            let fits = self.holes.largest().max(self.tail());
            let len = fits.min(longest).min(missing);
            match self.take_granted(len) {
                Some(piece) => {
                    self.reserve.push(piece);
                    missing -= piece.len;
                }
                // The longest one is not granted.
                None => longest = len / 2 / UNIT * UNIT,
            }
            assert!(0 < longest, "I4: the room is granted");
        }
    }

    fn durable(&mut self, epoch: Epoch) {
        assert!(epoch < self.epoch, "I5: {epoch:?} has not begun");
        for extent in self.pending.take_up_to(epoch) {
            self.free(extent);
        }
    }

    /// Allocate `len` bytes at the end.
    fn append(&mut self, len: u64) -> Extent {
        let offset = self.end;
        let end = offset.checked_add(len);
        self.end = end.expect("a file has less than 2^63 bytes");
        Extent { offset, len }
    }

    /// Remove `extent` from the used ones; the caller makes it free or pending.
    fn leave_used(&mut self, extent: Extent) {
        assert!(UNIT <= extent.len, "{extent:?} is empty");
        assert_eq!(extent.offset % UNIT, 0, "{extent:?} begins within a unit");
        assert_eq!(extent.len % UNIT, 0, "{extent:?} ends within a unit");
        assert!(self.data_start <= extent.offset, "{extent:?} is no data");
        assert!(
            extent.end() <= self.end,
            "I2: {extent:?} was never given out"
        );
        assert!(
            !self.holes.overlaps(extent),
            "I2: {extent:?} is free already"
        );
        assert!(
            !self.pending.overlaps(extent),
            "I2: {extent:?} is released already"
        );
        let reserved = self.reserve.iter().any(|piece| overlap(*piece, extent));
        assert!(!reserved, "I2: {extent:?} is reserved");
        assert!(extent.len <= self.used, "I1: more freed than used");
        self.used -= extent.len;
    }

    /// Make `extent` free. If it is at the end of the file, lower the end instead.
    fn free(&mut self, extent: Extent) {
        self.holes.insert(extent);
        if let Some(last) = self.holes.take_ending_at(self.end) {
            self.end = last.offset;
        }
    }

    fn reserved(&self) -> u64 {
        self.reserve.iter().map(|piece| piece.len).sum()
    }

    /// Check the invariants that are cheap to check.
    fn check(&self) {
        let sum = self.used + self.holes.bytes() + self.pending.bytes() + self.reserved();
        assert_eq!(self.data_start + sum, self.end, "I1: bytes are lost");
        if 0 < self.kept {
            let room = self.room();
            assert!(self.kept <= room, "I6: {} kept of {room}", self.kept);
        }
        for piece in &self.reserve {
            assert!(piece.end() <= self.backed, "I4: the reserve is not backed");
        }
    }
}

/// The part of `extent` behind its first `len` bytes.
fn after(extent: Extent, len: u64) -> Option<Extent> {
    assert!(len <= extent.len, "{len} bytes of {extent:?}");
    (len < extent.len).then(|| Extent {
        offset: extent.offset + len,
        len: extent.len - len,
    })
}

fn overlap(a: Extent, b: Extent) -> bool {
    a.offset < b.end() && b.offset < a.end()
}

/// `len` rounded up to whole units. 0, or more than a file can have, is a bug of the caller.
fn round_up(len: u64) -> u64 {
    let rounded = len.checked_next_multiple_of(UNIT);
    rounded.expect("a file has less than 2^63 bytes")
}

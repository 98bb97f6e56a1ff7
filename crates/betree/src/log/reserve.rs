//! Files kept for opening the store on a full disk.
//!
//! Recovery continues in a new segment. When no space is left for one, the store could not be
//! opened, and so nothing could be deleted. So a log keeps a few small spare files that only
//! recovery uses. Each opening on a full disk takes at least one; they are made again, or come back
//! as segments are released, with the next checkpoint that finds space.
//!
//! A running log on a full disk may use more of them, so that commits can be logged until the
//! segments before are released: without that a log whose only segment is full could not continue.
//! Deletes may use all but one: without them nothing becomes better. What was used comes back,
//! because released segments of that length fill the reserve up, after one spare segment with which
//! a log of such segments can continue without it.
//!
//! - I1. Files of the reserve are spares like others after a crash: recovery knows them by length.

use crate::error::{Error, ErrorKind, Result};

use super::format::BLOCK;
use super::options::LogOptions;
use super::segment::{Place, Segment, Spare, spare_path};
use super::state::State;
use super::{Log, sites};

/// How many openings in a row may find the disk full.
const OPENINGS: usize = 4;

/// How many files of the reserve any commit may use.
const FOR_ALL: usize = 2;

/// How many deletes leave.
const LEAST: usize = 1;

/// Files of the reserve.
pub(super) const FILES: usize = OPENINGS + FOR_ALL;

/// Bytes of each: more than a log usually writes between two syncs, which is what recovery copies;
/// if it has to copy more, it tries to do without ([`super::proof`]).
const SIZE: u64 = 1 << 20;

impl LogOptions {
    /// Bytes of each file of the reserve.
    pub(super) fn reserve(&self) -> u64 {
        SIZE.min(self.first).max(2 * BLOCK)
    }
}

impl Log {
    /// Make what is missing of the reserve. A full disk, or any other failure, leaves it short; the
    /// next checkpoint tries again.
    pub(crate) fn keep_reserve(&self) {
        let size = self.options.reserve();
        loop {
            let number = {
                let mut state = self.state.lock();
                let enough = FILES <= state.reserve.len();
                if enough || state.preparing || state.poison.is_some() {
                    return;
                }
                let number = state.next_number;
                state.next_number += 1;
                number
            };
            let Ok(spare) = self.place().reserve(number, size) else {
                return;
            };
            let mut state = self.state.lock();
            assert!(spare.number < state.next_number, "I3: numbers rise");
            state.reserve.push(spare);
        }
    }

    /// Make the next segment from a file of the reserve, for a record of about `bytes`, unless
    /// there is one. False if the record does not fit, or if there are no more files than openings
    /// need; with `deletes`, one opening.
    ///
    /// # Errors
    /// As making a segment; `Closed`.
    pub(crate) fn draw_reserve(&self, bytes: u64, deletes: bool) -> Result<bool> {
        let mut state = self.state.lock();
        state.check()?;
        while state.preparing {
            self.moved.wait(&mut state);
            state.check()?;
        }
        let needed = bytes.saturating_add(4 * BLOCK);
        if state.ahead.front().is_some_and(|next| needed <= next.size) {
            // Another thread was faster.
            return Ok(true);
        }
        let least = if deletes { LEAST } else { OPENINGS };
        let fits = state.ahead.is_empty() && needed <= self.options.reserve();
        if !fits || state.reserve.len() <= least {
            return Ok(false);
        }
        let Some(spare) = state.reserve.pop() else {
            unreachable!("there are more than `least`");
        };
        self.prepare_from(&mut state, &spare)?;
        Ok(true)
    }

    /// Whether a file of `size` bytes completes the reserve, which has `files`.
    pub(super) fn is_of_reserve(&self, files: usize, size: u64) -> bool {
        files < FILES && size == self.options.reserve()
    }

    /// Whether a released segment of `size` bytes belongs to the reserve: the first one with which
    /// the log could continue becomes a spare segment instead.
    pub(super) fn lacks_reserve(&self, state: &State, size: u64) -> bool {
        let files = state.reserve.len();
        let continues = state.spares.is_empty() && size == state.usual;
        self.is_of_reserve(files, size) && (files < LEAST || !continues)
    }
}

impl Place<'_> {
    /// Make a spare file of `size` bytes whose space is granted.
    fn reserve(&self, number: u64, size: u64) -> Result<Spare> {
        let path = spare_path(self.directory, number);
        let io = |error| Error::io("making the reserve of the log", &path, error);
        let make = || {
            let file = self.open(sites::RESERVE, &path, true)?;
            file.allocate(sites::RESERVE_ALLOCATE, 0, size)
                .map_err(io)?;
            file.sync(sites::RESERVE_SYNC).map_err(io)?;
            self.vfs
                .sync_dir(sites::RESERVE_NAME, self.directory)
                .map_err(io)
        };
        if let Err(error) = make() {
            // What stays is a spare file of no use, which the next opening removes.
            let _ = self.vfs.remove(sites::RESERVE_REMOVE, &path);
            return Err(error);
        }
        Ok(Spare { number, path, size })
    }

    /// Make the segment that a recovered log begins with, of `size` bytes; of a full disk, from the
    /// longest spare file, as long as that is.
    ///
    /// # Errors
    /// `Full` when there is neither space nor a spare file; `Io`.
    pub(super) fn prepare_first(
        &self,
        number: u64,
        size: u64,
        spares: &mut Vec<Spare>,
    ) -> Result<Segment> {
        if let Some(at) = spares.iter().position(|spare| spare.size == size) {
            let spare = spares.swap_remove(at);
            return self.prepare(number, size, Some(&spare), false);
        }
        let made = self.prepare(number, size, None, false);
        if !made.as_ref().is_err_and(|e| e.kind() == ErrorKind::Full) {
            return made;
        }
        let longest = spares
            .iter()
            .enumerate()
            .max_by_key(|(_, spare)| spare.size);
        let Some(at) = longest.map(|(at, _)| at) else {
            return made;
        };
        let spare = spares.swap_remove(at);
        let size = spare.size - spare.size % BLOCK;
        assert!(2 * BLOCK <= size, "shorter files were removed before");
        self.prepare(number + 1, size, Some(&spare), false)
    }
}

/// Split off the reserve from what recovery found.
pub(super) fn reserve_of(spares: Vec<Spare>, size: u64) -> (Vec<Spare>, Vec<Spare>) {
    let (mut reserve, mut others): (Vec<Spare>, Vec<Spare>) =
        spares.into_iter().partition(|spare| spare.size == size);
    let more = reserve.len().min(FILES);
    others.extend(reserve.drain(more..));
    assert!(reserve.len() <= FILES, "the rest is for the running log");
    (reserve, others)
}

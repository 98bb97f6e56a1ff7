//! Creating segments ahead, and releasing old ones.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stdx::sync::MutexGuard;

use crate::error::{ErrorKind, Result};
use crate::types::Seq;

use super::Log;
use super::format::BLOCK;
use super::segment::{Segment, Spare, segment_path};
use super::state::{HURRY, State};

/// Number of spare segments kept for reuse: as many as a checkpoint releases at once with default
/// sizes, so that a steady load never creates new segments, whose blocks the file system must first
/// mark as written.
pub(super) const SPARES: usize = 4;

impl Log {
    /// Release the segments whose records are all older than `seq`: set aside or removed.
    ///
    /// Nothing is synced: a segment that comes back after a crash holds what it held, and recovery
    /// passes over records that are not asked for.
    ///
    /// # Errors
    /// `Io`; the file is then cleared away when the store is next opened.
    pub(crate) fn release_before(&self, seq: Seq) -> Result<()> {
        loop {
            let mut state = self.state.lock();
            let durable = state.durable;
            let Some(first) = state.held.front() else {
                unreachable!("the active segment is held");
            };
            // The active segment has no last record yet.
            if first.last.is_none_or(|last| seq <= last || durable < last) {
                return Ok(());
            }
            let Some(gone) = state.held.pop_front() else {
                unreachable!("seen under this lock");
            };
            assert!(!state.held.is_empty(), "the active segment is held");
            state.released = gone
                .last
                .map_or(state.released, |last| last.max(state.released));
            let reserved = self.lacks_reserve(&state, gone.size);
            let keep = gone.size <= state.usual && state.spares.len() < SPARES;
            drop(state);
            if reserved {
                let spare = self.place().recycle(gone.number, gone.size)?;
                self.state.lock().reserve.push(spare);
            } else if keep {
                let spare = self.place().recycle(gone.number, gone.size)?;
                self.state.lock().spares.push(spare);
            } else {
                let path = segment_path(&self.directory, gone.number);
                self.place().remove(&path)?;
            }
        }
    }

    /// Whether [`Log::release_before`] of `seq` would release anything, once all is durable.
    pub(crate) fn could_release(&self, seq: Seq) -> bool {
        let state = self.state.lock();
        let first = state.held.front();
        first.is_some_and(|first| first.last.is_some_and(|last| last < seq))
    }

    /// Whether a segment before the active one is held.
    pub(crate) fn has_older(&self) -> bool {
        1 < self.state.lock().held.len()
    }

    /// Remove the segments that were set aside, but one, and leave the reserve. False when there
    /// are none to remove.
    ///
    /// # Errors
    /// `Io`; the files are then cleared away when the store is next opened. `Closed`.
    pub(crate) fn give_up_spares(&self) -> Result<bool> {
        let spares = {
            let mut state = self.state.lock();
            state.check()?;
            let keep = state.spares.len().min(1);
            let gone = state.spares.split_off(keep);
            assert!(state.spares.len() <= 1, "one is left");
            gone
        };
        for Spare { path, .. } in &spares {
            self.place().remove(path)?;
        }
        Ok(!spares.is_empty())
    }

    /// Stop writing to any file: records that are not durable now are lost. Waits for the thread
    /// that is writing.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        while state.writing || state.syncing || state.preparing {
            let ends = if state.syncing {
                &self.synced
            } else {
                &self.moved
            };
            ends.wait(&mut state);
        }
        state.poison.get_or_insert_with(|| "closed".to_owned());
        self.moved.notify_all();
        self.synced.notify_all();
    }

    /// The last record that may have been released.
    pub(crate) fn released(&self) -> Seq {
        self.state.lock().released
    }

    /// All files: name, length, and whether recovery would read it; oldest first.
    pub(crate) fn files(&self) -> Vec<(String, u64, bool)> {
        let state = self.state.lock();
        let name = |path: &Path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        let here = Path::new("");
        let spares = state.spares.iter().chain(&state.reserve);
        let mut files: Vec<(String, u64, bool)> = spares
            .map(|spare| (name(&spare.path), spare.size, false))
            .collect();
        let held = state.held.iter();
        files.extend(held.map(|held| (name(&segment_path(here, held.number)), held.size, true)));
        let next = state.ahead.iter();
        files.extend(next.map(|next| (name(&next.path), next.size, false)));
        files
    }

    /// Be as small as a new log, as far as records allow: spare segments and those made ahead are
    /// removed, and the next record begins a small segment, so that a checkpoint releases the
    /// one before. It grows again under load.
    ///
    /// # Errors
    /// `Io`; `Full` when the small segment cannot be made; `Closed`.
    pub(crate) fn shrink(&self) -> Result<()> {
        let mut state = self.state.lock();
        state.check()?;
        while state.preparing {
            self.moved.wait(&mut state);
            state.check()?;
        }
        state.usual = self.options.first;
        let spares = std::mem::take(&mut state.spares);
        let ahead = std::mem::take(&mut state.ahead);
        let large = self.options.first < state.active.segment.size;
        let made = if large && state.active.is_empty() {
            self.prepare(&mut state, self.options.first, ahead)
        } else {
            MutexGuard::unlocked(&mut state, || self.clear_away(&ahead))
        };
        // Other threads may have begun to append and to write.
        let still = state.active.is_empty() && !state.writing && state.sealed.is_empty();
        if large
            && still
            && let Some(next) = state.ahead.pop_front()
        {
            state.begin_segment(next, self.vfs.now(), self.options.first);
        }
        state.lasted = None;
        drop(state);
        made?;
        for Spare { path, .. } in spares {
            self.place().remove(&path)?;
        }
        Ok(())
    }

    /// Create the next segment before it is needed, if that will be soon. Called by the log's
    /// thread, or by committers after their commit is complete.
    pub(crate) fn prepare_ahead(&self) {
        let mut state = self.state.lock();
        while lacks_segment(&state) {
            // A full disk may have space by the time the segment is needed; the append that needs
            // it tries again and reports. Any other failure has poisoned the log.
            if self.prepare(&mut state, 0, VecDeque::new()).is_err() {
                return;
            }
        }
    }

    /// Wait until a segment is started, for at most `limit`. The caller checks the state
    /// afterwards.
    pub(crate) fn wait_for_chores(&self, limit: Duration) {
        let mut state = self.state.lock();
        self.chores.wait_for(&mut state, limit);
    }

    /// Make the next segment, of at least `size` bytes, without holding the lock; `short` were made
    /// ahead and are too small. Poisons the log on any failure but a full disk.
    pub(super) fn prepare(
        &self,
        state: &mut MutexGuard<'_, State>,
        size: u64,
        short: VecDeque<Arc<Segment>>,
    ) -> Result<()> {
        assert!(!state.preparing, "one at a time");
        assert!(short.is_empty() || state.ahead.is_empty(), "I3: in order");
        let usual = size <= state.usual;
        let size = size.max(state.usual);
        let spare = if usual { state.spares.pop() } else { None };
        self.prepare_with(state, size, &short, spare.as_ref())
    }

    /// Make the next segment of a spare file, as long as that is.
    pub(super) fn prepare_from(
        &self,
        state: &mut MutexGuard<'_, State>,
        spare: &Spare,
    ) -> Result<()> {
        assert!(!state.preparing, "one at a time");
        let size = spare.size - spare.size % BLOCK;
        self.prepare_with(state, size, &VecDeque::new(), Some(spare))
    }

    fn prepare_with(
        &self,
        state: &mut MutexGuard<'_, State>,
        size: u64,
        short: &VecDeque<Arc<Segment>>,
        spare: Option<&Spare>,
    ) -> Result<()> {
        let number = state.next_number;
        state.next_number += 1;
        let zeros = state.syncs_matter();
        state.preparing = true;
        let made = MutexGuard::unlocked(state, || {
            self.clear_away(short)?;
            self.place().prepare(number, size, spare, zeros)
        });
        state.preparing = false;
        let made = made.map(|segment| state.ahead.push_back(Arc::new(segment)));
        match &made {
            Err(error) if error.kind() != ErrorKind::Full => self.fail(state, error),
            _ => {
                self.moved.notify_all();
            }
        }
        made
    }

    /// Remove segments that were created ahead and are empty; those drawn from the reserve go back.
    fn clear_away(&self, segments: &VecDeque<Arc<Segment>>) -> Result<()> {
        for segment in segments {
            let files = self.state.lock().reserve.len();
            if self.is_of_reserve(files, segment.size) {
                let spare = self.place().recycle(segment.number, segment.size)?;
                self.state.lock().reserve.push(spare);
            } else {
                self.place().remove(&segment.path)?;
            }
        }
        Ok(())
    }
}

/// Whether a segment should be created ahead: one when an eighth of the active segment is used, two
/// if the previous one filled up within a second.
fn lacks_segment(state: &State) -> bool {
    let want = if state.lasted.is_some_and(|time| time < HURRY) {
        2
    } else {
        usize::from(state.active.segment.size / 8 <= state.active.offset)
    };
    state.ahead.len() < want && !state.preparing && state.poison.is_none()
}

//! Segments come and go: the next one made ahead, released ones set aside.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stdx::sync::MutexGuard;

use crate::error::{ErrorKind, Result};
use crate::types::Seq;

use super::Log;
use super::segment::{Segment, Spare, segment_path};
use super::state::State;

/// Spare segments kept for reuse: as many as a checkpoint releases at once with the usual sizes, so
/// that a steady load never makes new ones, whose blocks the file system must first mark as
/// written.
pub(super) const SPARES: usize = 4;

/// Segments that are full sooner than this are made two ahead: making one waits for the device,
/// which syncs the others.
const HURRY: Duration = Duration::from_secs(1);

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
            // The active one has no last record yet.
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
            let keep = gone.size == self.options.segment && state.spares.len() < SPARES;
            drop(state);
            if keep {
                let spare = self.place().recycle(gone.number)?;
                self.state.lock().spares.push(spare);
            } else {
                let path = segment_path(&self.directory, gone.number);
                self.place().remove(&path)?;
            }
        }
    }

    /// Write nothing more, to no file: what is not durable now never will be. Waits for whoever is
    /// writing.
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

    /// Records up to this one may be gone.
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
        let spares = state.spares.iter();
        let mut files: Vec<(String, u64, bool)> = spares
            .map(|spare| (name(&spare.path), self.options.segment, false))
            .collect();
        let held = state.held.iter();
        files.extend(held.map(|held| (name(&segment_path(here, held.number)), held.size, true)));
        let next = state.ahead.iter();
        files.extend(next.map(|next| (name(&next.path), next.size, false)));
        files
    }

    /// Remove the spare segments: their space is wanted elsewhere.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn trim(&self) -> Result<()> {
        let spares = std::mem::take(&mut self.state.lock().spares);
        for Spare { path, .. } in spares {
            self.place().remove(&path)?;
        }
        Ok(())
    }

    /// Make the next segment before it is needed, if it will be soon. A thread of its own calls it,
    /// or committers when they have got what they came for.
    pub(crate) fn prepare_ahead(&self) {
        let mut state = self.state.lock();
        while lacks_segment(&state) {
            // A full disk may have space by the time the segment is needed; the append that needs
            // it tries again and reports. Any other failure has poisoned the log.
            if self
                .prepare(&mut state, self.options.segment, VecDeque::new())
                .is_err()
            {
                return;
            }
        }
    }

    /// Wait until a segment is begun, no longer than `limit`; what is missed is seen then.
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
        let size = size.max(self.options.segment);
        let number = state.next_number;
        state.next_number += 1;
        let usual = size == self.options.segment;
        let spare = if usual { state.spares.pop() } else { None };
        state.preparing = true;
        let made = MutexGuard::unlocked(state, || {
            let place = self.place();
            for short in short {
                place.remove(&short.path)?;
            }
            place.prepare(number, size, spare.as_ref())
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
}

/// Whether a segment should be made ahead: one when an eighth of the active one is used, two when
/// the one before was full within a second.
fn lacks_segment(state: &State) -> bool {
    let want = if state.lasted.is_some_and(|time| time < HURRY) {
        2
    } else {
        usize::from(state.active.segment.size / 8 <= state.active.offset)
    };
    state.ahead.len() < want && !state.preparing && state.poison.is_none()
}

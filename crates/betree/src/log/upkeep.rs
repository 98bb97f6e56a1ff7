//! Segments come and go: the next one made ahead, released ones set aside.

use std::path::Path;
use std::sync::Arc;

use stdx::sync::MutexGuard;

use crate::error::{ErrorKind, Result};
use crate::types::Seq;

use super::Log;
use super::segment::{Segment, Spare, segment_path};
use super::state::State;

/// Spare segments kept for reuse: one is soon the next, one more bridges a late release.
pub(super) const SPARES: usize = 2;

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
        while state.leading || state.preparing {
            self.changed.wait(&mut state);
        }
        state.poison.get_or_insert_with(|| "closed".to_owned());
        self.changed.notify_all();
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
        let next = state.next.iter();
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

    /// When half of the segment is used, make the next one; the caller has got what it came for.
    pub(super) fn prepare_ahead(&self, state: &mut MutexGuard<'_, State>) {
        let used = state.active.offset;
        let due = state.active.segment.size / 2 <= used;
        if due && state.next.is_none() && !state.preparing && state.poison.is_none() {
            // A full disk may have space by the time the segment is needed; the append that needs
            // it tries again and reports. Any other failure has poisoned the log.
            let _ = self.prepare(state, self.options.segment, None);
        }
    }

    /// Make the next segment, of at least `size` bytes, without holding the lock; `short` was made
    /// ahead and is too small. Poisons the log on any failure but a full disk.
    pub(super) fn prepare(
        &self,
        state: &mut MutexGuard<'_, State>,
        size: u64,
        short: Option<Arc<Segment>>,
    ) -> Result<()> {
        assert!(!state.preparing, "one at a time");
        assert!(state.next.is_none(), "there is one already");
        let size = size.max(self.options.segment);
        let number = state.next_number;
        state.next_number += 1;
        let usual = size == self.options.segment;
        let spare = if usual { state.spares.pop() } else { None };
        state.preparing = true;
        let made = MutexGuard::unlocked(state, || {
            let place = self.place();
            if let Some(short) = short {
                place.remove(&short.path)?;
            }
            place.prepare(number, size, spare.as_ref())
        });
        state.preparing = false;
        let made = made.map(|segment| state.next = Some(Arc::new(segment)));
        if let Err(error) = &made
            && error.kind() != ErrorKind::Full
        {
            state.poison(error);
        }
        self.changed.notify_all();
        made
    }
}

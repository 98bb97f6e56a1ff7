//! Making records durable: one leader writes and syncs for everybody who waits (I6).

use std::sync::Arc;
use std::time::Duration;

use stdx::sync::MutexGuard;

use crate::error::Result;
use crate::types::Seq;

use super::options::Position;
use super::segment::{Segment, fatal};
use super::state::State;
use super::{Log, sites};

impl Log {
    /// Return when everything up to `position` is durable.
    ///
    /// # Errors
    /// `Io` when the write or the sync failed, once; `Closed` for everybody else and later.
    pub(crate) fn sync_to(&self, position: Position) -> Result<()> {
        let mut state = self.state.lock();
        assert!(position.0 <= state.appended, "a position given by append");
        if position.0 <= state.durable {
            return Ok(());
        }
        let begin = self.vfs.now();
        let outcome = self.sync_or_wait(&mut state, position.0);
        let waited = self.vfs.now().saturating_sub(begin).as_micros();
        state.stats.wait_micros += u64::try_from(waited).unwrap_or(u64::MAX);
        outcome?;
        assert!(position.0 <= state.durable, "I6: the leader said so");
        self.prepare_ahead(&mut state);
        Ok(())
    }

    /// Make everything appended so far durable.
    ///
    /// # Errors
    /// See [`Log::sync_to`].
    pub(crate) fn sync(&self) -> Result<()> {
        let appended = {
            let state = self.state.lock();
            state.check()?;
            state.appended
        };
        self.sync_to(Position(appended))
    }

    /// Whether enough is buffered to be worth a write, and nobody is at it.
    pub(crate) fn wants_write(&self) -> bool {
        let state = self.state.lock();
        let ready = state.sealed.is_some() || self.options.piece() <= state.active.used();
        ready && !state.leading
    }

    /// Write out what is buffered if it is worth a write, without syncing. Committers that do not
    /// sync call it after they let go of the commit lock, so that appends need not write.
    ///
    /// # Errors
    /// `Io` when the write failed, once; `Closed` later.
    pub(crate) fn write_ready(&self) -> Result<()> {
        let mut state = self.state.lock();
        let ready = state.sealed.is_some() || self.options.piece() <= state.active.used();
        if !ready || state.leading {
            return Ok(());
        }
        state.check()?;
        let target = state.appended;
        self.lead(&mut state, target, false)?;
        self.prepare_ahead(&mut state);
        Ok(())
    }

    fn sync_or_wait(&self, state: &mut MutexGuard<'_, State>, target: Seq) -> Result<()> {
        state.waiting += 1;
        while state.durable < target {
            state.check()?;
            if state.leading {
                self.changed.wait(state);
                continue;
            }
            if 1 < state.last_group && self.options.group_delay != Duration::ZERO {
                // Others are about: they commit while this one waits.
                state.leading = true;
                MutexGuard::unlocked(state, || self.vfs.sleep(self.options.group_delay));
                state.leading = false;
            }
            let all = state.appended;
            let waiting = std::mem::take(&mut state.waiting);
            state.last_group = waiting;
            self.lead(state, all, true)?;
            state.stats.groups += 1;
            state.stats.group_commits += waiting;
        }
        Ok(())
    }

    /// Write everything up to `target`, and sync if asked. The log is poisoned when it fails.
    pub(super) fn lead(
        &self,
        state: &mut MutexGuard<'_, State>,
        target: Seq,
        sync: bool,
    ) -> Result<()> {
        self.as_leader(state, |log, state| {
            while state.written < target {
                log.write_next(state)?;
            }
            if sync {
                log.sync_written(state)
            } else {
                Ok(())
            }
        })
    }

    /// Do `work` as the leader. The log is poisoned when it fails (I7).
    pub(super) fn as_leader(
        &self,
        state: &mut MutexGuard<'_, State>,
        work: impl FnOnce(&Log, &mut MutexGuard<'_, State>) -> Result<()>,
    ) -> Result<()> {
        state.check()?;
        assert!(!state.leading, "I6: one leader");
        state.leading = true;
        let outcome = work(self, state);
        state.leading = false;
        if let Err(error) = &outcome {
            state.poison(error);
        }
        self.changed.notify_all();
        outcome
    }

    fn write_next(&self, state: &mut MutexGuard<'_, State>) -> Result<()> {
        assert!(state.leading, "I6: only the leader writes");
        let Some(mut group) = state.take_group() else {
            unreachable!("I1: records appended and not written are in a group");
        };
        let last = group.last().expect("a group to be written has records");
        self.close_previous(state, &group.segment)?;
        let durable = state.durable;
        let segment = Arc::clone(&group.segment);
        let offset = group.offset;
        let (length, outcome) = MutexGuard::unlocked(state, || {
            let bytes = group.seal(self.store, durable);
            let outcome = segment.file.write_at(sites::WRITE, bytes, offset);
            let length = bytes.len() as u64;
            segment.file.start_writeback(offset, length);
            (length, outcome)
        });
        state.spare = Some(group.into_memory());
        outcome.map_err(|e| fatal("writing the log", &segment.path, &e))?;
        assert!(state.written < last, "I1: groups go in order");
        state.written = last;
        state.unsynced = Some(segment);
        state.stats.writes += 1;
        state.stats.bytes_written += length;
        // Appends may wait for the buffer.
        self.changed.notify_all();
        Ok(())
    }

    /// I5: before `segment` is written to, the one before is synced.
    pub(super) fn close_previous(
        &self,
        state: &mut MutexGuard<'_, State>,
        segment: &Segment,
    ) -> Result<()> {
        let previous = state.unsynced.as_ref();
        let Some(previous) = previous.filter(|p| p.number != segment.number) else {
            return Ok(());
        };
        assert!(previous.number < segment.number, "I3: numbers rise");
        let previous = Arc::clone(previous);
        let written = state.written;
        MutexGuard::unlocked(state, || {
            previous.file.sync(sites::ROTATE)?;
            previous.file.forget(0, previous.size);
            Ok(())
        })
        .map_err(|e: std::io::Error| fatal("syncing a full log segment", &previous.path, &e))?;
        self.now_durable(state, written);
        Ok(())
    }

    fn sync_written(&self, state: &mut MutexGuard<'_, State>) -> Result<()> {
        let Some(segment) = state.unsynced.clone() else {
            assert_eq!(state.durable, state.written, "I5: nothing to sync");
            return Ok(());
        };
        let written = state.written;
        MutexGuard::unlocked(state, || segment.file.sync(sites::SYNC))
            .map_err(|e| fatal("syncing the log", &segment.path, &e))?;
        self.now_durable(state, written);
        Ok(())
    }

    fn now_durable(&self, state: &mut MutexGuard<'_, State>, written: Seq) {
        assert!(state.leading, "I6: only the leader syncs");
        assert_eq!(state.written, written, "I6: nobody wrote meanwhile");
        assert!(state.durable <= written, "durable never falls");
        state.durable = written;
        state.unsynced = None;
        state.stats.syncs += 1;
    }
}

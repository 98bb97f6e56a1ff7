//! Making records durable: a writer writes groups, a syncer syncs for all waiting threads (I6).

use std::sync::Arc;
use std::time::Duration;
use stdx::sync::atomic::Ordering;

use stdx::sync::MutexGuard;

use crate::error::Result;
use crate::plant::{Plant, planted};
use crate::types::Seq;

use super::format::padded;
use super::options::Position;
use super::segment::fatal;
use super::state::{Dirty, State};
use super::{Log, sites};

impl Log {
    /// Return when everything up to `position` is durable.
    ///
    /// # Errors
    /// `Io` when the write or the sync failed, once; `Closed` for every other caller and later.
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
        assert!(position.0 <= state.durable, "I6: the syncer said so");
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

    /// Write the buffered records, without syncing, if there are enough for a write. Called by the
    /// log's thread, or by committers after they release the commit lock, so that appends need not
    /// write.
    ///
    /// # Errors
    /// `Io` when the write failed, once; `Closed` later.
    pub(crate) fn write_ready(&self) -> Result<()> {
        let mut state = self.state.lock();
        let target = state.appended;
        while self.wants_write(&state) && state.written < target {
            self.write_one(&mut state)?;
        }
        Ok(())
    }

    /// Return when everything up to `position` was handed to the operating system: it then survives
    /// the end of the process, but not a power loss. One writer writes for all waiting threads.
    ///
    /// # Errors
    /// `Io` when the write failed, once; `Closed` later.
    pub(crate) fn write_through(&self, position: Position) -> Result<()> {
        let mut state = self.state.lock();
        assert!(position.0 <= state.appended, "a position given by append");
        if state.written < position.0 {
            self.write_to(&mut state, position.0)?;
        }
        Ok(())
    }

    /// Wait until there is enough for a write, for at most `limit`.
    pub(crate) fn wait_for_write(&self, limit: Duration) {
        let mut state = self.state.lock();
        if !self.wants_write(&state) {
            self.work.wait_for(&mut state, limit);
        }
    }

    /// Wake the threads that wait for work.
    pub(crate) fn wake(&self) {
        let _state = self.state.lock();
        self.work.notify_all();
        self.chores.notify_all();
    }

    fn wants_write(&self, state: &State) -> bool {
        let ready = !state.sealed.is_empty() || self.options.piece() <= state.active.used();
        ready && !state.writing
    }

    fn sync_or_wait(&self, state: &mut MutexGuard<'_, State>, target: Seq) -> Result<()> {
        state.waiting += 1;
        while state.durable < target {
            state.check()?;
            if state.syncing {
                // The next syncer writes the records that arrive in the meantime as one group.
                self.synced.wait(state);
            } else {
                self.lead_sync(state)?;
            }
        }
        state.stats.group_commits += 1;
        Ok(())
    }

    /// Write and sync the appended records, as the syncer (I6). A failure poisons the log.
    pub(super) fn lead_sync(&self, state: &mut MutexGuard<'_, State>) -> Result<()> {
        state.check()?;
        assert!(!state.syncing, "I6: one syncer");
        state.syncing = true;
        if 1 < state.last_group && self.options.group_delay != Duration::ZERO {
            // The previous group had several members, so others probably commit during this wait.
            MutexGuard::unlocked(state, || self.vfs.sleep(self.options.group_delay));
        }
        let waiting = std::mem::take(&mut state.waiting);
        let target = state.appended;
        let outcome = self
            .write_to(state, target)
            .and_then(|()| self.sync_written(state));
        state.syncing = false;
        match &outcome {
            Ok(()) if 0 < waiting => {
                state.last_group = waiting;
                state.stats.groups += 1;
            }
            Ok(()) => {}
            Err(error) => self.fail(state, error),
        }
        if !planted(Plant::LostWakeUp) {
            self.synced.notify_all();
        }
        outcome
    }

    /// Write everything up to `target`, or wait until the current writer has written it.
    pub(super) fn write_to(&self, state: &mut MutexGuard<'_, State>, target: Seq) -> Result<()> {
        while state.written < target {
            state.check()?;
            if state.writing {
                self.moved.wait(state);
            } else {
                self.write_one(state)?;
            }
        }
        Ok(())
    }

    /// Write the oldest group, as the writer.
    pub(super) fn write_one(&self, state: &mut MutexGuard<'_, State>) -> Result<()> {
        self.as_writer(state, Log::write_next)
    }

    /// Run `work` as the writer. A failure poisons the log (I7).
    pub(super) fn as_writer(
        &self,
        state: &mut MutexGuard<'_, State>,
        work: impl FnOnce(&Log, &mut MutexGuard<'_, State>) -> Result<()>,
    ) -> Result<()> {
        state.check()?;
        assert!(!state.writing, "I6: one writer");
        state.writing = true;
        let outcome = work(self, state);
        state.writing = false;
        if let Err(error) = &outcome {
            self.fail(state, error);
        }
        self.filled.store(state.filled(), Ordering::Relaxed);
        self.moved.notify_all();
        outcome
    }

    /// I7: prevent further writes; all waiting threads wake and get an error.
    pub(super) fn fail(&self, state: &mut MutexGuard<'_, State>, error: &crate::Error) {
        if !planted(Plant::PoisonForgotten) {
            state.poison(error);
        }
        self.moved.notify_all();
        self.synced.notify_all();
    }

    fn write_next(&self, state: &mut MutexGuard<'_, State>) -> Result<()> {
        let Some(mut group) = state.take_group() else {
            unreachable!("I1: records appended and not written are in a group");
        };
        let last = group.last().expect("a group to be written has records");
        let durable = state.durable;
        let segment = Arc::clone(&group.segment);
        let latest = group.end();
        state.place(&mut group, self.options.direct);
        let offset = group.offset;
        let begin = self.vfs.now();
        let mut scratch = state.scratch.take();
        let (length, outcome) = MutexGuard::unlocked(state, || {
            let (bytes, length) = group.seal(self.store, durable, scratch.as_mut());
            let outcome = segment.file.write_at(sites::WRITE, bytes, offset);
            self.note_written(&segment, offset, bytes.len() as u64);
            (length, outcome)
        });
        state.scratch = scratch;
        state.shares = false;
        let raw = padded(offset + group.used() as u64) - padded(offset);
        state.free.push(group.into_memory());
        outcome.map_err(|e| fatal("writing the log", &segment.path, &e))?;
        let end = offset + length;
        state.close_up(segment.number, latest - padded(end));
        state.tail = (segment.number, end);
        // A shared block was counted with the previous group.
        let bytes = padded(end) - padded(offset);
        state.now_written(segment, last, bytes);
        state.stats.bytes_raw += raw;
        state.stats.writes += 1;
        self.pace.wrote(bytes, self.vfs.now().saturating_sub(begin));
        Ok(())
    }

    /// Sync the files that contain the groups written so far, the oldest first (I5).
    fn sync_written(&self, state: &mut MutexGuard<'_, State>) -> Result<()> {
        state.close_blocks();
        while state.writing && state.shares {
            // The writer writes to a block that this sync makes durable.
            self.moved.wait(state);
        }
        state.check()?;
        state.close_blocks();
        let written = state.written;
        let dirty: Vec<Dirty> = state.dirty.iter().cloned().collect();
        for Dirty { segment, last } in dirty {
            assert!(last <= written, "seen under one lock");
            let full = segment.number < state.active.segment.number;
            let site = if full { sites::ROTATE } else { sites::SYNC };
            MutexGuard::unlocked(state, || {
                let synced = segment.file.sync(site);
                if planted(Plant::RetrySync) && synced.is_err() {
                    segment.file.sync(site)?;
                } else {
                    synced?;
                }
                if full {
                    segment.file.forget(0, segment.size);
                }
                Ok(())
            })
            .map_err(|e: std::io::Error| fatal("syncing the log", &segment.path, &e))?;
            // I7: after a write that failed in the meantime, the content of the disk is unknown.
            state.check()?;
            state.now_durable(last);
            state.stats.syncs += 1;
        }
        assert!(written <= state.durable, "I5: what was written was dirty");
        Ok(())
    }
}

//! Appending: a copy into the active buffer, or the steps that make room in it.

use std::sync::Arc;
use std::time::Duration;
use stdx::sync::atomic::Ordering;

use stdx::sync::MutexGuard;

use crate::error::{Error, Result};
use crate::types::Seq;

use super::Log;
use super::format::{BLOCK, GROUP_HEADER, GroupHeader, MAX_PAYLOAD, RECORD_HEADER, padded};
use super::frame;
use super::options::Position;
use super::state::State;
use super::stream::Stream;

/// Maximum number of segments written to but not synced: half a second of work for a fast device,
/// and as many open files.
pub(super) const DIRTY_MAX: usize = 8;

impl Log {
    /// Append the record of commit `seq`, the next number, given in parts. It is durable after
    /// `sync_to` of the position. Runs under the commit lock.
    ///
    /// # Errors
    /// `Full` when the next segment cannot be made: nothing was appended, try again when there is
    /// space. `Invalid` when the record is too long. `Closed` after a failed write or sync; `Io`
    /// from the one that failed: whether the record is in the log is then unknown.
    #[inline]
    pub(crate) fn append(&self, seq: Seq, parts: &[&[u8]]) -> Result<Position> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let Some(length) = u32::try_from(length).ok().filter(|_| length <= MAX_PAYLOAD) else {
            return Err(Error::invalid(format!(
                "a commit of {length} bytes is too long for the log, which takes {MAX_PAYLOAD}"
            )));
        };
        let need = RECORD_HEADER + length as usize;
        let mut state = self.state.lock();
        assert!(seq.0 == state.appended.0 + 1, "I1: numbers have no gaps");
        // A poisoned log also takes the slow path.
        let ready = state.active.fits(need) && state.poison.is_none();
        if !ready && !self.make_room(&mut state, need)? {
            self.write_large(&mut state, seq, length, parts)?;
            return Ok(Position(seq));
        }
        let before = state.active.used();
        state.active.push(seq, length, parts);
        state.appended = seq;
        self.filled.store(state.filled(), Ordering::Relaxed);
        let piece = self.options.piece();
        if before < piece && piece <= state.active.used() && !state.writing {
            self.work.notify_one();
        }
        Ok(Position(seq))
    }

    /// Wait and work until `need` bytes fit into the active group (true), or until the group is
    /// empty, the record fits no buffer, and its segment has room for the record (false: write it
    /// directly).
    #[cold]
    fn make_room(&self, state: &mut MutexGuard<'_, State>, need: usize) -> Result<bool> {
        let head = state.active.segment.head();
        let whole = padded(self.large(head, need) as u64);
        loop {
            state.check()?;
            if state.active.fits(need) {
                return Ok(true);
            }
            if state.active.is_empty() {
                let buffered = head + need <= self.options.buffer;
                if whole <= state.active.room() && !buffered {
                    return Ok(false);
                }
                self.next_segment(state, BLOCK + whole)?;
            } else if !state.free.is_empty() {
                let group = state.rotate_buffer();
                state.sealed.push_back(group);
                self.work.notify_one();
            } else if state.writing {
                self.wait_for_room(state);
            } else {
                self.write_one(state)?;
            }
        }
    }

    /// The length of a group of one record of `need` bytes that is written directly, with a head of
    /// `head` bytes.
    fn large(&self, head: usize, need: usize) -> usize {
        if head == GROUP_HEADER {
            GROUP_HEADER + need
        } else {
            frame::length(need, self.options.buffer)
        }
    }

    /// Wait for a buffer or a segment.
    fn wait_for_room(&self, state: &mut MutexGuard<'_, State>) {
        let begin = self.vfs.now();
        self.moved.wait(state);
        self.count_wait(state, begin);
    }

    fn count_wait(&self, state: &mut MutexGuard<'_, State>, begin: Duration) {
        let waited = self.vfs.now().saturating_sub(begin).as_micros();
        let waited = u64::try_from(waited).unwrap_or(u64::MAX);
        state.stats.append_waits += 1;
        self.append_waited.fetch_add(waited, Ordering::Relaxed);
    }

    /// Make the empty active group start in the next segment, of at least `size` bytes, which is
    /// created here unless it was created ahead. May return without having done so: check again.
    fn next_segment(&self, state: &mut MutexGuard<'_, State>, size: u64) -> Result<()> {
        if DIRTY_MAX <= state.dirty.len() {
            let begin = self.vfs.now();
            if state.syncing {
                self.synced.wait(state);
            } else {
                self.lead_sync(state)?;
            }
            self.count_wait(state, begin);
            return Ok(());
        }
        if state.ahead.front().is_some_and(|next| size <= next.size) {
            let next = state.ahead.pop_front().expect("seen under this lock");
            state.begin_segment(next, self.vfs.now(), self.options.segment);
            self.chores.notify_one();
            return Ok(());
        }
        if state.preparing {
            self.wait_for_room(state);
            return Ok(());
        }
        let begin = self.vfs.now();
        let short = std::mem::take(&mut state.ahead);
        let made = self.prepare(state, size, short);
        self.count_wait(state, begin);
        made
    }

    /// Write one record as a group of its own, through the free buffer, without syncing.
    #[cold]
    fn write_large(
        &self,
        state: &mut MutexGuard<'_, State>,
        seq: Seq,
        length: u32,
        parts: &[&[u8]],
    ) -> Result<()> {
        // Everything appended before must be written first (I1); the active group is empty.
        while state.writing || !state.sealed.is_empty() {
            if state.writing {
                self.wait_for_room(state);
            } else {
                self.write_one(state)?;
            }
        }
        state.check()?;
        assert!(state.active.is_empty(), "appends run one at a time");
        assert_eq!(state.written, state.appended, "I1: older records go first");
        let segment = Arc::clone(&state.active.segment);
        let offset = state.active.offset;
        let whole = self.large(segment.head(), RECORD_HEADER + length as usize);
        let total = padded(whole as u64);
        self.as_writer(state, |log, state| {
            let group = GroupHeader {
                segment: segment.number,
                offset,
                first: seq,
                durable: state.durable,
                void: state.active.void(),
                length: u32::try_from(whole).expect("MAX_PAYLOAD leaves room"),
                count: 1,
                raw: 0,
                piece: match &segment.sealer {
                    None => 0,
                    Some(_) => u32::try_from(log.options.buffer).expect("at most 64 MiB"),
                },
            };
            let mut memory = state.free.pop().expect("only the active group has one");
            let outcome = MutexGuard::unlocked(state, || {
                Stream::new(&segment, log.store, &group, &mut memory).write(length, parts)
            });
            state.free.push(memory);
            let writes = outcome?;
            state.stats.writes += writes;
            state.stats.bytes_raw += total;
            state.tail = (segment.number, offset + u64::from(group.length));
            state.appended = seq;
            state.now_written(segment, seq, total);
            state.active.skip_to(offset + total, Seq(seq.0 + 1));
            Ok(())
        })
    }
}

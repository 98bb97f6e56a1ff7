//! Appending: a copy into the active buffer, or what it takes to have room in it.

use std::sync::Arc;

use stdx::sync::MutexGuard;

use crate::error::{Error, Result};
use crate::types::Seq;

use super::format::{
    self, BLOCK, GROUP_HEADER, GroupHeader, MAX_PAYLOAD, RECORD_HEADER, encode_group, padded,
    record_fields, record_sum,
};
use super::group::Memory;
use super::options::Position;
use super::segment::{Segment, fatal};
use super::state::State;
use super::{Log, sites};

/// From how many pieces in the buffer on an append writes them itself, if nobody did meanwhile.
const LATE: usize = 4;

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
        // A poisoned log takes the slow path too.
        let ready = state.active.fits(need) && state.poison.is_none();
        if !ready && !self.make_room(&mut state, need)? {
            self.write_large(&mut state, seq, length, parts)?;
            return Ok(Position(seq));
        }
        state.active.push(seq, length, parts);
        state.appended = seq;
        if LATE * self.options.piece() <= state.active.used() && !state.leading {
            let target = state.appended;
            // If this fails the record is laid down all the same: its fate is unknown.
            self.lead(&mut state, target, false)?;
        }
        Ok(Position(seq))
    }

    /// Wait and work until `need` bytes fit the active group (true), or until it is empty, fits no
    /// buffer, but has the room in its segment (false: write it directly).
    #[cold]
    fn make_room(&self, state: &mut MutexGuard<'_, State>, need: usize) -> Result<bool> {
        let whole = padded((GROUP_HEADER + need) as u64);
        loop {
            state.check()?;
            if state.active.fits(need) {
                return Ok(true);
            }
            if state.active.is_empty() {
                let buffered = GROUP_HEADER + need <= self.options.buffer;
                if whole <= state.active.room() && !buffered {
                    return Ok(false);
                }
                self.next_segment(state, BLOCK + whole)?;
            } else if !state.leading {
                let target = state.appended;
                self.lead(state, target, false)?;
            } else if state.sealed.is_none() && state.spare.is_some() {
                let group = state.rotate_buffer();
                state.sealed = Some(group);
            } else {
                state.stats.append_waits += 1;
                self.changed.wait(state);
            }
        }
    }

    /// Let the empty active group begin the next segment, of at least `size` bytes; made here if it
    /// was not made ahead.
    fn next_segment(&self, state: &mut MutexGuard<'_, State>, size: u64) -> Result<()> {
        if let Some(next) = state.next.take_if(|next| size <= next.size) {
            state.begin_segment(next);
            return Ok(());
        }
        if state.preparing {
            state.stats.append_waits += 1;
            self.changed.wait(state);
            return Ok(());
        }
        let short = state.next.take();
        self.prepare(state, size, short)
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
        // Everything before it goes first (I1); the active group is empty.
        while state.leading || state.sealed.is_some() {
            if state.leading {
                self.changed.wait(state);
            } else {
                let target = state.appended;
                self.lead(state, target, false)?;
            }
        }
        state.check()?;
        assert!(state.active.is_empty(), "appends run one at a time");
        assert_eq!(state.written, state.appended, "I1: older records go first");
        let segment = Arc::clone(&state.active.segment);
        let offset = state.active.offset;
        let total = padded((GROUP_HEADER + RECORD_HEADER) as u64 + u64::from(length));
        self.as_leader(state, |log, state| {
            log.close_previous(state, &segment)?;
            let group = GroupHeader {
                segment: segment.number,
                offset,
                first: seq,
                durable: state.durable,
                void: state.active.void(),
                length: u32::try_from(GROUP_HEADER + RECORD_HEADER)
                    .expect("small constants")
                    .checked_add(length)
                    .expect("MAX_PAYLOAD leaves room"),
                count: 1,
            };
            let mut memory = state.spare.take().expect("no leader holds it");
            let outcome = MutexGuard::unlocked(state, || {
                stream(&segment, log.store, &group, parts, &mut memory)
            });
            state.spare = Some(memory);
            let writes = outcome?;
            state.unsynced = Some(segment);
            state.stats.writes += writes;
            state.stats.bytes_written += total;
            state.appended = seq;
            state.written = seq;
            state.active.skip_to(offset + total, Seq(seq.0 + 1));
            Ok(())
        })
    }
}

/// Write `header`, the record's header and its parts in pieces of `memory`; returns how many.
fn stream(
    segment: &Segment,
    store: u128,
    header: &GroupHeader,
    parts: &[&[u8]],
    memory: &mut Memory,
) -> Result<u64> {
    let seed = format::seed(store, segment.number);
    let length = header.length - u32::try_from(GROUP_HEADER + RECORD_HEADER).expect("small");
    let fields = record_fields(length, header.first);
    let sum = record_sum(seed, &fields, parts).to_le_bytes();
    let head: [&[u8]; 3] = [&encode_group(header, seed), &sum, &fields];
    let (mut offset, mut used, mut writes) = (header.offset, 0, 0);
    let mut put = |memory: &mut Memory, used: usize| {
        let bytes = memory.bytes_mut().get(..used).expect("what was filled");
        let written = segment.file.write_at(sites::WRITE, bytes, offset);
        offset += used as u64;
        writes += 1;
        written.map_err(|e| fatal("writing the log", &segment.path, &e))
    };
    for part in head.iter().chain(parts) {
        let mut rest = *part;
        while !rest.is_empty() {
            let free = memory
                .bytes_mut()
                .get_mut(used..)
                .expect("used <= capacity");
            let (front, back) = rest.split_at(rest.len().min(free.len()));
            free.get_mut(..front.len())
                .expect("not longer")
                .copy_from_slice(front);
            used += front.len();
            rest = back;
            if used == memory.capacity() {
                put(memory, used)?;
                used = 0;
            }
        }
    }
    let whole = used.next_multiple_of(4096);
    if 0 < whole {
        let padding = memory.bytes_mut().get_mut(used..whole);
        padding.expect("the capacity is whole blocks").fill(0);
        put(memory, whole)?;
    }
    Ok(writes)
}

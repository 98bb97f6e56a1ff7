//! Following the chain of records through the segments, and judging where it ends.
//!
//! The chain is the longest row of records without gaps that begins at or before the first one
//! asked for. A segment ends where a group or record does not decode (a *stop*). The chain
//! continues in the next segment that begins with what is then expected, or before it (copies). One
//! that begins later is a stop as a whole: its groups were written before those that are missing
//! were synced (I5), or these are damaged. At the end of the chain, evidence (I4) in and behind the
//! stops decides which.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::plant::{Plant, planted};
use crate::types::Seq;

use super::format::{ALIGN, BLOCK, Flaw, GROUP_HEADER, GroupHeader, decode_record, decompress};
use super::frame;
use super::survey::{Found, Reader, Survey};

/// Called for each record.
pub(super) type Replay<'a> = &'a mut dyn FnMut(Seq, &[u8]) -> Result<()>;

/// Call `visit` for the records from `first` on, in order, until it fails; returns the end of the
/// chain, which is not judged.
///
/// # Errors
/// As [`Chain::follow`]; what `visit` returns.
pub(super) fn follow_all(
    survey: &Survey,
    store: u128,
    first: Seq,
    visit: Replay<'_>,
) -> Result<Seq> {
    let mut chain = Chain::new(store, first);
    for (found, limit) in survey.segments.iter().zip(survey.limits()) {
        if first < limit {
            chain.follow(found, limit, visit)?;
        }
    }
    Ok(chain.end())
}

/// The place where a segment ends because the next group or record does not decode.
struct Stop<'a> {
    found: &'a Found,
    offset: u64,
    flaw: Flaw,
}

/// The part of the chain that was followed so far.
pub(super) struct Chain<'a> {
    store: u128,
    /// The first requested record.
    from: Seq,
    /// The next record; `None` before the first group.
    expected: Option<Seq>,
    /// The newest record with evidence that it was durable.
    durable: Seq,
    /// The stops behind which the chain has not continued.
    stops: Vec<Stop<'a>>,
}

impl<'a> Chain<'a> {
    pub(super) fn new(store: u128, from: Seq) -> Chain<'a> {
        Chain {
            store,
            from,
            expected: None,
            durable: Seq::ANCIENT,
            stops: Vec::new(),
        }
    }

    /// The first record that is not in the chain.
    pub(super) fn end(&self) -> Seq {
        self.expected.map_or(self.from, |seq| seq.max(self.from))
    }

    /// The newest record with evidence that it was durable.
    pub(super) fn durable(&self) -> Seq {
        self.durable
    }

    /// Follow the chain through `found`, whose records count up to `limit`, excluded. Returns false
    /// if none of its groups can be part of a chain.
    pub(super) fn follow(
        &mut self,
        found: &'a Found,
        limit: Seq,
        replay: Replay<'_>,
    ) -> Result<bool> {
        if let Some(flaw) = found.unborn {
            if found.outlived {
                return Err(header_damage(found, flaw));
            }
            self.stop(found, 0, flaw);
            return Ok(false);
        }
        let mut reader = Reader::new(found, self.store);
        let mut end = BLOCK;
        loop {
            let (offset, group) = match reader.next(end)? {
                Ok(found) => found,
                Err(flaw) => {
                    self.stop(found, end, flaw);
                    return Ok(BLOCK < end);
                }
            };
            self.durable = self.durable.max(group.durable);
            if limit <= group.first {
                return Ok(BLOCK < offset);
            }
            if !self.joins(&group) {
                self.stop(found, end, Flaw::Gap);
                return Ok(BLOCK < offset);
            }
            let (length, seed) = (usize::try_from(group.length).expect("32 bits"), reader.seed);
            let Some(bytes) = reader.slice(offset, length)? else {
                self.stop(found, offset, Flaw::Short);
                return Ok(true);
            };
            let outcome = match opened(found, self.store, &group, bytes) {
                Ok(records) => {
                    // The offset of a record within other bytes is not a position in the file.
                    let here = matches!(records, Cow::Borrowed(_));
                    self.records(&group, &records, seed, limit, replay)?
                        .map(|(at, flaw)| (if here { at } else { 0 }, flaw))
                }
                Err(flaw) => Some((0, flaw)),
            };
            if let Some((at, flaw)) = outcome {
                self.stop(found, offset + (GROUP_HEADER + at) as u64, flaw);
                return Ok(true);
            }
            end = offset + u64::from(group.length);
        }
    }

    /// Replay the new records of a group that are below the limit. If a record does not decode,
    /// return its place and the reason.
    fn records(
        &mut self,
        group: &GroupHeader,
        bytes: &[u8],
        seed: u32,
        limit: Seq,
        replay: Replay<'_>,
    ) -> Result<Option<(usize, Flaw)>> {
        let mut at = 0;
        for index in 0..u64::from(group.count) {
            let seq = Seq(group.first.0 + index);
            if limit <= seq {
                return Ok(None);
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let record = match decode_record(rest, seed) {
                Ok(record) if record.seq == seq => record,
                Ok(_) => return Ok(Some((at, Flaw::Field("sequence number")))),
                Err(flaw) => return Ok(Some((at, flaw))),
            };
            at += record.stored_len();
            if self.expected != Some(seq) {
                continue;
            }
            if self.from <= seq && !(planted(Plant::ReplaySkipsFirst) && seq == self.from) {
                replay(seq, record.payload)?;
            }
            self.expected = Some(Seq(seq.0 + 1));
            debug_assert!(seq < self.end(), "I1: the chain has no gaps");
            self.stops.clear();
        }
        if at < bytes.len() {
            return Ok(Some((at, Flaw::Field("length of the group"))));
        }
        Ok(None)
    }

    fn stop(&mut self, found: &'a Found, offset: u64, flaw: Flaw) {
        self.stops.push(Stop {
            found,
            offset,
            flaw,
        });
    }

    /// Whether `group` starts with the expected record or before it, or before all requested
    /// records.
    fn joins(&mut self, group: &GroupHeader) -> bool {
        if self.expected.is_some_and(|seq| group.first <= seq) {
            return true;
        }
        let begins = group.first <= self.from;
        if begins {
            self.expected = Some(group.first);
        }
        begins
    }

    /// Look for evidence behind the stops, and refuse a chain that ends before a durable record.
    pub(super) fn judge(&mut self) -> Result<()> {
        for stop in &self.stops {
            let found = stop.found;
            let mut reader = Reader::new(found, self.store);
            let mut offset = (stop.offset - stop.offset % ALIGN).max(BLOCK);
            while offset < found.length {
                if let Ok(group) = reader.group(offset)? {
                    self.durable = self.durable.max(group.durable);
                    if found.unborn.is_some() {
                        // I3: the header was durable before this group was written.
                        self.durable = self.durable.max(Seq(group.first.0 - 1));
                        return Err(header_damage(found, stop.flaw));
                    }
                }
                offset += ALIGN;
            }
        }
        if self.end() <= self.durable {
            return Err(self.damage());
        }
        Ok(())
    }

    /// The error for a record after the end of the chain that was durable and is missing.
    fn damage(&self) -> Error {
        let message = |what: String| {
            format!(
                "the log is damaged: {what}, so commit {} cannot be read though all up to {} were \
                 durable; restore a backup",
                self.end(),
                self.durable
            )
        };
        match self.stops.first() {
            Some(Stop {
                found,
                offset,
                flaw,
            }) => {
                let what = format!("at offset {offset} {flaw}");
                Error::corrupt(message(what)).with_path(&found.path)
            }
            None => Error::corrupt(message("the last segment is missing".to_owned())),
        }
    }
}

/// The records of a group whose bytes as stored are `bytes`, decrypted and decompressed.
fn opened<'a>(
    found: &Found,
    store: u128,
    group: &GroupHeader,
    bytes: &'a [u8],
) -> Result<Cow<'a, [u8]>, Flaw> {
    let stored = match &found.opener {
        None => Cow::Borrowed(bytes.get(GROUP_HEADER..).unwrap_or_default()),
        Some(opener) => Cow::Owned(frame::decrypt(opener, store, group, bytes)?),
    };
    match group.raw {
        0 => Ok(stored),
        _ => decompress(group, &stored).map(Cow::Owned),
    }
}

fn header_damage(found: &Found, flaw: Flaw) -> Error {
    let message = format!(
        "the log is damaged: at offset 0 {flaw}, but the segment was in use; restore a backup"
    );
    Error::corrupt(message).with_path(&found.path)
}

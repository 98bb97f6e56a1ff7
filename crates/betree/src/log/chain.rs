//! Following the chain of records through the segments, and judging where it ends.
//!
//! The chain is the longest row of records without gaps that begins at or before the first one
//! asked for. A segment ends where a group or record does not decode (a *stop*). The next segment
//! must go on with what is then expected, or before it (copies); if it begins later, records that
//! were durable (I5) are missing, and that is damage. At the end of the chain, evidence (I4) behind
//! the stops decides.

use std::path::Path;

use crate::error::{Error, Result};
use crate::types::Seq;

use super::format::{BLOCK, Flaw, GROUP_HEADER, GroupHeader, decode_record, padded};
use super::survey::{Found, Reader};

/// What is called for each record.
pub(super) type Replay<'a> = &'a mut dyn FnMut(Seq, &[u8]) -> Result<()>;

/// Where a segment could not be followed further.
struct Stop<'a> {
    found: &'a Found,
    offset: u64,
    flaw: Flaw,
}

/// The chain as far as it was followed.
pub(super) struct Chain<'a> {
    store: u128,
    /// The first record asked for.
    from: Seq,
    /// The next record; none before the first group.
    expected: Option<Seq>,
    /// The newest record there is evidence for.
    durable: Seq,
    /// Where segments ended after which the chain has not gone on yet.
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

    /// The newest record there is evidence for.
    pub(super) fn durable(&self) -> Seq {
        self.durable
    }

    /// Follow the chain through `found`, whose records count below `limit`.
    pub(super) fn follow(
        &mut self,
        found: &'a Found,
        limit: Seq,
        replay: Replay<'_>,
    ) -> Result<()> {
        if let Some(flaw) = found.unborn {
            if found.outlived {
                return Err(header_damage(found, flaw));
            }
            self.stop(found, 0, flaw);
            return Ok(());
        }
        let mut reader = Reader::new(found, self.store);
        let mut offset = BLOCK;
        loop {
            let group = match reader.group(offset)? {
                Ok(group) => group,
                Err(flaw) => {
                    self.stop(found, offset, flaw);
                    return Ok(());
                }
            };
            self.durable = self.durable.max(group.durable);
            if limit <= group.first {
                return Ok(());
            }
            self.check_gap(found, offset, &group)?;
            let (length, seed) = (usize::try_from(group.length).expect("32 bits"), reader.seed);
            let Some(bytes) = reader.slice(offset, length)? else {
                self.stop(found, offset, Flaw::Short);
                return Ok(());
            };
            if let Some((at, flaw)) = self.records(&group, bytes, seed, limit, replay)? {
                self.stop(found, offset + at as u64, flaw);
                return Ok(());
            }
            offset += padded(u64::from(group.length));
        }
    }

    /// Replay the records of a group as far as they are new and count; where one does not decode,
    /// say where and why.
    fn records(
        &mut self,
        group: &GroupHeader,
        bytes: &[u8],
        seed: u32,
        limit: Seq,
        replay: Replay<'_>,
    ) -> Result<Option<(usize, Flaw)>> {
        let mut at = GROUP_HEADER;
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
            if self.from <= seq {
                replay(seq, record.payload)?;
            }
            self.expected = Some(Seq(seq.0 + 1));
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

    /// A group that begins behind what is expected proves that records are missing, unless nobody
    /// asks for them.
    fn check_gap(&mut self, found: &Found, offset: u64, group: &GroupHeader) -> Result<()> {
        if self.expected.is_some_and(|seq| group.first <= seq) {
            return Ok(());
        }
        if group.first <= self.from {
            self.expected = Some(group.first);
            return Ok(());
        }
        let missing = self.end();
        let proof = Seq(group.first.0 - 1);
        Err(self.damage(missing, proof, (&found.path, offset)))
    }

    /// Look for evidence behind the stops, and refuse a chain that ends before what was durable.
    pub(super) fn judge(&mut self) -> Result<()> {
        for stop in &self.stops {
            let found = stop.found;
            let mut reader = Reader::new(found, self.store);
            let mut offset = (stop.offset - stop.offset % BLOCK).max(BLOCK);
            while offset < found.length {
                if let Ok(group) = reader.group(offset)? {
                    self.durable = self.durable.max(group.durable);
                    if found.unborn.is_some() {
                        // I3: the header was durable before this group was written.
                        self.durable = self.durable.max(Seq(group.first.0 - 1));
                        return Err(header_damage(found, stop.flaw));
                    }
                }
                offset += BLOCK;
            }
        }
        let end = self.end();
        if self.durable < end {
            return Ok(());
        }
        let nowhere = (Path::new(""), 0);
        Err(self.damage(end, self.durable, nowhere))
    }

    /// Record `missing` is not there though records up to `proof` were durable; `seen` is the place
    /// that shows it, named when the place of the damage is not known.
    fn damage(&self, missing: Seq, proof: Seq, seen: (&Path, u64)) -> Error {
        let (path, what) = match self.stops.first() {
            Some(stop) => {
                let what = format!("at offset {} {}", stop.offset, stop.flaw);
                (stop.found.path.as_path(), what)
            }
            None => {
                let what = format!("a segment before offset {} is missing", seen.1);
                (seen.0, what)
            }
        };
        let message = format!(
            "the log is damaged: {what}, so commit {missing} cannot be read though all up to \
             {proof} were durable; restore a backup"
        );
        Error::corrupt(message).with_path(path)
    }
}

fn header_damage(found: &Found, flaw: Flaw) -> Error {
    let message = format!(
        "the log is damaged: at offset 0 {flaw}, but the segment was in use; restore a backup"
    );
    Error::corrupt(message).with_path(&found.path)
}

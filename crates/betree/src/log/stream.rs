//! Writes a record that is longer than a buffer as a group of its own, in pieces of the size of a
//! buffer.

use super::format::{self, GROUP_HEADER, GroupHeader, encode_group, record_fields, record_sum};
use super::frame::Bound;
use super::group::Memory;
use super::segment::{Segment, fatal};
use super::sites;
use crate::error::Result;

/// A group being written.
pub(super) struct Stream<'a> {
    segment: &'a Segment,
    header: &'a GroupHeader,
    seed: u32,
    encoded: [u8; GROUP_HEADER],
    bound: Bound,
    memory: &'a mut Memory,
    /// Bytes of the memory that are filled.
    used: usize,
    /// Where the piece begins that is encrypted next, in the memory.
    begin: usize,
    offset: u64,
    writes: u32,
}

impl<'a> Stream<'a> {
    pub(super) fn new(
        segment: &'a Segment,
        store: u128,
        header: &'a GroupHeader,
        memory: &'a mut Memory,
    ) -> Stream<'a> {
        let seed = format::seed(store, segment.number);
        let encoded = encode_group(header, seed);
        Stream {
            segment,
            header,
            seed,
            bound: Bound::new(store, &encoded, header.offset),
            encoded,
            memory,
            used: 0,
            begin: GROUP_HEADER,
            offset: header.offset,
            writes: 0,
        }
    }

    /// Write the header, and a record of `length` bytes in `parts`; returns the number of writes.
    pub(super) fn write(mut self, length: u32, parts: &[&[u8]]) -> Result<u64> {
        let fields = record_fields(length, self.header.first);
        let sum = record_sum(self.seed, &fields, parts).to_le_bytes();
        let encoded = self.encoded;
        self.put(&encoded)?;
        self.skip_tag();
        self.put(&sum)?;
        self.put(&fields)?;
        for part in parts {
            self.put(part)?;
        }
        if self.begin < self.used {
            self.flush()?;
        }
        Ok(u64::from(self.writes))
    }

    /// Leave room for the tag of a piece, if the segment is encrypted.
    fn skip_tag(&mut self) {
        self.used += self.segment.head() - GROUP_HEADER;
    }

    /// Add `bytes`; write what fills the memory.
    fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let capacity = self.memory.capacity();
            if self.used == capacity {
                self.flush()?;
                self.skip_tag();
            }
            let free = self.memory.bytes_mut().get_mut(self.used..capacity);
            let free = free.expect("used <= capacity");
            let (front, back) = bytes.split_at(bytes.len().min(free.len()));
            let room = free.get_mut(..front.len()).expect("not longer");
            room.copy_from_slice(front);
            self.used += front.len();
            bytes = back;
        }
        Ok(())
    }

    /// Encrypt, if need be, and write what is in the memory, with zeros to the end of a block.
    fn flush(&mut self) -> Result<()> {
        if let Some(sealer) = &self.segment.sealer {
            let piece = self.memory.bytes_mut().get_mut(self.begin..self.used);
            let piece = piece.expect("used <= capacity");
            self.bound.encrypt(&mut sealer.lock(), self.writes, piece);
        }
        let whole = self.used.next_multiple_of(4096);
        let padding = self.memory.bytes_mut().get_mut(self.used..whole);
        padding.expect("the capacity is whole blocks").fill(0);
        let bytes = self.memory.bytes_mut().get(..whole);
        let bytes = bytes.expect("the capacity is whole blocks");
        let written = self.segment.file.write_at(sites::WRITE, bytes, self.offset);
        written.map_err(|e| fatal("writing the log", &self.segment.path, &e))?;
        self.offset += whole as u64;
        self.writes += 1;
        self.used = 0;
        self.begin = 0;
        Ok(())
    }
}

//! A group in memory: records copied one after another behind room for the group's header, then
//! sealed and written with one call.
//!
//! Appending only copies. The checksums are filled in when the group is sealed, by the leader and
//! outside of every lock.

use std::sync::Arc;

use crate::types::Seq;

use super::format::{
    self, ALIGN, BLOCK, GROUP_HEADER, GroupHeader, RECORD_HEADER, encode_group, padded,
    record_fields,
};
use super::frame::{self, Bound};
use super::segment::Segment;

/// Memory of a buffer: it begins at a multiple of [`BLOCK`], so that direct I/O need not copy it,
/// and has a block behind its capacity for the padding of a group that begins within a block.
pub(super) struct Memory {
    bytes: Vec<u8>,
    start: usize,
    capacity: usize,
}

impl Memory {
    /// `capacity` bytes, a multiple of [`BLOCK`].
    pub(super) fn new(capacity: usize) -> Memory {
        let block = 4096;
        assert!(capacity.is_multiple_of(block), "whole blocks");
        let bytes = vec![0; capacity + 2 * block];
        // If the standard library cannot determine the offset, writes are only slower.
        let start = bytes.as_ptr().align_offset(block).min(block);
        Memory {
            bytes,
            start,
            capacity,
        }
    }

    /// Capacity in bytes, without room for padding.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// All bytes.
    #[inline]
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let end = self.start + self.capacity + 4096;
        self.bytes
            .get_mut(self.start..end)
            .expect("two blocks more than the capacity were allocated")
    }
}

/// A group that is being filled, waits to be written, or is being written.
pub(super) struct Group {
    memory: Memory,
    pub(super) segment: Arc<Segment>,
    /// The highest offset in the segment at which it may start; after [`Group::place`] its actual
    /// offset.
    pub(super) offset: u64,
    void: Seq,
    first: Seq,
    count: u32,
    used: usize,
    /// The end of the memory or of the segment: records must end before.
    limit: usize,
}

impl Group {
    /// An empty group that will begin at `offset` of `segment`; its first record is `first`.
    pub(super) fn new(
        memory: Memory,
        segment: Arc<Segment>,
        offset: u64,
        void: Seq,
        first: Seq,
    ) -> Group {
        assert!(BLOCK <= offset, "block 0 is the header's");
        let mut group = Group {
            memory,
            segment,
            offset,
            void,
            first,
            count: 0,
            used: 0,
            limit: 0,
        };
        group.skip_to(offset, first);
        group
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Size of its memory in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// Bytes used so far, including the header.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// The number of the last record; `None` for an empty group.
    pub(super) fn last(&self) -> Option<Seq> {
        let more = u64::from(self.count).checked_sub(1)?;
        Some(Seq(self.first.0 + more))
    }

    /// Number of bytes from its start to the end of the segment.
    pub(super) fn room(&self) -> u64 {
        self.segment.size - self.offset
    }

    /// The highest offset at which the next group may start.
    pub(super) fn end(&self) -> u64 {
        if self.is_empty() {
            return self.offset;
        }
        self.offset + padded(self.used as u64)
    }

    /// Whether `bytes` more, including record headers, fit.
    #[inline]
    pub(super) fn fits(&self, bytes: usize) -> bool {
        bytes <= self.limit.saturating_sub(self.used)
    }

    /// Append a record whose stored length fits.
    #[inline]
    pub(super) fn push(&mut self, seq: Seq, length: u32, parts: &[&[u8]]) {
        assert!(
            seq.0 == self.first.0 + u64::from(self.count),
            "I1: numbers have no gaps"
        );
        let used = self.used;
        let free = self
            .memory
            .bytes_mut()
            .get_mut(used..)
            .expect("I2: used <= limit <= capacity");
        let (head, mut rest) = free.split_at_mut(RECORD_HEADER);
        head.get_mut(4..)
            .expect("a header has 16 bytes")
            .copy_from_slice(&record_fields(length, seq));
        let mut total = RECORD_HEADER;
        for part in parts {
            let (front, back) = rest.split_at_mut(part.len());
            front.copy_from_slice(part);
            rest = back;
            total += part.len();
        }
        self.used += total;
        self.count += 1;
        debug_assert!(self.used <= self.limit, "the caller asked fits()");
    }

    /// Set the offset at which it is written: the highest possible one, or a lower one.
    pub(super) fn place(&mut self, offset: u64) {
        assert!(BLOCK <= offset, "block 0 is the header's");
        assert!(offset <= self.offset, "room was kept for the latest");
        assert!(offset.is_multiple_of(ALIGN), "where recovery looks");
        self.offset = offset;
    }

    /// The bytes to write, with checksums and padded to the end of a block, and their length
    /// without padding. `durable` is the newest record known to be durable. With `scratch` the
    /// records are compressed into it, if that makes the group shorter.
    pub(super) fn seal<'a>(
        &'a mut self,
        store: u128,
        durable: Seq,
        scratch: Option<&'a mut Memory>,
    ) -> (&'a [u8], u64) {
        assert!(0 < self.count, "an empty group is not written");
        assert!(durable < self.first, "I4: durable records are behind");
        let seed = format::seed(store, self.segment.number);
        let used = self.used;
        assert!(used <= self.limit, "I2: groups stay in their segment");
        let mut header = GroupHeader {
            segment: self.segment.number,
            offset: self.offset,
            first: self.first,
            durable,
            void: self.void,
            length: u32::try_from(used).expect("buffers are below 4 GiB"),
            count: self.count,
            raw: 0,
            piece: 0,
        };
        let head = self.segment.head();
        let bytes = self.memory.bytes_mut().get_mut(head..used);
        let records = bytes.expect("I2: used <= limit <= capacity");
        let sealed = format::seal_records(records, seed);
        assert_eq!(sealed, self.count, "I1: every record is sealed once");
        if let Some(scratch) = scratch
            && let Some(length) = compress(records, head, scratch)
        {
            header.raw = u32::try_from(records.len()).expect("buffers are below 4 GiB");
            header.length = u32::try_from(length).expect("shorter than the records");
            return finish(scratch, header, store, &self.segment);
        }
        finish(&mut self.memory, header, store, &self.segment)
    }

    /// Take the memory for reuse.
    pub(super) fn into_memory(self) -> Memory {
        self.memory
    }

    /// Move an unwritten group towards the start of its segment, into space that compression of the
    /// previous group saved.
    pub(super) fn move_back(&mut self, bytes: u64) {
        assert!(bytes.is_multiple_of(BLOCK), "I2: groups begin at blocks");
        assert!(BLOCK + bytes <= self.offset, "block 0 is the header's");
        self.offset -= bytes;
        let room = usize::try_from(self.room()).unwrap_or(usize::MAX);
        self.limit = room.min(self.memory.capacity());
    }

    /// Move an empty group to the start of another segment.
    pub(super) fn restart_in(&mut self, segment: Arc<Segment>, void: Seq, first: Seq) {
        assert!(BLOCK <= segment.size, "a segment has a header");
        self.segment = segment;
        self.void = void;
        self.skip_to(BLOCK, first);
    }

    /// Move an empty group within its segment, behind records that were written directly.
    pub(super) fn skip_to(&mut self, offset: u64, first: Seq) {
        assert!(self.is_empty(), "only an empty group can move");
        assert!(offset.is_multiple_of(BLOCK), "I2: groups begin at blocks");
        assert!(offset <= self.segment.size, "the segment ends before");
        let room = usize::try_from(self.segment.size - offset).unwrap_or(usize::MAX);
        self.offset = offset;
        self.first = first;
        self.used = self.segment.head();
        self.limit = room.min(self.memory.capacity());
    }

    pub(super) fn void(&self) -> Seq {
        self.void
    }
}

/// Write `header` in front of the records in `memory`, and zeros behind them up to the end of the
/// block, so that no block must be read before it is written. In an encrypted segment, encrypt the
/// records.
fn finish<'a>(
    memory: &'a mut Memory,
    mut header: GroupHeader,
    store: u128,
    segment: &Segment,
) -> (&'a [u8], u64) {
    let seed = format::seed(store, segment.number);
    let length = usize::try_from(header.length).expect("a length in memory");
    let end = header.offset + u64::from(header.length);
    let padding = usize::try_from(padded(end) - end).expect("less than a block");
    let whole = length + padding;
    let bytes = memory.bytes_mut().get_mut(..whole);
    let bytes = bytes.expect("a block was kept for the padding");
    let (head, rest) = bytes.split_at_mut(GROUP_HEADER);
    if segment.sealer.is_some() {
        header.piece = header.length;
    }
    let encoded = encode_group(&header, seed);
    head.copy_from_slice(&encoded);
    if let Some(sealer) = &segment.sealer {
        let bound = Bound::new(store, &encoded, header.offset);
        let piece = rest.get_mut(..length - GROUP_HEADER);
        let piece = piece.expect("the padding is behind it");
        bound.encrypt(&mut sealer.lock(), 0, piece);
    }
    let padding = rest.get_mut(length - GROUP_HEADER..);
    padding.expect("the header is in the length").fill(0);
    (bytes, u64::from(header.length))
}

/// Compress `records` into `scratch`, behind room for a head; returns the length including the
/// head, or `None` if it saves no block.
fn compress(records: &[u8], head: usize, scratch: &mut Memory) -> Option<usize> {
    let (_, room) = scratch.bytes_mut().split_at_mut(head);
    let stored = lz4_flex::block::compress_into(records, room).expect("room for any outcome");
    let whole = |bytes: usize| padded((head + bytes) as u64);
    (whole(stored) < whole(records.len())).then_some(head + stored)
}

/// Memory for the compressed form of groups of `buffer` bytes.
pub(super) fn scratch(buffer: usize) -> Memory {
    let most = frame::head(true) + lz4_flex::block::get_maximum_output_size(buffer);
    Memory::new(most.next_multiple_of(4096))
}

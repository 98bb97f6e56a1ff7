//! A group in memory: records laid down one after another behind room for the group's header,
//! sealed and written as one piece.
//!
//! Appending only copies. The checksums are filled in when the group is sealed, by the leader and
//! outside of every lock.

use std::sync::Arc;

use crate::types::Seq;

use super::format::{
    self, BLOCK, GROUP_HEADER, GroupHeader, RECORD_HEADER, encode_group, padded, record_fields,
};
use super::segment::Segment;

/// Memory of a buffer: it begins at a multiple of [`BLOCK`], so that direct I/O need not copy it.
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
        let bytes = vec![0; capacity + block];
        // The standard library may say "cannot tell"; then it is merely slower.
        let start = bytes.as_ptr().align_offset(block).min(block);
        Memory {
            bytes,
            start,
            capacity,
        }
    }

    /// How much it holds.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// All of it.
    #[inline]
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let end = self.start + self.capacity;
        self.bytes
            .get_mut(self.start..end)
            .expect("a block more than the capacity was allocated")
    }
}

/// A group that is filled, or full and waiting, or being written.
pub(super) struct Group {
    memory: Memory,
    pub(super) segment: Arc<Segment>,
    /// Where in the segment it will be.
    pub(super) offset: u64,
    void: Seq,
    first: Seq,
    count: u32,
    used: usize,
    /// No byte may be laid down from here on: the end of the memory or of the segment.
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
            used: GROUP_HEADER,
            limit: 0,
        };
        group.skip_to(offset, first);
        group
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of its memory.
    pub(super) fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// Bytes so far, with the header.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// The number of the last record; none in an empty group.
    pub(super) fn last(&self) -> Option<Seq> {
        let more = u64::from(self.count).checked_sub(1)?;
        Some(Seq(self.first.0 + more))
    }

    /// Bytes from its beginning to the end of the segment.
    pub(super) fn room(&self) -> u64 {
        self.segment.size - self.offset
    }

    /// Where the next group may begin.
    pub(super) fn end(&self) -> u64 {
        if self.is_empty() {
            return self.offset;
        }
        self.offset + padded(self.used as u64)
    }

    /// Whether `bytes` more (record headers included) go in.
    #[inline]
    pub(super) fn fits(&self, bytes: usize) -> bool {
        bytes <= self.limit.saturating_sub(self.used)
    }

    /// Lay down a record whose stored length was found to fit.
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

    /// The bytes to write, checksums filled in and padded; `durable` is what is known durable now.
    pub(super) fn seal(&mut self, store: u128, durable: Seq) -> &[u8] {
        assert!(0 < self.count, "an empty group is not written");
        assert!(durable < self.first, "I4: durable records are behind");
        let seed = format::seed(store, self.segment.number);
        let used = self.used;
        let whole = used.next_multiple_of(4096);
        assert!(used <= self.limit, "I2: groups stay in their segment");
        let header = GroupHeader {
            segment: self.segment.number,
            offset: self.offset,
            first: self.first,
            durable,
            void: self.void,
            length: u32::try_from(used).expect("buffers are below 4 GiB"),
            count: self.count,
        };
        let (bytes, padding) = self.memory.bytes_mut().split_at_mut(used);
        let (head, records) = bytes.split_at_mut(GROUP_HEADER);
        head.copy_from_slice(&encode_group(&header, seed));
        let sealed = format::seal_records(records, seed);
        assert_eq!(sealed, self.count, "I1: every record is sealed once");
        let padding = padding
            .get_mut(..whole - used)
            .expect("the capacity is whole blocks");
        padding.fill(0);
        let memory = self.memory.bytes_mut();
        memory.get(..whole).expect("the capacity is whole blocks")
    }

    /// The memory, to be used again.
    pub(super) fn into_memory(self) -> Memory {
        self.memory
    }

    /// Move an empty group to the beginning of another segment.
    pub(super) fn restart_in(&mut self, segment: Arc<Segment>, void: Seq, first: Seq) {
        assert!(BLOCK <= segment.size, "a segment has a header");
        self.segment = segment;
        self.void = void;
        self.skip_to(BLOCK, first);
    }

    /// Move an empty group within its segment, behind records that did not go through it.
    pub(super) fn skip_to(&mut self, offset: u64, first: Seq) {
        assert!(self.is_empty(), "only an empty group can move");
        assert!(offset.is_multiple_of(BLOCK), "I2: groups begin at blocks");
        assert!(offset <= self.segment.size, "the segment ends before");
        let room = usize::try_from(self.segment.size - offset).unwrap_or(usize::MAX);
        self.offset = offset;
        self.first = first;
        self.limit = room.min(self.memory.capacity());
    }

    pub(super) fn void(&self) -> Seq {
        self.void
    }
}

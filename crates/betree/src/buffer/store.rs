//! Entries in the order in which they were written: payloads in an arena, and one slot each.
//!
//! A payload is `varint(key length << 2 | has value << 1 | op)`, `varint(stamp - base of its
//! chunk)`, `varint(value length)` if it has one, the key, the value. A slot is 12 bytes: the head
//! of the key and the address. So a key of 24 bytes without value takes 12 + 2 + 1..2 + 24 bytes:
//! about 40.
//!
//! The *head* of a key are the 8 bytes after the `skip` bytes that all keys share, as a big-endian
//! number, short ones filled up with zeros: heads in order are keys in order, equal heads say
//! nothing.
//!
//! Invariants:
//! - I1: all keys of a store begin with the same `skip` bytes.
//! - I2: slots are in the order of the writes; slot `i` is older than slot `i + 1`.
//! - I3: slots grow by a quarter, so memory held is at most about a tenth above memory used.
//!
//! No lock: the owner of the store guards it.

use std::cmp::Ordering;

use super::order::Ref;
use crate::arena::{Address, Arena, Chunk};
use crate::types::{self, Entry, Op, Seq};

/// Maximum length of the fields before the key: three varints of 64 bits.
const PREFIX: usize = 30;

/// Determines the order and the place of an entry. The head is stored in two halves to keep the
/// alignment at 4.
#[derive(Clone, Copy, Debug)]
struct Slot {
    high: u32,
    low: u32,
    address: Address,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Store {
    arena: Arena,
    slots: Vec<Slot>,
    skip: usize,
}

impl Store {
    pub(super) fn new(skip: usize) -> Store {
        Store {
            arena: Arena::default(),
            slots: Vec::new(),
            skip,
        }
    }

    /// Append an entry. If a new chunk is started, its stamps are relative to `base`, which is at
    /// most `stamp`.
    #[inline]
    pub(super) fn push(&mut self, stamp: u64, base: u64, op: Op, key: &[u8], value: &[u8]) {
        assert!(self.skip <= key.len(), "I1: key of {} bytes", key.len());
        debug_assert!(
            op == Op::Put || value.is_empty(),
            "a tombstone has no value"
        );
        debug_assert!(self.shares_prefix(key), "I1: key {}", key.escape_ascii());
        let (address, chunk) = self.arena.room(PREFIX + key.len() + value.len(), base);
        write_prefix(chunk, stamp, op, key.len(), value.len());
        chunk.bytes.extend_from_slice(key);
        if !value.is_empty() {
            chunk.bytes.extend_from_slice(value);
        }
        let head = head(key, self.skip);
        if self.slots.len() == self.slots.capacity() {
            self.grow();
        }
        self.slots.push(Slot {
            high: u32::try_from(head >> 32).expect("32 bits are left"),
            low: u32::try_from(head & 0xFFFF_FFFF).expect("32 bits are left"),
            address,
        });
    }

    #[cold]
    fn grow(&mut self) {
        let more = (self.slots.len() / 4).max(4);
        self.slots.reserve_exact(more);
        debug_assert!(
            self.slots.capacity() <= self.slots.len() + more,
            "I3: slots grow by a quarter"
        );
        let most = u32::MAX as usize;
        assert!(self.slots.capacity() < most, "an index has 32 bits");
    }

    /// Number of entries.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Memory held, in bytes.
    pub(super) fn held(&self) -> usize {
        self.arena.held() + self.slots.capacity() * size_of::<Slot>()
    }

    /// References to all slots from number `from` on, in their order.
    pub(super) fn refs(&self, from: usize) -> impl DoubleEndedIterator<Item = Ref> {
        let slots = self.slots.get(from..).unwrap_or_default();
        slots.iter().enumerate().map(move |(i, slot)| {
            let index = u32::try_from(from + i).expect("asserted when the slots grew");
            Ref::new(slot.head(), index, slot.address)
        })
    }

    /// The whole entry.
    #[inline]
    pub(super) fn entry(&self, address: Address) -> Entry<'_> {
        let chunk = self.arena.chunk(address);
        let mut rest = chunk.bytes.get(address.offset()..).unwrap_or_default();
        if let &[word, delta, ref rest @ ..] = rest
            && word & 0x82 == 0
            && delta < 0x80
        {
            // A key of at most 31 bytes without value: nearly every index entry.
            let (key, _) = rest.split_at(usize::from(word >> 2));
            return Entry {
                key,
                seq: Seq(chunk.base + u64::from(delta)),
                op: if word & 1 == 0 { Op::Put } else { Op::Delete },
                value: &[],
            };
        }
        let word = read_varint(&mut rest);
        let delta = read_varint(&mut rest);
        let value_len = if word & 2 == 0 {
            0
        } else {
            read_varint(&mut rest)
        };
        let (key, rest) = rest.split_at(length(word >> 2));
        let (value, _) = rest.split_at(length(value_len));
        Entry {
            key,
            seq: Seq(chunk.base + delta),
            op: if word & 1 == 0 { Op::Put } else { Op::Delete },
            value,
        }
    }

    /// The key alone.
    #[inline]
    pub(super) fn key(&self, address: Address) -> &[u8] {
        self.entry(address).key
    }

    /// The stamp alone.
    #[inline]
    pub(super) fn stamp(&self, address: Address) -> Seq {
        self.entry(address).seq
    }

    /// Prefetch the payload.
    #[inline]
    pub(super) fn prefetch(&self, address: Address) {
        self.arena.prefetch(address);
    }

    /// Length of the prefix that all keys share and heads omit.
    pub(super) fn skip(&self) -> usize {
        self.skip
    }

    /// The position of any key relative to the keys of this store.
    #[inline]
    pub(super) fn probe<'k>(&self, key: &'k [u8]) -> Probe<'k> {
        let shared = match self.slots.first() {
            Some(slot) => self.key(slot.address).get(..self.skip).unwrap_or_default(),
            None => &[],
        };
        let begin = key.get(..shared.len()).unwrap_or(key);
        Probe {
            beside: begin.cmp(shared),
            head: head(key, self.skip),
            key,
        }
    }

    fn shares_prefix(&self, key: &[u8]) -> bool {
        self.probe(key).beside == Ordering::Equal
    }
}

impl Slot {
    #[inline]
    fn head(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// A key to search for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe<'k> {
    /// How it compares with every key of the store, if it does not have their common prefix.
    pub(super) beside: Ordering,
    pub(super) head: u64,
    pub(super) key: &'k [u8],
}

impl Probe<'_> {
    /// Compare the key of `r` with the probe.
    #[inline]
    pub(super) fn compare(&self, store: &Store, r: Ref) -> Ordering {
        if self.beside != Ordering::Equal {
            return self.beside.reverse();
        }
        let heads = r.head().cmp(&self.head);
        heads.then_with(|| store.key(r.address()).cmp(self.key))
    }
}

/// The head of a key: see the module documentation.
#[inline]
pub(super) fn head(key: &[u8], skip: usize) -> u64 {
    types::head(key.get(skip..).unwrap_or_default())
}

fn length(number: u64) -> usize {
    usize::try_from(number).expect("it was the length of a slice when it was written")
}

#[inline]
fn write_prefix(chunk: &mut Chunk, stamp: u64, op: Op, key: usize, value: usize) {
    assert!(
        chunk.base <= stamp,
        "stamps of a chunk never fall below its base"
    );
    let word = (key as u64) << 2 | u64::from(value != 0) << 1 | op as u64;
    let delta = stamp - chunk.base;
    if word < 1 << 14 && delta < 128 && value == 0 {
        // One store operation for the payload header of nearly every index entry.
        let [low, high, ..] = (word & 0x7F | (word >> 7) << 8).to_le_bytes();
        let [delta, ..] = delta.to_le_bytes();
        if word < 128 {
            chunk.bytes.extend_from_slice(&[low, delta]);
        } else {
            chunk.bytes.extend_from_slice(&[low | 0x80, high, delta]);
        }
        return;
    }
    write_varint(&mut chunk.bytes, word);
    write_varint(&mut chunk.bytes, delta);
    if value != 0 {
        write_varint(&mut chunk.bytes, value as u64);
    }
}

#[inline]
fn write_varint(out: &mut Vec<u8>, mut number: u64) {
    while 0x80 <= number {
        let [low, ..] = number.to_le_bytes();
        out.push(low | 0x80);
        number >>= 7;
    }
    let [low, ..] = number.to_le_bytes();
    out.push(low);
}

#[inline]
fn read_varint(rest: &mut &[u8]) -> u64 {
    let mut number = 0;
    let mut shift = 0;
    while let Some((&byte, after)) = rest.split_first() {
        *rest = after;
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            break;
        }
        shift += 7;
    }
    number
}

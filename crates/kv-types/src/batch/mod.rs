//! Write batches: changes collected without an engine, in bytes that a redo log can store as they
//! are.
//!
//! A batch is a sequence of changes. Each begins with one byte:
//!
//! ```text
//! bits 0-1  kind: 0 put, 1 delete, 2 delete range; 3 is not used
//! bit  2    1: the tree is that of the change before, and is left out
//! bit  3    not used, 0
//! bits 4-5  start of a range: 0 unbounded, 1 included, 2 excluded (else 0)
//! bits 6-7  end of a range, likewise
//! ```
//!
//! Then the tree (unless left out), then, by kind,
//! put: length of the key, length of the value, key, value; delete: length of the key, key;
//! delete range: for the start, then the end, unless unbounded: length, key. Numbers are 32-bit
//! varints: 7 bits a byte, low first, in as few bytes as possible.
//!
//! Invariants:
//! - I1. What is in a batch decodes: pushing writes nothing else.
//! - I2. Foreign bytes are decoded whole, with every limit checked, before one change of them is
//!   given out.

use std::ops::Bound;

use crate::error::{Error, Result};
use crate::range::{KeyRange, Limits};
use crate::tree::TreeId;

const KIND: u8 = 0b11;
const PUT: u8 = 0;
const DELETE: u8 = 1;
const DELETE_RANGE: u8 = 2;
const SAME_TREE: u8 = 1 << 2;
const UNUSED: u8 = 1 << 3;
const START: u32 = 4;
const END: u32 = 6;
/// Maximum length of the head of a change: its first byte, and three varints of at most 5 bytes.
const HEAD_MAX: usize = 1 + 3 * 5;

/// One change of a [`Batch`], borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Set `key` to `value` in `tree`, whether or not `key` exists.
    Put {
        /// The tree.
        tree: TreeId,
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// Remove `key` from `tree`; has no effect if it does not exist.
    Delete {
        /// The tree.
        tree: TreeId,
        /// The key.
        key: &'a [u8],
    },
    /// Remove every key of `range` from `tree`.
    DeleteRange {
        /// The tree.
        tree: TreeId,
        /// The keys to remove.
        range: KeyRange<'a>,
    },
}

/// The number of changes of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Puts.
    pub puts: usize,
    /// Deletes of one key.
    pub deletes: usize,
    /// Deletes of a range.
    pub range_deletes: usize,
}

impl Counts {
    /// All changes.
    #[must_use]
    pub fn total(self) -> usize {
        self.puts + self.deletes + self.range_deletes
    }
}

/// Changes to any number of trees, applied in order and atomically by an engine, without reading.
/// Nothing is checked here: lengths and trees are checked when the batch is written. A batch can be
/// cleared and reused; it keeps its memory.
#[doc(alias = "write batch")]
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// The tree of the last change.
    tree: Option<TreeId>,
    counts: Counts,
    /// Bytes of keys and values.
    content: usize,
    key_max: usize,
    value_max: usize,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Batch {
        Batch::default()
    }

    /// An empty batch with memory for a payload of `bytes`.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Batch {
        Batch {
            bytes: Vec::with_capacity(bytes),
            ..Batch::default()
        }
    }

    /// Set `key` to `value`.
    #[inline]
    pub fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) {
        let mut head = Head::new();
        self.begin(&mut head, PUT, tree);
        head.length(key);
        head.length(value);
        self.bytes.reserve(head.len + key.len() + value.len());
        self.bytes.extend_from_slice(head.bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.counts.puts += 1;
        self.content += key.len() + value.len();
        self.key_max = self.key_max.max(key.len());
        self.value_max = self.value_max.max(value.len());
        debug_assert!(key.len() <= self.key_max, "the longest key is known");
        debug_assert!(value.len() <= self.value_max, "so is the longest value");
    }

    /// Remove `key`; has no effect if it does not exist.
    #[inline]
    pub fn delete(&mut self, tree: TreeId, key: &[u8]) {
        let mut head = Head::new();
        self.begin(&mut head, DELETE, tree);
        head.length(key);
        self.bytes.extend_from_slice(head.bytes());
        self.bytes.extend_from_slice(key);
        self.counts.deletes += 1;
        self.content += key.len();
        self.key_max = self.key_max.max(key.len());
        debug_assert!(key.len() <= self.key_max, "the longest key is known");
    }

    /// Remove every key of `range`; a range with crossed bounds holds none.
    pub fn delete_range(&mut self, tree: TreeId, range: KeyRange<'_>) {
        let KeyRange { start, end } = range;
        let mut head = Head::new();
        let kind = DELETE_RANGE | bound_bits(start) << START | bound_bits(end) << END;
        self.begin(&mut head, kind, tree);
        self.bytes.extend_from_slice(head.bytes());
        for bound in [start, end] {
            let (Bound::Included(key) | Bound::Excluded(key)) = bound else {
                continue;
            };
            let mut head = Head::new();
            head.length(key);
            self.bytes.extend_from_slice(head.bytes());
            self.bytes.extend_from_slice(key);
            self.content += key.len();
            self.key_max = self.key_max.max(key.len());
        }
        self.counts.range_deletes += 1;
    }

    #[inline]
    fn begin(&mut self, head: &mut Head, kind: u8, tree: TreeId) {
        if self.tree == Some(tree) {
            head.byte(kind | SAME_TREE);
        } else {
            head.byte(kind);
            head.varint(tree.0);
            self.tree = Some(tree);
        }
        debug_assert_eq!(self.tree, Some(tree), "I1: the next may leave it out");
    }

    /// The number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.total()
    }

    /// Whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        debug_assert_eq!(
            self.bytes.is_empty(),
            self.len() == 0,
            "I1: bytes are changes"
        );
        self.bytes.is_empty()
    }

    /// The number of changes of each kind.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The sum of the lengths of all keys, values and bounds, in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        debug_assert!(
            self.content <= self.bytes.len(),
            "I1: content is in the bytes"
        );
        self.content
    }

    /// The length of the longest key (or bound of a range), in bytes.
    #[must_use]
    pub fn longest_key(&self) -> usize {
        self.key_max
    }

    /// The length of the longest value, in bytes.
    #[must_use]
    pub fn longest_value(&self) -> usize {
        self.value_max
    }

    /// Remove all changes; the allocated memory is kept for reuse.
    pub fn clear(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        *self = Batch {
            bytes,
            ..Batch::default()
        };
        debug_assert_eq!(self.len(), 0, "nothing is left");
    }

    /// The changes in the order in which they were added.
    #[inline]
    pub fn ops(&self) -> Ops<'_> {
        Ops::new(&self.bytes)
    }

    /// The encoded changes, for a log: a few bytes for each change besides keys and values.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.bytes
    }

    /// The changes of a batch read from a log. Nothing is given out unless all of `payload` is
    /// sound and within `limits`.
    ///
    /// # Errors
    /// `Corrupt`, saying what is wrong and where in `payload`.
    pub fn decode(payload: &[u8], limits: Limits) -> Result<Ops<'_>> {
        let mut ops = Ops::new(payload);
        while !ops.rest.is_empty() {
            let at = payload.len() - ops.rest.len();
            let change = ops.step();
            change
                .and_then(|change| within(limits, &change))
                .map_err(|e| {
                    Error::corrupt(format!("{e}, in the change at byte {at} of a batch"))
                })?;
        }
        debug_assert!(ops.rest.is_empty(), "I2: walked through to the end");
        Ok(Ops::new(payload))
    }
}

/// The changes of a batch, in order. Made by [`Batch::ops`].
#[derive(Clone, Debug)]
pub struct Ops<'a> {
    rest: &'a [u8],
    tree: Option<TreeId>,
}

impl<'a> Ops<'a> {
    fn new(bytes: &'a [u8]) -> Ops<'a> {
        Ops {
            rest: bytes,
            tree: None,
        }
    }

    /// Decode the next change, which must exist.
    #[inline]
    fn step(&mut self) -> Result<Change<'a>, &'static str> {
        let &first = self.take(1)?.first().expect("one byte was taken");
        if first & UNUSED != 0 {
            return Err("an unused bit is set");
        }
        if first & SAME_TREE == 0 {
            self.tree = Some(TreeId(self.varint()?));
        }
        let tree = self.tree.ok_or("the first change names no tree")?;
        let bounds = first >> START;
        match first & KIND {
            PUT if bounds == 0 => {
                let (key, value) = (self.length()?, self.length()?);
                Ok(Change::Put {
                    tree,
                    key: self.take(key)?,
                    value: self.take(value)?,
                })
            }
            DELETE if bounds == 0 => {
                let key = self.length()?;
                let key = self.take(key)?;
                Ok(Change::Delete { tree, key })
            }
            DELETE_RANGE => {
                let start = self.bound(bounds & 0b11)?;
                let end = self.bound(bounds >> (END - START))?;
                let range = KeyRange { start, end };
                Ok(Change::DeleteRange { tree, range })
            }
            _ => Err("an unknown kind of change"),
        }
    }

    fn bound(&mut self, bits: u8) -> Result<Bound<&'a [u8]>, &'static str> {
        if bits == 0 {
            return Ok(Bound::Unbounded);
        }
        let len = self.length()?;
        let key = self.take(len)?;
        match bits {
            1 => Ok(Bound::Included(key)),
            2 => Ok(Bound::Excluded(key)),
            _ => Err("an unknown kind of bound"),
        }
    }

    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or("it is cut off")?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn length(&mut self) -> Result<usize, &'static str> {
        let length = usize::try_from(self.varint()?);
        length.map_err(|_| "a length is above the memory of this machine")
    }

    #[inline]
    fn varint(&mut self) -> Result<u32, &'static str> {
        let (&first, rest) = self.rest.split_first().ok_or("it is cut off")?;
        self.rest = rest;
        if first < 0x80 {
            return Ok(u32::from(first));
        }
        self.long_varint(first)
    }

    fn long_varint(&mut self, first: u8) -> Result<u32, &'static str> {
        let mut number = u64::from(first & 0x7f);
        for shift in [7, 14, 21, 28] {
            let (&byte, rest) = self.rest.split_first().ok_or("it is cut off")?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                if byte == 0 {
                    return Err("a number has a byte too many");
                }
                return u32::try_from(number).map_err(|_| "a number is above 32 bits");
            }
        }
        Err("a number is above 32 bits")
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Change<'a>;

    #[inline]
    fn next(&mut self) -> Option<Change<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        // I1, I2: the bytes were made here, or were walked through once.
        Some(self.step().expect("I2: checked before"))
    }
}

/// The head of a change, built on the stack so that the batch grows once for it.
struct Head {
    buffer: [u8; HEAD_MAX],
    len: usize,
}

impl Head {
    #[inline]
    fn new() -> Head {
        Head {
            buffer: [0; HEAD_MAX],
            len: 0,
        }
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        let place = self.buffer.get_mut(self.len);
        *place.expect("a head has a byte and at most three varints") = byte;
        self.len += 1;
    }

    #[inline]
    fn varint(&mut self, mut number: u32) {
        while number >= 0x80 {
            self.byte((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.byte((number & 0x7f) as u8);
    }

    /// # Panics
    /// For 4 GiB and above, which no limit allows and no log could hold.
    #[inline]
    fn length(&mut self, bytes: &[u8]) {
        let len = u32::try_from(bytes.len());
        self.varint(len.expect("keys and values are below 4 GiB"));
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.len).expect("len <= HEAD_MAX")
    }
}

fn bound_bits(bound: Bound<&[u8]>) -> u8 {
    match bound {
        Bound::Unbounded => 0,
        Bound::Included(_) => 1,
        Bound::Excluded(_) => 2,
    }
}

fn within(limits: Limits, change: &Change<'_>) -> Result<(), &'static str> {
    let end_of = |bound: Bound<&[u8]>| match bound {
        Bound::Unbounded => 0,
        Bound::Included(key) | Bound::Excluded(key) => key.len(),
    };
    let (key, value) = match *change {
        Change::Put { key, value, .. } => (key.len(), value.len()),
        Change::Delete { key, .. } => (key.len(), 0),
        Change::DeleteRange { range, .. } => (end_of(range.start).max(end_of(range.end)), 0),
    };
    if limits.key_max < key {
        return Err("a key above the limit");
    }
    if limits.value_max < value {
        return Err("a value above the limit");
    }
    Ok(())
}

#[cfg(test)]
mod tests;

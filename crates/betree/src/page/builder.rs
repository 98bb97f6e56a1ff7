//! Collecting the entries of a page and encoding them.
//!
//! Keys and values are copied back to back as they come. What most pages do without - lengths,
//! sequence numbers, operations - is collected only from the first entry on that needs it, so that
//! a push of the plainest entry is two copies. All memory is kept from page to page.

use std::mem;

use super::compress::Compressor;
use super::header::{
    FRONT, HEADER_LEN, Header, KEY_LENGTHS, MAX_ENTRIES, MAX_KEPT, MAX_KEY, MAX_RAW, OPS, SEQS,
    TEMPLATE, TRAILER_LEN, VALUE_LENGTHS,
};
use super::template::Template;
use super::{Codec, PageIdent, front, planes};
use crate::types::{Entry, Op, Seq};

/// Minimum number of keys of one length for byte planes: with fewer keys, describing each plane
/// costs more than planes save, so they are front-coded.
const PLANES_FROM: usize = 16;

/// The longest keys stored as planes.
const PLANES_WIDTH: usize = 256;

/// Bytes that [`PageBuilder::raw_len`] adds per entry to those of key and value.
const ENTRY_LEN: usize = 2;

/// Collects entries and encodes them as a page.
pub(crate) struct PageBuilder {
    compressor: Compressor,
    template: Template,
    entries: usize,
    keys: Spans,
    values: Spans,
    /// Empty while all are 0.
    seqs: Vec<u64>,
    /// Empty while all are puts.
    ops: Vec<u8>,
    scratch: Vec<u8>,
    rows: Vec<u8>,
    packed: Vec<u8>,
}

/// Byte strings back to back.
#[derive(Default)]
struct Spans {
    bytes: Vec<u8>,
    /// The length of every string while all have the same length.
    width: usize,
    /// The end of each string; empty while all have the same length.
    ends: Vec<usize>,
    /// The start of the last string.
    last: usize,
}

impl PageBuilder {
    /// A builder without entries.
    ///
    /// # Panics
    /// If the codec is not [`Codec::available`].
    pub(crate) fn new(codec: Codec) -> PageBuilder {
        PageBuilder {
            compressor: Compressor::new(codec),
            template: Template::default(),
            entries: 0,
            keys: Spans::default(),
            values: Spans::default(),
            seqs: Vec::new(),
            ops: Vec::new(),
            scratch: Vec::new(),
            rows: Vec::new(),
            packed: Vec::new(),
        }
    }

    /// Add an entry that sorts after all others (I1).
    ///
    /// # Panics
    /// If the entry breaks the limits of a page: a key of 32 KiB, 96 MiB or 1,048,576 entries in
    /// all. A page finished soon after its target of at most 1 MiB never does.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry<'_>) {
        debug_assert!(self.follows(&entry), "I1: entries ascend");
        debug_assert!(
            entry.op == Op::Put || entry.value.is_empty(),
            "tombstones have no value"
        );
        self.keys.push(self.entries, entry.key);
        self.values.push(self.entries, entry.value);
        if entry.seq != Seq::ANCIENT || !self.seqs.is_empty() {
            self.seqs.resize(self.entries, 0);
            self.seqs.push(entry.seq.0);
        }
        if entry.op != Op::Put || !self.ops.is_empty() {
            self.ops.resize(self.entries, Op::Put as u8);
            self.ops.push(entry.op as u8);
        }
        self.entries += 1;
        assert!(entry.key.len() <= MAX_KEY, "a key below 32 KiB");
        assert!(
            self.entries <= MAX_ENTRIES,
            "a page of at most 2^20 entries"
        );
        assert!(
            self.keys.bytes.len() + self.values.bytes.len() <= MAX_RAW,
            "at most 96 MiB"
        );
    }

    /// The bytes of all keys and values, and two per entry.
    #[inline]
    pub(crate) fn raw_len(&self) -> usize {
        self.keys.bytes.len() + self.values.bytes.len() + ENTRY_LEN * self.entries
    }

    #[cfg(test)]
    /// The number of entries.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    #[cfg(test)]
    /// The first key. There must be one.
    pub(crate) fn first_key(&self) -> &[u8] {
        assert!(!self.is_empty(), "a page without entries has no first key");
        self.keys.first()
    }

    /// The last key. There must be one.
    #[inline]
    pub(crate) fn last_key(&self) -> &[u8] {
        assert!(!self.is_empty(), "a page without entries has no last key");
        self.keys.last()
    }

    /// Append the page to `out` and start another one. Returns the length of the page.
    ///
    /// # Panics
    /// If there are no entries.
    pub(crate) fn finish(&mut self, ident: PageIdent, out: &mut Vec<u8>) -> u32 {
        assert!(!self.is_empty(), "a page has at least one entry");
        debug_assert!(
            self.seqs.is_empty() || self.seqs.len() == self.entries,
            "one each"
        );
        debug_assert!(
            self.ops.is_empty() || self.ops.len() == self.entries,
            "one each"
        );
        let begin = out.len();
        out.extend([0; HEADER_LEN]);
        let mut flags = self.flags();
        self.packed.clear();
        self.encode_keys(flags, out);
        self.encode_columns(out);
        let template = flags & (FRONT | VALUE_LENGTHS) == 0 && {
            let (values, width) = (&self.values.bytes, self.values.width);
            self.template.encode(values, width, out, &mut self.packed)
        };
        if template {
            flags |= TEMPLATE;
        }
        let mut header = Header {
            codec: 0,
            flags,
            entries: self.entries,
            key_bytes: self.keys.bytes.len(),
            value_bytes: self.values.bytes.len(),
            packed_raw: self.values.bytes.len(),
            packed_stored: 0,
            stored: 0,
        };
        let packed_at = out.len();
        let packed = if header.has(FRONT) {
            // `packed` holds the suffixes.
            self.packed.extend_from_slice(&self.values.bytes);
            &self.packed
        } else if header.has(TEMPLATE) {
            &self.packed
        } else {
            &self.values.bytes
        };
        header.packed_raw = packed.len();
        header.codec = self.compressor.append(packed, out);
        header.packed_stored = out.len() - packed_at;
        let needed = header
            .least_stored()
            .saturating_sub(out.len() - begin + TRAILER_LEN);
        out.resize(out.len() + needed, 0);
        header.stored = out.len() - begin + TRAILER_LEN;
        let (_, page) = out.split_at_mut(begin);
        page.iter_mut()
            .zip(header.encode())
            .for_each(|(to, from)| *to = from);
        let checksum = ident.checksum(page);
        out.extend(checksum.to_le_bytes());
        self.clear();
        u32::try_from(header.stored).expect("a page is below 4 GiB")
    }

    /// Drop all entries. Keep the memory, except of very large pages.
    fn clear(&mut self) {
        debug_assert!(self.entries <= MAX_ENTRIES, "a page within its limits");
        self.entries = 0;
        self.keys.clear();
        self.values.clear();
        self.seqs.clear();
        self.ops.clear();
        self.packed.clear();
        self.packed.shrink_to(MAX_KEPT);
        self.compressor.shrink(MAX_KEPT);
    }

    fn follows(&self, entry: &Entry<'_>) -> bool {
        if self.is_empty() {
            return true;
        }
        let seq = if self.seqs.is_empty() {
            0
        } else {
            *self.seqs.last().unwrap_or(&0)
        };
        self.keys.last() < entry.key || (self.keys.last() == entry.key && entry.seq.0 < seq)
    }

    fn flags(&self) -> u8 {
        let keys = match (self.keys.ends.is_empty(), self.keys.width) {
            (false, _) => FRONT | KEY_LENGTHS,
            (true, 1..=PLANES_WIDTH) if PLANES_FROM <= self.entries => 0,
            (true, _) => FRONT,
        };
        let seqs = if self.seqs.is_empty() { 0 } else { SEQS };
        let ops = if self.ops.is_empty() { 0 } else { OPS };
        let values = if self.values.ends.is_empty() {
            0
        } else {
            VALUE_LENGTHS
        };
        keys | seqs | ops | values
    }

    /// Keys as planes, or their lengths as planes and their suffixes in `self.packed`.
    fn encode_keys(&mut self, flags: u8, out: &mut Vec<u8>) {
        if flags & FRONT == 0 {
            let (keys, width) = (&self.keys.bytes, self.keys.width);
            planes::encode(keys, width, &mut self.scratch, out);
            return;
        }
        self.rows.clear();
        let mut before: &[u8] = &[];
        for index in 0..self.entries {
            let key = self.keys.get(index);
            front::encode(before, key, &mut self.rows, &mut self.packed);
            before = key;
        }
        planes::encode(&self.rows, front::ROW, &mut self.scratch, out);
    }

    /// Operations, sequence numbers and lengths of values, where there are any.
    fn encode_columns(&mut self, out: &mut Vec<u8>) {
        if !self.ops.is_empty() {
            planes::encode(&self.ops, 1, &mut self.scratch, out);
        }
        if !self.seqs.is_empty() {
            self.rows.clear();
            self.rows
                .extend(self.seqs.iter().flat_map(|seq| seq.to_be_bytes()));
            planes::encode(&self.rows, 8, &mut self.scratch, out);
        }
        if !self.values.ends.is_empty() {
            self.rows.clear();
            let mut start = 0;
            for &end in &self.values.ends {
                let len = u32::try_from(end - start).expect("values are below 96 MiB");
                self.rows.extend(len.to_be_bytes());
                start = end;
            }
            planes::encode(&self.rows, 4, &mut self.scratch, out);
        }
    }
}

impl Spans {
    /// Add `span` after `count` others.
    #[inline]
    fn push(&mut self, count: usize, span: &[u8]) {
        self.last = self.bytes.len();
        self.bytes.extend_from_slice(span);
        if count == 0 {
            self.width = span.len();
        } else if span.len() != self.width || !self.ends.is_empty() {
            self.push_end(count);
        }
    }

    /// Record the ends of strings, from the first string with a different length on.
    #[inline(never)]
    fn push_end(&mut self, count: usize) {
        if self.ends.is_empty() {
            let width = self.width;
            self.ends.extend((1..=count).map(|index| index * width));
        }
        self.ends.push(self.bytes.len());
    }

    fn get(&self, index: usize) -> &[u8] {
        let (start, end) = if self.ends.is_empty() {
            (index * self.width, (index + 1) * self.width)
        } else {
            let start = index
                .checked_sub(1)
                .and_then(|before| self.ends.get(before));
            (
                start.copied().unwrap_or(0),
                self.ends.get(index).copied().unwrap_or(0),
            )
        };
        self.bytes
            .get(start..end)
            .expect("an index below the number of entries")
    }

    #[cfg(test)]
    fn first(&self) -> &[u8] {
        self.bytes
            .get(..self.width)
            .expect("the first span has this length")
    }

    #[inline]
    fn last(&self) -> &[u8] {
        self.bytes
            .get(self.last..)
            .expect("the last span begins within the bytes")
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(MAX_KEPT);
        self.ends.clear();
        mem::take(&mut self.width);
        mem::take(&mut self.last);
    }
}

//! A decoded page: full keys and values, each in one contiguous array, so that reading an entry
//! takes arithmetic and a slice.
//!
//! The bytes came from disk: after the checksum they are very likely what a builder wrote, but
//! nothing here relies on it. What lies in a decoded page is consistent (I5): starts ascend and end
//! at the length of their bytes; columns are empty or have one element per entry. The order of
//! entries (I1) is not verified: a page that was forged gives wrong answers, not a panic.

use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::mem;

use super::bytes::{Reader, load};
use super::header::{
    FRONT, HEADER_LEN, Header, KEY_LENGTHS, MAX_KEPT, OPS, SEQS, TEMPLATE, TRAILER_LEN,
    VALUE_LENGTHS,
};
use super::template::Template;
use super::{PageError, PageIdent, compress, front, planes, stored_len};
use crate::plant::{Plant, planted};
use crate::types::{Entry, Op, Seq};

/// A decoded page.
#[derive(Default)]
pub(crate) struct Page {
    entries: usize,
    keys: Vec<u8>,
    /// The length of every key, if `key_starts` is empty.
    key_width: usize,
    key_starts: Vec<u32>,
    /// The packed part: suffixes of front-coded keys (used up), then the values.
    packed: Vec<u8>,
    values_at: usize,
    /// The length of every value, if `value_starts` is empty.
    value_width: usize,
    /// The start of each value in `packed`, and the end of the last.
    value_starts: Vec<u32>,
    /// Empty if all are 0.
    seqs: Vec<u64>,
    /// Empty if all are puts.
    ops: Vec<u8>,
    scratch: Vec<u8>,
    rows: Vec<u8>,
}

impl Page {
    /// Decode a page.
    ///
    /// # Errors
    /// The bytes are not a page, or not this one.
    pub(crate) fn decode(stored: &[u8], ident: PageIdent) -> Result<Page, PageError> {
        let mut page = Page::default();
        page.decode_into(stored, ident)?;
        // Decoded pages go to the cache: release memory that is not needed any more.
        page.scratch = Vec::new();
        page.rows = Vec::new();
        Ok(page)
    }

    /// Decode another page into the memory of this one. After an error the page has no entries.
    ///
    /// # Errors
    /// The bytes are not a page, or not this one.
    pub(crate) fn decode_into(&mut self, stored: &[u8], ident: PageIdent) -> Result<(), PageError> {
        self.entries = 0;
        let said = stored_len(stored)?;
        if said != stored.len() {
            return Err(PageError::Length {
                said,
                len: stored.len(),
            });
        }
        let (bytes, trailer) = stored
            .split_last_chunk::<TRAILER_LEN>()
            .ok_or(PageError::Short { len: stored.len() })?;
        let (kept, computed) = (u64::from_le_bytes(*trailer), ident.checksum(bytes));
        if kept != computed && !planted(Plant::SkipChecksum) {
            return Err(PageError::Checksum {
                stored: kept,
                computed,
            });
        }
        let header = Header::decode(bytes)?;
        let mut reader = Reader::new(bytes.get(HEADER_LEN..).unwrap_or_default());
        self.clear();
        let decoded = self.decode_body(&header, &mut reader);
        if decoded.is_err() {
            self.clear();
        }
        decoded
    }

    /// The number of entries.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    /// The entry at `index`, which is below [`Page::len`].
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> Entry<'_> {
        Entry {
            key: self.key(index),
            seq: self.seq(index),
            op: match self.ops.get(index) {
                None | Some(0) => Op::Put,
                Some(_) => Op::Delete,
            },
            value: self.value(index),
        }
    }

    /// The key at `index`, which is below [`Page::len`].
    #[inline]
    pub(crate) fn key(&self, index: usize) -> &[u8] {
        assert!(index < self.entries, "an index below the number of entries");
        if self.key_starts.is_empty() {
            let start = index * self.key_width;
            self.keys.get(start..start + self.key_width)
        } else {
            span(&self.keys, &self.key_starts, index)
        }
        .expect("I5: keys lie within their bytes")
    }

    /// The first index whose entry does not sort before (`key`, `seq`). If its entry has this key,
    /// it is the newest version that snapshot `seq` sees.
    #[inline]
    pub(crate) fn lower_bound(&self, key: &[u8], seq: Seq) -> usize {
        let (mut low, mut high) = self.narrow(key);
        while low < high {
            let middle = low.midpoint(high);
            let before = match self.key(middle).cmp(key) {
                Ordering::Less => true,
                Ordering::Equal => seq < self.seq(middle),
                Ordering::Greater => false,
            };
            if before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The range of entries that contains `key` or its position, found by the first eight bytes of
    /// keys, which compare as one number without a call or an unpredictable branch.
    #[inline]
    fn narrow(&self, key: &[u8]) -> (usize, usize) {
        let all = (0, self.entries);
        let Some(head) = key.first_chunk().map(|head| u64::from_be_bytes(*head)) else {
            return all;
        };
        let (Some(last), true) = (self.entries.checked_sub(1), 8 <= self.key_width) else {
            return all;
        };
        if !self.key_starts.is_empty() || self.head(0) == self.head(last) {
            return all;
        }
        let low = self.count_heads(0, |other| other < head);
        let has = |index| index < self.entries && self.head(index) == head;
        if !has(low) {
            (low, low)
        } else if !has(low + 1) {
            (low, low + 1)
        } else {
            (low, self.count_heads(low, |other| other <= head))
        }
    }

    /// The first index from `low` on for whose key head `before` is false.
    #[inline(always)]
    fn count_heads(&self, mut low: usize, before: impl Fn(u64) -> bool) -> usize {
        let mut len = self.entries - low;
        while 1 < len {
            let half = len / 2;
            let is_before = before(self.head(low + half - 1));
            low = select_unpredictable(is_before, low + half, low);
            len -= half;
        }
        low + usize::from(before(self.head(low)))
    }

    /// The first eight bytes of the key at `index`, which must have at least eight.
    #[inline(always)]
    fn head(&self, index: usize) -> u64 {
        load(&self.keys, index * self.key_width).swap_bytes()
    }

    /// The memory it holds, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let bytes = [
            &self.keys,
            &self.packed,
            &self.ops,
            &self.scratch,
            &self.rows,
        ];
        mem::size_of::<Page>()
            + bytes.map(Vec::capacity).iter().sum::<usize>()
            + 4 * (self.key_starts.capacity() + self.value_starts.capacity())
            + 8 * self.seqs.capacity()
    }

    #[inline]
    fn seq(&self, index: usize) -> Seq {
        Seq(self.seqs.get(index).copied().unwrap_or(0))
    }

    #[inline]
    fn value(&self, index: usize) -> &[u8] {
        if self.value_starts.is_empty() {
            let start = self.values_at + index * self.value_width;
            self.packed.get(start..start + self.value_width)
        } else {
            span(&self.packed, &self.value_starts, index)
        }
        .expect("I5: values lie within their bytes")
    }

    fn clear(&mut self) {
        // The memory that is decoded into need not be cleared, because it is overwritten entirely.
        self.entries = 0;
        if MAX_KEPT < self.packed.capacity() {
            self.packed = Vec::new();
        }
        self.ops.clear();
        self.key_starts.clear();
        self.value_starts.clear();
        self.seqs.clear();
    }

    fn decode_body(&mut self, header: &Header, reader: &mut Reader<'_>) -> Result<(), PageError> {
        let entries = header.entries;
        if header.has(FRONT) {
            self.decode_rows(reader, entries, front::ROW)?;
            // The suffixes come later: the lengths stay in `rows`, other columns use `keys`.
            mem::swap(&mut self.rows, &mut self.keys);
        } else {
            self.key_width = header.key_bytes / entries;
            self.keys.resize(header.key_bytes, 0);
            if self.key_width == 0 {
                return Err(PageError::Content("planes of keys without bytes"));
            }
            planes::decode(reader, self.key_width, &mut self.scratch, &mut self.keys)?;
        }
        self.decode_columns(header, reader)?;
        if header.has(TEMPLATE) {
            self.decode_template(header, reader)?;
        } else {
            self.packed.resize(header.packed_raw, 0);
            let stored = reader.take(header.packed_stored)?;
            compress::decompress(header.codec, stored, &mut self.packed)?;
        }
        if reader.rest().iter().any(|byte| *byte != 0) {
            return Err(PageError::Content("it continues after its end"));
        }
        if header.has(FRONT) {
            mem::swap(&mut self.rows, &mut self.keys);
            self.decode_front(header)?;
        }
        self.entries = entries;
        Ok(())
    }

    /// The columns besides keys.
    fn decode_columns(
        &mut self,
        header: &Header,
        reader: &mut Reader<'_>,
    ) -> Result<(), PageError> {
        let entries = header.entries;
        if header.has(OPS) {
            self.ops.resize(entries, 0);
            planes::decode(reader, 1, &mut self.scratch, &mut self.ops)?;
            if self.ops.iter().any(|op| (Op::Delete as u8) < *op) {
                return Err(PageError::Content("an unknown operation"));
            }
        }
        if header.has(SEQS) {
            self.decode_rows(reader, entries, 8)?;
            let rows = self
                .rows
                .chunks_exact(8)
                .filter_map(|row| row.first_chunk());
            self.seqs.extend(rows.map(|row| u64::from_be_bytes(*row)));
        }
        self.values_at = header.suffix_bytes();
        self.value_width = header.value_bytes / entries;
        if header.has(VALUE_LENGTHS) {
            self.decode_rows(reader, entries, 4)?;
            let wrong = PageError::Content("the lengths of its values do not fit");
            let mut start = u32::try_from(self.values_at).map_err(|_| wrong)?;
            self.value_starts.reserve_exact(entries + 1);
            self.value_starts.push(start);
            for row in self
                .rows
                .chunks_exact(4)
                .filter_map(|row| row.first_chunk())
            {
                start = start.checked_add(u32::from_be_bytes(*row)).ok_or(wrong)?;
                self.value_starts.push(start);
            }
            if start as usize != header.packed_raw {
                return Err(wrong);
            }
        }
        Ok(())
    }

    /// Decode values of which only the differing bytes are stored.
    fn decode_template(
        &mut self,
        header: &Header,
        reader: &mut Reader<'_>,
    ) -> Result<(), PageError> {
        let (mut template, varying) = Template::decode(reader, self.value_width)?;
        if varying * header.entries != header.packed_raw {
            return Err(PageError::Content("the segments of its values do not fit"));
        }
        let stored = reader.take(header.packed_stored)?;
        self.rows.resize(header.packed_raw, 0);
        compress::decompress(header.codec, stored, &mut self.rows)?;
        self.packed.resize(header.value_bytes, 0);
        template.fill(&self.rows, self.value_width, &mut self.packed);
        Ok(())
    }

    /// Rebuild front-coded keys from the lengths in `rows` and the suffixes in `packed`.
    fn decode_front(&mut self, header: &Header) -> Result<(), PageError> {
        self.key_width = header.key_bytes / header.entries;
        self.keys.clear();
        self.keys.reserve_exact(header.key_bytes);
        let width = (!header.has(KEY_LENGTHS)).then_some(self.key_width);
        if width.is_none() {
            self.key_starts.reserve_exact(header.entries + 1);
        }
        front::decode(
            &self.rows,
            self.packed.get(..header.suffix_bytes()).unwrap_or_default(),
            header.key_bytes,
            width,
            &mut self.keys,
            &mut self.key_starts,
        )
    }

    /// Read `entries` rows of `width` bytes into `rows`.
    fn decode_rows(
        &mut self,
        reader: &mut Reader<'_>,
        entries: usize,
        width: usize,
    ) -> Result<(), PageError> {
        self.rows.clear();
        self.rows.resize(entries * width, 0);
        planes::decode(reader, width, &mut self.scratch, &mut self.rows)
    }
}

/// The bytes between a start and the next one.
#[inline]
fn span<'a>(bytes: &'a [u8], starts: &[u32], index: usize) -> Option<&'a [u8]> {
    let start = *starts.get(index)?;
    let end = *starts.get(index + 1)?;
    bytes.get(start as usize..end as usize)
}

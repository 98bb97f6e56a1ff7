//! The first 32 bytes of a page, and the limits of all fields.
//!
//! ```text
//! 0 magic "bpg1" | 4 version u8, codec u8, flags u8, 0 | 8 entries | 12 key bytes
//! | 16 value bytes | 20 packed bytes before the codec | 24 packed bytes stored | 28 stored bytes
//! ```
//! All numbers are little-endian u32 unless stated otherwise. "Stored bytes" is the length of
//! the whole page, header and checksum included.

use super::PageError;
use super::bytes::Reader;

/// Number of bytes of a page that suffice to determine its length.
pub(crate) const HEADER_LEN: usize = 32;

/// The length of the checksum at the end of a page.
pub(super) const TRAILER_LEN: usize = 8;

/// The most entries of a page.
pub(super) const MAX_ENTRIES: usize = 1 << 20;

/// Maximum bytes of keys and values of a page: a page that is almost full plus one entry of the
/// maximum length (64 MiB and 32 KiB), with a margin.
pub(super) const MAX_RAW: usize = 96 << 20;

/// Maximum memory of each kind that is kept for the next page; memory for a huge value is released.
pub(super) const MAX_KEPT: usize = 4 << 20;

/// The longest key.
pub(super) const MAX_KEY: usize = (32 << 10) - 1;

/// Maximum stored bytes. Encoding adds less than 40 bytes per entry.
const MAX_STORED: usize = MAX_RAW + 40 * MAX_ENTRIES;

/// A decoder's memory is limited to `MEMORY_BASE + MEMORY_RATIO * stored bytes`. A page that
/// compressed better is padded with zeros. The 64 times and 1 MiB of I3 leave room for a zstd
/// context.
const MEMORY_RATIO: usize = 48;
const MEMORY_BASE: usize = 640 << 10;

/// Maximum memory of an entry in a decoder, in addition to its key and value.
const MEMORY_ENTRY: usize = 48;

const MAGIC: u32 = u32::from_le_bytes(*b"bpg1");
const VERSION: u8 = 1;

/// Keys are front-coded (otherwise byte planes).
pub(super) const FRONT: u8 = 1;
/// Keys have unequal lengths (only if front-coded).
pub(super) const KEY_LENGTHS: u8 = 2;
/// There is a column of operations.
pub(super) const OPS: u8 = 4;
/// There is a column of sequence numbers.
pub(super) const SEQS: u8 = 8;
/// Values have unequal lengths.
pub(super) const VALUE_LENGTHS: u8 = 16;
/// Values of one length have a template (only if keys are planes).
pub(super) const TEMPLATE: u8 = 32;
const ALL_FLAGS: u8 = FRONT | KEY_LENGTHS | OPS | SEQS | VALUE_LENGTHS | TEMPLATE;

/// A header. Decoded headers keep all limits of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// 0 none, 1 LZ4, 2 zstd.
    pub(super) codec: u8,
    pub(super) flags: u8,
    pub(super) entries: usize,
    pub(super) key_bytes: usize,
    pub(super) value_bytes: usize,
    pub(super) packed_raw: usize,
    pub(super) packed_stored: usize,
    pub(super) stored: usize,
}

/// The length of the page that starts with `header`, which has at least [`HEADER_LEN`] bytes.
/// Checks only that the bytes are a page header.
///
/// # Errors
/// It is not the header of a page.
pub(crate) fn stored_len(header: &[u8]) -> Result<usize, PageError> {
    let mut reader = Reader::new(begin(header)?);
    reader.take(HEADER_LEN - 4)?;
    let stored = reader.u32()? as usize;
    if !(HEADER_LEN + TRAILER_LEN..=MAX_STORED).contains(&stored) {
        return Err(PageError::Header("its length is out of bounds"));
    }
    Ok(stored)
}

/// Check magic number and version.
fn begin(page: &[u8]) -> Result<&[u8], PageError> {
    let header = page
        .get(..HEADER_LEN)
        .ok_or(PageError::Short { len: page.len() })?;
    let mut reader = Reader::new(header);
    let found = reader.u32()?;
    if found != MAGIC {
        return Err(PageError::Magic { found });
    }
    let found = reader.u8()?;
    if found != VERSION {
        return Err(PageError::Version { found });
    }
    Ok(header)
}

impl Header {
    /// The bytes of this header.
    pub(super) fn encode(&self) -> [u8; HEADER_LEN] {
        debug_assert_eq!(self.check(), Ok(()), "a header within its limits");
        let number = |n: usize| {
            u32::try_from(n)
                .expect("all limits are below 2^32")
                .to_le_bytes()
        };
        let mut bytes = [0; HEADER_LEN];
        let numbers = [
            MAGIC.to_le_bytes(),
            [VERSION, self.codec, self.flags, 0],
            number(self.entries),
            number(self.key_bytes),
            number(self.value_bytes),
            number(self.packed_raw),
            number(self.packed_stored),
            number(self.stored),
        ];
        for (to, from) in bytes.chunks_exact_mut(4).zip(numbers) {
            to.copy_from_slice(&from);
        }
        bytes
    }

    /// Read and check the header at the beginning of `page`.
    pub(super) fn decode(page: &[u8]) -> Result<Header, PageError> {
        let mut reader = Reader::new(begin(page)?);
        reader.take(5)?;
        let (codec, flags, zero) = (reader.u8()?, reader.u8()?, reader.u8()?);
        let mut number = || reader.u32().map(|n| n as usize);
        let header = Header {
            codec,
            flags,
            entries: number()?,
            key_bytes: number()?,
            value_bytes: number()?,
            packed_raw: number()?,
            packed_stored: number()?,
            stored: number()?,
        };
        if zero != 0 {
            return Err(PageError::Header("a reserved byte is not 0"));
        }
        header.check()?;
        Ok(header)
    }

    /// The length of front-coded keys' suffixes.
    pub(super) fn suffix_bytes(&self) -> usize {
        if self.has(TEMPLATE) {
            0
        } else {
            self.packed_raw - self.value_bytes
        }
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Minimum stored bytes, so that the memory that a decoder needs is within its limit (I3).
    pub(super) fn least_stored(&self) -> usize {
        let values = self.value_bytes.max(self.packed_raw)
            + if self.has(TEMPLATE) {
                self.packed_raw
            } else {
                0
            };
        let memory = self.key_bytes + values + MEMORY_ENTRY * self.entries;
        memory.saturating_sub(MEMORY_BASE).div_ceil(MEMORY_RATIO)
    }

    fn check(&self) -> Result<(), PageError> {
        let wrong = |what| Err(PageError::Header(what));
        if self.flags & !ALL_FLAGS != 0 {
            return wrong("unknown flags");
        }
        if self.has(KEY_LENGTHS) && !self.has(FRONT) {
            return wrong("keys of unequal lengths as planes");
        }
        if !(1..=MAX_ENTRIES).contains(&self.entries) {
            return wrong("its number of entries is out of bounds");
        }
        if MAX_RAW < self.key_bytes.saturating_add(self.value_bytes) {
            return wrong("it says it holds too many bytes");
        }
        if !self.has(KEY_LENGTHS) && !self.key_bytes.is_multiple_of(self.entries) {
            return wrong("keys are not of one length");
        }
        if !self.has(VALUE_LENGTHS) && !self.value_bytes.is_multiple_of(self.entries) {
            return wrong("values are not of one length");
        }
        if self.has(TEMPLATE) && (self.has(FRONT) || self.has(VALUE_LENGTHS)) {
            return wrong("a template of values beside what excludes it");
        }
        let least = if self.has(TEMPLATE) {
            0
        } else {
            self.value_bytes
        };
        let suffixes = if self.has(FRONT) { self.key_bytes } else { 0 };
        if !(least..=self.value_bytes + suffixes).contains(&self.packed_raw) {
            return wrong("its suffixes have an impossible length");
        }
        if self.packed_raw < self.packed_stored || MAX_STORED < self.stored {
            return wrong("its stored length is out of bounds");
        }
        if self.stored < self.least_stored() {
            return wrong("it would take too much memory");
        }
        Ok(())
    }
}

//! The bytes of the log: segment header, group header, record. Pure functions, no input or output.
//!
//! All numbers are little-endian. A segment is a file of 4 KiB blocks: block 0 holds the segment
//! header, the groups follow. A group begins at the next multiple of 16 bytes behind the one before
//! it, or at the next block if that may have been synced by then; between them there are zeros.
//!
//! ```text
//! segment header              group header                     record
//!  0  8 magic "BETRLOG1"       0  4 magic "GRP1"                0  4 crc32c of 4.. to the end
//!  8  4 crc32c of 12..64       4  4 crc32c of 8..64             4  4 length of the payload
//! 12  4 version (2 or 3)       8  8 segment number              8  8 sequence number
//! 16 16 store                 16  8 offset in the segment      16  . payload
//! 32  8 segment number        24  8 number of the first record
//! 40  8 size of the segment   32  8 durable: every record up
//! 48 16 zero or salt                to this one was synced
//! 64  4 data key                    before this group was written
//! 68  4 zero                  40  8 void: records from this on
//!                                   in earlier segments do not count
//!                             48  4 length with header, unpadded
//!                             52  4 number of records
//!                             56  4 raw: 0, or bytes of the records
//!                                   before they were compressed
//!                             60  4 piece: 0, or bytes of each
//!                                   encrypted piece
//! ```
//! In a segment of version 3, which is encrypted, the checksum of the header covers 12..72, and
//! groups are encrypted in pieces: see `frame`.
//!
//! Of a compressed group the header is followed by one LZ4 block, which holds the records.
//!
//! The checksums of groups and records are seeded with the store and the number of the segment, so
//! what a recycled file held in an earlier life never passes for new (I3).

use std::error;
use std::fmt;

use crypt::{KeyId, Seal};

use super::frame;
use crate::types::Seq;

/// Segments consist of whole blocks; after a sync, writing begins with the next block (I2).
pub(crate) const BLOCK: u64 = 4096;
/// What every group begins at a multiple of.
pub(crate) const ALIGN: u64 = 16;
/// Bytes of a segment header of version 3 (in a block of its own); the others are shorter.
pub(crate) const SEGMENT_HEADER: usize = 72;
const PLAIN_SEGMENT_HEADER: usize = 64;
/// Bytes of a group header.
pub(crate) const GROUP_HEADER: usize = 64;
/// Bytes before the payload of a record.
pub(crate) const RECORD_HEADER: usize = 16;
/// Maximum payload: a commit of 1 GiB plus the overhead of its encoding; lengths fit in 32 bits.
pub(crate) const MAX_PAYLOAD: usize = 0x7FFF_0000;

/// Maximum bytes of records in a compressed group: no buffer is larger, and a reader must hold all
/// of them in memory.
pub(crate) const GROUP_RAW_MAX: u64 = 64 << 20;

const SEGMENT_MAGIC: [u8; 8] = *b"BETRLOG1";
const GROUP_MAGIC: [u8; 4] = *b"GRP1";
const VERSION: u32 = 2;
/// The version of encrypted segments.
const SEALED_VERSION: u32 = 3;
/// In version 1 all groups start at block boundaries.
const OLDEST_VERSION: u32 = 1;

/// The reason why bytes do not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The file ends before the end of the structure.
    Short,
    /// The magic number is missing: never written, or overwritten.
    Magic,
    /// The bytes were changed after they were written.
    Checksum,
    /// Written by another version.
    Version(u32),
    /// The group does not decrypt: it was changed after it was written.
    Unauthentic,
    /// The compressed records do not decompress to the stated length.
    Compressed,
    /// The records before this one are missing.
    Gap,
    /// The checksum is right, but a field has an impossible value.
    Field(&'static str),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Short => f.write_str("the file ends"),
            Flaw::Magic => f.write_str("no log data"),
            Flaw::Checksum => f.write_str("the checksum is wrong"),
            Flaw::Version(version) => {
                write!(f, "format version {version} is unknown to this version")
            }
            Flaw::Unauthentic => f.write_str("the group does not decrypt"),
            Flaw::Compressed => f.write_str("the compressed group does not decode"),
            Flaw::Gap => f.write_str("a later commit follows"),
            Flaw::Field(name) => write!(f, "the {name} is impossible"),
        }
    }
}

impl error::Error for Flaw {}

/// The header of a segment, in its block 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// The store's identity.
    pub(crate) store: u128,
    /// The segment's number: ascending, never reused in a store.
    pub(crate) number: u64,
    /// Size of the segment in bytes.
    pub(crate) size: u64,
    /// What opens its groups, if it is encrypted.
    pub(crate) seal: Option<Seal>,
}

/// The header of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    /// The number of the segment that contains it.
    pub(crate) segment: u64,
    /// Its offset in the segment.
    pub(crate) offset: u64,
    /// The number of its first record; the others follow without gaps.
    pub(crate) first: Seq,
    /// Records up to this one were synced before this group was written.
    pub(crate) durable: Seq,
    /// Records from this one on in earlier segments are void.
    pub(crate) void: Seq,
    /// Length in bytes, including this header, without padding.
    pub(crate) length: u32,
    /// Number of records.
    pub(crate) count: u32,
    /// Bytes of the records before compression; 0 if they are not compressed.
    pub(crate) raw: u32,
    /// Bytes of each piece that is encrypted by itself but the last; 0 if it is not encrypted.
    pub(crate) piece: u32,
}

/// One record, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) seq: Seq,
    pub(crate) payload: &'a [u8],
}

impl Record<'_> {
    /// Bytes it takes in a group.
    pub(crate) fn stored_len(&self) -> usize {
        RECORD_HEADER + self.payload.len()
    }
}

/// The seed of the checksums in one segment of one store.
pub(crate) fn seed(store: u128, segment: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&store.to_le_bytes()), &segment.to_le_bytes())
}

/// `length` rounded up to whole blocks.
pub(crate) fn padded(length: u64) -> u64 {
    length.next_multiple_of(BLOCK)
}

/// The header as stored.
pub(crate) fn encode_segment(header: &SegmentHeader) -> [u8; SEGMENT_HEADER] {
    assert!(
        header.size.is_multiple_of(BLOCK),
        "segments are whole blocks"
    );
    assert!(2 * BLOCK <= header.size, "a segment has room for a group");
    let mut bytes = [0; SEGMENT_HEADER];
    let (magic, rest) = bytes.split_at_mut(8);
    magic.copy_from_slice(&SEGMENT_MAGIC);
    let (sum, body) = rest.split_at_mut(4);
    let mut at = Put(body);
    let version = header.seal.map_or(VERSION, |_| SEALED_VERSION);
    at.put(&version.to_le_bytes());
    at.put(&header.store.to_le_bytes());
    at.put(&header.number.to_le_bytes());
    at.put(&header.size.to_le_bytes());
    if let Some(Seal { key, salt }) = header.seal {
        at.put(&salt);
        at.put(&key.0.to_le_bytes());
    }
    let covered = body.get(..covered(version));
    let covered = covered.expect("the whole header, or less");
    sum.copy_from_slice(&crc32c::crc32c(covered).to_le_bytes());
    bytes
}

/// Bytes behind the checksum of a segment header that it covers.
fn covered(version: u32) -> usize {
    let length = match version {
        SEALED_VERSION => SEGMENT_HEADER,
        _ => PLAIN_SEGMENT_HEADER,
    };
    length - 12
}

/// Decode the segment header at the start of `bytes`.
pub(crate) fn decode_segment(bytes: &[u8]) -> Result<SegmentHeader, Flaw> {
    let bytes = bytes.get(..SEGMENT_HEADER).ok_or(Flaw::Short)?;
    let mut at = Get(bytes);
    if at.take::<8>()? != SEGMENT_MAGIC {
        return Err(Flaw::Magic);
    }
    let sum = at.u32()?;
    let body = at.0;
    let version = at.u32()?;
    let covered = body.get(..covered(version)).ok_or(Flaw::Short)?;
    if sum != crc32c::crc32c(covered) {
        return Err(Flaw::Checksum);
    }
    if !(OLDEST_VERSION..=SEALED_VERSION).contains(&version) {
        return Err(Flaw::Version(version));
    }
    let mut header = SegmentHeader {
        store: u128::from_le_bytes(at.take()?),
        number: at.u64()?,
        size: at.u64()?,
        seal: None,
    };
    if version == SEALED_VERSION {
        let salt = at.take()?;
        let key = KeyId(at.u32()?);
        header.seal = Some(Seal { key, salt });
    }
    if header.size < 2 * BLOCK || !header.size.is_multiple_of(BLOCK) {
        return Err(Flaw::Field("size of the segment"));
    }
    Ok(header)
}

/// The header as stored; `seed` is that of its segment.
pub(crate) fn encode_group(header: &GroupHeader, seed: u32) -> [u8; GROUP_HEADER] {
    debug_assert_eq!(check_group(header), Ok(()), "what is encoded decodes");
    assert!(
        header.durable < header.first,
        "I4: durable records are behind"
    );
    debug_assert!(
        header.offset.is_multiple_of(ALIGN),
        "I2: groups begin at aligned places"
    );
    let mut bytes = [0; GROUP_HEADER];
    let (magic, rest) = bytes.split_at_mut(4);
    magic.copy_from_slice(&GROUP_MAGIC);
    let (sum, body) = rest.split_at_mut(4);
    let mut at = Put(body);
    at.put(&header.segment.to_le_bytes());
    at.put(&header.offset.to_le_bytes());
    at.put(&header.first.0.to_le_bytes());
    at.put(&header.durable.0.to_le_bytes());
    at.put(&header.void.0.to_le_bytes());
    at.put(&header.length.to_le_bytes());
    at.put(&header.count.to_le_bytes());
    at.put(&header.raw.to_le_bytes());
    at.put(&header.piece.to_le_bytes());
    debug_assert!(at.0.is_empty(), "all is written");
    sum.copy_from_slice(&crc32c::crc32c_append(seed, body).to_le_bytes());
    bytes
}

/// Decode the group header at the start of `bytes`, which was read from `segment` at `offset`.
pub(crate) fn decode_group(
    bytes: &[u8],
    seed: u32,
    segment: u64,
    offset: u64,
) -> Result<GroupHeader, Flaw> {
    let bytes = bytes.get(..GROUP_HEADER).ok_or(Flaw::Short)?;
    let mut at = Get(bytes);
    if at.take::<4>()? != GROUP_MAGIC {
        return Err(Flaw::Magic);
    }
    let sum = at.u32()?;
    if sum != crc32c::crc32c_append(seed, at.0) {
        return Err(Flaw::Checksum);
    }
    let header = GroupHeader {
        segment: at.u64()?,
        offset: at.u64()?,
        first: Seq(at.u64()?),
        durable: Seq(at.u64()?),
        void: Seq(at.u64()?),
        length: at.u32()?,
        count: at.u32()?,
        raw: at.u32()?,
        piece: at.u32()?,
    };
    if header.segment != segment || header.offset != offset {
        return Err(Flaw::Field("place of the group"));
    }
    check_group(&header)?;
    Ok(header)
}

fn check_group(header: &GroupHeader) -> Result<(), Flaw> {
    let stored = u64::from(header.length).checked_sub(GROUP_HEADER as u64);
    let tags = frame::tags(header).ok_or(Flaw::Field("length of a piece"))?;
    let stored = stored.and_then(|stored| stored.checked_sub(tags));
    let stored = stored.ok_or(Flaw::Field("length of the group"))?;
    let raw = match u64::from(header.raw) {
        0 => stored,
        // LZ4 compresses by a factor of 255 at most, and data that would not shrink are stored
        // uncompressed.
        raw if stored < raw && raw <= stored * 255 && raw <= GROUP_RAW_MAX => raw,
        _ => return Err(Flaw::Field("uncompressed length of the group")),
    };
    if header.count == 0 || raw < u64::from(header.count) * RECORD_HEADER as u64 {
        return Err(Flaw::Field("length of the group"));
    }
    let past = header.first.0.checked_add(u64::from(header.count));
    if header.first == Seq::ANCIENT || past.is_none() {
        return Err(Flaw::Field("sequence number"));
    }
    if header.first <= header.durable {
        // A group is written for records that are not durable yet.
        return Err(Flaw::Field("durable sequence number"));
    }
    Ok(())
}

/// The records of a compressed group.
pub(crate) fn decompress(group: &GroupHeader, stored: &[u8]) -> Result<Vec<u8>, Flaw> {
    let raw = usize::try_from(group.raw).map_err(|_| Flaw::Short)?;
    let records = lz4_flex::block::decompress(stored, raw).map_err(|_| Flaw::Compressed)?;
    if records.len() != raw {
        return Err(Flaw::Compressed);
    }
    Ok(records)
}

/// The checksum of a record with this length, number and payload (given in parts).
pub(crate) fn record_sum(seed: u32, fields: &[u8; 12], parts: &[&[u8]]) -> u32 {
    parts
        .iter()
        .fold(crc32c::crc32c_append(seed, fields), |sum, part| {
            crc32c::crc32c_append(sum, part)
        })
}

/// The length and the number of a record as stored after its checksum.
#[inline]
pub(crate) fn record_fields(length: u32, seq: Seq) -> [u8; 12] {
    let mut fields = [0; 12];
    let (front, back) = fields.split_at_mut(4);
    front.copy_from_slice(&length.to_le_bytes());
    back.copy_from_slice(&seq.0.to_le_bytes());
    fields
}

/// Decode the record at the start of `bytes`.
pub(crate) fn decode_record(bytes: &[u8], seed: u32) -> Result<Record<'_>, Flaw> {
    let mut at = Get(bytes);
    let sum = at.u32()?;
    let covered = at.0;
    let length = usize::try_from(at.u32()?).map_err(|_| Flaw::Short)?;
    let seq = Seq(at.u64()?);
    let payload = at.0.get(..length).ok_or(Flaw::Short)?;
    let covered = covered.get(..12 + length).ok_or(Flaw::Short)?;
    if sum != crc32c::crc32c_append(seed, covered) {
        return Err(Flaw::Checksum);
    }
    Ok(Record { seq, payload })
}

/// Fill in the checksums of the contiguous records in `records`. This process wrote them, so a
/// length that does not fit is a broken invariant and not a flaw.
pub(crate) fn seal_records(mut records: &mut [u8], seed: u32) -> u32 {
    let mut count = 0;
    while !records.is_empty() {
        debug_assert!(RECORD_HEADER <= records.len(), "I1: records are whole");
        let (head, rest) = records.split_at_mut(RECORD_HEADER);
        let (sum, fields) = head.split_at_mut(4);
        let length = Get(fields).u32().expect("12 bytes hold a length");
        let length = usize::try_from(length).expect("a record in memory");
        let (payload, rest) = rest.split_at_mut(length);
        let fields = fields.first_chunk().expect("a record header has 12 more");
        sum.copy_from_slice(&record_sum(seed, fields, &[payload]).to_le_bytes());
        records = rest;
        count += 1;
    }
    count
}

struct Put<'a>(&'a mut [u8]);

impl Put<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let (front, rest) = std::mem::take(&mut self.0).split_at_mut(bytes.len());
        front.copy_from_slice(bytes);
        self.0 = rest;
    }
}

struct Get<'a>(&'a [u8]);

impl Get<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Flaw> {
        let (front, rest) = self.0.split_first_chunk().ok_or(Flaw::Short)?;
        self.0 = rest;
        Ok(*front)
    }

    fn u32(&mut self) -> Result<u32, Flaw> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, Flaw> {
        Ok(u64::from_le_bytes(self.take()?))
    }
}

//! A slice of an oplog archive: the entries between two positions of an oplog, in one file.
//!
//! ```text
//! romanesco-oplog 1 <64 hexadecimal digits>\n
//! {"product": ..., "set": ..., "previous": {...}, "first": {...}, "last": {...}, ...}\n
//! the entries, compressed in frames as the files of a backup (`codec`)
//! ```
//!
//! The digits are the BLAKE3 digest of the bytes after the first line. The entries, one after
//! another, each as the server has stored it, after a header, little-endian:
//!
//! ```text
//!  0  seconds    u32   its time
//!  4  increment  u32
//!  8  term       i64
//! 16  length     u32   bytes of the entry, which follow
//! ```
//!
//! - P1. A slice has every entry after `previous` and up to `last`, in order.
//! - P2. Every changed, missing or additional byte is an error; lengths are bounded before memory
//!   is allocated for them.

use std::fmt;

use kv::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::codec::{self, Codec, Encoder};

/// The newest version of the format of slices that this program writes and reads.
pub(crate) const FORMAT: u32 = 1;

/// The first word.
const MAGIC: &str = "romanesco-oplog";

/// Bytes of entries after which a slice is complete: it is held in memory.
pub const SLICE_BYTES: usize = 16 << 20;

/// Bytes of one entry: a document of 16 MiB and its overhead, with a hidden part of that size.
const ENTRY_MAX: usize = 34 << 20;

/// Bytes of the header of an entry.
const HEADER: usize = 20;

/// Bytes of the entries of a slice, with their headers.
const CONTENT_MAX: usize = SLICE_BYTES + ENTRY_MAX + HEADER;

/// Bytes of the two lines before the entries.
pub(crate) const LINES_MAX: usize = 16 << 10;

/// Bytes of a file.
pub(crate) const FILE_MAX: usize = CONTENT_MAX + CONTENT_MAX / 1024 + LINES_MAX;

/// The position of an entry of an oplog: its time, and the term of the primary that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Seconds since 1970-01-01 UTC.
    pub seconds: u32,
    /// The count within the second.
    pub increment: u32,
    /// The term; -1 before all entries.
    pub term: i64,
}

impl Position {
    /// Before all entries.
    pub const BEGIN: Position = Position {
        seconds: 0,
        increment: 0,
        term: -1,
    };

    /// The time, without the term: entries of one oplog have different ones.
    #[must_use]
    pub fn time(self) -> (u32, u32) {
        (self.seconds, self.increment)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{} of term {}",
            self.seconds, self.increment, self.term
        )
    }
}

/// The BLAKE3 digest of a stored entry, in 64 lower-case hexadecimal digits. Two deployments may
/// have entries at one position; their digests differ.
#[must_use]
pub fn digest(value: &[u8]) -> String {
    blake3::hash(value).to_hex().to_string()
}

/// What a slice has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SliceHeader {
    /// The version of the program that made it.
    pub product: String,
    /// The name of the replica set.
    pub set: String,
    /// The entry before its first one (P1).
    pub previous: Position,
    /// The [`digest`] of that entry; empty before all entries.
    pub previous_digest: String,
    /// Its first entry.
    pub first: Position,
    /// Its last entry.
    pub last: Position,
    /// The number of its entries.
    pub entries: u64,
    /// Their bytes, with their headers.
    pub bytes: u64,
    /// How they are compressed.
    pub codec: Codec,
}

/// An entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedEntry {
    /// Its position.
    pub at: Position,
    /// It as the server has stored it.
    pub value: Vec<u8>,
}

/// The entries of a slice that is being filled.
#[derive(Default)]
pub(crate) struct Filling {
    content: Vec<u8>,
    entries: u64,
    ends: Option<(Position, Position)>,
    /// Where the last entry begins in `content`, behind its header.
    last_value: usize,
}

impl Filling {
    /// Bytes of its entries, with their headers.
    pub(crate) fn bytes(&self) -> usize {
        self.content.len()
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Option<Position> {
        self.ends.map(|(_, last)| last)
    }

    /// The [`digest`] of the last entry.
    pub(crate) fn last_digest(&self) -> Option<String> {
        let value = self.content.get(self.last_value..).unwrap_or_default();
        self.ends.map(|_| digest(value))
    }

    /// Add an entry, which is later than those before.
    ///
    /// # Errors
    /// `Invalid` for an entry that is too large.
    pub(crate) fn add(&mut self, at: Position, value: &[u8]) -> Result<()> {
        let length = u32::try_from(value.len()).ok();
        let Some(length) = length.filter(|_| value.len() <= ENTRY_MAX) else {
            let bytes = value.len();
            let message =
                format!("the entry {at} of the oplog has {bytes} bytes, which is too many");
            return Err(Error::invalid(message));
        };
        let content = &mut self.content;
        content.extend(at.seconds.to_le_bytes());
        content.extend(at.increment.to_le_bytes());
        content.extend(at.term.to_le_bytes());
        content.extend(length.to_le_bytes());
        self.last_value = content.len();
        content.extend(value);
        self.entries += 1;
        let first = self.ends.map_or(at, |(first, _)| first);
        self.ends = Some((first, at));
        Ok(())
    }

    /// The bytes of its file, and what it has; `None` without entries.
    ///
    /// # Errors
    /// Those of the codec.
    pub(crate) fn encode(
        &self,
        (product, set): (&str, &str),
        (previous, previous_digest): (Position, &str),
        codec: Codec,
    ) -> Result<Option<(Vec<u8>, SliceHeader)>> {
        let Some((first, last)) = self.ends else {
            return Ok(None);
        };
        let header = SliceHeader {
            product: product.to_owned(),
            set: set.to_owned(),
            previous,
            previous_digest: previous_digest.to_owned(),
            first,
            last,
            entries: self.entries,
            bytes: self.content.len() as u64,
            codec,
        };
        let mut body = serde_json::to_vec(&header).expect("plain data serialises");
        body.push(b'\n');
        let mut encoder = Encoder::new(codec);
        let mut store = |bytes: &[u8]| {
            body.extend_from_slice(bytes);
            Ok(())
        };
        encoder.add(&self.content, &mut store)?;
        encoder.finish(&mut store)?;
        let digest = blake3::hash(&body).to_hex();
        let line = format!("{MAGIC} {FORMAT} {digest}\n");
        Ok(Some(([line.as_bytes(), &body].concat(), header)))
    }
}

/// The header of a slice and the digest in its first line, from the first bytes of its file. The
/// digest is not checked.
///
/// # Errors
/// `Corrupt`; `Unsupported` for a newer version.
fn lines(bytes: &[u8]) -> Result<(SliceHeader, &str, usize)> {
    let damaged = |what: &str| Error::corrupt(format!("the slice is damaged: {what}"));
    let head = bytes.get(..LINES_MAX.min(bytes.len())).unwrap_or(bytes);
    let mut ends = head.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let (Some((first, _)), Some((second, _))) = (ends.next(), ends.next()) else {
        return Err(damaged("its first lines are missing"));
    };
    let line = head
        .get(..first)
        .and_then(|line| std::str::from_utf8(line).ok());
    let words: Vec<&str> = line.unwrap_or_default().split(' ').collect();
    let [MAGIC, version, digest] = words.as_slice() else {
        return Err(damaged("its first line is not that of a slice"));
    };
    let number = version.parse::<u32>().unwrap_or(0);
    if FORMAT < number {
        let message = format!(
            "the slice has format {number}, this program knows up to {FORMAT}; use a newer program"
        );
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    if *version != number.to_string() || number == 0 {
        return Err(damaged("its version is no number of a version"));
    }
    let header = head.get(first + 1..second).unwrap_or_default();
    let header: SliceHeader =
        serde_json::from_slice(header).map_err(|e| damaged(&e.to_string()))?;
    if let Some(what) = fault(&header) {
        return Err(damaged(what));
    }
    Ok((header, digest, first + 1))
}

/// What is wrong with a header.
fn fault(header: &SliceHeader) -> Option<&'static str> {
    let SliceHeader {
        previous,
        first,
        last,
        ..
    } = header;
    if first.time() <= previous.time() || last.time() < first.time() {
        return Some("its positions are not in order");
    }
    let digits = |text: &str| {
        let digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.len() == 64 && text.bytes().all(digit)
    };
    let digest = &header.previous_digest;
    let none = *previous == Position::BEGIN && digest.is_empty();
    if !none && !digits(digest) {
        return Some("the digest of the entry before it is none");
    }
    if CONTENT_MAX as u64 <= header.bytes || header.entries == 0 {
        return Some("its size is not that of a slice");
    }
    None
}

/// The header of a slice from the first bytes of its file. The digest is not checked.
///
/// # Errors
/// `Corrupt`; `Unsupported` for a newer version.
pub(crate) fn header(bytes: &[u8]) -> Result<SliceHeader> {
    lines(bytes).map(|(header, ..)| header)
}

/// Read the bytes of a slice.
///
/// # Errors
/// `Corrupt`; `Unsupported` for a newer version.
pub(crate) fn decode(bytes: &[u8]) -> Result<(SliceHeader, Vec<ArchivedEntry>)> {
    let damaged = |what: &str| Error::corrupt(format!("the slice is damaged: {what}"));
    let (header, digest, start) = lines(bytes)?;
    let covered = bytes.get(start..).unwrap_or_default();
    if *blake3::hash(covered).to_hex() != *digest {
        return Err(damaged("its digest differs"));
    }
    let lines = covered.iter().position(|byte| *byte == b'\n');
    let mut body = lines
        .and_then(|end| covered.get(end + 1..))
        .unwrap_or_default();
    let mut content = Vec::new();
    codec::decode(header.codec, header.bytes, &mut body, &mut |bytes| {
        content.extend_from_slice(bytes);
        Ok(())
    })
    .map_err(|_| damaged("its frames are not those of its codec"))?;
    let mut entries = Vec::new();
    let mut rest = content.as_slice();
    let mut before = header.previous;
    while !rest.is_empty() {
        let (entry, left) = first_entry(rest).ok_or_else(|| damaged("an entry is cut"))?;
        if entry.at.time() <= before.time() {
            return Err(damaged("its entries are not in order"));
        }
        before = entry.at;
        entries.push(entry);
        rest = left;
    }
    let first = entries.first().map(|entry| entry.at);
    let same = first == Some(header.first) && before == header.last;
    match same && entries.len() as u64 == header.entries {
        true => Ok((header, entries)),
        false => Err(damaged("its entries are not those of its header")),
    }
}

/// The first of these entries, and the rest.
fn first_entry(bytes: &[u8]) -> Option<(ArchivedEntry, &[u8])> {
    let (seconds, rest) = bytes.split_first_chunk()?;
    let (increment, rest) = rest.split_first_chunk()?;
    let (term, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (value, rest) = rest.split_at_checked(length)?;
    let at = Position {
        seconds: u32::from_le_bytes(*seconds),
        increment: u32::from_le_bytes(*increment),
        term: i64::from_le_bytes(*term),
    };
    let value = value.to_vec();
    Some((ArchivedEntry { at, value }, rest))
}

#[cfg(test)]
mod tests {
    use stdx::Tape;

    use super::*;

    pub(super) fn at(increment: u32) -> Position {
        Position {
            seconds: 7,
            increment,
            term: 1,
        }
    }

    fn slice(codec: Codec) -> (Vec<u8>, SliceHeader) {
        let mut filling = Filling::default();
        for increment in 2..6 {
            let value = vec![7; 1_000 * usize::try_from(increment).unwrap()];
            filling.add(at(increment), &value).unwrap();
        }
        let encoded = filling.encode(("0.1.0", "rs0"), (at(1), &digest(b"1")), codec);
        encoded.unwrap().unwrap()
    }

    /// P1.
    #[test]
    fn a_slice_is_read_back() {
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
            let (bytes, header) = slice(codec);
            assert_eq!(super::header(&bytes).unwrap(), header);
            let (found, entries) = decode(&bytes).unwrap();
            assert_eq!(found, header);
            assert_eq!((header.previous, header.last), (at(1), at(5)));
            assert_eq!(header.previous_digest, digest(b"1"));
            let found: Vec<_> = entries.iter().map(|e| (e.at, e.value.len())).collect();
            let expected = [2_000, 3_000, 4_000, 5_000];
            let expected = (2..).map(at).zip(expected).collect::<Vec<_>>();
            assert_eq!(found, expected);
        }
        let none = Filling::default();
        let none = none.encode(("0.1.0", "rs0"), (Position::BEGIN, ""), Codec::None);
        assert!(none.unwrap().is_none());
    }

    /// P2.
    #[test]
    fn every_change_of_a_slice_is_found() {
        let (bytes, _) = slice(Codec::Zstd);
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 1;
            decode(&changed).unwrap_err();
            decode(&bytes[..index]).unwrap_err();
        }
        decode(&[&bytes[..], b"x"].concat()).unwrap_err();
        let newer = String::from_utf8_lossy(&bytes[..40]).replace("oplog 1 ", "oplog 2 ");
        let newer = [newer.as_bytes(), &bytes[40..]].concat();
        assert_eq!(decode(&newer).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    /// P2: with a right digest, too.
    #[test]
    fn a_slice_of_another_writer_is_decoded_or_refused() {
        for seed in 0..2_000 {
            let mut tape = Tape::from_seed(seed, 64);
            let codec = [Codec::None, Codec::Lz4, Codec::Zstd][tape.index(3)];
            let (bytes, _) = slice(codec);
            let start = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
            let mut body = bytes[start..].to_vec();
            for _ in 0..1 + tape.byte() % 3 {
                let at = tape.index(body.len().min(600));
                body[at] = tape.byte();
            }
            let digest = blake3::hash(&body).to_hex();
            let line = format!("{MAGIC} {FORMAT} {digest}\n");
            drop(decode(&[line.as_bytes(), &body].concat()));
        }
    }

    #[test]
    fn an_entry_that_no_server_has_is_refused() {
        let mut filling = Filling::default();
        let error = filling.add(at(1), &vec![0; ENTRY_MAX + 1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!((filling.bytes(), filling.last()), (0, None));
    }
}

//! The pieces of a file: which ranges of it another backup of the store may have.
//!
//! A file is a sequence of pieces, with bytes between them that belong to none. In the manifest the
//! list is one string, base64 of 32 bytes for each piece in the order of their offsets:
//!
//! ```text
//!  0  id       16
//! 16  gap     u64   bytes between the piece before and this one
//! 24  length  u64   its bytes; the highest bit is set if they are in the base, and not here
//! ```
//!
//! Pieces with one id have the same bytes, in all backups with the same lineage.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kv::PieceId;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Pieces of a file: the manifest stays below its largest size.
pub(crate) const PIECES_MAX: usize = 1 << 20;

/// Bytes of a piece in the list.
const ENTRY: usize = 32;

/// Set in the length of a piece that is in the base.
const KEPT: u64 = 1 << 63;

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) id: PieceId,
    /// Bytes between the piece before and this one.
    pub(crate) gap: u64,
    pub(crate) length: u64,
    /// Its bytes are in the base.
    pub(crate) kept: bool,
}

/// The pieces of a file, in the order of their offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces(pub(crate) Vec<Piece>);

impl Pieces {
    /// Bytes that are in the base. [`Pieces::fault`] has checked the sum.
    pub(crate) fn kept(&self) -> u64 {
        let kept = self.0.iter().filter(|piece| piece.kept);
        kept.map(|piece| piece.length).sum()
    }

    /// What is wrong with the list for a file of `size` bytes.
    pub(crate) fn fault(&self, size: u64) -> Option<&'static str> {
        let (mut end, mut ids) = (0_u64, BTreeSet::new());
        for piece in &self.0 {
            let next = end.checked_add(piece.gap);
            match next.and_then(|start| start.checked_add(piece.length)) {
                Some(next) if next <= size => end = next,
                _ => return Some("its pieces are larger than it is"),
            }
            if !ids.insert(piece.id) {
                return Some("it has a piece twice");
            }
        }
        None
    }
}

impl Serialize for Pieces {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(self.0.len() * ENTRY);
        for piece in &self.0 {
            assert_eq!(piece.length & KEPT, 0, "no file is that long");
            let kept = if piece.kept { KEPT } else { 0 };
            bytes.extend(piece.id);
            bytes.extend(piece.gap.to_le_bytes());
            bytes.extend((piece.length | kept).to_le_bytes());
        }
        serializer.serialize_str(&STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Pieces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pieces, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text.as_bytes());
        let bytes = bytes.map_err(|_| D::Error::custom("the pieces of a file are not base64"))?;
        let (entries, []) = bytes.as_chunks::<ENTRY>() else {
            return Err(D::Error::custom("the pieces of a file are cut short"));
        };
        if PIECES_MAX < entries.len() {
            return Err(D::Error::custom("a file has too many pieces"));
        }
        Ok(Pieces(entries.iter().map(decode).collect()))
    }
}

fn decode(entry: &[u8; ENTRY]) -> Piece {
    let (id, rest) = entry.split_first_chunk().expect("an entry has 32 bytes");
    let (gap, length) = rest.split_first_chunk().expect("an entry has 32 bytes");
    let length = length.first_chunk().expect("an entry has 32 bytes");
    let length = u64::from_le_bytes(*length);
    Piece {
        id: *id,
        gap: u64::from_le_bytes(*gap),
        length: length & !KEPT,
        kept: length & KEPT != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(id: u8, gap: u64, length: u64, kept: bool) -> Piece {
        let id = [id; 16];
        Piece {
            id,
            gap,
            length,
            kept,
        }
    }

    #[test]
    fn a_list_is_read_back() {
        for list in [
            vec![],
            vec![piece(1, 5, 7, false), piece(2, 0, u64::MAX >> 1, true)],
        ] {
            let pieces = Pieces(list);
            let text = serde_json::to_string(&pieces).unwrap();
            assert_eq!(serde_json::from_str::<Pieces>(&text).unwrap(), pieces);
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for bad in ["\"?\"", "\"QUJD\"", "7", "null"] {
            assert!(serde_json::from_str::<Pieces>(bad).is_err(), "{bad}");
        }
        let long = STANDARD.encode(vec![0; (PIECES_MAX + 1) * ENTRY]);
        let error = serde_json::from_str::<Pieces>(&format!("\"{long}\"")).unwrap_err();
        assert!(error.to_string().contains("too many"), "{error}");
    }

    #[test]
    fn pieces_are_within_the_file_and_differ() {
        let fault = |list: &[Piece]| Pieces(list.to_vec()).fault(20);
        let first = piece(1, 5, 7, false);
        assert_eq!(fault(&[first, piece(2, 0, 8, true)]), None);
        for second in [piece(2, 1, 8, true), piece(2, u64::MAX, 8, true)] {
            assert!(fault(&[first, second]).unwrap().contains("larger"));
        }
        assert!(
            fault(&[first, piece(1, 0, 1, true)])
                .unwrap()
                .contains("twice")
        );
    }
}

//! Encrypted groups.
//!
//! The bytes of a group, from its header on, are cut into pieces of the length that the header
//! says; the last one may be shorter. A group from a buffer is one piece, a record that is longer
//! than a buffer has one for each write.
//!
//! ```text
//! first piece   | header 64 | tag 16 | records, encrypted
//! other pieces              | tag 16 | records, encrypted
//! ```
//! The header stays readable, so that recovery can look for groups and evidence; it is associated
//! data of every piece, with the identity of the store. The nonce is the offset of the group in its
//! segment and the number of the piece. A segment has a new salt whenever its header is written,
//! groups are written once and in order, and after a failed write nothing more is written: so no
//! nonce is used twice, and the sealer checks it. Bytes that share a block with a group that was
//! written before are not written again, so they are not encrypted again either.
//!
//! A tag is the checksum of what it covers: a torn piece does not decrypt. That is not taken for a
//! wrong key, because the key file was opened, and the segment's header has a checksum of its own.

use crypt::{Nonce, Opener, Sealer, TAG_LEN};

use super::format::{Flaw, GROUP_HEADER, GroupHeader};

/// Bytes before the records of a group in a segment that is encrypted, or not.
pub(super) fn head(sealed: bool) -> usize {
    GROUP_HEADER + if sealed { TAG_LEN } else { 0 }
}

/// The lengths of a group with `plain` bytes of records in pieces of `piece` bytes: the whole group
/// in bytes.
pub(super) fn length(plain: usize, piece: usize) -> usize {
    assert!(GROUP_HEADER + TAG_LEN < piece, "a piece has records");
    GROUP_HEADER + plain + TAG_LEN * (GROUP_HEADER + plain).div_ceil(piece - TAG_LEN)
}

/// The bytes of all tags of a group; `None` if its pieces are impossible.
pub(super) fn tags(header: &GroupHeader) -> Option<u64> {
    let (length, piece) = (u64::from(header.length), u64::from(header.piece));
    if piece == 0 {
        return Some(0);
    }
    let tag = TAG_LEN as u64;
    let last = length % piece;
    let whole = GROUP_HEADER as u64 + tag < piece && (last == 0 || tag < last);
    whole.then(|| length.div_ceil(piece) * tag)
}

/// What the pieces of a group are bound to: the store, and its header as stored.
pub(super) struct Bound {
    associated: [u8; 16 + GROUP_HEADER],
    offset: u64,
}

impl Bound {
    pub(super) fn new(store: u128, header: &[u8; GROUP_HEADER], offset: u64) -> Bound {
        let mut associated = [0; 16 + GROUP_HEADER];
        let (front, back) = associated.split_at_mut(16);
        front.copy_from_slice(&store.to_le_bytes());
        back.copy_from_slice(header);
        Bound { associated, offset }
    }

    fn nonce(&self, part: u32) -> Nonce {
        Nonce {
            place: self.offset,
            part,
        }
    }

    /// Encrypt piece `part`, whose first bytes are room for the tag.
    pub(super) fn encrypt(&self, sealer: &mut Sealer, part: u32, piece: &mut [u8]) {
        let (tag, records) = piece.split_at_mut(TAG_LEN);
        tag.copy_from_slice(&sealer.encrypt(self.nonce(part), &self.associated, records));
    }
}

/// The records of the encrypted `group`, whose bytes as stored are `bytes`, header included.
pub(super) fn decrypt(
    opener: &Opener,
    store: u128,
    group: &GroupHeader,
    bytes: &[u8],
) -> Result<Vec<u8>, Flaw> {
    let (header, _) = bytes.split_first_chunk().ok_or(Flaw::Short)?;
    let bound = Bound::new(store, header, group.offset);
    let piece = usize::try_from(group.piece).map_err(|_| Flaw::Short)?;
    let mut records = Vec::with_capacity(bytes.len());
    for (part, piece) in (0..).zip(bytes.chunks(piece.max(1))) {
        let from = if part == 0 { GROUP_HEADER } else { 0 };
        let piece = piece.get(from..).ok_or(Flaw::Short)?;
        let (tag, piece) = piece.split_first_chunk().ok_or(Flaw::Short)?;
        let begin = records.len();
        records.extend_from_slice(piece);
        let (_, plain) = records.split_at_mut(begin);
        opener
            .decrypt(bound.nonce(part), &bound.associated, plain, tag)
            .map_err(|_| Flaw::Unauthentic)?;
    }
    Ok(records)
}

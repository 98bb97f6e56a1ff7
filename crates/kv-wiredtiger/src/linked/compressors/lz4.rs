//! LZ4 blocks.
//!
//! ```text
//!  0  compressed length    u32  of the block that follows
//!  4  uncompressed length  u32  of what the block gives
//!  8  useful length        u32  of that, what the page is: all of it
//! 12  0                    u32
//! 16  the block
//! ```
//!
//! All little endian, as in WiredTiger's `ext/compressors/lz4`.

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

use super::Packer;

const PREFIX: usize = 16;

pub(super) struct Lz4;

impl Packer for Lz4 {
    fn room(length: usize) -> usize {
        get_maximum_output_size(length).saturating_add(PREFIX)
    }

    fn pack(from: &[u8], to: &mut [u8]) -> Option<usize> {
        let length = u32::try_from(from.len()).ok()?;
        let (prefix, block) = to.split_at_mut_checked(PREFIX)?;
        let packed = compress_into(from, block).ok()?;
        let total = packed.checked_add(PREFIX)?;
        if from.len() <= total {
            return None;
        }
        let fields = [u32::try_from(packed).ok()?, length, length, 0];
        for (bytes, field) in prefix.chunks_exact_mut(4).zip(fields) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        Some(total)
    }

    fn unpack(from: &[u8], to: &mut [u8]) -> Option<usize> {
        let (prefix, rest) = from.split_at_checked(PREFIX)?;
        let block = rest.get(..field(prefix, 0)?)?;
        let (whole, useful) = (field(prefix, 1)?, field(prefix, 2)?);
        let to = to.get_mut(..whole)?;
        let found = decompress_into(block, to).ok()?;
        (found == whole && useful <= whole).then_some(useful)
    }
}

/// The number at index `place` of the header.
fn field(prefix: &[u8], place: usize) -> Option<usize> {
    let bytes = prefix.chunks_exact(4).nth(place)?;
    let number = u32::from_le_bytes(bytes.try_into().ok()?);
    usize::try_from(number).ok()
}

//! The blocks of a run besides its pages: fences and filter, each a header with a checksum before a
//! body.
//!
//! ```text
//! 0      4         5           6      8       12         16         24
//! | magic | version | parameter | zero | count | body len | checksum | body ...
//! ```
//! Numbers are little-endian. The checksum is XXH3 of the bytes before it and of the body, seeded
//! by tree, run and kind, so that a block of another run, or of another kind, does not pass.

mod fence;
mod filter;

use stdx::hash;

pub(crate) use fence::{Fence, FenceBuilder};
pub(crate) use filter::{Filter, key_hash};

use crate::types::{RunId, TreeId};

pub(crate) const HEADER_LEN: usize = 24;
const CHECKED_LEN: usize = 16;
const VERSION: u8 = 1;

/// The kind of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockIdent {
    pub(crate) tree: TreeId,
    pub(crate) run: RunId,
    pub(crate) kind: BlockKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Fence,
    Filter,
}

/// A block with a valid checksum. `count` is the number of pages in a fence block, and of 64-byte
/// blocks in a filter block.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub(crate) parameter: u8,
    pub(crate) count: u32,
    pub(crate) body: &'a [u8],
}

impl BlockIdent {
    fn magic(self) -> [u8; 4] {
        match self.kind {
            BlockKind::Fence => *b"BtFe",
            BlockKind::Filter => *b"BtFi",
        }
    }

    fn checksum(self, checked: &[u8], body: &[u8]) -> u64 {
        let mut seed = [0; 16];
        let (magic, rest) = seed.split_at_mut(4);
        let (tree, run) = rest.split_at_mut(4);
        magic.copy_from_slice(&self.magic());
        tree.copy_from_slice(&self.tree.0.to_le_bytes());
        run.copy_from_slice(&self.run.0.to_le_bytes());
        hash::hash64_seeded(body, hash::hash64_seeded(checked, hash::hash64(&seed)))
    }
}

/// Append a block with `body` to `out`; returns its length.
pub(crate) fn encode(
    ident: BlockIdent,
    parameter: u8,
    count: u32,
    body: &[u8],
    out: &mut Vec<u8>,
) -> u32 {
    let body_len = u32::try_from(body.len()).expect("a run has less than 4 GiB of fences");
    let mut checked = Vec::with_capacity(CHECKED_LEN);
    checked.extend_from_slice(&ident.magic());
    checked.extend_from_slice(&[VERSION, parameter, 0, 0]);
    checked.extend_from_slice(&count.to_le_bytes());
    checked.extend_from_slice(&body_len.to_le_bytes());
    assert_eq!(
        checked.len(),
        CHECKED_LEN,
        "the checksum follows the fields"
    );
    let checksum = ident.checksum(&checked, body);
    out.extend_from_slice(&checked);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(body);
    let header_len = u32::try_from(HEADER_LEN).expect("24");
    body_len
        .checked_add(header_len)
        .expect("a run has less than 4 GiB of fences")
}

/// Decode `stored`, which must be exactly one block.
pub(crate) fn decode(ident: BlockIdent, stored: &[u8]) -> Result<Block<'_>, &'static str> {
    let short = "it is shorter than its header";
    let (checked, rest) = stored.split_first_chunk::<CHECKED_LEN>().ok_or(short)?;
    let (checksum, body) = rest.split_first_chunk::<8>().ok_or(short)?;
    let mut fields = Fields(checked);
    if fields.take::<4>() != ident.magic() {
        return Err("its magic number is wrong");
    }
    let [version, parameter, zero, zero_too] = fields.take();
    if version != VERSION {
        return Err("its version is not known");
    }
    let count = u32::from_le_bytes(fields.take());
    let body_len = u32::from_le_bytes(fields.take());
    if usize::try_from(body_len) != Ok(body.len()) || zero != 0 || zero_too != 0 {
        return Err("its length is wrong");
    }
    if u64::from_le_bytes(*checksum) != ident.checksum(checked, body) {
        return Err("its checksum does not match");
    }
    Ok(Block {
        parameter,
        count,
        body,
    })
}

/// The remaining fields of a header.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self
            .0
            .split_first_chunk()
            .expect("the fields fill the header");
        self.0 = rest;
        *field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_passes_as_itself_only() {
        let ident = BlockIdent {
            tree: TreeId(3),
            run: RunId(9),
            kind: BlockKind::Fence,
        };
        let mut stored = Vec::new();
        let len = encode(ident, 7, 5, b"the body", &mut stored);
        assert_eq!(len as usize, stored.len());
        let block = decode(ident, &stored).unwrap();
        assert_eq!(
            (block.parameter, block.count, block.body),
            (7, 5, &b"the body"[..])
        );
        for other in [
            BlockIdent {
                run: RunId(8),
                ..ident
            },
            BlockIdent {
                tree: TreeId(4),
                ..ident
            },
            BlockIdent {
                kind: BlockKind::Filter,
                ..ident
            },
        ] {
            assert!(decode(other, &stored).is_err());
        }
        for cut in 0..stored.len() {
            assert!(decode(ident, &stored[..cut]).is_err());
        }
        for at in 0..stored.len() * 8 {
            let mut damaged = stored.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            assert!(decode(ident, &damaged).is_err(), "bit {at}");
        }
    }
}

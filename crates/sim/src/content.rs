//! The bytes of a file: sparse blocks that copies share until one of them writes.
//!
//! - I1: no block lies at or beyond the length, and the rest of the last block is zeros.

use std::collections::BTreeMap;
use std::sync::Arc;

use stdx::hash::hash64_seeded;

const BLOCK: usize = 4096;

/// A file's bytes; unwritten bytes are zero. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Content {
    len: u64,
    blocks: BTreeMap<u64, Arc<[u8; BLOCK]>>,
}

impl Content {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Fill `buffer` from `offset`; false when the content ends within it.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| self.len < end) && !buffer.is_empty() {
            return false;
        }
        let mut rest = buffer;
        let mut at = offset;
        while !rest.is_empty() {
            let (block, skip, take) = split(at, rest.len());
            let (piece, tail) = rest.split_at_mut(take);
            match self
                .blocks
                .get(&block)
                .and_then(|b| b.get(skip..skip + take))
            {
                Some(bytes) => piece.copy_from_slice(bytes),
                None => piece.fill(0),
            }
            rest = tail;
            at += take as u64;
        }
        true
    }

    /// Write `bytes` at `offset`; a gap before `offset` is filled with zeros.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let (block, skip, take) = split(at, rest.len());
            let (piece, tail) = rest.split_at(take);
            let block = self.blocks.entry(block);
            let block = Arc::make_mut(block.or_insert_with(|| Arc::new([0; BLOCK])));
            let target = block.get_mut(skip..skip + take);
            target
                .expect("split stays within a block")
                .copy_from_slice(piece);
            rest = tail;
            at += take as u64;
        }
        if !bytes.is_empty() {
            self.len = self.len.max(at);
        }
    }

    /// Truncate, or extend with zeros.
    pub(crate) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let (block, skip, _) = split(len, 1);
            let keep = if skip == 0 { block } else { block + 1 };
            drop(self.blocks.split_off(&keep));
            if skip > 0
                && let Some(last) = self.blocks.get_mut(&block)
                && let Some(cut) = Arc::make_mut(last).get_mut(skip..)
            {
                cut.fill(0);
            }
        }
        self.len = len;
        let last = self.blocks.keys().next_back();
        assert!(
            last.is_none_or(|&last| last * (BLOCK as u64) < len),
            "I1: no block beyond the length"
        );
    }

    /// A hash of length and bytes, independent of the stored blocks.
    pub(crate) fn hash(&self, seed: u64) -> u64 {
        let mut hash = hash64_seeded(&self.len.to_le_bytes(), seed);
        for (number, block) in &self.blocks {
            if block.iter().any(|&b| b != 0) {
                hash = hash64_seeded(&number.to_le_bytes(), hash);
                hash = hash64_seeded(&block[..], hash);
            }
        }
        hash
    }
}

/// The number of the block that contains position `at`, the offset in it, and how many of `rest`
/// bytes fit into it.
fn split(at: u64, rest: usize) -> (u64, usize, usize) {
    let size = BLOCK as u64;
    let skip = usize::try_from(at % size).expect("below a block");
    (at / size, skip, rest.min(BLOCK - skip))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stdx::Rng;

    #[test]
    fn content_is_what_a_vector_would_be() {
        let mut rng = Rng::new(5);
        let mut content = Content::default();
        let mut model: Vec<u8> = Vec::new();
        for _ in 0..400 {
            let at = rng.index(30_000);
            if rng.chance(0.3) {
                content.set_len(at as u64);
                model.resize(at, 0);
            } else {
                let mut bytes = vec![0; rng.index(9000)];
                rng.fill(&mut bytes);
                content.write(at as u64, &bytes);
                if !bytes.is_empty() {
                    model.resize(model.len().max(at + bytes.len()), 0);
                    model[at..at + bytes.len()].copy_from_slice(&bytes);
                }
            }
            let mut all = vec![9; model.len()];
            assert!(content.read(0, &mut all));
            assert!(all == model);
            assert!(!content.read(1, &mut vec![0; model.len().max(1)]));
        }
    }
}

//! Filters: which keys are certainly not in a run.
//!
//! A blocked Bloom filter (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient Bloom
//! Filters, 2007): a key has all its bits in one block of 64 bytes, so a look costs one cache
//! miss. The upper half of the key's XXH3 chooses the block; the lower half, multiplied by an odd
//! constant again and again, gives 9 bits of position each time. With 10 bits for a key about 1
//! in 100 absent keys passes.
//!
//! The block on disk: `parameter` is the number of bits a key sets, `count` the number of 64-byte
//! blocks, the body these, as little-endian words.

use stdx::hash;

use super::BlockIdent;
use crate::plant::{Plant, planted};

const BLOCK_LEN: usize = 64;
const BLOCK_BITS: u64 = 512;
/// Maximum number of bits set per key: more are useless in a block of 512 bits.
const MAX_PROBES: u8 = 16;

/// A block of 512 bits, one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Bits([u64; 8]);

/// The filter of a run.
#[derive(Debug)]
pub(crate) struct Filter {
    blocks: Box<[Bits]>,
    probes: u8,
}

/// The hash of a key for [`Filter::may_hold`].
#[inline]
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    hash::hash64(key)
}

impl Filter {
    /// A filter for keys with these hashes, with `bits_per_key` bits per key.
    pub(crate) fn new(hashes: &[u64], bits_per_key: u8) -> Filter {
        assert!(0 < bits_per_key, "no bits make no filter");
        let bits = (hashes.len() as u64).saturating_mul(u64::from(bits_per_key));
        let count = bits.div_ceil(BLOCK_BITS).clamp(1, u64::from(u32::MAX) >> 8);
        let count = usize::try_from(count).expect("at most 2^24");
        let mut blocks = vec![Bits::default(); count].into_boxed_slice();
        let probes = probes_for(bits_per_key);
        let forgotten = usize::from(planted(Plant::FilterForgetsKey));
        for hash in hashes.iter().rev().skip(forgotten) {
            let block = blocks
                .get_mut(index(*hash, count))
                .expect("below the count");
            for (word, mask) in positions(*hash, probes) {
                *block.0.get_mut(word).expect("3 bits") |= mask;
            }
        }
        let filter = Filter { blocks, probes };
        debug_assert!(
            planted(Plant::FilterForgetsKey) || hashes.iter().all(|hash| filter.may_hold(*hash)),
            "no key is forgotten"
        );
        filter
    }

    /// Decode a filter block.
    pub(crate) fn decode(ident: BlockIdent, stored: &[u8]) -> Result<Filter, &'static str> {
        let block = super::decode(ident, stored)?;
        let probes = block.parameter;
        if probes == 0 || MAX_PROBES < probes {
            return Err("its number of probes is wrong");
        }
        let (chunks, rest) = block.body.as_chunks::<BLOCK_LEN>();
        let as_said = u32::try_from(chunks.len()) == Ok(block.count);
        if !as_said || !rest.is_empty() || chunks.is_empty() {
            return Err("its number of blocks is wrong");
        }
        let mut blocks = vec![Bits::default(); chunks.len()].into_boxed_slice();
        for (bits, chunk) in blocks.iter_mut().zip(chunks) {
            let (words, _) = chunk.as_chunks::<8>();
            for (bits, word) in bits.0.iter_mut().zip(words) {
                *bits = u64::from_le_bytes(*word);
            }
        }
        Ok(Filter { blocks, probes })
    }

    /// Append the block of this filter to `out`; returns its length.
    pub(crate) fn encode(&self, ident: BlockIdent, out: &mut Vec<u8>) -> u32 {
        let mut body = Vec::with_capacity(self.blocks.len() * BLOCK_LEN);
        for word in self.blocks.iter().flat_map(|block| &block.0) {
            body.extend_from_slice(&word.to_le_bytes());
        }
        let count = u32::try_from(self.blocks.len()).expect("at most 2^24");
        super::encode(ident, self.probes, count, &body, out)
    }

    /// False if the run contains no key with this hash.
    #[inline]
    pub(crate) fn may_hold(&self, hash: u64) -> bool {
        let Some(block) = self.blocks.get(index(hash, self.blocks.len())) else {
            return true;
        };
        positions(hash, self.probes).all(|(word, mask)| match block.0.get(word) {
            Some(bits) => bits & mask != 0,
            None => true,
        })
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Filter>() + size_of_val(&*self.blocks)
    }
}

/// The optimal number of bits to set, bits x ln 2, slightly reduced because blocks fill unevenly.
fn probes_for(bits_per_key: u8) -> u8 {
    let best = u16::from(bits_per_key) * 60 / 100;
    u8::try_from(best)
        .unwrap_or(MAX_PROBES)
        .clamp(1, MAX_PROBES)
}

/// The block of a hash: its upper half, scaled to the count.
#[inline]
fn index(hash: u64, count: usize) -> usize {
    let scaled = (hash >> 32).wrapping_mul(count as u64) >> 32;
    usize::try_from(scaled).unwrap_or(0)
}

/// The words of the block, and the bits in them that a hash sets.
#[inline]
fn positions(hash: u64, probes: u8) -> impl Iterator<Item = (usize, u64)> {
    let mut state = hash & 0xffff_ffff;
    (0..probes).map(move |_| {
        state = (state * 0x9e37_79b9) & 0xffff_ffff;
        let position = state >> 23;
        let word = usize::try_from(position >> 6).unwrap_or(0);
        (word, 1 << (position & 63))
    })
}

#[cfg(test)]
mod tests {
    use stdx::Rng;

    use super::*;
    use crate::block::BlockKind;
    use crate::types::{RunId, TreeId};

    #[test]
    fn no_key_is_lost_and_few_absent_ones_pass() {
        let mut rng = Rng::new(11);
        let keys: Vec<[u8; 20]> = (0..40_000)
            .map(|_| {
                let mut key = [0; 20];
                rng.fill(&mut key);
                key
            })
            .collect();
        let hashes: Vec<u64> = keys.iter().map(|key| key_hash(key)).collect();
        for (bits, limit) in [(4, 0.25), (10, 0.02), (16, 0.004)] {
            let filter = Filter::new(&hashes[..20_000], bits);
            assert!(hashes[..20_000].iter().all(|hash| filter.may_hold(*hash)));
            let passed = hashes[20_000..]
                .iter()
                .filter(|hash| filter.may_hold(**hash))
                .count();
            let share = passed as f64 / 20_000.0;
            assert!(share < limit, "{bits} bits: {share}");
            let ident = BlockIdent {
                tree: TreeId(1),
                run: RunId(2),
                kind: BlockKind::Filter,
            };
            let mut stored = Vec::new();
            let len = filter.encode(ident, &mut stored);
            assert_eq!(len as usize, stored.len());
            let again = Filter::decode(ident, &stored).unwrap();
            assert!(
                hashes
                    .iter()
                    .all(|it| again.may_hold(*it) == filter.may_hold(*it))
            );
        }
    }

    #[test]
    fn one_key_and_any_number_of_bits_make_a_filter() {
        for bits in 1..=255 {
            let filter = Filter::new(&[7], bits);
            assert!(filter.may_hold(7));
        }
    }
}

//! A hash of 128 bits, so that two of a hundred million states agree with probability 1e-23.

use std::hash::{Hash, Hasher};

/// Two lanes of multiplications whose halves are folded.
struct Lanes(u64, u64);

/// The hash of a value.
pub(super) fn hash(value: &impl Hash) -> u128 {
    let mut lanes = Lanes(0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f);
    value.hash(&mut lanes);
    (u128::from(lanes.0) << 64) | u128::from(lanes.1)
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let halves = product.to_le_bytes();
    let (low, high) = halves.split_at(8);
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    word(low) ^ word(high)
}

impl Hasher for Lanes {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = fold(self.0 ^ word ^ 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db);
        self.1 = fold(self.1 ^ word ^ 0x8ebc_6af0_9c88_c6e3, 0x5899_65cc_7537_4cc3)
            .wrapping_add(0x1d8e_4e27_c47d_124f);
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(u64::try_from(word).unwrap());
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word.cast_unsigned().try_into().unwrap());
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

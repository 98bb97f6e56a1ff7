//! Content hashes: XXH3, 64 bits (<https://github.com/Cyan4973/xxHash>).
//!
//! The hashes are the same on all machines and in all versions, so they may be stored and compared.

use xxhash_rust::xxh3;

/// The 64-bit XXH3 hash of `bytes`.
#[must_use]
#[inline]
pub fn hash64(bytes: &[u8]) -> u64 {
    xxh3::xxh3_64(bytes)
}

/// The 64-bit XXH3 hash of `bytes` under `seed`.
#[must_use]
#[inline]
pub fn hash64_seeded(bytes: &[u8], seed: u64) -> u64 {
    xxh3::xxh3_64_with_seed(bytes, seed)
}

/// The hash of a key-value pair. The boundary matters: `("a", "bc")` differs from `("ab", "c")`.
#[must_use]
#[inline]
pub fn pair64(key: &[u8], value: &[u8]) -> u64 {
    hash64_seeded(value, hash64(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer_of_the_empty_input() {
        assert_eq!(hash64(b""), 0x2D06_8005_38D3_94C2);
    }

    #[test]
    fn a_pair_is_not_its_concatenation() {
        assert_ne!(pair64(b"a", b"bc"), pair64(b"ab", b"c"));
    }
}

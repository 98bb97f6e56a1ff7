//! Numbers in scattered order, made by invertible steps: no two numbers are scattered to the same
//! one, and the number behind a key can be computed without a list. (The steps are those of
//! SplitMix64; Steele, Lea and Flood 2014.)

use stdx::rng::mix64;

const FIRST: u64 = 0xBF58_476D_1CE4_E5B9;
const SECOND: u64 = 0x94D0_49BB_1331_11EB;

/// The key of row `id`.
pub(super) fn key(id: u64, seed: u64) -> u64 {
    let mut z = id ^ seed;
    z = (z ^ z >> 30).wrapping_mul(FIRST);
    z = (z ^ z >> 27).wrapping_mul(SECOND);
    z ^ z >> 31
}

/// The number of the row with `key`.
pub(super) fn id(key: u64, seed: u64) -> u64 {
    let mut z = key ^ key >> 31 ^ key >> 62;
    z = z.wrapping_mul(inverse(SECOND));
    z = z ^ z >> 27 ^ z >> 54;
    z = z.wrapping_mul(inverse(FIRST));
    (z ^ z >> 30 ^ z >> 60) ^ seed
}

/// A permutation of `0..n`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    n: u64,
    mask: u64,
    /// Half of the bits of the mask, rounded up: a shift by it is invertible.
    shift: u32,
    seed: u64,
}

impl Permutation {
    /// A permutation of `0..n`; of one number, if `n` is 0.
    pub(super) fn new(n: u64, seed: u64) -> Permutation {
        let n = n.max(1);
        let bits = (64 - (n - 1).leading_zeros()).max(1);
        Permutation {
            n,
            mask: u64::MAX >> (64 - bits),
            shift: bits.div_ceil(2),
            seed: mix64(seed),
        }
    }

    /// The number to which `x`, below `n`, is scattered.
    pub(super) fn of(&self, x: u64) -> u64 {
        // A permutation of the next power of two: numbers from `n` on are scattered again, and at
        // least half are below.
        let mut x = self.step(x);
        while self.n <= x {
            x = self.step(x);
        }
        x
    }

    fn step(&self, x: u64) -> u64 {
        let mut x = (x ^ self.seed) & self.mask;
        for factor in [FIRST, SECOND] {
            x = x.wrapping_mul(factor) & self.mask;
            x ^= x >> self.shift;
        }
        x
    }
}

/// The multiplicative inverse of an odd number: each round doubles the number of correct bits.
const fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    let mut round = 0;
    while round < 5 {
        x = x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x)));
        round += 1;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_reaches_every_number_once_in_no_order() {
        for n in [1, 2, 3, 7, 64, 65, 1000, 4096] {
            for seed in 0..5 {
                let permutation = Permutation::new(n, seed);
                let mut all: Vec<u64> = (0..n).map(|x| permutation.of(x)).collect();
                if n == 1000 {
                    let up = all.array_windows().filter(|[a, b]| a < b).count();
                    assert!((400..600).contains(&up), "{up} of 999 ascend");
                }
                all.sort_unstable();
                assert!(all.into_iter().eq(0..n), "{n} numbers, seed {seed}");
            }
        }
        assert_eq!(Permutation::new(0, 1).of(0), 0);
    }

    #[test]
    fn a_key_leads_back_to_its_row_and_keys_do_not_ascend() {
        let mut up = 0;
        for row in (0..1000).chain([u64::MAX, 1 << 63]) {
            assert_eq!(id(key(row, 42), 42), row);
            up += u32::from(key(row, 42) < key(row.wrapping_add(1), 42));
        }
        assert!((400..600).contains(&up), "{up} of 1002 ascend");
    }
}

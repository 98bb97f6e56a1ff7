//! Seeded randomness: xoshiro256++ (Blackman and Vigna, 2019) seeded through SplitMix64.
//!
//! Distributions are implemented here, because the data of a benchmark must not change when a
//! library changes its sampling.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A deterministic stream of random numbers: the same seed gives the same stream in every version.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// A generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Rng {
        Rng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..limit` by Lemire's multiply-shift (the bias is below `limit / 2^64`).
    /// A `limit` of 0 gives 0.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(limit);
        u64::try_from(wide >> 64).expect("the high half of a 128-bit product has 64 bits")
    }

    /// Uniform in `0..limit` as an index. A `limit` of 0 gives 0.
    #[inline]
    pub fn index(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(limit as u64)).expect("below a usize limit")
    }

    /// Uniform in `[0, 1)` with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p` (0 to 1).
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Exponentially distributed with the given mean: the gaps of a Poisson process.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Fill `bytes` with uniform bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

/// A well-mixed 64-bit function of `x` (the finaliser of SplitMix64), for random access to a stream
/// of numbers.
#[must_use]
#[inline]
pub fn mix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_stream() {
        let (mut a, mut b) = (Rng::new(42), Rng::new(42));
        for _ in 0..100 {
            assert_eq!(a.next_u64(), b.next_u64());
        }
        assert_ne!(Rng::new(1).next_u64(), Rng::new(2).next_u64());
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut rng = Rng::new(7);
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[rng.index(10)] = true;
        }
        assert!(seen.iter().all(|&s| s));
        assert_eq!(rng.below(0), 0);
    }

    #[test]
    fn means_are_where_they_should_be() {
        let mut rng = Rng::new(3);
        let n = 20_000;
        let unit: f64 = (0..n).map(|_| rng.unit()).sum::<f64>() / f64::from(n);
        let gaps: f64 = (0..n).map(|_| rng.exponential(5.0)).sum::<f64>() / f64::from(n);
        assert!((0.49..0.51).contains(&unit), "mean of unit: {unit}");
        assert!((4.8..5.2).contains(&gaps), "mean of exponential(5): {gaps}");
    }
}

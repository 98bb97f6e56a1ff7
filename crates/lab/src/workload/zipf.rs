//! Zipf-distributed numbers by the method of Gray et al., "Quickly generating billion-record
//! synthetic databases" (SIGMOD 1994), section 3: each takes one random number and one power, and
//! no table is needed.

use stdx::Rng;

use super::scatter::Permutation;

/// Draws numbers of `0..n`. The k-th most frequent number has a probability of about 1 / k^theta,
/// up to a constant factor.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: u64,
    theta: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
    scatter: Permutation,
}

/// Number of terms of the zeta function that are summed one by one; the sum of the others is
/// approximated by an integral.
const EXACT: u64 = 10_000;

impl Zipf {
    /// A distribution over `0..n`. `theta` must be between 0 and 1, both excluded.
    #[must_use]
    pub fn new(n: u64, theta: f64) -> Zipf {
        let n = n.max(2);
        let zeta = zeta(n, theta);
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - zeta_two(theta) / zeta);
        Zipf {
            n,
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta,
            eta,
            scatter: Permutation::new(n, 0x5CA7_7E2E_D000),
        }
    }

    /// Draw a rank: 0 is the most frequent.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and cut off at n"
    )]
    pub fn rank(&self, rng: &mut Rng) -> u64 {
        let u = rng.unit();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5f64.powf(self.theta) {
            return 1;
        }
        let rank = self.n as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.n - 1)
    }

    /// Draw a number whose frequency is independent of that of its neighbors: ranks are scattered
    /// over the numbers by a permutation, so that each number has the frequency of one rank.
    pub fn scattered(&self, rng: &mut Rng) -> u64 {
        self.scatter.of(self.rank(rng))
    }
}

fn zeta_two(theta: f64) -> f64 {
    1.0 + 0.5f64.powf(theta)
}

fn zeta(n: u64, theta: f64) -> f64 {
    let exact: f64 = (1..=n.min(EXACT)).map(|k| (k as f64).powf(-theta)).sum();
    if n <= EXACT {
        return exact;
    }
    let power = 1.0 - theta;
    let integral = |x: f64| x.powf(power) / power;
    exact + integral(n as f64 + 0.5) - integral(EXACT as f64 + 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_ranks_are_as_frequent_as_they_should_be() {
        let zipf = Zipf::new(1000, 0.8);
        let mut rng = Rng::new(3);
        let mut first = 0u32;
        let mut top = 0u32;
        for _ in 0..100_000 {
            let rank = zipf.rank(&mut rng);
            assert!(rank < 1000);
            first += u32::from(rank == 0);
            top += u32::from(rank < 100);
        }
        let of = |k: u64| zeta(k, 0.8) / zeta(1000, 0.8);
        assert!((f64::from(first) / 1e5 - of(1)).abs() < 0.01, "{first}");
        assert!((f64::from(top) / 1e5 - of(100)).abs() < 0.03, "{top}");
    }

    #[test]
    fn every_number_can_be_drawn_and_has_the_frequency_of_its_rank() {
        let n = 200;
        let zipf = Zipf::new(n, 0.5);
        let mut rng = Rng::new(7);
        let mut drawn = vec![0u32; 200];
        for _ in 0..200_000 {
            drawn[usize::try_from(zipf.scattered(&mut rng)).unwrap()] += 1;
        }
        assert!(drawn.iter().all(|times| 0 < *times), "{drawn:?}");
        drawn.sort_unstable_by(|a, b| b.cmp(a));
        let expected = 200_000.0 / zeta(n, 0.5);
        assert!(
            (f64::from(drawn[0]) / expected - 1.0).abs() < 0.1,
            "{}",
            drawn[0]
        );
    }

    #[test]
    fn the_long_sum_is_close_to_its_integral() {
        let exact: f64 = (1..=50_000).map(|k| f64::from(k).powf(-0.7)).sum();
        assert!((zeta(50_000, 0.7) / exact - 1.0).abs() < 1e-6);
    }
}

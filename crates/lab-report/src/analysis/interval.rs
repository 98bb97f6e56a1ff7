//! Confidence intervals from few repeats.
//!
//! I1. Repeats are compared by their logarithms: the noise of rates, times and bytes is relative,
//!     and their distributions are skewed to the right. The estimate is a geometric mean, or a
//!     ratio of two.
//! I2. The interval of a ratio is that of Welch (The generalization of "Student's" problem,
//!     Biometrika 34, 1947): the two sides may have different noise.
//! I3. Between two sides, the standard deviation of each counts as at least [`NOISE_MIN`]: three
//!     equal repeats do not prove that there is no noise.
//! I4. Coverage is what is asked for at 3, 5 and 7 repeats, if the noise is log-normal, if single
//!     repeats are disturbed, and if the noise has two modes. The test of this module prints the
//!     table that `docs/results.md` has.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::statistic::{Interval, mean};

/// The smallest relative standard deviation of a side (I3): half a percent.
pub(super) const NOISE_MIN: f64 = 0.005;

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimated {
    /// The estimate.
    pub(super) value: f64,
    /// Its interval.
    pub(super) interval: Interval,
}

/// The ratio `new` / `base` of the geometric means, with an interval that misses the true ratio
/// with probability `error` (0.05 for 95 %). `None` with fewer than 2 repeats on a side, or if a
/// value is not positive.
pub(super) fn ratio(new: &[f64], base: &[f64], error: f64) -> Option<Estimated> {
    let (new, base) = (Logs::of(new, NOISE_MIN)?, Logs::of(base, NOISE_MIN)?);
    let (a, b) = (new.squared_error(), base.squared_error());
    // The degrees of freedom of Welch and Satterthwaite.
    let freedom = (a + b).powi(2) / (a.powi(2) / new.freedom() + b.powi(2) / base.freedom());
    estimated(new.mean - base.mean, (a + b).sqrt(), freedom, error)
}

/// The geometric mean of `values`, with an interval that misses it with probability `error`. `None`
/// as for [`ratio`].
pub(super) fn geometric_mean(values: &[f64], error: f64) -> Option<Estimated> {
    let logs = Logs::of(values, 0.0)?;
    estimated(
        logs.mean,
        logs.squared_error().sqrt(),
        logs.freedom(),
        error,
    )
}

fn estimated(log: f64, standard_error: f64, freedom: f64, error: f64) -> Option<Estimated> {
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let reach = student.inverse_cdf(1.0 - error / 2.0) * standard_error;
    Some(Estimated {
        value: log.exp(),
        interval: Interval {
            low: (log - reach).exp(),
            high: (log + reach).exp(),
        },
    })
}

/// The logarithms of the repeats of a side.
struct Logs {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Logs {
    fn of(values: &[f64], noise_min: f64) -> Option<Logs> {
        if values.len() < 2 || values.iter().any(|&v| !(v.is_finite() && 0.0 < v)) {
            return None;
        }
        let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
        let (mean, count) = (mean(&logs)?, logs.len() as f64);
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        Some(Logs {
            count,
            mean,
            variance: (squares / (count - 1.0)).max(noise_min.powi(2)),
        })
    }

    fn freedom(&self) -> f64 {
        self.count - 1.0
    }

    /// The square of the standard error of the mean.
    fn squared_error(&self) -> f64 {
        self.variance / self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::standard_normal;
    use stdx::Rng;

    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-3 * expected
    }

    #[test]
    fn a_ratio_of_three_repeats_by_hand() {
        // Logarithms 0, 0.1, 0.2 more on each side: variance 0.01, standard error
        // sqrt(0.02 / 3) = 0.08165, 4 degrees of freedom, t = 2.7764: +- 0.22670.
        let side = |from: f64| [0.0, 0.1, 0.2].map(|log: f64| from * log.exp());
        let found = ratio(&side(200.0), &side(100.0), 0.05).unwrap();
        assert!(near(found.value, 2.0), "I1: {found:?}");
        assert!(
            near(found.interval.high, 2.0 * 0.226_70_f64.exp()),
            "I2: {found:?}"
        );
        assert!(
            near(found.interval.low, 2.0 * (-0.226_70_f64).exp()),
            "{found:?}"
        );
        // 2 degrees of freedom, t = 4.3027, standard error 0.1 / sqrt(3).
        let one = geometric_mean(&side(100.0), 0.05).unwrap();
        let reach = 4.3027 * 0.1 / 3.0_f64.sqrt();
        assert!(
            near(one.interval.high, 100.0 * (0.1 + reach).exp()),
            "{one:?}"
        );
    }

    #[test]
    fn equal_repeats_keep_a_minimum_of_noise_and_few_have_no_interval() {
        let found = ratio(&[100.0; 3], &[100.0; 3], 0.05).unwrap();
        assert_eq!(found.value, 1.0);
        assert!(
            found.interval.low < 0.99 && 1.01 < found.interval.high,
            "I3: {found:?}"
        );
        let one = geometric_mean(&[100.0; 3], 0.05).unwrap().interval;
        assert!(one.high - one.low < 1e-9, "{one:?}");
        assert_eq!(ratio(&[1.0], &[1.0, 2.0], 0.05), None);
        assert_eq!(ratio(&[0.0, 1.0], &[1.0, 2.0], 0.05), None);
        assert_eq!(geometric_mean(&[f64::NAN, 1.0], 0.05), None);
    }

    /// Noise of 3 % with mean 0, on the scale of logarithms.
    type Noise = fn(&mut Rng) -> f64;

    fn normal(rng: &mut Rng) -> f64 {
        0.03 * standard_normal(rng)
    }

    /// Every tenth repeat is disturbed by five times the noise.
    fn disturbed(rng: &mut Rng) -> f64 {
        let factor = if rng.chance(0.1) { 5.0 } else { 1.0 };
        factor * normal(rng)
    }

    /// Two modes, 10 % apart, as of a file that is cached or not.
    fn two_modes(rng: &mut Rng) -> f64 {
        let mode = if rng.chance(0.5) { 0.05 } else { -0.05 };
        mode + normal(rng) / 3.0
    }

    /// The share of 4,000 comparisons of equal targets whose 95 % interval holds 1.
    fn coverage(noise: Noise, repeats: usize) -> f64 {
        const COMPARISONS: u32 = 4_000;
        let mut rng = Rng::new(repeats as u64);
        let mut holds = || {
            let mut side = || -> Vec<f64> { (0..repeats).map(|_| noise(&mut rng).exp()).collect() };
            let found = ratio(&side(), &side(), 0.05).unwrap().interval;
            found.low <= 1.0 && 1.0 <= found.high
        };
        let held = (0..COMPARISONS).filter(|_| holds()).count();
        held as f64 / f64::from(COMPARISONS)
    }

    #[test]
    fn coverage_is_what_it_is_called() {
        let noises: [(&str, Noise, f64); 3] = [
            ("log-normal", normal, 0.945),
            ("disturbed", disturbed, 0.945),
            ("two modes", two_modes, 0.945),
        ];
        println!("noise       3 repeats  5 repeats  7 repeats");
        for (name, noise, least) in noises {
            let found = [3, 5, 7].map(|repeats| coverage(noise, repeats));
            let [three, five, seven] = found.map(|share| share * 100.0);
            println!("{name:<11} {three:>7.1} %  {five:>7.1} %  {seven:>7.1} %");
            assert!(
                found.iter().all(|&share| least <= share),
                "I4: {name} {found:?}"
            );
        }
    }
}

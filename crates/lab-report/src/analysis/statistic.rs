//! Order statistics and the bootstrap, over plain slices.
//!
//! All randomness is a fixed seed: the same numbers give the same interval for ever.

use stdx::Rng;

use super::interval::geometric_mean;

/// Resamples of a bootstrap. The ends of a 95 % interval are then the 50th smallest and largest.
pub(super) const RESAMPLES: usize = 2000;
/// The probability with which a 95 % interval misses.
pub(super) const ERROR: f64 = 0.05;
const SEED: u64 = 42;
/// Repeats without which a second of noise would be taken for a difference.
const REPEATS: usize = 3;

/// Two ends of a 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    /// The lower end.
    pub(super) low: f64,
    /// The upper end.
    pub(super) high: f64,
}

/// Quantile `q` (0 to 1) with linear interpolation between the two nearest values (type 7 of
/// Hyndman and Fan, 1996: what R and numpy do). `None` when empty.
pub(crate) fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_sorted(&sorted, q)
}

fn quantile_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = q.clamp(0.0, 1.0) * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the last index"
    )]
    let below = place.floor() as usize;
    let low = *sorted.get(below)?;
    let high = *sorted.get(below + 1).unwrap_or(&low);
    Some(low + (high - low) * (place - place.floor()))
}

/// The median. `None` when empty.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The mean. `None` when empty.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The coefficient of variation: standard deviation (of the sample, n - 1) by mean. `None` for
/// fewer than 2 values or a mean of 0.
pub(super) fn variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    if values.len() < 2 || mean == 0.0 {
        return None;
    }
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt() / mean.abs())
}

/// The least-squares slope per place. `None` for fewer than 2 values.
pub(super) fn slope(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let middle = (values.len() - 1) as f64 / 2.0;
    let (mut over, mut under) = (0.0, 0.0);
    for (place, value) in values.iter().enumerate() {
        let x = place as f64 - middle;
        over += x * (value - mean);
        under += x * x;
    }
    Some(over / under)
}

/// The ends of the 95 % interval of the geometric mean, of repeats that are enough to tell noise:
/// three or more.
pub(crate) fn mean_between(values: &[f64]) -> Option<[f64; 2]> {
    let enough = REPEATS <= values.len();
    let found = geometric_mean(values, ERROR).filter(|_| enough)?;
    Some([found.interval.low, found.interval.high])
}

/// The interval of new / base, from resampled numbers of each side. `None` when a side has none or
/// a base is 0.
pub(super) fn ratio_interval(new: &[f64], base: &[f64]) -> Option<Interval> {
    let ratio = |(new, base): (&f64, &f64)| (*base != 0.0).then_some(new / base);
    let ratios: Option<Vec<f64>> = new.iter().zip(base).map(ratio).collect();
    central(&ratios?)
}

/// Block-bootstrap means: [`RESAMPLES`] means of runs of `block` neighbours drawn from `values`
/// (the moving-block bootstrap of Kuensch, 1989). Blocks keep what neighbouring seconds have in
/// common. Empty when there are fewer than 2 blocks.
pub(super) fn block_means(values: &[f64], block: usize, seed: u64) -> Vec<f64> {
    if block == 0 || values.len() < block.saturating_mul(2) {
        return Vec::new();
    }
    let mut rng = Rng::new(SEED ^ seed);
    let starts = values.len() - block + 1;
    let blocks = values.len().div_ceil(block);
    let one = |rng: &mut Rng| {
        let mut sum = 0.0;
        for _ in 0..blocks {
            let start = rng.index(starts);
            sum += values.iter().skip(start).take(block).sum::<f64>();
        }
        sum / (blocks * block) as f64
    };
    (0..RESAMPLES).map(|_| one(&mut rng)).collect()
}

/// The 95 % interval of resampled numbers. `None` when empty.
pub(super) fn central(values: &[f64]) -> Option<Interval> {
    let tail = ERROR / 2.0;
    Some(Interval {
        low: quantile(values, tail)?,
        high: quantile(values, 1.0 - tail)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_between_neighbours() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&values), Some(2.5));
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 1.0), Some(4.0));
        // Place 0.05 * 3 = 0.15 between 1 and 2.
        assert!((quantile(&values, 0.05).unwrap() - 1.15).abs() < 1e-12);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
    }

    #[test]
    fn variation_and_slope_by_hand() {
        // Mean 4, squares 4 + 0 + 4 = 8, / 2 = 4, root 2, by 4.
        assert_eq!(variation(&[2.0, 4.0, 6.0]), Some(0.5));
        assert_eq!(variation(&[0.0, 0.0]), None);
        assert_eq!(slope(&[1.0, 3.0, 5.0]), Some(2.0));
        assert_eq!(slope(&[1.0]), None);
    }

    #[test]
    fn two_repeats_are_too_few_for_a_mean_with_an_interval() {
        assert_eq!(mean_between(&[10.0, 11.0]), None);
        let [low, high] = mean_between(&[10.0, 11.0, 12.0]).unwrap();
        assert!(low < 10.0 && 12.0 < high, "{low} {high}");
        assert_eq!(ratio_interval(&[2.0], &[0.0]), None);
        assert_eq!(ratio_interval(&[2.0], &[]), None);
    }

    #[test]
    fn blocks_keep_the_mean() {
        let values: Vec<f64> = (0..100).map(|i| 100.0 + f64::from(i % 7)).collect();
        let found = central(&block_means(&values, 5, 0)).unwrap();
        let mean = mean(&values).unwrap();
        assert!(found.low < mean && mean < found.high, "{found:?} {mean}");
        assert!(block_means(&values[..9], 5, 0).is_empty());
    }
}

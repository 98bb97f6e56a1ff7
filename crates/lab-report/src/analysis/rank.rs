//! The Mann-Whitney test: do two sets of repeats come from the same distribution?
//!
//! The exact distribution of U where no values are equal, otherwise the normal approximation with
//! the correction for ties and continuity (Mann and Whitney, 1947; Lehmann, Nonparametrics, 1975).

/// Minimum number of repeats on a side for the test.
const SIDE_MIN: usize = 5;
/// Repeats of a side above which the normal approximation is used: it is then good to 3 digits.
const EXACT_MAX: usize = 30;

/// The two-sided p-value. `None` with fewer than 5 values on a side.
pub(super) fn mann_whitney(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len().min(b.len()) < SIDE_MIN {
        return None;
    }
    let pairs = || a.iter().flat_map(|x| b.iter().map(move |y| (x, y)));
    let above = pairs().filter(|(x, y)| x > y).count() as f64;
    let equal = pairs().filter(|(x, y)| x == y).count() as f64;
    let u = above + equal / 2.0;
    let tied = tie_term(a, b);
    if tied == 0.0 && a.len().max(b.len()) <= EXACT_MAX {
        return Some(exact(
            a.len(),
            b.len(),
            above.min(pairs().count() as f64 - above),
        ));
    }
    let (m, n) = (a.len() as f64, b.len() as f64);
    let all = m + n;
    let variance = m * n / 12.0 * (all + 1.0 - tied / (all * (all - 1.0)));
    if variance <= 0.0 {
        return Some(1.0);
    }
    let distance = ((u - m * n / 2.0).abs() - 0.5).max(0.0);
    Some(two_sided(distance / variance.sqrt()))
}

/// The sum of t^3 - t over groups of t equal values.
fn tie_term(a: &[f64], b: &[f64]) -> f64 {
    let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
    all.sort_by(f64::total_cmp);
    let groups = all.chunk_by(|x, y| x == y).map(|group| group.len() as f64);
    groups.map(|t| t.powi(3) - t).sum()
}

/// Twice the probability that U is at most `u`: counts of the ways to reach each U, row by row of
/// the Gaussian binomial coefficients.
fn exact(m: usize, n: usize, u: f64) -> f64 {
    // ways[k]: choices of some of `m` places so far whose ranks sum to U = k.
    let most = m * n;
    let mut ways = vec![0.0; most + 1];
    if let Some(first) = ways.first_mut() {
        *first = 1.0;
    }
    // The product of (1 - q^(n+i)) / (1 - q^i) for i = 1..=m.
    for i in 1..=m {
        for k in (n + i..=most).rev() {
            let lower = ways.get(k - n - i).copied().unwrap_or(0.0);
            if let Some(way) = ways.get_mut(k) {
                *way -= lower;
            }
        }
        for k in i..=most {
            let lower = ways.get(k - i).copied().unwrap_or(0.0);
            if let Some(way) = ways.get_mut(k) {
                *way += lower;
            }
        }
    }
    let total: f64 = ways.iter().sum();
    let tail: f64 = ways
        .iter()
        .enumerate()
        .filter(|(k, _)| *k as f64 <= u)
        .map(|(_, w)| w)
        .sum();
    (2.0 * tail / total).min(1.0)
}

/// The probability that a standard normal number is at least `z` away from 0: erfc(z / sqrt 2) by
/// formula 7.1.26 of Abramowitz and Stegun (error below 1.5e-7).
fn two_sided(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = [
        1.061_405_429,
        -1.453_152_027,
        1.421_413_741,
        -0.284_496_736,
        0.254_829_592,
    ];
    let sum = series.iter().fold(0.0, |sum, c| (sum + c) * t);
    (sum * (-x * x).exp()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separated_sides_of_five() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
        // One of the 252 orders on each side.
        assert!((mann_whitney(&a, &b).unwrap() - 2.0 / 252.0).abs() < 1e-12);
        assert!((mann_whitney(&b, &a).unwrap() - 2.0 / 252.0).abs() < 1e-12);
        assert_eq!(mann_whitney(&a[..4], &b), None);
    }

    #[test]
    fn known_table_values() {
        // U = 2 at 5 and 5: 4 of 252 orders reach at most 2 (1 + 1 + 2).
        let found = exact(5, 5, 2.0);
        assert!((found - 8.0 / 252.0).abs() < 1e-12, "{found}");
        assert!((two_sided(1.96) - 0.05).abs() < 1e-4);
        assert!((two_sided(0.0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn equal_sides_do_not_differ() {
        assert_eq!(mann_whitney(&[3.0; 5], &[3.0; 5]), Some(1.0));
        let found = mann_whitney(&[1.0, 2.0, 3.0, 4.0, 5.0], &[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!(0.9 < found, "{found}");
    }
}

//! Whether one side differs from the other: numbers first, then a word.
//!
//! V1. The effect is the ratio of medians over repeats.
//! V2. Its 95 % interval is a bootstrap over repeats; for a single repeat of the mean rate over
//!     blocks of 5 seconds within the run, marked so.
//! V3. "No difference" if the interval holds 1 or the effect is below the noise floor.
//! V4. Where no ratio can be formed (a base of 0), sides differ when their ranges do not overlap.
//! V5. Without repeats and without an interval there is no verdict.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::metric::{Better, Metric};
use super::rank::mann_whitney;
use super::statistic::{block_means, mean, median, ratio_interval, resampled_medians};
use super::summary::BLOCK;

/// The floor of a host that was not calibrated: runs that differ by less than 2 % count as equal.
pub const DEFAULT_FLOOR: f64 = 0.02;

/// The verdict on a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A rate is higher.
    Faster,
    /// A rate is lower.
    Slower,
    /// Another metric is on its better side.
    Better,
    /// Another metric is on its worse side.
    Worse,
    /// None beyond the noise.
    #[serde(rename = "no difference")]
    NoDifference,
    /// A side has wrong answers, failed, or was not measured at all.
    Invalid,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoDifference => "no difference",
            Verdict::Invalid => "invalid",
        })
    }
}

/// The samples of one metric on one side.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// The metric in each valid repeat.
    pub(super) repeats: Vec<f64>,
    /// The one-second rates, for the mean rate of a single repeat; empty otherwise.
    pub(super) seconds: Vec<f64>,
}

impl Sample {
    /// Bootstrapped numbers; empty when the spread is unknown.
    fn resampled(&self, seed: u64) -> Vec<f64> {
        match self.repeats.as_slice() {
            [] => Vec::new(),
            [only] => {
                let scale = mean(&self.seconds)
                    .filter(|&m| 0.0 < m)
                    .map_or(0.0, |m| only / m);
                let mut means = block_means(&self.seconds, BLOCK, seed);
                means.iter_mut().for_each(|m| *m *= scale);
                means
            }
            many => resampled_medians(many, seed),
        }
    }

    fn least(&self) -> Option<f64> {
        self.repeats.iter().copied().min_by(f64::total_cmp)
    }

    fn largest(&self) -> Option<f64> {
        self.repeats.iter().copied().max_by(f64::total_cmp)
    }
}

/// The direction in which a side differs from the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    Above,
    Below,
    None,
    /// V5.
    Unknown,
}

/// One metric of two sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judgement {
    pub(super) new: Option<f64>,
    pub(super) base: Option<f64>,
    pub(super) ratio: Option<f64>,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    /// Whether one of the sides has a single repeat.
    pub(super) single: bool,
    pub(super) p_value: Option<f64>,
    pub(super) difference: Difference,
}

/// Compare; `floor` is relative (0.02 = 2 %).
pub(super) fn judge(new: &Sample, base: &Sample, floor: f64) -> Judgement {
    let (value, base_value) = (median(&new.repeats), median(&base.repeats));
    let ratio = match (value, base_value) {
        (Some(value), Some(base)) if base != 0.0 => Some(value / base),
        _ => None,
    };
    // Different seeds, so that the two sides are resampled independently.
    let interval = ratio.and(ratio_interval(&new.resampled(1), &base.resampled(2)));
    let difference = match (ratio, interval) {
        (Some(ratio), Some(i)) if 1.0 < i.low && floor <= ratio - 1.0 => Difference::Above,
        (Some(ratio), Some(i)) if i.high < 1.0 && floor <= 1.0 - ratio => Difference::Below,
        (Some(_), Some(_)) => Difference::None,
        _ => by_range(new, base),
    };
    Judgement {
        new: value,
        base: base_value,
        ratio,
        low: interval.map(|i| i.low),
        high: interval.map(|i| i.high),
        single: new.repeats.len() == 1 || base.repeats.len() == 1,
        p_value: mann_whitney(&new.repeats, &base.repeats),
        difference,
    }
}

fn by_range(new: &Sample, base: &Sample) -> Difference {
    if new.repeats.len().min(base.repeats.len()) < 2 {
        return Difference::Unknown;
    }
    if base.largest() < new.least() {
        Difference::Above
    } else if new.largest() < base.least() {
        Difference::Below
    } else {
        Difference::None
    }
}

/// The verdict on a difference of a metric; `None` for descriptive metrics, and if nothing is
/// known.
pub(super) fn word(metric: &Metric, difference: Difference) -> Option<Verdict> {
    let is_rate = metric.unit == "1/s";
    match (metric.better, difference) {
        (Better::Neither, _) | (_, Difference::Unknown) => None,
        (_, Difference::None) => Some(Verdict::NoDifference),
        (Better::Higher, Difference::Above) | (Better::Lower, Difference::Below) => {
            Some(if is_rate {
                Verdict::Faster
            } else {
                Verdict::Better
            })
        }
        _ => Some(if is_rate {
            Verdict::Slower
        } else {
            Verdict::Worse
        }),
    }
}

/// The floor of a metric: the larger one of two hosts, or [`DEFAULT_FLOOR`] if unknown.
pub(super) fn floor(noise: [&[(String, f64)]; 2], metric: &str) -> f64 {
    let known = noise
        .into_iter()
        .flatten()
        .filter(|(name, _)| name == metric);
    known
        .map(|(_, floor)| *floor)
        .max_by(f64::total_cmp)
        .unwrap_or(DEFAULT_FLOOR)
}

/// What few repeats are worth: the share of equal pairs whose repeats do not overlap by chance
/// alone, 2 / (n + m over n), in words; `None` with a single repeat (reported elsewhere) or when
/// it is at most 5 %. Such a pair differs by its interval, and only the noise floor stands against
/// the error.
pub(super) fn few_repeats(new: u32, base: u32) -> Option<String> {
    if new.min(base) < 2 {
        return None;
    }
    let mut orders = 1.0;
    for i in 1..=new.min(base) {
        orders *= f64::from(new.max(base) + i) / f64::from(i);
    }
    let percent = 200.0 / orders;
    (5.0 < percent).then(|| {
        format!(
            "with {new} and {base} repeats {percent:.0} % of equal metrics do not overlap by \
             chance; trust differences well above the noise floor, or repeat more often"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stdx::Rng;

    #[test]
    fn few_repeats_are_noted() {
        let percent = |n, m| few_repeats(n, m).map(|t| t.split(' ').nth(5).unwrap().to_owned());
        assert_eq!(percent(2, 2).as_deref(), Some("33"));
        assert_eq!(percent(3, 3).as_deref(), Some("10"));
        assert_eq!(percent(2, 3), percent(3, 2));
        // 2 of 70.
        assert_eq!(percent(4, 4), None);
        assert_eq!(percent(1, 9), None);
    }

    fn sample(repeats: &[f64]) -> Sample {
        Sample {
            repeats: repeats.to_vec(),
            seconds: Vec::new(),
        }
    }

    #[test]
    fn a_clear_shift_is_seen_and_a_small_one_is_noise() {
        let base = sample(&[100.0, 101.0, 102.0]);
        let faster = judge(&sample(&[130.0, 131.0, 133.0]), &base, 0.02);
        assert_eq!(faster.difference, Difference::Above);
        assert_eq!(faster.ratio, Some(131.0 / 101.0), "V1: medians");
        assert_eq!((faster.low, faster.high), (Some(130.0 / 102.0), Some(1.33)));
        assert_eq!(faster.p_value, None);
        // Separated, but by less than the floor.
        let near = judge(&sample(&[103.0, 103.5, 104.0]), &base, 0.05);
        assert_eq!(near.difference, Difference::None, "V3: the floor");
        // Beyond the floor, but overlapping.
        let wide = judge(&sample(&[90.0, 120.0, 150.0]), &base, 0.02);
        assert!(wide.low.unwrap() < 1.0 && 1.0 < wide.high.unwrap());
        assert_eq!(wide.difference, Difference::None, "V3: the interval");
    }

    #[test]
    fn a_base_of_zero_is_judged_by_ranges() {
        let zero = sample(&[0.0, 0.0, 0.0]);
        assert_eq!(judge(&zero, &zero, 0.02).difference, Difference::None);
        let found = judge(&sample(&[1.0, 2.0, 3.0]), &zero, 0.02);
        assert_eq!(
            (found.difference, found.ratio),
            (Difference::Above, None),
            "V4: the ranges do not overlap"
        );
        let wide = judge(&sample(&[0.0, 2.0, 3.0]), &zero, 0.02);
        assert_eq!(wide.difference, Difference::None, "V4: they overlap");
        assert_eq!(
            judge(&sample(&[1.0]), &zero, 0.02).difference,
            Difference::Unknown
        );
    }

    #[test]
    fn a_single_repeat_is_judged_only_by_its_seconds() {
        let (new, base) = (sample(&[200.0]), sample(&[100.0]));
        let found = judge(&new, &base, 0.02);
        assert_eq!(found.difference, Difference::Unknown, "V5: no interval");
        assert!(found.single);
        assert_eq!(found.ratio, Some(2.0));
        let seconds = |rate: f64| Sample {
            repeats: vec![rate],
            seconds: (0..40)
                .map(|i| rate * (0.95 + 0.01 * f64::from(i % 11)))
                .collect(),
        };
        let found = judge(&seconds(200.0), &seconds(100.0), 0.02);
        assert_eq!(found.difference, Difference::Above);
        assert!(found.single, "V2: marked");
        assert!(found.low.unwrap() < 2.0 && 2.0 < found.high.unwrap());
        assert_eq!(
            judge(&seconds(100.0), &seconds(100.0), 0.02).difference,
            Difference::None
        );
    }

    #[test]
    fn words_follow_the_direction_of_the_metric() {
        let named = |name: &str| Metric::named(name).unwrap();
        assert_eq!(
            word(&named("rate_mean"), Difference::Above),
            Some(Verdict::Faster)
        );
        assert_eq!(
            word(&named("rate_mean"), Difference::Below),
            Some(Verdict::Slower)
        );
        assert_eq!(
            word(&named("latency_p99_ms"), Difference::Above),
            Some(Verdict::Worse)
        );
        assert_eq!(
            word(&named("flatness"), Difference::Above),
            Some(Verdict::Better)
        );
        assert_eq!(word(&named("rows"), Difference::Above), None);
        assert_eq!(
            word(&named("seconds"), Difference::None),
            Some(Verdict::NoDifference)
        );
        let text = serde_json::to_string(&Verdict::NoDifference).unwrap();
        assert_eq!(text, format!("\"{}\"", Verdict::NoDifference));
    }

    /// Approximately normal: the sum of 12 uniform numbers.
    fn noisy(rng: &mut Rng, rate: f64, sigma: f64, repeats: usize) -> Sample {
        let mut one = || (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        sample(
            &(0..repeats)
                .map(|_| rate * (1.0 + sigma * one()))
                .collect::<Vec<_>>(),
        )
    }

    /// Number of 200 comparisons of sides with 1 % of noise that find a difference.
    fn different(seed: u64, shift: f64, repeats: usize, floor: f64) -> usize {
        let mut rng = Rng::new(seed);
        let one = |rng: &mut Rng| {
            let base = noisy(rng, 1000.0, 0.01, repeats);
            let new = noisy(rng, 1000.0 * shift, 0.01, repeats);
            judge(&new, &base, floor).difference != Difference::None
        };
        (0..200).filter(|_| one(&mut rng)).count()
    }

    #[test]
    fn the_same_thing_twice_is_rarely_different_and_a_shift_always() {
        for seed in 1..=3 {
            // Without a floor 3 repeats are separated by chance in 10 % of the cases.
            let bare = different(seed, 1.0, 3, 0.0);
            assert!(bare < 40, "seed {seed}: {bare} of 200 without a floor");
            let floored = different(seed, 1.0, 3, 0.02);
            assert!(
                floored <= 6,
                "seed {seed}: {floored} of 200 with a floor of 2 %"
            );
            let five = different(seed, 1.0, 5, 0.0);
            assert!(five <= 20, "seed {seed}: {five} of 200 with 5 repeats");
            for shift in [0.7, 1.3] {
                assert_eq!(
                    different(seed, shift, 3, 0.02),
                    200,
                    "seed {seed}, shift {shift}"
                );
            }
        }
    }
}

//! Whether one side differs from the other: numbers first, then a word.
//!
//! V1. The effect is the ratio of geometric means over repeats, its interval that of the module
//!     `interval`, from the repeats that are compared. The probability that an interval misses is
//!     given by the caller, who knows how many metrics are judged together.
//! V2. A difference is one whose interval leaves out 1 and whose effect is not below the noise
//!     floor of the host: the floor makes a verdict more cautious, never more certain.
//! V3. "No difference" needs evidence, too: the whole interval lies within [`EQUAL`] of 1.
//! V4. Everything else is inconclusive.
//! V5. Where no ratio can be formed (a value of 0), sides differ when their ranges do not overlap,
//!     if that number of equal repeats does so by chance less often than the given probability.
//! V6. A single repeat is judged only where the caller accepts that: by the interval of its mean
//!     rate over blocks of 5 seconds within the run, marked so.
//! V7. Where other programs disturbed a repeat of a side, no verdict is better than inconclusive.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::interval;
use super::metric::{Better, Metric};
use super::rank::mann_whitney;
use super::statistic::{Interval, block_means, mean, median, ratio_interval};
use super::summary::BLOCK;
use crate::error::Error;

/// The floor of a host that was not calibrated: an effect of less than 2 % is no difference.
pub const DEFAULT_FLOOR: f64 = 0.02;
/// Sides are equal if the whole interval of their ratio is within this share of 1.
pub const EQUAL: f64 = 0.05;

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
    /// The sides are equal, within [`EQUAL`].
    #[serde(rename = "no difference")]
    NoDifference,
    /// The repeats show neither a difference nor that there is none.
    Inconclusive,
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
            Verdict::Inconclusive => "inconclusive",
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
    /// Bootstrapped mean rates of a single repeat (V6); empty without one.
    fn resampled(&self, seed: u64) -> Vec<f64> {
        let [only] = self.repeats.as_slice() else {
            return Vec::new();
        };
        let mean = mean(&self.seconds).filter(|&mean| 0.0 < mean);
        let scale = mean.map_or(0.0, |mean| only / mean);
        let mut means = block_means(&self.seconds, BLOCK, seed);
        means.iter_mut().for_each(|m| *m *= scale);
        means
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
    /// V3.
    None,
    /// V4.
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

/// The terms of a judgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// The noise floor, relative (0.02 = 2 %).
    pub(super) floor: f64,
    /// The probability that the interval misses the true ratio.
    pub(super) error: f64,
    /// Whether single repeats are judged (V6).
    pub(super) single: bool,
}

/// Compare two sides.
pub(super) fn judge(new: &Sample, base: &Sample, terms: Terms) -> Judgement {
    let (value, base_value) = (median(&new.repeats), median(&base.repeats));
    let single = new.repeats.len() == 1 || base.repeats.len() == 1;
    let estimated = interval::ratio(&new.repeats, &base.repeats, terms.error);
    let of_medians = match (value, base_value) {
        (Some(value), Some(base)) if base != 0.0 => Some(value / base),
        _ => None,
    };
    let ratio = estimated.map(|e| e.value).or(of_medians);
    // Different seeds, so that the two sides are resampled independently.
    let within_run = || ratio.and(ratio_interval(&new.resampled(1), &base.resampled(2)));
    let interval = estimated.map(|e| e.interval).or_else(within_run);
    let difference = match (ratio, interval) {
        _ if single && !terms.single => Difference::Unknown,
        (Some(ratio), Some(interval)) => by_interval(ratio, interval, terms.floor),
        _ => by_range(new, base, terms.error),
    };
    Judgement {
        new: value,
        base: base_value,
        ratio,
        low: interval.map(|i| i.low),
        high: interval.map(|i| i.high),
        single,
        p_value: mann_whitney(&new.repeats, &base.repeats),
        difference,
    }
}

fn by_interval(ratio: f64, interval: Interval, floor: f64) -> Difference {
    if 1.0 < interval.low && floor <= ratio - 1.0 {
        Difference::Above
    } else if interval.high < 1.0 && floor <= 1.0 - ratio {
        Difference::Below
    } else if 1.0 - EQUAL <= interval.low && interval.high <= 1.0 + EQUAL {
        Difference::None
    } else {
        Difference::Unknown
    }
}

/// V5. Values that are all equal on both sides have no difference.
fn by_range(new: &Sample, base: &Sample, error: f64) -> Difference {
    let count = new.repeats.len().min(base.repeats.len());
    if count < 2 {
        return Difference::Unknown;
    }
    let enough = separated_by_chance(new.repeats.len(), base.repeats.len()) <= error;
    if new.least() == base.largest() && new.largest() == base.least() {
        Difference::None
    } else if enough && base.largest() < new.least() {
        Difference::Above
    } else if enough && new.largest() < base.least() {
        Difference::Below
    } else {
        Difference::Unknown
    }
}

/// The probability that the ranges of two equal sides do not overlap: two of the orders of all
/// repeats, 2 / (n + m over n).
fn separated_by_chance(new: usize, base: usize) -> f64 {
    let (few, many) = (new.min(base), new.max(base));
    let orders: f64 = (1..=few).map(|i| (many + i) as f64 / i as f64).product();
    2.0 / orders
}

/// The verdict on a metric; `None` for descriptive metrics, and if a side was not measured.
pub(super) fn word(metric: &Metric, found: &Judgement) -> Option<Verdict> {
    found.new.and(found.base)?;
    let is_rate = metric.unit == "1/s";
    match (metric.better, found.difference) {
        (Better::Neither, _) => None,
        (_, Difference::Unknown) => Some(Verdict::Inconclusive),
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

/// The probability of a wrong verdict on anything that is judged together. At most 1 of 20 is what
/// users are promised; a fifth of that is left for noise that is not as the intervals assume.
pub(super) const TOGETHER: f64 = 0.04;

/// How [`TOGETHER`] is divided between metrics (Bonferroni): one half between the rates, the other
/// between all other metrics. So a report that judges many costs still finds differences of rates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Family {
    rates: usize,
    others: usize,
}

/// Metrics that are another metric divided by what the plan fixes: they are right or wrong together
/// with it, and do not count.
const RESTATED: [&str; 7] = [
    "seconds",
    "write_amplification",
    "read_amplification",
    "space_amplification",
    "cpu_us_per_row",
    "device_write_bytes_per_row",
    "device_read_bytes_per_row",
];

impl Family {
    /// Adds one metric of one pair of sides.
    pub(super) fn add(&mut self, metric: &Metric) {
        if is_headline(metric) {
            self.rates += 1;
        } else if metric.better != Better::Neither && !RESTATED.contains(&metric.name) {
            self.others += 1;
        }
    }

    /// The probability of error for one metric.
    pub(super) fn error(self, metric: &Metric) -> f64 {
        let judged = if is_headline(metric) {
            self.rates
        } else {
            self.others
        };
        TOGETHER / 2.0 / judged.max(1) as f64
    }
}

fn is_headline(metric: &Metric) -> bool {
    ["rate_mean", "query_rate"].contains(&metric.name)
}

/// The refusal of single repeats that the caller did not accept.
pub(super) fn single_repeat(step: &str, targets: &str) -> Error {
    Error::usage(format!(
        "{step}: {targets} has a single repeat on a side, and one number says nothing of noise; \
         run at least --repeats 3, or accept it with --single"
    ))
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

#[cfg(test)]
mod tests;

//! Where a rate stops growing with the value of a setting.
//!
//! - P1. Every value is compared with the largest one, by the rules of the module `verdict`. The
//!   plateau begins at the smallest value from which on no rate is lower than at the largest value:
//!   each of them is equal (the whole interval within 5 % of 1) or higher.
//! - P2. A plateau and its absence need evidence: fewer than 3 repeats of any value, an invalid or
//!   a disturbed one make the answer inconclusive, with the reason.
//! - P3. The rate is still rising if the value before the largest is slower than the largest. It
//!   has a peak if a smaller value is faster than the largest.
//! - P4. The intervals of all values of all series that are judged together hold together, with
//!   the probability that every comparison promises.

use super::side::Side;
use super::statistic::median;
use super::summary::RATE;
use super::verdict::{Difference, Judgement, Sample, TOGETHER, Terms, floor, judge};
use crate::record::RunRecord;

/// Repeats without which nothing is known of the noise between runs.
pub const REPEATS_MIN: usize = 3;

/// The rates of one target and step at one value, in each valid repeat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// The rates.
    pub repeats: Vec<f64>,
    /// Why they may not be used: the step is invalid, failed, or was not done.
    pub fault: Option<String>,
    /// Why no verdict on them is better than inconclusive: a repeat was disturbed.
    pub disturbed: Option<String>,
    /// Whether a repeat was ended by time, short of its operations.
    pub cut: bool,
}

impl Rates {
    /// The mean rates of a target in a step.
    #[must_use]
    pub fn of(run: &RunRecord, target: &str, step: &str) -> Rates {
        let side = Side::of(run, target, step);
        Rates {
            repeats: side.sample(RATE).repeats,
            cut: side.cut,
            fault: side.fault,
            disturbed: side.disturbed,
        }
    }

    /// The median; `None` without a valid repeat.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        median(&self.repeats).filter(|_| self.fault.is_none())
    }
}

/// What a series of rates shows. Values are given by their place in the series.
#[derive(Clone, Debug, PartialEq)]
pub enum Plateau {
    /// No rate from this value on is lower than at the largest value. `proved` if the value before
    /// it is slower; otherwise the plateau may begin earlier.
    From {
        /// The value at which it begins.
        value: usize,
        /// Whether the value before it is slower than the largest.
        proved: bool,
    },
    /// The value before the largest is slower by this ratio of the rates, with its interval.
    Rising {
        /// The rate at the largest value by that at the value before it.
        ratio: f64,
        /// Its interval.
        between: [f64; 2],
    },
    /// The rate is highest at this value and lower at the largest.
    Peak {
        /// The value with the highest rate.
        value: usize,
        /// Its rate by that at the largest value.
        ratio: f64,
    },
    /// Why nothing is known.
    Inconclusive(String),
}

/// The terms of judging several series together (P4).
#[derive(Clone, Copy, Debug)]
pub struct Together {
    floor: f64,
    error: f64,
}

impl Together {
    /// Terms for this number of comparisons, on hosts with these noise floors.
    #[must_use]
    pub fn of(comparisons: usize, noise: &[(String, f64)]) -> Together {
        Together {
            floor: floor([noise; 2], RATE),
            error: TOGETHER / comparisons.max(1) as f64,
        }
    }

    /// The rate of one side by that of another, with its interval.
    fn judged(self, new: &Rates, base: &Rates) -> Judgement {
        let sample = |rates: &Rates| Sample {
            repeats: rates.repeats.clone(),
            seconds: Vec::new(),
        };
        let terms = Terms {
            floor: self.floor,
            error: self.error,
            single: false,
        };
        judge(&sample(new), &sample(base), terms)
    }
}

/// The plateau of a series, in ascending order of its values; `names` are those of the values.
#[must_use]
pub fn plateau(series: &[Rates], names: &[String], together: Together) -> Plateau {
    let name = |at: usize| names.get(at).map_or("?", String::as_str);
    let Some((largest, smaller)) = series.split_last().filter(|(_, rest)| !rest.is_empty()) else {
        return Plateau::Inconclusive("fewer than two values".to_owned());
    };
    if let Some(why) = series.iter().enumerate().find_map(|(at, rates)| {
        let why = unusable(rates)?;
        Some(format!("{}: {why}", name(at)))
    }) {
        return Plateau::Inconclusive(why);
    }
    let judged: Vec<Judgement> = smaller
        .iter()
        .map(|r| together.judged(r, largest))
        .collect();
    if let Some(peak) = peak(&judged) {
        return peak;
    }
    let equal = |j: &&Judgement| j.difference == Difference::None;
    let flat = judged.iter().rev().take_while(equal).count();
    let value = smaller.len() - flat;
    let before = value.checked_sub(1).and_then(|at| judged.get(at));
    let slower = before.is_none_or(|j| j.difference == Difference::Below);
    match judged.last() {
        _ if 0 < flat => Plateau::From {
            value,
            proved: slower,
        },
        Some(last) if slower => {
            let inverse = |v: Option<f64>| v.map_or(f64::NAN, f64::recip);
            Plateau::Rising {
                ratio: inverse(last.ratio),
                between: [inverse(last.high), inverse(last.low)],
            }
        }
        _ => Plateau::Inconclusive(format!(
            "the repeats at {} and {} differ too much to show whether the rates do",
            name(smaller.len() - 1),
            name(smaller.len())
        )),
    }
}

/// P2.
fn unusable(rates: &Rates) -> Option<String> {
    let few = rates.repeats.len() < REPEATS_MIN;
    rates
        .fault
        .clone()
        .or_else(|| rates.disturbed.clone())
        .or_else(|| few.then(|| too_few(rates.repeats.len())))
}

fn too_few(repeats: usize) -> String {
    let word = if repeats == 1 { "repeat" } else { "repeats" };
    format!("{repeats} {word}; {REPEATS_MIN} or more are needed")
}

/// P3: the fastest of the values that are faster than the largest.
fn peak(judged: &[Judgement]) -> Option<Plateau> {
    let above = judged.iter().enumerate();
    let above = above.filter(|(_, j)| j.difference == Difference::Above);
    let ratios = above.filter_map(|(at, j)| Some((at, j.ratio?)));
    let (value, ratio) = ratios.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Plateau::Peak { value, ratio })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::standard_normal;
    use stdx::Rng;

    fn rates(repeats: &[f64]) -> Rates {
        Rates {
            repeats: repeats.to_vec(),
            ..Rates::default()
        }
    }

    /// Three repeats within half a percent of each mean.
    fn series(means: &[f64]) -> Vec<Rates> {
        means
            .iter()
            .map(|mean| rates(&[mean * 0.998, *mean, mean * 1.002]))
            .collect()
    }

    fn found(series: &[Rates]) -> Plateau {
        let names: Vec<String> = (0..series.len()).map(|at| format!("v{at}")).collect();
        plateau(series, &names, Together::of(series.len() - 1, &[]))
    }

    #[test]
    fn it_begins_where_no_larger_value_is_faster() {
        let at = |value, proved| Plateau::From { value, proved };
        assert_eq!(found(&series(&[100.0, 200.0, 300.0, 301.0])), at(2, true));
        assert_eq!(found(&series(&[100.0, 300.0, 299.0, 301.0])), at(1, true));
        assert_eq!(
            found(&series(&[300.0, 299.0, 301.0])),
            at(0, true),
            "P1: flat from the first value on"
        );
        // The second is neither equal to the last nor slower than it.
        let mut noisy = series(&[100.0, 300.0, 300.0, 301.0]);
        noisy[1] = rates(&[250.0, 300.0, 330.0]);
        assert_eq!(found(&noisy), at(2, false), "P2");
    }

    #[test]
    fn a_rate_that_still_rises_or_falls_has_no_plateau() {
        let Plateau::Rising { ratio, between } = found(&series(&[100.0, 200.0, 300.0])) else {
            panic!("P3: it rises");
        };
        assert!((ratio - 1.5).abs() < 0.01, "{ratio}");
        assert!(between[0] < ratio && ratio < between[1], "{between:?}");
        let peak = found(&series(&[100.0, 400.0, 300.0, 200.0]));
        let Plateau::Peak { value: 1, ratio } = peak else {
            panic!("P3: {peak:?}");
        };
        assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn what_is_not_known_is_inconclusive_with_the_reason() {
        let why = |series: &[Rates]| match found(series) {
            Plateau::Inconclusive(why) => why,
            other => panic!("P2: {other:?}"),
        };
        assert!(why(&[rates(&[1.0]), rates(&[1.0, 1.0, 1.0])]).contains("v0: 1 repeat; 3"));
        assert!(why(&series(&[1.0])).contains("two values"));
        let mut wrong = series(&[100.0, 200.0]);
        wrong[1].fault = Some("repeat 2 is invalid".to_owned());
        assert_eq!(why(&wrong), "v1: repeat 2 is invalid");
        let mut disturbed = series(&[100.0, 200.0]);
        disturbed[0].disturbed = Some("a backup ran".to_owned());
        assert_eq!(why(&disturbed), "v0: a backup ran");
        let noisy = [rates(&[80.0, 100.0, 120.0]), rates(&[90.0, 100.0, 115.0])];
        assert!(why(&noisy).contains("v0 and v1 differ too much"));
    }

    /// P4: equal rates at four values of five series; any answer but a plateau from the first value
    /// or inconclusive is wrong, and comes in at most 1 of 20 pages.
    #[test]
    fn equal_rates_seldom_look_like_a_slope() {
        const PAGES: u32 = 400;
        let mut rng = Rng::new(7);
        let mut wrong = 0;
        for _ in 0..PAGES {
            let page = (0..5).any(|_| {
                let mut value = || rates(&[0; 3].map(|_| (0.03 * standard_normal(&mut rng)).exp()));
                let series: Vec<Rates> = (0..4).map(|_| value()).collect();
                let names = vec![String::new(); 4];
                let found = plateau(&series, &names, Together::of(5 * 3, &[]));
                let right = matches!(
                    found,
                    Plateau::From { value: 0, .. }
                        | Plateau::From { proved: false, .. }
                        | Plateau::Inconclusive(_)
                );
                !right
            });
            wrong += u32::from(page);
        }
        assert!(wrong <= PAGES / 20, "P4: {wrong} of {PAGES}");
    }
}

//! The rates of two targets over the rows that both wrote in every repeat.
//!
//! - E1. A target that its time stopped wrote fewer rows than the others, and the first rows are
//!   the fastest ones if a store slows down as it grows. So rates over unequal rows are not
//!   compared: each repeat counts from its start to the same number of rows, the most that all
//!   repeats reach.
//! - E2. The verdict is that of the module `verdict` on these rates, disturbed repeats included.

use super::clock::Clock;
use super::compare::{ComparisonRow, stated};
use super::metric::Metric;
use super::side::Side;
use super::statistic::median;
use super::summary::RATE;
use super::verdict::{Sample, TOGETHER, Terms, Verdict, floor, judge, word};
use crate::record::RunRecord;

/// The rate of each repeat of a step over the same rows.
pub(crate) struct EqualRows<'a> {
    run: &'a RunRecord,
    step: &'a str,
    /// The number of rows.
    pub(crate) rows: u64,
    sides: Vec<(&'a str, Vec<f64>)>,
}

impl<'a> EqualRows<'a> {
    /// The rates of these targets in a step; `None` if one of them wrote nothing.
    pub(crate) fn of(run: &'a RunRecord, step: &'a str, targets: &[&'a str]) -> Option<Self> {
        let clocks = |target: &str| -> Vec<Clock> {
            let done = run.steps.iter().filter(|record| {
                let summary = record.summary.as_ref();
                summary.is_some_and(|s| s.target == target && s.step == step && s.valid)
            });
            done.map(|record| Clock::of(&record.series)).collect()
        };
        let all: Vec<(&str, Vec<Clock>)> = targets.iter().map(|t| (*t, clocks(t))).collect();
        if all.iter().any(|(_, clocks)| clocks.is_empty()) {
            return None;
        }
        let last = all.iter().flat_map(|(_, clocks)| clocks).map(Clock::rows);
        let rows = last.min().filter(|rows| 0 < *rows)?;
        let rate = |clock: &Clock| {
            let seconds = clock.at(rows as f64).filter(|seconds| 0.0 < *seconds)?;
            Some(rows as f64 / seconds)
        };
        let rates = |(target, clocks): &(&'a str, Vec<Clock>)| {
            let rates: Option<Vec<f64>> = clocks.iter().map(rate).collect();
            Some((*target, rates?))
        };
        let sides: Option<Vec<_>> = all.iter().map(rates).collect();
        Some(EqualRows {
            run,
            step,
            rows,
            sides: sides?,
        })
    }

    /// The median rate of a target over these rows.
    pub(crate) fn rate(&self, target: &str) -> Option<f64> {
        median(self.repeats(target)?)
    }

    fn repeats(&self, target: &str) -> Option<&[f64]> {
        let side = self.sides.iter().find(|(name, _)| *name == target)?;
        Some(&side.1)
    }

    /// The comparison of `target` with `base` (E2).
    pub(crate) fn compared(&self, target: &str, base: &str) -> Option<ComparisonRow> {
        let sample = |target: &str| {
            Some(Sample {
                repeats: self.repeats(target)?.to_vec(),
                seconds: Vec::new(),
            })
        };
        let metric = Metric::named(RATE)?;
        let pairs = self.sides.len().saturating_sub(1) * self.run.manifest.plan.steps.len();
        let terms = Terms {
            floor: floor([self.run.noise.as_slice(); 2], RATE),
            // One half is for metrics other than rates.
            error: TOGETHER / 2.0 / pairs.max(1) as f64,
            single: false,
        };
        let found = judge(&sample(target)?, &sample(base)?, terms);
        let disturbed = [target, base]
            .iter()
            .any(|t| Side::of(self.run, t, self.step).disturbed.is_some());
        let verdict = word(&metric, &found).map(|verdict| match disturbed {
            true => Verdict::Inconclusive,
            false => verdict,
        });
        Some(stated(&metric, &found, terms, verdict))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{disturbed_step, run, step};
    use crate::record::SeriesRow;

    /// Three repeats of each target that writes `rates` rows per second, second by second.
    fn record(targets: &[(&str, &[u64])]) -> RunRecord {
        let names: Vec<&str> = targets.iter().map(|t| t.0).collect();
        let steps = targets
            .iter()
            .flat_map(|(name, _)| (1..=3).map(|repeat| step(name, repeat, 1.0)));
        let mut record = run("r", &names, 3, steps.collect());
        for (place, step) in record.steps.iter_mut().enumerate() {
            let (_, rates) = targets[place / 3];
            let mut rows = 0;
            step.series = (1..)
                .zip(rates)
                .map(|(t, rate): (u32, &u64)| {
                    rows += rate;
                    SeriesRow {
                        t: f64::from(t),
                        phase: "load".to_owned(),
                        rows,
                        ..SeriesRow::default()
                    }
                })
                .collect();
        }
        record
    }

    #[test]
    fn rates_are_those_over_the_rows_that_all_wrote() {
        // Over its 150 rows the first is as fast as the second over the same rows, though its mean
        // rate is twice that of the second over all its rows.
        let stopped: &[u64] = &[100, 50];
        let whole: &[u64] = &[100, 50, 10, 10, 10, 10, 10, 10, 10];
        let record = record(&[("stopped", stopped), ("whole", whole)]);
        let equal = EqualRows::of(&record, "load", &["stopped", "whole"]).unwrap();
        assert_eq!(equal.rows, 150, "E1");
        assert_eq!(equal.rate("stopped"), Some(75.0));
        assert_eq!(equal.rate("whole"), Some(75.0));
        let row = equal.compared("stopped", "whole").unwrap();
        assert_eq!(row.verdict, Some(Verdict::NoDifference), "E2");
        assert!(EqualRows::of(&record, "load", &["stopped", "other"]).is_none());
    }

    #[test]
    fn a_difference_over_equal_rows_is_found_unless_repeats_are_disturbed() {
        let mut record = record(&[("slow", &[50, 50]), ("fast", &[100, 100, 100])]);
        let verdict = |record: &RunRecord| {
            let equal = EqualRows::of(record, "load", &["slow", "fast"]).unwrap();
            let row = equal.compared("fast", "slow").unwrap();
            assert!((row.ratio.unwrap() - 2.0).abs() < 1e-9);
            row.verdict
        };
        assert_eq!(verdict(&record), Some(Verdict::Faster), "E2");
        record.steps[0].summary = Some(disturbed_step("slow", 1, 1.0, "a backup"));
        assert_eq!(verdict(&record), Some(Verdict::Inconclusive), "E2");
    }
}

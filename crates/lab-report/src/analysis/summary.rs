//! The summary of a run: medians over the valid repeats of each target and step, with their 95 %
//! intervals.
//!
//! The unit is the repeat: the intervals come from a percentile bootstrap over repeats. A single
//! repeat has only the interval of its mean rate, by a bootstrap over blocks of 5 seconds within it
//! (an [`Estimate`] with `repeats` 1 says so): it does not hold what differs from run to run.
//! Percentiles of latency are those of each repeat's own histogram; their median is taken, never
//! their average.

use std::collections::BTreeMap;

use super::interval::geometric_mean;
use super::metric::{METRICS, metrics};
use super::statistic::{self, ERROR, block_means, central};
use crate::record::{Estimate, Manifest, RunSummary, SCHEMA, StepSummary, TargetStepSummary};

/// Seconds of a block of the bootstrap within a run.
pub(super) const BLOCK: usize = 5;
/// The one metric with an interval within a run.
pub(super) const RATE: &str = "rate_mean";

/// Sum up a run: one entry for every target and step of the plan, in the plan's order. `steps` are
/// the steps done (of every repeat, discarded ones left out) with their one-second rates
/// ([`super::main_rates`]); `complete` says whether all of the plan is done.
#[must_use]
pub fn summarize(
    manifest: &Manifest,
    steps: &[(StepSummary, Vec<f64>)],
    complete: bool,
) -> RunSummary {
    let plan = &manifest.plan;
    let mut results = Vec::new();
    for target in &plan.targets {
        for step in &plan.steps {
            results.push(entry(&target.name, &step.name, plan.repeats, steps));
        }
    }
    RunSummary {
        schema: SCHEMA,
        run: manifest.run.clone(),
        experiment: plan.experiment.clone(),
        complete,
        valid: steps.iter().all(|(summary, _)| summary.valid),
        results,
        steps: steps.iter().map(|(summary, _)| summary.clone()).collect(),
    }
}

fn entry(
    target: &str,
    step: &str,
    planned: u32,
    steps: &[(StepSummary, Vec<f64>)],
) -> TargetStepSummary {
    let of = |s: &&(StepSummary, Vec<f64>)| s.0.target == target && s.0.step == step;
    let unsupported = steps.iter().filter(of);
    let unsupported = unsupported.filter_map(|s| s.0.unsupported.clone()).next();
    let done: Vec<&(StepSummary, Vec<f64>)> = steps
        .iter()
        .filter(of)
        .filter(|s| s.0.unsupported.is_none())
        .collect();
    let valid: Vec<&(StepSummary, Vec<f64>)> = done.iter().copied().filter(|s| s.0.valid).collect();
    let each: Vec<BTreeMap<String, Option<f64>>> = valid.iter().map(|s| metrics(&s.0)).collect();
    let (metrics, mut estimates) = medians(&each);
    if let [only] = valid.as_slice()
        && let Some(estimate) = within(only)
    {
        estimates.insert(RATE.to_owned(), estimate);
    }
    TargetStepSummary {
        target: target.to_owned(),
        step: step.to_owned(),
        repeats_valid: number(valid.len()),
        repeats: number(done.len()),
        // A repeat that failed left no record: the plan has the number of repeats.
        valid: !valid.is_empty() && valid.len() == done.len() && planned <= number(done.len()),
        metrics,
        unsupported,
        extra: extra(&valid),
        estimates,
    }
}

/// The medians of the experiment's own numbers.
fn extra(valid: &[&(StepSummary, Vec<f64>)]) -> BTreeMap<String, f64> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, value) in valid.iter().flat_map(|s| &s.0.extra) {
        all.entry(name.clone()).or_default().push(*value);
    }
    let median = |(name, values): (String, Vec<f64>)| Some((name, statistic::median(&values)?));
    all.into_iter().filter_map(median).collect()
}

type Medians = (BTreeMap<String, Option<f64>>, BTreeMap<String, Estimate>);

fn medians(each: &[BTreeMap<String, Option<f64>>]) -> Medians {
    let (mut metrics, mut estimates) = (BTreeMap::new(), BTreeMap::new());
    for metric in METRICS {
        let name = metric.name;
        let values: Vec<f64> = each
            .iter()
            .filter_map(|m| m.get(name).copied().flatten())
            .collect();
        let median = statistic::median(&values);
        metrics.insert(name.to_owned(), median);
        let mean = geometric_mean(&values, ERROR);
        if let Some((median, mean)) = median.zip(mean) {
            // In few repeats the median may lie beyond the interval of the mean.
            let low = mean.interval.low.min(median);
            let high = mean.interval.high.max(median);
            let repeats = number(values.len());
            estimates.insert(
                name.to_owned(),
                Estimate {
                    median,
                    low,
                    high,
                    repeats,
                },
            );
        }
    }
    (metrics, estimates)
}

/// The interval of the mean rate within a single repeat. It is moved to the mean over operations,
/// which differs a little from the mean over whole seconds.
fn within((summary, rates): &(StepSummary, Vec<f64>)) -> Option<Estimate> {
    let over_seconds = statistic::mean(rates).filter(|&mean| 0.0 < mean)?;
    let scale = summary.rate_mean / over_seconds;
    let interval = central(&block_means(rates, BLOCK, 0))?;
    Some(Estimate {
        median: summary.rate_mean,
        low: (interval.low * scale).min(summary.rate_mean),
        high: (interval.high * scale).max(summary.rate_mean),
        repeats: 1,
    })
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The table of `summary.csv`: a line for each target and step, a column for each metric; empty
/// cells are what was not measured.
#[must_use]
pub fn summary_table(summary: &RunSummary) -> String {
    separated(summary, b',')
}

/// The table of [`summary_table`] with its cells separated by `delimiter`, quoted where needed.
#[must_use]
pub fn separated(summary: &RunSummary, delimiter: u8) -> String {
    let mut writer = csv::WriterBuilder::new()
        .delimiter(delimiter)
        .from_writer(Vec::new());
    for line in super::summary_lines(summary) {
        writer
            .write_record(&line)
            .expect("lines of equal length go to memory");
    }
    let bytes = writer
        .into_inner()
        .expect("memory does not fail to be written");
    String::from_utf8(bytes).expect("made of strings")
}

/// The head and the lines of the table of a summary, as text.
#[must_use]
pub fn summary_lines(summary: &RunSummary) -> Vec<Vec<String>> {
    let head = ["target", "step", "repeats_valid", "repeats", "valid"].into_iter();
    let head = head
        .chain(METRICS.iter().map(|m| m.name))
        .map(str::to_owned);
    let mut lines = vec![head.collect()];
    for entry in &summary.results {
        let mut line = vec![
            entry.target.clone(),
            entry.step.clone(),
            entry.repeats_valid.to_string(),
            entry.repeats.to_string(),
            entry.valid.to_string(),
        ];
        line.extend(METRICS.iter().map(|metric| {
            let value = entry.metrics.get(metric.name).copied().flatten();
            value.map_or(String::new(), |v| v.to_string())
        }));
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{manifest, step};

    fn with_rates(steps: &[StepSummary]) -> Vec<(StepSummary, Vec<f64>)> {
        let rates = |s: &StepSummary| vec![s.rate_mean; 20];
        steps.iter().map(|s| (s.clone(), rates(s))).collect()
    }

    #[test]
    fn medians_and_intervals_over_valid_repeats() {
        let plan = manifest(&["lmdb", "rocksdb"], 3);
        let mut wrong = step("rocksdb", 2, 5.0);
        wrong.valid = false;
        let steps = with_rates(&[
            step("lmdb", 1, 100.0),
            step("rocksdb", 1, 300.0),
            wrong,
            step("lmdb", 2, 120.0),
            step("lmdb", 3, 110.0),
        ]);
        let found = summarize(&plan, &steps, false);
        assert!(!found.valid && !found.complete);
        assert_eq!(found.steps.len(), 5);
        let [lmdb, rocksdb] = &found.results[..] else {
            panic!("{:?}", found.results)
        };
        assert!(lmdb.valid);
        assert_eq!(lmdb.metrics["rate_mean"], Some(110.0));
        let estimate = lmdb.estimates["rate_mean"];
        // 4.30 standard errors of 5.3 % around a geometric mean of 109.7.
        let (low, high) = (estimate.low.round(), estimate.high.round());
        assert_eq!((low, high, estimate.repeats), (87.0, 138.0, 3));
        assert!(!rocksdb.valid);
        assert_eq!((rocksdb.repeats_valid, rocksdb.repeats), (1, 2));
        assert_eq!(rocksdb.metrics["rate_mean"], Some(300.0));
        assert_eq!(rocksdb.estimates.keys().collect::<Vec<_>>(), ["rate_mean"]);
    }

    #[test]
    fn a_target_without_a_valid_repeat_keeps_its_line() {
        let plan = manifest(&["lmdb", "rocksdb"], 1);
        let found = summarize(&plan, &with_rates(&[step("lmdb", 1, 100.0)]), false);
        let missing = &found.results[1];
        assert!(!missing.valid && missing.repeats == 0);
        assert!(missing.metrics.values().all(Option::is_none) && missing.metrics.len() == 37);
        assert!(missing.estimates.is_empty());
        let table = summary_table(&found);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines[0].starts_with("target,step,repeats_valid,repeats,valid,rows,seconds,rate_m")
        );
        assert!(
            lines[1].starts_with("lmdb,load,1,1,true,1000,10,100,"),
            "{}",
            lines[1]
        );
        assert!(
            lines[2].starts_with("rocksdb,load,0,0,false,,,"),
            "{}",
            lines[2]
        );
    }

    #[test]
    fn a_single_repeat_has_an_interval_within_itself() {
        let plan = manifest(&["lmdb"], 1);
        let rates: Vec<f64> = (0..60).map(|i| 90.0 + f64::from(i % 21)).collect();
        let found = summarize(&plan, &[(step("lmdb", 1, 100.0), rates)], true);
        let estimate = found.results[0].estimates["rate_mean"];
        assert_eq!((estimate.median, estimate.repeats), (100.0, 1));
        assert!(90.0 < estimate.low && estimate.low < 100.0, "{estimate:?}");
        assert!(
            100.0 < estimate.high && estimate.high < 110.0,
            "{estimate:?}"
        );
    }

    #[test]
    fn a_summary_survives_its_file() {
        let plan = manifest(&["lmdb"], 2);
        let steps = with_rates(&[step("lmdb", 1, 100.0), step("lmdb", 2, 101.0)]);
        let found = summarize(&plan, &steps, true);
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<RunSummary>(&text).unwrap(), found);
    }
}

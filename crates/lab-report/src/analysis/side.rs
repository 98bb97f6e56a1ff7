//! One side of a comparison: a target and a step of a run, over all its repeats.

use std::collections::BTreeMap;

use super::metric::metrics;
use super::second::main_rates;
use super::summary::RATE;
use super::verdict::Sample;
use crate::record::{Ended, RunRecord, StepRecord, StepState, StepSummary, file_name};

/// What is known of a target and step.
#[derive(Clone, Debug)]
pub(super) struct Side {
    /// Metrics of each valid repeat.
    repeats: Vec<BTreeMap<String, Option<f64>>>,
    /// The one-second rates of a single valid repeat.
    seconds: Vec<f64>,
    /// Why its numbers may not be used.
    pub(super) fault: Option<String>,
    /// Why other programs disturbed a repeat; `None` if none is known to be disturbed.
    pub(super) disturbed: Option<String>,
    /// Repeats that are planned and have no record; not a fault while the run continues.
    pub(super) missing: u32,
    /// Whether a repeat was ended by time, short of its operations.
    pub(super) cut: bool,
}

impl Side {
    /// Gather a target and step of a run.
    pub(super) fn of(run: &RunRecord, target: &str, step: &str) -> Side {
        let of = |s: &StepSummary| s.target == target && s.step == step;
        let summary = |s: &'_ StepRecord| s.summary.clone().filter(|s| of(s));
        let done: Vec<(&StepRecord, StepSummary)> = run
            .steps
            .iter()
            .filter_map(|s| Some((s, summary(s)?)))
            .collect();
        let cannot = done.iter().find_map(|d| d.1.unsupported.clone());
        let done: Vec<(&StepRecord, StepSummary)> = done
            .into_iter()
            .filter(|d| d.1.unsupported.is_none())
            .collect();
        let valid: Vec<&(&StepRecord, StepSummary)> = done.iter().filter(|d| d.1.valid).collect();
        let seconds = match valid.as_slice() {
            [(record, summary)] => main_rates(&record.series, summary.main),
            _ => Vec::new(),
        };
        let count = u32::try_from(done.len()).unwrap_or(u32::MAX);
        Side {
            repeats: valid.iter().map(|d| metrics(&d.1)).collect(),
            seconds,
            missing: match cannot {
                Some(_) => 0,
                None => run.manifest.plan.repeats.saturating_sub(count),
            },
            fault: cannot
                .map(|why| format!("n/a: {why}"))
                .or_else(|| failed(run, target, step))
                .or_else(|| fault(&done)),
            disturbed: disturbed(&done),
            cut: done.iter().any(|d| d.1.ended == Ended::Time),
        }
    }

    /// A metric in each valid repeat.
    pub(super) fn sample(&self, metric: &str) -> Sample {
        let values = self
            .repeats
            .iter()
            .filter_map(|m| m.get(metric).copied().flatten());
        Sample {
            repeats: values.collect(),
            seconds: if metric == RATE {
                self.seconds.clone()
            } else {
                Vec::new()
            },
        }
    }

    /// Whether a metric was measured.
    pub(super) fn has(&self, metric: &str) -> bool {
        let measured = |m: &BTreeMap<String, Option<f64>>| m.get(metric).copied().flatten();
        self.repeats.iter().any(|m| measured(m).is_some())
    }

    /// Valid repeats.
    pub(super) fn repeats(&self) -> u32 {
        u32::try_from(self.repeats.len()).unwrap_or(u32::MAX)
    }
}

/// Whether a target cannot do a step at all.
pub(super) fn unsupported(run: &RunRecord, target: &str, step: &str) -> bool {
    let mut done = run.steps.iter().filter_map(|s| s.summary.as_ref());
    done.any(|s| s.target == target && s.step == step && s.unsupported.is_some())
}

fn fault(done: &[(&StepRecord, StepSummary)]) -> Option<String> {
    if done.is_empty() {
        return Some("no repeat is done".to_owned());
    }
    let (_, wrong) = done.iter().find(|d| !d.1.valid)?;
    let why = wrong
        .invalid_reason
        .as_deref()
        .unwrap_or("no reason was recorded");
    Some(format!("repeat {} is invalid: {why}", wrong.repeat))
}

/// The first disturbed repeat with its reasons, and the number of the others.
fn disturbed(done: &[(&StepRecord, StepSummary)]) -> Option<String> {
    let mut all = done.iter().filter(|d| !d.1.disturbed().is_empty());
    let first = &all.next()?.1;
    let others = match all.count() {
        0 => String::new(),
        1 => " (and another repeat)".to_owned(),
        more => format!(" (and {more} other repeats)"),
    };
    let why = first.disturbed().join("; ");
    Some(format!(
        "repeat {} was disturbed: {why}{others}",
        first.repeat
    ))
}

/// A step that failed left no summary: it is known by the name of its directory.
pub(super) fn failed(run: &RunRecord, target: &str, step: &str) -> Option<String> {
    (1..=run.manifest.plan.repeats).find_map(|repeat| {
        let name = format!("{}_r{repeat}_{}", file_name(target), file_name(step));
        let is_it = |s: &&StepRecord| {
            let rest = s.directory.split_once('_').map(|(_, rest)| rest);
            s.status.state == StepState::Failed && rest == Some(name.as_str())
        };
        let record = run.steps.iter().find(is_it)?;
        let why = record
            .status
            .message
            .as_deref()
            .unwrap_or("no reason was recorded");
        Some(format!("repeat {repeat} failed: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{disturbed_step, failed_step, run, step};

    #[test]
    fn repeats_are_gathered_and_faults_named() {
        let mut wrong = step("lmdb", 2, 90.0);
        wrong.valid = false;
        wrong.invalid_reason = Some("wrong answer: 3 rows".into());
        let run = run("a", &["lmdb"], 2, vec![step("lmdb", 1, 100.0), wrong]);
        let side = Side::of(&run, "lmdb", "load");
        assert_eq!(side.sample("rate_mean").repeats, [100.0]);
        assert!(
            side.fault
                .unwrap()
                .contains("repeat 2 is invalid: wrong answer")
        );
        let nothing = Side::of(&run, "lmdb", "other");
        assert_eq!((nothing.repeats(), nothing.missing), (0, 2));
        assert_eq!(nothing.fault.as_deref(), Some("no repeat is done"));
    }

    #[test]
    fn disturbed_repeats_are_counted_with_the_reason_of_the_first() {
        let quiet = step("lmdb", 1, 100.0);
        let of = |steps: Vec<StepSummary>| {
            Side::of(&run("a", &["lmdb"], 4, steps), "lmdb", "load").disturbed
        };
        assert_eq!(of(vec![quiet.clone()]), None, "not recorded");
        let two = disturbed_step("lmdb", 2, 90.0, "a backup");
        let reason = of(vec![quiet.clone(), two.clone()]).unwrap();
        assert_eq!(reason, "repeat 2 was disturbed: a backup");
        let three = disturbed_step("lmdb", 3, 90.0, "a build");
        let reason = of(vec![quiet, two, three]).unwrap();
        assert_eq!(
            reason,
            "repeat 2 was disturbed: a backup (and another repeat)"
        );
    }

    #[test]
    fn a_failed_step_is_found_by_its_directory() {
        let mut run = run("a", &["lmdb"], 2, vec![step("lmdb", 1, 100.0)]);
        run.steps
            .push(failed_step("002_lmdb_r2_load", "no space left"));
        let side = Side::of(&run, "lmdb", "load");
        assert_eq!(
            side.fault.as_deref(),
            Some("repeat 2 failed: no space left")
        );
    }
}

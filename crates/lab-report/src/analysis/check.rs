//! Checking a run against a base: whether anything got worse than the rules allow.
//!
//! C1. A relative rule (`rate_mean<-5%`) has three outcomes, by the interval of the change between
//!     the repeats of both runs (the module `verdict`). A regression: the estimated change is
//!     beyond the threshold, and the whole interval is on its side of zero. No regression: the
//!     whole interval is within the threshold. Otherwise the rule is inconclusive, and more repeats
//!     are needed.
//! C2. The probability of error, 5 %, is divided between all relative rules of a check, on each
//!     target and step: a check of many rules has a wrong verdict no more often than one of a
//!     single rule.
//! C3. A single repeat on a side has no interval between runs: the check is refused, unless the
//!     caller accepts single repeats. Then the interval within the run decides on the mean rate,
//!     the threshold alone on other metrics, and the line states it.
//! C4. An absolute rule (`stall_seconds>0`) is a limit on each repeat of the run; the base does not
//!     matter. Where repeats are on both sides of the limit, it is inconclusive.
//! C5. A run that is not complete, has wrong answers or failed is invalid, and so is a check whose
//!     rule was measured nowhere: a gate that looked at nothing does not open.
//! C6. Where other programs disturbed a repeat that a rule is about, it is at most inconclusive.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::difference::{forbidding, notable};
use super::rule::{Rule, Threshold};
use super::side::{Side, unsupported};
use super::statistic::ERROR;
use super::verdict::{Difference, Judgement, Sample, Terms, judge, single_repeat};
use crate::error::{Error, Result};
use crate::record::{RunRecord, SCHEMA};

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The run that was checked.
    pub run: String,
    /// The base.
    pub base: String,
    /// Each rule on each target and step.
    pub lines: Vec<CheckLine>,
    /// Why the run cannot be judged; empty when it can.
    pub invalid: Vec<String>,
    /// Notes for the reader, including `invalid`.
    pub notes: Vec<String>,
}

/// One rule on one target and step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckLine {
    /// The target.
    pub target: String,
    /// The step.
    pub step: String,
    /// The rule.
    pub rule: String,
    /// Its metric.
    pub metric: String,
    /// The metric's unit.
    pub unit: String,
    /// Median over the repeats of the base.
    pub old: Option<f64>,
    /// Median over the repeats of the run.
    pub new: Option<f64>,
    /// Relative change: `new` / `old` - 1.
    pub change: Option<f64>,
    /// Lower end of the interval of `new` / `old` (C2).
    pub low: Option<f64>,
    /// Upper end of it.
    pub high: Option<f64>,
    /// Whether a side has a single repeat (C3).
    pub single_repeat: bool,
    /// Whether other programs disturbed a repeat that the rule is about (C6).
    #[serde(default)]
    pub disturbed: bool,
    /// The verdict.
    pub verdict: CheckVerdict,
}

/// The verdict on a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckVerdict {
    /// Not beyond the threshold.
    Ok,
    /// The repeats show neither a regression nor that there is none.
    Inconclusive,
    /// Beyond the threshold.
    Regression,
    /// Not measured on one of the sides.
    #[serde(rename = "not measured")]
    NotMeasured,
    /// One of the sides is unusable.
    Invalid,
}

impl fmt::Display for CheckVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CheckVerdict::Ok => "ok",
            CheckVerdict::Inconclusive => "inconclusive",
            CheckVerdict::Regression => "regression",
            CheckVerdict::NotMeasured => "not measured",
            CheckVerdict::Invalid => "invalid",
        })
    }
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No regression.
    Ok,
    /// At least one regression.
    Regression,
    /// No regression was found, and at least one rule is inconclusive.
    Inconclusive,
    /// The run cannot be judged, whatever else was found.
    Invalid,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Outcome::Ok => "ok",
            Outcome::Regression => "regression",
            Outcome::Inconclusive => "inconclusive",
            Outcome::Invalid => "invalid",
        })
    }
}

impl Check {
    /// The outcome.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let any = |verdict| self.lines.iter().any(|line| line.verdict == verdict);
        if !self.invalid.is_empty() || any(CheckVerdict::Invalid) {
            Outcome::Invalid
        } else if any(CheckVerdict::Regression) {
            Outcome::Regression
        } else if any(CheckVerdict::Inconclusive) {
            Outcome::Inconclusive
        } else {
            Outcome::Ok
        }
    }
}

/// Compare a run with a base, for the targets and steps that both have. `single`: single repeats
/// are accepted (C3).
///
/// # Errors
/// When the plans differ in what matters (named), no target is in both, there is no rule, or a
/// relative rule meets a single repeat that is not accepted.
pub fn check(run: &RunRecord, base: &RunRecord, rules: &[Rule], single: bool) -> Result<Check> {
    comparable(run, base)?;
    let targets = common_targets(run, base)?;
    if rules.is_empty() {
        return Err(Error::usage(
            "no rule to check; write one like rate_mean<-5%",
        ));
    }
    let (name, base_name) = (&run.manifest.run, &base.manifest.run);
    let mut check = Check {
        schema: SCHEMA,
        run: name.clone(),
        base: base_name.clone(),
        lines: Vec::new(),
        invalid: Vec::new(),
        notes: notes(run, base),
    };
    if !run.summary.complete {
        check.invalid.push(format!(
            "{name} is not complete; continue it by `romanesco lab resume`"
        ));
    }
    let mut compared = Vec::new();
    for target in targets {
        for step in &run.manifest.plan.steps {
            if [run, base].map(|r| unsupported(r, target, &step.name)) != [false, false] {
                continue;
            }
            compared.push(Compared::of([run, base], target, &step.name));
        }
    }
    if !single {
        refuse_single(&compared, rules)?;
    }
    // Before any is judged, the number of lines is known (C2).
    let relative = rules.iter().filter(|rule| is_relative(rule)).count();
    let terms = Terms {
        floor: 0.0,
        error: ERROR / (compared.len() * relative).max(1) as f64,
        single,
    };
    for compared in &compared {
        compared.note_faults([name, base_name], &mut check.notes);
        let lines = rules.iter().map(|rule| compared.line(rule, terms));
        check.lines.extend(lines);
    }
    for rule in rules.iter().map(ToString::to_string) {
        let mut of_rule = check.lines.iter().filter(|line| line.rule == rule);
        if of_rule.all(|line| line.verdict == CheckVerdict::NotMeasured) {
            check.invalid.push(format!("{rule} was measured nowhere"));
        }
    }
    check.notes.extend(check.invalid.iter().cloned());
    Ok(check)
}

fn comparable(run: &RunRecord, base: &RunRecord) -> Result<()> {
    let found = forbidding(&base.manifest.plan, &run.manifest.plan);
    if found.is_empty() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{} and {} do not compare: {}; run the experiment with the settings of the base",
        base.manifest.run,
        run.manifest.run,
        found.join("; ")
    )))
}

fn common_targets<'a>(run: &'a RunRecord, base: &RunRecord) -> Result<Vec<&'a str>> {
    let names =
        |record: &'a RunRecord| record.manifest.plan.targets.iter().map(|t| t.name.as_str());
    let known: Vec<&str> = base
        .manifest
        .plan
        .targets
        .iter()
        .map(|t| t.name.as_str())
        .collect();
    let common: Vec<&str> = names(run).filter(|name| known.contains(name)).collect();
    if common.is_empty() {
        return Err(Error::usage(format!(
            "{} has no target of the base ({}); run the same targets",
            run.manifest.run,
            known.join(", ")
        )));
    }
    Ok(common)
}

fn notes(run: &RunRecord, base: &RunRecord) -> Vec<String> {
    let mut notes = notable(&base.manifest, &run.manifest);
    for (here, there) in [(run, base), (base, run)] {
        let names = |r: &RunRecord| -> Vec<String> {
            r.manifest
                .plan
                .targets
                .iter()
                .map(|t| t.name.clone())
                .collect()
        };
        let missing = names(here)
            .into_iter()
            .filter(|name| !names(there).contains(name));
        let only = &here.manifest.run;
        notes.extend(missing.map(|name| format!("{name} is only in {only}, and not checked")));
    }
    notes
}

/// A step of a target in the run and in the base.
struct Compared<'a> {
    target: &'a str,
    step: &'a str,
    new: Side,
    old: Side,
}

impl<'a> Compared<'a> {
    fn of([run, base]: [&RunRecord; 2], target: &'a str, step: &'a str) -> Compared<'a> {
        Compared {
            target,
            step,
            new: Side::of(run, target, step),
            old: Side::of(base, target, step),
        }
    }

    /// Whether a repeat that a rule is about was disturbed (C6).
    fn disturbed(&self, rule: &Rule) -> bool {
        self.new.disturbed.is_some() || (is_relative(rule) && self.old.disturbed.is_some())
    }

    fn note_faults(&self, names: [&str; 2], notes: &mut Vec<String>) {
        let (target, step) = (self.target, self.step);
        for (side, name) in [&self.new, &self.old].into_iter().zip(names) {
            let fault = side.fault.as_ref().or(side.disturbed.as_ref());
            notes.extend(fault.map(|fault| format!("{name}: {target} {step}: {fault}")));
        }
    }

    fn line(&self, rule: &Rule, terms: Terms) -> CheckLine {
        let metric = rule.metric;
        let new = self.new.sample(metric.name);
        let found = judge(&new, &self.old.sample(metric.name), terms);
        let disturbed = self.disturbed(rule);
        let fault = self.new.fault.is_some() || (is_relative(rule) && self.old.fault.is_some());
        CheckLine {
            target: self.target.to_owned(),
            step: self.step.to_owned(),
            rule: rule.to_string(),
            metric: metric.name.to_owned(),
            unit: metric.unit.to_owned(),
            old: found.base,
            new: found.new,
            change: found.ratio.map(|ratio| ratio - 1.0),
            low: found.low,
            high: found.high,
            single_repeat: is_relative(rule) && found.single,
            disturbed,
            verdict: match verdict(rule, &found, &new) {
                _ if fault => CheckVerdict::Invalid,
                CheckVerdict::Ok | CheckVerdict::Regression if disturbed => {
                    CheckVerdict::Inconclusive
                }
                verdict => verdict,
            },
        }
    }
}

fn is_relative(rule: &Rule) -> bool {
    matches!(rule.threshold, Threshold::FellBy(_) | Threshold::RoseBy(_))
}

fn refuse_single(compared: &[Compared<'_>], rules: &[Rule]) -> Result<()> {
    let mut valid = compared
        .iter()
        .filter(|c| c.new.fault.is_none() && c.old.fault.is_none());
    let single = valid.find(|c| c.new.repeats() == 1 || c.old.repeats() == 1);
    match single.filter(|_| rules.iter().any(is_relative)) {
        Some(Compared { target, step, .. }) => Err(single_repeat(step, target)),
        None => Ok(()),
    }
}

fn verdict(rule: &Rule, found: &Judgement, new: &Sample) -> CheckVerdict {
    match (rule.threshold, found.new, found.base) {
        (Threshold::Below(value), Some(_), _) => limit(new, |new| new < value),
        (Threshold::Above(value), Some(_), _) => limit(new, |new| value < new),
        // The base has the number, so something is wrong with the run.
        (_, None, Some(_)) => CheckVerdict::Invalid,
        (_, _, None) => CheckVerdict::NotMeasured,
        (Threshold::RoseBy(share), Some(_), Some(_)) => {
            relative(found, [found.low, found.high], 1.0 + share, 1.0)
        }
        (Threshold::FellBy(share), Some(_), Some(_)) => {
            relative(found, [found.high, found.low], 1.0 - share, -1.0)
        }
    }
}

/// C1: `ends` are the better and the worse end of the interval, `threshold` is a ratio, and `worse`
/// the sign of a change to the worse.
fn relative(found: &Judgement, ends: [Option<f64>; 2], threshold: f64, worse: f64) -> CheckVerdict {
    let beyond = |ratio: f64, limit: f64| 0.0 < worse * (ratio - limit);
    match (found.ratio, ends) {
        (Some(ratio), [Some(best), Some(_)]) if beyond(ratio, threshold) && beyond(best, 1.0) => {
            CheckVerdict::Regression
        }
        (Some(_), [Some(_), Some(worst)]) if !beyond(worst, threshold) => CheckVerdict::Ok,
        (Some(ratio), [None, None]) if found.single => of_threshold(beyond(ratio, threshold)),
        (None, _) if found.new == found.base => CheckVerdict::Ok,
        (None, _) if found.single => {
            let rise = found.new.zip(found.base).map(|(new, base)| new - base);
            of_threshold(rise.is_some_and(|rise| 0.0 < worse * rise))
        }
        (None, _) => without_ratio(found.difference, worse),
        _ => CheckVerdict::Inconclusive,
    }
}

/// C4.
fn limit(new: &Sample, beyond: impl Fn(f64) -> bool) -> CheckVerdict {
    let count = new.repeats.iter().filter(|&&value| beyond(value)).count();
    match count {
        0 => CheckVerdict::Ok,
        _ if count == new.repeats.len() => CheckVerdict::Regression,
        _ => CheckVerdict::Inconclusive,
    }
}

/// C3, without an interval.
fn of_threshold(beyond: bool) -> CheckVerdict {
    if beyond {
        CheckVerdict::Regression
    } else {
        CheckVerdict::Ok
    }
}

/// A base of 0: any rise is beyond every threshold.
fn without_ratio(difference: Difference, worse: f64) -> CheckVerdict {
    match difference {
        Difference::Above if 0.0 < worse => CheckVerdict::Regression,
        Difference::Below if worse < 0.0 => CheckVerdict::Regression,
        Difference::Unknown => CheckVerdict::Inconclusive,
        Difference::Above | Difference::Below | Difference::None => CheckVerdict::Ok,
    }
}

#[cfg(test)]
mod tests;

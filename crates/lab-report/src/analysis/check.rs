//! Checking a run against a base: whether anything got worse than the rules allow.
//!
//! C1. A relative rule finds a regression when the change is beyond its threshold *and* beyond
//!     noise (the module `verdict`: interval and floor). A threshold within the noise never fails
//!     by chance alone.
//! C2. With a single repeat on a side there is no interval between runs: the threshold decides
//!     alone, and the line says so.
//! C3. An absolute rule (`stall_seconds>0`) is a limit on the median of the run; the base does not
//!     matter.
//! C4. A run that is not complete, has wrong answers or failed is invalid, and so is a check whose
//!     rule was measured nowhere: a gate that looked at nothing does not open.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::difference::{forbidding, notable};
use super::rule::{Rule, Threshold};
use super::side::{Side, unsupported};
use super::verdict::{Difference, Judgement, few_repeats, floor, judge};
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
    /// Lower end of the 95 % interval of `new` / `old`.
    pub low: Option<f64>,
    /// Upper end of it.
    pub high: Option<f64>,
    /// Whether only the threshold decided, because there are too few repeats.
    pub single_repeat: bool,
    /// The verdict.
    pub verdict: CheckVerdict,
}

/// The verdict on a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckVerdict {
    /// Not beyond the threshold.
    Ok,
    /// Beyond the threshold, but within noise.
    #[serde(rename = "within noise")]
    WithinNoise,
    /// Beyond the threshold and beyond noise.
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
            CheckVerdict::WithinNoise => "within noise",
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
    /// The run cannot be judged, whatever else was found.
    Invalid,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Outcome::Ok => "ok",
            Outcome::Regression => "regression",
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
        } else {
            Outcome::Ok
        }
    }
}

/// Compare a run with a base, for the targets and steps that both have.
///
/// # Errors
/// When the plans differ in what matters (named), no target is in both, or there is no rule.
pub fn check(run: &RunRecord, base: &RunRecord, rules: &[Rule]) -> Result<Check> {
    let (name, base_name) = (&run.manifest.run, &base.manifest.run);
    let found = forbidding(&base.manifest.plan, &run.manifest.plan);
    if !found.is_empty() {
        return Err(Error::usage(format!(
            "{base_name} and {name} do not compare: {}; run the experiment with the settings of \
             the base",
            found.join("; ")
        )));
    }
    let targets = common_targets(run, base)?;
    if rules.is_empty() {
        return Err(Error::usage(
            "no rule to check; write one like rate_mean<-5%",
        ));
    }
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
    for target in targets {
        for step in &run.manifest.plan.steps {
            if [run, base].map(|r| unsupported(r, target, &step.name)) != [false, false] {
                continue;
            }
            step_lines(&mut check, [run, base], target, &step.name, rules);
        }
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
    if run.noise.is_empty() && base.noise.is_empty() {
        let floor = super::verdict::DEFAULT_FLOOR * 100.0;
        notes.push(format!(
            "the host is not calibrated: a noise floor of {floor:.0} % is assumed (measure it with \
             `romanesco lab calibrate`)"
        ));
    }
    notes
}

fn step_lines(
    check: &mut Check,
    [run, base]: [&RunRecord; 2],
    target: &str,
    step: &str,
    rules: &[Rule],
) {
    let (new, old) = (Side::of(run, target, step), Side::of(base, target, step));
    let sides = [(&new, &run.manifest.run), (&old, &base.manifest.run)];
    for (side, name) in sides {
        if let Some(fault) = &side.fault {
            check
                .notes
                .push(format!("{name}: {target} {step}: {fault}"));
        }
    }
    let few = few_repeats(new.repeats(), old.repeats());
    check
        .notes
        .extend(few.filter(|few| !check.notes.contains(few)));
    for rule in rules {
        let metric = rule.metric;
        let floor = floor([&run.noise, &base.noise], metric.name);
        let found = judge(&new.sample(metric.name), &old.sample(metric.name), floor);
        let fault = new.fault.is_some() || (is_relative(rule) && old.fault.is_some());
        check.lines.push(CheckLine {
            target: target.to_owned(),
            step: step.to_owned(),
            rule: rule.to_string(),
            metric: metric.name.to_owned(),
            unit: metric.unit.to_owned(),
            old: found.base,
            new: found.new,
            change: found.ratio.map(|ratio| ratio - 1.0),
            low: found.low,
            high: found.high,
            single_repeat: is_relative(rule) && found.single,
            verdict: if fault {
                CheckVerdict::Invalid
            } else {
                verdict(rule, &found)
            },
        });
    }
}

fn is_relative(rule: &Rule) -> bool {
    matches!(rule.threshold, Threshold::FellBy(_) | Threshold::RoseBy(_))
}

fn verdict(rule: &Rule, found: &Judgement) -> CheckVerdict {
    let limit = |beyond: bool| {
        if beyond {
            CheckVerdict::Regression
        } else {
            CheckVerdict::Ok
        }
    };
    let (new, old) = match (found.new, found.base, rule.threshold) {
        (Some(new), _, Threshold::Below(value)) => return limit(new < value),
        (Some(new), _, Threshold::Above(value)) => return limit(value < new),
        (Some(new), Some(old), _) => (new, old),
        // The base has the number, so something is wrong with the run.
        (None, Some(_), _) => return CheckVerdict::Invalid,
        (_, None, _) => return CheckVerdict::NotMeasured,
    };
    let (beyond, wanted) = match rule.threshold {
        Threshold::FellBy(share) => (new < old * (1.0 - share), Difference::Below),
        Threshold::RoseBy(share) => (old * (1.0 + share) < new, Difference::Above),
        Threshold::Below(_) | Threshold::Above(_) => (false, Difference::None),
    };
    if !beyond {
        CheckVerdict::Ok
    } else if found.single || found.difference == wanted {
        CheckVerdict::Regression
    } else {
        CheckVerdict::WithinNoise
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{failed_step, run, step};

    fn rules(texts: &[&str]) -> Vec<Rule> {
        texts.iter().map(|t| t.parse().unwrap()).collect()
    }

    fn record(name: &str, rates: &[f64]) -> RunRecord {
        let steps = (1..)
            .zip(rates)
            .map(|(r, rate): (u32, &f64)| step("lmdb", r, *rate));
        let repeats = u32::try_from(rates.len()).unwrap();
        run(name, &["lmdb"], repeats, steps.collect())
    }

    fn verdicts(check: &Check) -> Vec<CheckVerdict> {
        check.lines.iter().map(|line| line.verdict).collect()
    }

    #[test]
    fn a_regression_is_beyond_the_threshold_and_the_noise() {
        let base = record("before", &[100.0, 101.0, 102.0]);
        let rules = rules(&["ips<-5%", "wamp>+10%", "stall_seconds>0"]);
        let slow = record("after", &[80.0, 81.0, 82.0]);
        let found = check(&slow, &base, &rules).unwrap();
        assert_eq!(
            verdicts(&found),
            [CheckVerdict::Regression, CheckVerdict::Ok, CheckVerdict::Ok]
        );
        assert_eq!(found.outcome(), Outcome::Regression);
        let change = found.lines[0].change.unwrap();
        assert!((change + 20.0 / 101.0).abs() < 1e-12, "{change}");
        // Beyond 5 % in the median, but the repeats overlap.
        let wild = record("after", &[60.0, 90.0, 130.0]);
        let found = check(&wild, &base, &rules).unwrap();
        let verdict = found.lines[0].verdict;
        assert_eq!(verdict, CheckVerdict::WithinNoise, "C1: both are needed");
        assert_eq!(found.outcome(), Outcome::Ok);
        // Beyond noise, but within the threshold.
        let near = record("after", &[97.0, 97.0, 97.0]);
        assert_eq!(check(&near, &base, &rules).unwrap().outcome(), Outcome::Ok);
        let faster = record("after", &[200.0, 201.0, 202.0]);
        assert_eq!(
            check(&faster, &base, &rules).unwrap().outcome(),
            Outcome::Ok
        );
    }

    #[test]
    fn with_one_repeat_the_threshold_decides() {
        let (base, new) = (record("before", &[100.0]), record("after", &[90.0]));
        let found = check(&new, &base, &rules(&["ips<-5%"])).unwrap();
        assert!(found.lines[0].single_repeat, "C2: the line states it");
        assert_eq!(found.outcome(), Outcome::Regression);
        assert!(
            found.render().contains("regression (single repeat)"),
            "{}",
            found.render()
        );
        assert_eq!(
            check(&base, &base, &rules(&["ips<-5%"])).unwrap().outcome(),
            Outcome::Ok
        );
    }

    #[test]
    fn limits_do_not_look_at_the_base() {
        let base = record("before", &[100.0, 100.0]);
        let mut new = record("after", &[100.0, 100.0]);
        for step in &mut new.steps {
            step.summary.as_mut().unwrap().stall_seconds = 3;
        }
        let found = check(&new, &base, &rules(&["stall_seconds>0"])).unwrap();
        assert_eq!(verdicts(&found), [CheckVerdict::Regression]);
        let same = check(&new, &new, &rules(&["stall_seconds>0"])).unwrap();
        let verdict = verdicts(&same);
        assert_eq!(verdict, [CheckVerdict::Regression], "C3: a limit");
        let found = check(&new, &base, &rules(&["stall_seconds>3"])).unwrap();
        assert_eq!(verdicts(&found), [CheckVerdict::Ok]);
        // With 0 in each repeat of the base, 3 is a regression.
        let found = check(&new, &base, &rules(&["stall_seconds>+50%"])).unwrap();
        assert_eq!(verdicts(&found), [CheckVerdict::Regression]);
    }

    #[test]
    fn what_cannot_be_judged_is_invalid() {
        let base = record("before", &[100.0, 101.0]);
        let ips = rules(&["ips<-5%"]);
        let mut new = record("after", &[100.0, 101.0]);
        new.summary.complete = false;
        let found = check(&new, &base, &ips).unwrap();
        assert_eq!(found.outcome(), Outcome::Invalid, "C4: not complete");
        assert!(found.render().contains("not complete"));
        let mut new = record("after", &[50.0, 51.0]);
        new.steps[1].summary.as_mut().unwrap().valid = false;
        assert_eq!(
            check(&new, &base, &ips).unwrap().outcome(),
            Outcome::Invalid
        );
        let mut new = record("after", &[100.0, 101.0]);
        new.steps[1] = failed_step("002_lmdb_r2_load", "no space left");
        let found = check(&new, &base, &ips).unwrap();
        assert_eq!(found.outcome(), Outcome::Invalid);
        assert!(
            found.render().contains("no space left"),
            "{}",
            found.render()
        );
        // No step has queries.
        let found = check(&base, &base, &rules(&["query_p99_ms>+5%", "ips<-5%"])).unwrap();
        assert_eq!(
            verdicts(&found),
            [CheckVerdict::NotMeasured, CheckVerdict::Ok]
        );
        assert_eq!(found.outcome(), Outcome::Invalid, "C4: not measured");
    }

    #[test]
    fn differing_plans_are_no_base() {
        let base = record("before", &[100.0]);
        let mut new = record("after", &[100.0]);
        new.manifest.plan.seed = 1;
        let error = check(&new, &base, &rules(&["ips<-5%"])).unwrap_err();
        assert!(error.message.contains("seed: 42 against 1"), "{error}");
        let mut new = record("after", &[100.0]);
        new.manifest.plan.targets[0].name = "other".into();
        let error = check(&new, &base, &rules(&["ips<-5%"])).unwrap_err();
        assert!(
            error.message.contains("no target of the base (lmdb)"),
            "{error}"
        );
    }
}

//! Tests of the parent module.

use super::*;
use crate::fixture::{disturbed_step, failed_step, run, step};

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
    let found = check(&slow, &base, &rules, false).unwrap();
    assert_eq!(
        verdicts(&found),
        [CheckVerdict::Regression, CheckVerdict::Ok, CheckVerdict::Ok]
    );
    assert_eq!(found.outcome(), Outcome::Regression);
    let change = found.lines[0].change.unwrap();
    assert!((change + 20.0 / 101.0).abs() < 1e-4, "{change}");
    // Beyond 5 % in the mean, but the repeats overlap.
    let wild = record("after", &[60.0, 90.0, 130.0]);
    let found = check(&wild, &base, &rules, false).unwrap();
    let verdict = found.lines[0].verdict;
    assert_eq!(verdict, CheckVerdict::Inconclusive, "C1");
    assert_eq!(found.outcome(), Outcome::Inconclusive);
    // No change in the mean, but too much noise to deny one.
    let noisy = record("after", &[91.0, 101.0, 113.0]);
    let found = check(&noisy, &base, &rules, false).unwrap();
    assert_eq!(found.outcome(), Outcome::Inconclusive, "C1");
    assert!(found.render().contains("too wide to decide"));
    // The whole interval is within the threshold.
    let near = record("after", &[99.0, 99.5, 100.0]);
    assert_eq!(
        check(&near, &base, &rules, false).unwrap().outcome(),
        Outcome::Ok
    );
    let faster = record("after", &[200.0, 201.0, 202.0]);
    assert_eq!(
        check(&faster, &base, &rules, false).unwrap().outcome(),
        Outcome::Ok
    );
}

#[test]
fn single_repeats_are_refused_unless_accepted() {
    let (base, new) = (record("before", &[100.0]), record("after", &[90.0]));
    let ips = rules(&["ips<-5%"]);
    let error = check(&new, &base, &ips, false).unwrap_err();
    assert!(error.message.contains("--single"), "C3: {error}");
    let found = check(&new, &base, &ips, true).unwrap();
    assert!(found.lines[0].single_repeat, "C3: the line states it");
    assert_eq!(found.outcome(), Outcome::Regression);
    assert!(
        found.render().contains("regression (single repeat)"),
        "{}",
        found.render()
    );
    let same = check(&base, &base, &ips, true).unwrap();
    assert_eq!(same.outcome(), Outcome::Ok);
    // A limit needs no second repeat.
    let limit = check(&new, &base, &rules(&["stall_seconds>0"]), false).unwrap();
    assert_eq!(limit.outcome(), Outcome::Ok);
}

#[test]
fn many_rules_share_the_probability_of_error() {
    let base = record("before", &[100.0, 101.0, 102.0]);
    let new = record("after", &[93.0, 94.0, 95.0]);
    let width = |texts: &[&str]| {
        let line = check(&new, &base, &rules(texts), false)
            .unwrap()
            .lines
            .remove(0);
        line.high.unwrap() - line.low.unwrap()
    };
    let (one, four) = (width(&["ips<-5%"]), width(&["ips<-5%"; 4]));
    assert!(1.4 * one < four, "C2: {one} {four}");
}

#[test]
fn limits_do_not_look_at_the_base() {
    let base = record("before", &[100.0, 100.0]);
    let mut new = record("after", &[100.0, 100.0]);
    for step in &mut new.steps {
        step.summary.as_mut().unwrap().stall_seconds = 3;
    }
    let found = check(&new, &base, &rules(&["stall_seconds>0"]), false).unwrap();
    assert_eq!(verdicts(&found), [CheckVerdict::Regression]);
    let same = check(&new, &new, &rules(&["stall_seconds>0"]), false).unwrap();
    let verdict = verdicts(&same);
    assert_eq!(verdict, [CheckVerdict::Regression], "C4: a limit");
    let found = check(&new, &base, &rules(&["stall_seconds>3"]), false).unwrap();
    assert_eq!(verdicts(&found), [CheckVerdict::Ok]);
    // Two repeats of 3 against two of 0 may be chance.
    let found = check(&new, &base, &rules(&["stall_seconds>+50%"]), false).unwrap();
    assert_eq!(verdicts(&found), [CheckVerdict::Inconclusive]);
}

#[test]
fn what_cannot_be_judged_is_invalid() {
    let base = record("before", &[100.0, 101.0]);
    let ips = rules(&["ips<-5%"]);
    let mut new = record("after", &[100.0, 101.0]);
    new.summary.complete = false;
    let found = check(&new, &base, &ips, false).unwrap();
    assert_eq!(found.outcome(), Outcome::Invalid, "C5: not complete");
    assert!(found.render().contains("not complete"));
    let mut new = record("after", &[50.0, 51.0]);
    new.steps[1].summary.as_mut().unwrap().valid = false;
    assert_eq!(
        check(&new, &base, &ips, false).unwrap().outcome(),
        Outcome::Invalid
    );
    let mut new = record("after", &[100.0, 101.0]);
    new.steps[1] = failed_step("002_lmdb_r2_load", "no space left");
    let found = check(&new, &base, &ips, false).unwrap();
    assert_eq!(found.outcome(), Outcome::Invalid);
    assert!(
        found.render().contains("no space left"),
        "{}",
        found.render()
    );
    // No step has queries.
    let found = check(
        &base,
        &base,
        &rules(&["query_p99_ms>+5%", "ips<-5%"]),
        false,
    )
    .unwrap();
    assert_eq!(
        verdicts(&found),
        [CheckVerdict::NotMeasured, CheckVerdict::Ok]
    );
    assert_eq!(found.outcome(), Outcome::Invalid, "C5: not measured");
}

#[test]
fn differing_plans_are_no_base() {
    let base = record("before", &[100.0]);
    let mut new = record("after", &[100.0]);
    new.manifest.plan.seed = 1;
    let error = check(&new, &base, &rules(&["ips<-5%"]), false).unwrap_err();
    assert!(error.message.contains("seed: 42 against 1"), "{error}");
    let mut new = record("after", &[100.0]);
    new.manifest.plan.targets[0].name = "other".into();
    let error = check(&new, &base, &rules(&["ips<-5%"]), false).unwrap_err();
    assert!(
        error.message.contains("no target of the base (lmdb)"),
        "{error}"
    );
}

#[test]
fn a_disturbed_repeat_leaves_its_rules_inconclusive() {
    let disturbed = |name: &str, rates: [f64; 3]| {
        let mut steps: Vec<_> = record(name, &rates).steps;
        let last = disturbed_step("lmdb", 3, rates[2], "a backup");
        steps[2].summary = Some(last);
        RunRecord {
            steps,
            ..record(name, &rates)
        }
    };
    let base = record("before", &[100.0, 101.0, 102.0]);
    let rules = rules(&["ips<-5%", "stall_seconds>0"]);
    // Neither a regression nor its absence is believed.
    for rates in [[80.0, 81.0, 82.0], [100.0, 101.0, 102.0]] {
        let run = disturbed("after", rates);
        let found = check(&run, &base, &rules, false).unwrap();
        assert_eq!(verdicts(&found), [CheckVerdict::Inconclusive; 2], "C6");
        assert_eq!(found.outcome(), Outcome::Inconclusive);
        let text = found.render();
        let why = "after: lmdb load: repeat 3 was disturbed: a backup";
        assert!(text.contains(why), "{text}");
        assert!(!text.contains("too wide"), "{text}");
    }
    // A rule on the run alone does not depend on the base.
    let quiet = record("after", &[100.0, 101.0, 102.0]);
    let base = disturbed("before", [100.0, 101.0, 102.0]);
    let found = check(&quiet, &base, &rules, false).unwrap();
    assert_eq!(
        verdicts(&found),
        [CheckVerdict::Inconclusive, CheckVerdict::Ok],
        "C6"
    );
}

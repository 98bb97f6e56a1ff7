//! Comparing targets of one run, or runs with each other.
//!
//! Each target is set against a base: of one run the first target, of several runs the target of
//! the same name in the first run; or what the caller names.

use serde::{Deserialize, Serialize};

use super::difference::{forbidding, notable};
use super::metric::{Better, METRICS, Metric};
use super::side::Side;
use super::verdict::{Family, Judgement, Terms, Verdict, floor, judge, single_repeat, word};
use crate::error::{Error, Result, unknown};
use crate::record::{RunRecord, SCHEMA};

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The names of the runs.
    pub runs: Vec<String>,
    /// Warnings: differing plans, hosts without calibration, missing repeats.
    pub warnings: Vec<String>,
    /// Each step of each target against its base.
    pub pairs: Vec<Pair>,
}

/// A step of a target compared with its base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The step.
    pub step: String,
    /// The base: a target, `run/target` when several runs are compared.
    pub base: String,
    /// The compared target.
    pub target: String,
    /// Valid repeats of the base.
    pub base_repeats: u32,
    /// Valid repeats of the other.
    pub repeats: u32,
    /// Why no conclusion is possible: wrong answers, a failure, nothing measured.
    pub invalid: Option<String>,
    /// Why the verdicts are at most inconclusive: other programs disturbed a repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
    /// The metrics measured on either side, in the order of [`METRICS`].
    pub rows: Vec<ComparisonRow>,
}

/// One metric of a pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRow {
    /// Its name.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// Median over the repeats of the base.
    pub base: Option<f64>,
    /// Median over the repeats of the other.
    pub value: Option<f64>,
    /// `value` / `base`; `None` when the base is 0 or a side was not measured.
    pub ratio: Option<f64>,
    /// Lower end of the interval of the ratio: all intervals of a comparison hold together with a
    /// probability of 96 %.
    pub low: Option<f64>,
    /// Upper end of it.
    pub high: Option<f64>,
    /// Whether a side has a single repeat: the interval covers differences within a run, not
    /// between runs.
    pub within_run: bool,
    /// Two-sided p-value of the Mann-Whitney test, with 5 repeats or more on each side.
    pub p_value: Option<f64>,
    /// The relative noise floor that the effect was compared with.
    pub floor: f64,
    /// The verdict; `None` for descriptive metrics, and if a side was not measured.
    pub verdict: Option<Verdict>,
}

/// What a comparison accepts, with a warning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accept {
    /// Plans that differ in what matters.
    pub differing_plans: bool,
    /// Verdicts on single repeats, by the interval within the run. Otherwise they are inconclusive.
    pub single_repeats: bool,
}

impl Comparison {
    /// Refuses a comparison in which a side has a single repeat.
    ///
    /// # Errors
    /// Names the first such pair.
    pub fn refuse_single(&self) -> Result<()> {
        let is_single = |pair: &&Pair| pair.repeats == 1 || pair.base_repeats == 1;
        match self.pairs.iter().find(is_single) {
            Some(pair) => {
                let targets = format!("{} or {}", pair.target, pair.base);
                Err(single_repeat(&pair.step, &targets))
            }
            None => Ok(()),
        }
    }
}

/// A target of one of the runs.
#[derive(Clone, Copy)]
struct Contender<'a> {
    run: usize,
    record: &'a RunRecord,
    target: &'a str,
}

/// Compare the targets of one run, or of several. `base` names a target (of the first run that has
/// it), a run (its targets are then the bases of their namesakes), or `run/target`; by default it
/// is the first run of several, the first target of one.
///
/// # Errors
/// When there is nothing to compare, the base is unknown, or plans differ in what matters (named)
/// and that is not accepted.
pub fn compare(runs: &[RunRecord], base: Option<&str>, accept: Accept) -> Result<Comparison> {
    let names = run_names(runs);
    let mut warnings = plans(runs, &names, accept.differing_plans)?;
    let all = contenders(runs);
    let label = |c: &Contender<'_>| label(&names, c);
    let fixed = base.map(|name| chosen(name, &all, &names)).transpose()?;
    let (mut sides_of, mut family) = (Vec::new(), Family::default());
    for (place, contender) in all.iter().enumerate() {
        let of = base_of(place, &all, fixed);
        let Some(base) = of.filter(|&of| of != place).and_then(|of| all.get(of)) else {
            continue;
        };
        for step in steps(base, contender) {
            let sides = [base, contender].map(|c| Side::of(c.record, c.target, step));
            for (side, c) in sides.iter().zip([base, contender]) {
                warnings.extend(side_warnings(side, step, &label(c)));
            }
            let measured = |metric: &&Metric| sides.iter().all(|side| side.has(metric.name));
            METRICS.iter().filter(measured).for_each(|m| family.add(m));
            sides_of.push((step, base, contender, sides));
        }
    }
    let judged = |(step, base, contender, sides): (&str, &Contender<'_>, _, [Side; 2])| {
        let noise = [base, contender].map(|c: &Contender<'_>| c.record.noise.as_slice());
        let labels = [label(base), label(contender)];
        pair(
            step,
            labels,
            &sides,
            Judge {
                noise,
                family,
                single: accept.single_repeats,
            },
        )
    };
    let pairs: Vec<Pair> = sides_of.into_iter().map(judged).collect();
    if pairs.is_empty() {
        return Err(Error::usage(
            "nothing to compare: name a second run, or a run of several targets",
        ));
    }
    let mut seen = Vec::new();
    warnings.retain(|w| {
        !seen.contains(w) && {
            seen.push(w.clone());
            true
        }
    });
    Ok(Comparison {
        schema: SCHEMA,
        runs: names,
        warnings,
        pairs,
    })
}

/// The names of the runs, with a number where two are equal.
fn run_names(runs: &[RunRecord]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for run in runs {
        let name = &run.manifest.run;
        let equal = |n: &&String| n.split('#').next() == Some(name);
        match names.iter().filter(equal).count() {
            0 => names.push(name.clone()),
            n => names.push(format!("{name}#{}", n + 1)),
        }
    }
    names
}

/// Warnings about the plans and hosts.
fn plans(runs: &[RunRecord], names: &[String], force: bool) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    let Some((first, others)) = runs.split_first() else {
        return Err(Error::usage(
            "no run to compare: name one or more results directories",
        ));
    };
    let base = names.first().map_or("", String::as_str);
    for (other, name) in others.iter().zip(names.iter().skip(1)) {
        let found = forbidding(&first.manifest.plan, &other.manifest.plan);
        if !found.is_empty() && !force {
            return Err(Error::usage(format!(
                "{base} and {name} do not compare: {}; run both with the same settings, or compare \
                 them anyway with --force",
                found.join("; ")
            )));
        }
        let all = found
            .into_iter()
            .chain(notable(&first.manifest, &other.manifest));
        warnings.extend(all.map(|what| format!("{base} and {name} differ: {what}")));
    }
    for (run, name) in runs.iter().zip(names) {
        if run.noise.is_empty() {
            let floor = super::verdict::DEFAULT_FLOOR * 100.0;
            warnings.push(format!(
                "the host of {name} is not calibrated: a noise floor of {floor:.0} % is assumed \
                 (measure it with `romanesco lab calibrate`)"
            ));
        }
        if !run.summary.complete {
            warnings.push(format!("{name} is not complete"));
        }
    }
    Ok(warnings)
}

fn contenders(runs: &[RunRecord]) -> Vec<Contender<'_>> {
    let of = |(run, record): (usize, &'_ RunRecord)| -> Vec<(usize, usize)> {
        (0..record.manifest.plan.targets.len())
            .map(|target| (run, target))
            .collect()
    };
    let places = runs.iter().enumerate().flat_map(of);
    let contender = |(run, target): (usize, usize)| {
        let record = runs.get(run)?;
        let target = record.manifest.plan.targets.get(target)?.name.as_str();
        Some(Contender {
            run,
            record,
            target,
        })
    };
    places.filter_map(contender).collect()
}

fn label(names: &[String], contender: &Contender<'_>) -> String {
    match names {
        [_, _, ..] => {
            let run = names.get(contender.run).map_or("", String::as_str);
            format!("{run}/{}", contender.target)
        }
        _ => contender.target.to_owned(),
    }
}

/// The base that the caller named.
#[derive(Clone, Copy)]
enum Chosen {
    /// One target is the base of all.
    One(usize),
    /// A run: its targets are the bases of the targets with the same name.
    Run(usize),
}

fn chosen(name: &str, all: &[Contender<'_>], names: &[String]) -> Result<Chosen> {
    let by_label = all.iter().position(|c| label(names, c) == name);
    if let Some(place) = by_label.or_else(|| all.iter().position(|c| c.target == name)) {
        return Ok(Chosen::One(place));
    }
    if let Some(run) = names.iter().position(|n| n == name) {
        return Ok(Chosen::Run(run));
    }
    let labels: Vec<String> = all.iter().map(|c| label(names, c)).collect();
    let mut known: Vec<&str> = labels.iter().map(String::as_str).collect();
    for target in all.iter().map(|c| c.target) {
        if !known.contains(&target) {
            known.push(target);
        }
    }
    known.extend(names.iter().filter(|_| 1 < names.len()).map(String::as_str));
    Err(Error::usage(unknown("base", name, &known)))
}

fn base_of(place: usize, all: &[Contender<'_>], chosen: Option<Chosen>) -> Option<usize> {
    let run = match chosen {
        Some(Chosen::One(base)) => return Some(base),
        Some(Chosen::Run(run)) => run,
        None => 0,
    };
    let contender = all.get(place)?;
    let several = all.iter().any(|c| c.run != contender.run);
    if several && contender.run == run {
        // With several runs the targets of the base run are bases, and not compared.
        return None;
    }
    let namesake = all
        .iter()
        .position(|c| c.run == run && c.target == contender.target);
    let namesake = namesake.filter(|_| several);
    namesake.or_else(|| all.iter().position(|c| c.run == run))
}

/// The steps both have, in the order of the base's plan.
fn steps<'a>(base: &Contender<'a>, other: &Contender<'a>) -> Vec<&'a str> {
    let has = |name: &str| {
        other
            .record
            .manifest
            .plan
            .steps
            .iter()
            .any(|s| s.name == name)
    };
    let all = base
        .record
        .manifest
        .plan
        .steps
        .iter()
        .map(|s| s.name.as_str());
    all.filter(|name| has(name)).collect()
}

fn side_warnings(side: &Side, step: &str, label: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if 0 < side.missing && 0 < side.repeats() {
        warnings.push(format!(
            "{label} {step}: {} repeats are missing",
            side.missing
        ));
    }
    if side.repeats() == 1 {
        warnings.push(format!(
            "{label} {step}: a single repeat; only rate_mean has an interval, within the run, \
             which is no evidence of a difference between runs"
        ));
    }
    if side.cut {
        warnings.push(format!(
            "{label} {step}: ended by time before all operations were done; compare numbers per row"
        ));
    }
    warnings
}

/// The terms on which the metrics of a pair are judged.
struct Judge<'a> {
    noise: [&'a [(String, f64)]; 2],
    family: Family,
    single: bool,
}

impl Judge<'_> {
    fn terms(&self, metric: &Metric) -> Terms {
        Terms {
            floor: floor(self.noise, metric.name),
            error: self.family.error(metric),
            single: self.single,
        }
    }
}

fn pair(step: &str, labels: [String; 2], sides: &[Side; 2], judge: Judge<'_>) -> Pair {
    let [base, other] = sides;
    let [base_label, label] = labels;
    let fault = |side: &Side, label: &str| side.fault.as_ref().map(|f| format!("{label}: {f}"));
    let invalid = fault(base, &base_label).or_else(|| fault(other, &label));
    let why = |side: &Side, label: &str| {
        let reason = side.disturbed.as_ref();
        reason.map(|reason| format!("{label}: {reason}"))
    };
    let disturbed: Vec<String> = [why(base, &base_label), why(other, &label)]
        .into_iter()
        .flatten()
        .collect();
    let rows = METRICS.iter().filter_map(|metric| {
        let row = row(metric, other, base, judge.terms(metric))?;
        let verdict = match &invalid {
            Some(_) => Some(Verdict::Invalid),
            None if disturbed.is_empty() => row.verdict,
            // V7, also for metrics that are hardly disturbed: one rule for all.
            None => row.verdict.map(|_| Verdict::Inconclusive),
        };
        Some(ComparisonRow { verdict, ..row })
    });
    Pair {
        step: step.to_owned(),
        rows: rows.collect(),
        disturbed: (!disturbed.is_empty()).then(|| disturbed.join("; ")),
        base: base_label,
        target: label,
        base_repeats: base.repeats(),
        repeats: other.repeats(),
        invalid,
    }
}

/// The row of a judgement, with this verdict.
pub(super) fn stated(
    metric: &Metric,
    found: &Judgement,
    terms: Terms,
    verdict: Option<Verdict>,
) -> ComparisonRow {
    ComparisonRow {
        metric: metric.name.to_owned(),
        unit: metric.unit.to_owned(),
        better: metric.better,
        base: found.base,
        value: found.new,
        ratio: found.ratio,
        low: found.low,
        high: found.high,
        within_run: found.single,
        p_value: found.p_value,
        floor: terms.floor,
        verdict,
    }
}

fn row(metric: &Metric, new: &Side, base: &Side, terms: Terms) -> Option<ComparisonRow> {
    let found = judge(&new.sample(metric.name), &base.sample(metric.name), terms);
    if found.new.is_none() && found.base.is_none() {
        return None;
    }
    let verdict = word(metric, &found);
    Some(stated(metric, &found, terms, verdict))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{disturbed_step, run, step};
    use crate::record::StepSummary;
    use stdx::ByteSize;

    const FORCED: Accept = Accept {
        differing_plans: true,
        single_repeats: false,
    };

    fn repeats(target: &str, rates: &[f64]) -> Vec<StepSummary> {
        let one = |(r, rate): (u32, &f64)| step(target, r, *rate);
        (1..).zip(rates).map(one).collect()
    }

    fn rate(pair: &Pair) -> &ComparisonRow {
        pair.rows.iter().find(|r| r.metric == "rate_mean").unwrap()
    }

    fn two_targets() -> RunRecord {
        let mut steps = repeats("lmdb", &[100.0, 101.0, 102.0]);
        steps.extend(repeats("rocksdb", &[130.0, 131.0, 132.0]));
        run("r", &["lmdb", "rocksdb"], 3, steps)
    }

    #[test]
    fn targets_of_one_run_against_the_first() {
        let found = compare(&[two_targets()], None, Accept::default()).unwrap();
        let [pair] = &found.pairs[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (pair.base.as_str(), pair.target.as_str()),
            ("lmdb", "rocksdb")
        );
        let row = rate(pair);
        assert_eq!(row.verdict, Some(Verdict::Faster));
        assert!((row.ratio.unwrap() - 1.297).abs() < 1e-3);
        let equal = pair
            .rows
            .iter()
            .find(|r| r.metric == "write_amplification")
            .unwrap();
        assert_eq!(equal.verdict, Some(Verdict::NoDifference));
        let found = compare(&[two_targets()], Some("rocksdb"), Accept::default()).unwrap();
        assert_eq!(rate(&found.pairs[0]).verdict, Some(Verdict::Slower));
        assert_eq!(found.pairs[0].target, "lmdb");
    }

    #[test]
    fn runs_are_compared_target_by_target() {
        let (mut before, mut after) = (two_targets(), two_targets());
        before.manifest.run = "before".into();
        after.manifest.run = "after".into();
        let found = compare(&[before.clone(), after.clone()], None, Accept::default()).unwrap();
        let names: Vec<(&str, &str)> = found
            .pairs
            .iter()
            .map(|p| (p.base.as_str(), p.target.as_str()))
            .collect();
        assert_eq!(
            names,
            [
                ("before/lmdb", "after/lmdb"),
                ("before/rocksdb", "after/rocksdb")
            ]
        );
        assert!(
            found
                .pairs
                .iter()
                .all(|p| rate(p).verdict == Some(Verdict::NoDifference))
        );
        let both = [before, after];
        let found = compare(&both, Some("after"), Accept::default()).unwrap();
        assert_eq!(found.pairs[0].base, "after/lmdb");
        assert_eq!(found.pairs.len(), 2);
        let found = compare(&both, Some("lmdb"), Accept::default()).unwrap();
        assert_eq!(found.pairs.len(), 3);
        assert!(found.pairs.iter().all(|p| p.base == "before/lmdb"));
        let error = compare(&both, Some("lmbd"), Accept::default()).unwrap_err();
        assert!(error.message.contains("did you mean \"lmdb\"?"), "{error}");
    }

    #[test]
    fn differing_plans_are_refused_unless_forced() {
        let (a, mut b) = (two_targets(), two_targets());
        b.manifest.plan.cache = ByteSize::mib(1);
        let both = [a, b];
        let error = compare(&both, None, Accept::default()).unwrap_err();
        assert!(error.message.contains("cache: 64M against 1M"), "{error}");
        assert!(error.message.contains("r and r#2"), "{error}");
        let found = compare(&both, None, FORCED).unwrap();
        assert!(
            found.warnings.iter().any(|w| w.contains("cache: 64M")),
            "{:?}",
            found.warnings
        );
    }

    #[test]
    fn wrong_answers_make_it_invalid() {
        let mut record = two_targets();
        let wrong = record.steps[4].summary.as_mut().unwrap();
        wrong.valid = false;
        wrong.invalid_reason = Some("wrong answer".into());
        let found = compare(&[record], None, Accept::default()).unwrap();
        let pair = &found.pairs[0];
        assert!(
            pair.rows
                .iter()
                .all(|r| r.verdict == Some(Verdict::Invalid))
        );
        assert!(
            pair.invalid
                .as_ref()
                .unwrap()
                .contains("rocksdb: repeat 2 is invalid")
        );
        let text = found.render();
        assert!(text.contains("invalid"), "{text}");
    }

    #[test]
    fn a_disturbed_repeat_leaves_every_verdict_inconclusive() {
        let mut steps = repeats("lmdb", &[100.0, 101.0, 102.0]);
        steps.extend(repeats("rocksdb", &[130.0, 131.0]));
        steps.push(disturbed_step("rocksdb", 3, 132.0, "a backup"));
        let record = run("r", &["lmdb", "rocksdb"], 3, steps);
        let found = compare(&[record], None, Accept::default()).unwrap();
        let pair = &found.pairs[0];
        assert_eq!(rate(pair).verdict, Some(Verdict::Inconclusive), "V7");
        let judged = pair.rows.iter().filter_map(|r| r.verdict);
        assert!(judged.into_iter().all(|v| v == Verdict::Inconclusive), "V7");
        let why = "rocksdb: repeat 3 was disturbed: a backup";
        assert_eq!(pair.disturbed.as_deref(), Some(why));
        assert!(found.render().contains(why), "{}", found.render());
    }

    #[test]
    fn the_noise_floor_of_the_host_counts() {
        let mut record = two_targets();
        record.noise = vec![("rate_mean".to_owned(), 0.4)];
        let found = compare(&[record], None, Accept::default()).unwrap();
        let row = rate(&found.pairs[0]);
        assert_eq!((row.floor, row.verdict), (0.4, Some(Verdict::Inconclusive)));
    }

    #[test]
    fn nothing_to_compare_is_reported() {
        let one = run("r", &["lmdb"], 1, repeats("lmdb", &[100.0]));
        let error = compare(&[one], None, Accept::default()).unwrap_err();
        assert!(error.message.contains("nothing to compare"), "{error}");
        assert!(compare(&[], None, Accept::default()).is_err());
    }

    #[test]
    fn it_survives_json_and_reads_well() {
        let found = compare(&[two_targets()], None, Accept::default()).unwrap();
        let text = serde_json::to_string(&found).unwrap();
        let back: Comparison = serde_json::from_str(&text).unwrap();
        let verdicts = |c: &Comparison| {
            c.pairs[0]
                .rows
                .iter()
                .map(|r| r.verdict)
                .collect::<Vec<_>>()
        };
        assert_eq!(verdicts(&back), verdicts(&found));
        assert_eq!(back.render(), found.render());
        let text = found.render();
        assert!(
            text.contains("load: rocksdb (3 repeats) against lmdb (3 repeats)"),
            "{text}"
        );
        assert!(text.contains("x1.297"), "{text}");
        assert!(text.contains("1.261 to 1.334"), "{text}");
        assert!(
            text.contains("faster") && text.contains("not calibrated"),
            "{text}"
        );
    }
}

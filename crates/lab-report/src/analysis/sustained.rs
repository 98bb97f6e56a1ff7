//! The highest rate a target sustains: an open loop that is kept, with the p99 within its limit and
//! without a stall. Latency counts from the intended start of each operation, so waiting behind a
//! slow one is in it (no coordinated omission).

use serde::{Deserialize, Serialize};

use super::side::failed;
use crate::format;
use crate::record::{LoadKind, Operation, Plan, RunRecord, StepPlan, StepSummary, Work};

/// Minimum operations per second for stalls to count: at lower rates a second may be empty by
/// chance (a Poisson process of 10 leaves one in 22,000 empty), and the p99 of so few operations
/// includes every real stall.
pub(crate) const STALLS_FROM: f64 = 10.0;

/// Why a step without open-loop repetitions has no sustained rate.
pub const NOT_REPEATED: &str = "no open loop repeats it";

/// One rate that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The step.
    pub step: String,
    /// Rows or operations per second asked for: the least over the repeats.
    pub rate: f64,
    /// The worst p99 over the repeats, in milliseconds.
    pub p99_ms: f64,
    /// The most seconds of stalls in a repeat.
    pub stall_seconds: u64,
    /// Why it was not sustained; `None` if every repeat is valid, reached the rate, did not stall
    /// and kept the p99.
    pub fault: Option<String>,
}

/// The sustained rate of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sustained {
    /// The target.
    pub target: String,
    /// The step whose work is repeated.
    pub of: String,
    /// The rates tried, the lowest first.
    pub tried: Vec<Tried>,
    /// The highest sustained rate.
    pub best: Option<f64>,
    /// The operation that rates count, such as `transactions`.
    pub operation: String,
}

impl Sustained {
    /// The unit of its rates.
    #[must_use]
    pub fn unit(&self) -> String {
        format!("{}/s", self.operation)
    }

    /// Why there is no sustained rate; `None` if there is one.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        let lowest = self.tried.first().filter(|_| self.best.is_none())?;
        let rate = format::maybe(Some(lowest.rate));
        let fault = lowest.fault.as_deref().unwrap_or_default();
        Some(format!(
            "no rate that was tried was kept, the lowest {rate}/s: {fault}"
        ))
    }
}

/// Why a target has no sustained rate in a step; `None` if it has.
#[must_use]
pub fn not_sustained(
    run: &RunRecord,
    found: &[Sustained],
    target: &str,
    step: &str,
) -> Option<String> {
    let mut tried = found.iter();
    if let Some(tried) = tried.find(|s| s.target == target && s.of == step) {
        return tried.reason();
    }
    let open = |s: &&StepPlan| s.setting.share.as_ref().is_some_and(|s| s.of == step);
    let Some(open) = run.manifest.plan.steps.iter().find(open) else {
        return Some(NOT_REPEATED.to_owned());
    };
    let summaries = run.steps.iter().filter_map(|s| s.summary.as_ref());
    let mut own = summaries.filter(|s| s.target == target && s.step == open.name);
    if let Some(why) = own.find_map(|s| s.unsupported.as_ref()) {
        return Some(format!("its open loops are n/a: {why}"));
    }
    let mut all = run.manifest.plan.steps.iter();
    // The steps after a failed one were never started.
    let why = all.find_map(|s| failed(run, target, &s.name).map(|why| (s, why)));
    Some(match why {
        Some((step, why)) => format!("its open loops were not done: {}: {why}", step.name),
        None => "its open loops were not done".to_owned(),
    })
}

/// The sustained rates of each target in each step that has open-loop repetitions.
#[must_use]
pub fn sustained(run: &RunRecord, p99_limit_ms: f64) -> Vec<Sustained> {
    let plan = &run.manifest.plan;
    let mut all: Vec<Sustained> = Vec::new();
    for target in &plan.targets {
        for step in &plan.steps {
            let Some(tried) = tried(run, &target.name, step, p99_limit_ms) else {
                continue;
            };
            let of = step.setting.share.as_ref().map_or(&step.name, |s| &s.of);
            match all.last_mut() {
                Some(last) if last.target == target.name && last.of == *of => {
                    last.tried.push(tried);
                }
                _ => all.push(Sustained {
                    target: target.name.clone(),
                    of: of.clone(),
                    tried: vec![tried],
                    best: None,
                    operation: counted(plan, step).many.to_owned(),
                }),
            }
        }
    }
    for one in &mut all {
        one.tried.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let kept = one.tried.iter().filter(|t| t.fault.is_none());
        one.best = kept.map(|t| t.rate).next_back();
    }
    all
}

fn tried(run: &RunRecord, target: &str, step: &StepPlan, p99_limit_ms: f64) -> Option<Tried> {
    if !matches!(step.load, LoadKind::Open { .. }) {
        return None;
    }
    let done: Vec<&StepSummary> = run
        .steps
        .iter()
        .filter_map(|s| s.summary.as_ref())
        .filter(|s| s.target == target && s.step == step.name && s.unsupported.is_none())
        .collect();
    let rate = done.iter().filter_map(|s| s.rate_target).reduce(f64::min)?;
    let p99_ms = done.iter().map(|s| s.latency_ms.p99).fold(0.0, f64::max);
    let stall_seconds = done.iter().map(|s| s.stall_seconds).max().unwrap_or(0);
    let missed = done.iter().filter_map(|s| s.rate_missed);
    let stalls = STALLS_FROM <= rate / batch(step);
    let fault = if let Some(why) = failed(run, target, &step.name) {
        Some(why)
    } else if done.iter().any(|s| !s.valid) {
        Some("a result is not valid".to_owned())
    } else if let Some(share) = missed.reduce(f64::min) {
        Some(format!("{:.1} % of it was reached", share * 100.0))
    } else if stalls && 0 < stall_seconds {
        Some(format!("it stalled for {stall_seconds} s"))
    } else if p99_limit_ms < p99_ms {
        Some(format!("a p99 of {p99_ms:.1} ms, above {p99_limit_ms} ms"))
    } else {
        None
    };
    Some(Tried {
        step: step.name.clone(),
        rate,
        p99_ms,
        stall_seconds,
        fault,
    })
}

fn counted(plan: &Plan, step: &StepPlan) -> Operation {
    Operation::of_mix(&plan.experiment, step).unwrap_or(Operation::ROW)
}

/// Rows of an operation; 1 where it is not counted in rows.
fn batch(step: &StepPlan) -> f64 {
    match Work::of(step) {
        Some(Work::Load { batch, .. }) => f64::from(batch.max(1)),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::Share;

    /// A run of one step in a closed loop, and of those that repeat it.
    fn repeated(steps: Vec<StepSummary>) -> RunRecord {
        let names: Vec<String> = steps.iter().map(|s| s.step.clone()).collect();
        let mut run = fixture::run("run", &["lmdb"], 1, steps);
        let closed = run.manifest.plan.steps[0].clone();
        for name in names {
            let mut open = closed.clone();
            open.load = LoadKind::Open {
                rate: 0.0,
                poisson: true,
            };
            open.setting.share = Some(Share {
                of: "load".to_owned(),
                percent: name.rsplit('-').next().unwrap().parse().unwrap(),
            });
            open.name = name;
            run.manifest.plan.steps.push(open);
        }
        run
    }

    fn step(name: &str, rate: f64, p99: f64, stalls: u64) -> StepSummary {
        let mut s = fixture::step("lmdb", 1, rate);
        name.clone_into(&mut s.step);
        s.rate_target = Some(rate);
        s.latency_ms.p99 = p99;
        s.stall_seconds = stalls;
        s
    }

    #[test]
    fn the_reason_why_no_rate_is_sustained_is_given() {
        let mut run = repeated(vec![
            step("load-50", 500.0, 100.3, 0),
            step("load-70", 700.0, 20.0, 3),
        ]);
        let why = |run: &RunRecord, step: &str| {
            not_sustained(run, &sustained(run, 100.0), "lmdb", step).unwrap()
        };
        let reason = why(&run, "load");
        assert!(
            reason.contains("a p99 of 100.3 ms, above 100 ms"),
            "{reason}"
        );
        run.steps[0].summary.as_mut().unwrap().rate_missed = Some(0.946);
        let reason = why(&run, "load");
        assert!(
            reason.contains("500/s: 94.6 % of it was reached"),
            "{reason}"
        );
        let found = sustained(&run, 100.0);
        assert_eq!(
            found[0].tried[1].fault.as_deref(),
            Some("it stalled for 3 s")
        );
        assert_eq!(why(&run, "other"), NOT_REPEATED);
        for step in &mut run.steps {
            step.summary.as_mut().unwrap().unsupported = Some("no caps here".to_owned());
        }
        assert_eq!(why(&run, "load"), "its open loops are n/a: no caps here");
        run.steps.clear();
        assert_eq!(why(&run, "load"), "its open loops were not done");
        let kept = repeated(vec![step("load-50", 500.0, 1.0, 0)]);
        let found = sustained(&kept, 100.0);
        assert_eq!(not_sustained(&kept, &found, "lmdb", "load"), None);
    }

    #[test]
    fn a_rate_at_which_a_repeat_failed_is_not_sustained() {
        let mut run = repeated(vec![
            step("load-50", 500.0, 1.0, 0),
            step("load-95", 950.0, 1.0, 0),
        ]);
        run.manifest.plan.repeats = 2;
        assert_eq!(sustained(&run, 100.0)[0].best, Some(950.0));
        let died = fixture::failed_step("003_lmdb_r2_load-95", "the server ended");
        run.steps.push(died);
        let found = sustained(&run, 100.0);
        assert_eq!(found[0].best, Some(500.0));
        let fault = found[0].tried[1].fault.as_deref();
        assert_eq!(fault, Some("repeat 2 failed: the server ended"));
        // None of the repeats was done.
        run.steps.retain(|s| s.summary.is_none());
        let why = not_sustained(&run, &sustained(&run, 100.0), "lmdb", "load").unwrap();
        assert_eq!(
            why,
            "its open loops were not done: load-95: repeat 2 failed: the server ended"
        );
    }

    #[test]
    fn a_second_that_is_empty_by_chance_is_no_stall() {
        let run = repeated(vec![
            step("load-50", 9.0, 90.0, 1),
            step("load-90", 18.0, 90.0, 1),
        ]);
        assert_eq!(sustained(&run, 100.0)[0].best, Some(9.0));
        // The stall is already part of the p99.
        assert_eq!(sustained(&run, 80.0)[0].best, None);
    }

    #[test]
    fn the_highest_rate_that_was_kept_is_found() {
        let steps = vec![
            step("load-50", 500.0, 10.0, 0),
            step("load-70", 700.0, 99.0, 0),
            step("load-80", 800.0, 20.0, 2),
            step("load-90", 900.0, 101.0, 0),
        ];
        let mut run = repeated(steps);
        let found = sustained(&run, 100.0);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].of.as_str(), found[0].best), ("load", Some(700.0)));
        assert_eq!(found[0].tried.len(), 4);
        assert_eq!(sustained(&run, 200.0)[0].best, Some(900.0));
        assert_eq!(sustained(&run, 1.0)[0].best, None);
        run.steps[3].summary.as_mut().unwrap().rate_missed = Some(0.9);
        assert_eq!(sustained(&run, 200.0)[0].best, Some(700.0));
    }
}

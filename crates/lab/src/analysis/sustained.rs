//! The highest rate a target sustains: an open loop that is kept, with the p99 within its limit and
//! without a stall. Latency counts from the intended start of each operation, so waiting behind a
//! slow one is in it (no coordinated omission).

use serde::{Deserialize, Serialize};

use crate::record::{LoadKind, RunRecord, StepPlan, StepSummary};

/// The p99 a sustained rate keeps, in milliseconds, unless told otherwise.
pub const P99_LIMIT_MS: f64 = 100.0;

/// One rate that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The step.
    pub step: String,
    /// Rows per second asked for: the least over the repeats.
    pub rate: f64,
    /// The worst p99 over the repeats, in milliseconds.
    pub p99_ms: f64,
    /// The most seconds of stalls in a repeat.
    pub stall_seconds: u64,
    /// Whether every repeat is valid, reached the rate, did not stall and kept the p99.
    pub kept: bool,
}

/// What a target sustains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sustained {
    /// The target.
    pub target: String,
    /// The step whose work it is.
    pub of: String,
    /// The rates tried, the lowest first.
    pub tried: Vec<Tried>,
    /// The highest that was kept.
    pub best: Option<f64>,
}

/// What each target sustains in each step that has an open loop; empty where none has.
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
                }),
            }
        }
    }
    for one in &mut all {
        one.tried.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let kept = one.tried.iter().filter(|t| t.kept);
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
    let reached = done.iter().all(|s| s.valid && s.rate_missed.is_none());
    Some(Tried {
        step: step.name.clone(),
        rate,
        p99_ms,
        stall_seconds,
        kept: reached && stall_seconds == 0 && p99_ms <= p99_limit_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::fixture;
    use crate::record::Share;

    #[test]
    fn the_highest_rate_that_was_kept_is_found() {
        let step = |name: &str, rate: f64, p99: f64, stalls: u64| {
            let mut s = fixture::step("lmdb", 1, rate);
            name.clone_into(&mut s.step);
            s.rate_target = Some(rate);
            s.latency_ms.p99 = p99;
            s.stall_seconds = stalls;
            s
        };
        let steps = vec![
            step("load-50", 500.0, 10.0, 0),
            step("load-70", 700.0, 99.0, 0),
            step("load-80", 800.0, 20.0, 2),
            step("load-90", 900.0, 101.0, 0),
        ];
        let mut run = fixture::run("run", &["lmdb"], 1, steps);
        let closed = run.manifest.plan.steps[0].clone();
        for percent in [50, 70, 80, 90] {
            let mut open = closed.clone();
            open.name = format!("load-{percent}");
            open.load = LoadKind::Open {
                rate: 0.0,
                poisson: true,
            };
            open.setting.share = Some(Share {
                of: "load".to_owned(),
                percent,
            });
            run.manifest.plan.steps.push(open);
        }
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

//! A run arranged for reading: targets with their colours, steps with their cells, and for each
//! target and step the *shown* repeat, the valid one whose mean rate is the median (the lower of
//! two). Where a plot or a table shows one repeat, it is that one.

use hdrhistogram::Histogram;

use crate::analysis::{ComparisonRow, main_rates};
use crate::record::{
    Main, Operation, RunRecord, SeriesRow, StepPlan, StepRecord, StepState, StepSummary,
    TargetRecord, TargetSpec, TargetStepSummary, file_name,
};

use super::compare::Comparisons;
use super::svg;

/// A target of the run.
pub(crate) struct Target<'a> {
    pub(crate) name: &'a str,
    /// Its colour class, the same in every plot.
    pub(crate) color: usize,
    /// Its record, if there is one.
    pub(crate) record: Option<&'a TargetRecord>,
}

/// One step of one target in one repeat, done.
pub(crate) struct CellView<'a> {
    pub(crate) target: usize,
    pub(crate) repeat: u32,
    /// Whether it is the shown repeat of its target.
    pub(crate) shown: bool,
    pub(crate) record: &'a StepRecord,
    pub(crate) summary: &'a StepSummary,
}

impl<'a> CellView<'a> {
    /// The rows of its load that are whole seconds, as for [`main_rates`]: the last row ends with
    /// the load and covers too short a time for a rate.
    pub(crate) fn whole_seconds(&self) -> impl Iterator<Item = &'a SeriesRow> + use<'a> {
        let series = &self.record.series;
        let whole = main_rates(series, self.summary.main).len();
        let load = series.iter().filter(|r| r.phase != "settle");
        load.take(whole)
    }
}

/// One step of the plan with its results.
pub(crate) struct StepView<'a> {
    pub(crate) plan: &'a StepPlan,
    /// The anchor of its section.
    pub(crate) id: String,
    /// Its main operation, in the words of its experiment.
    pub(crate) operation: Operation,
    /// In the order of execution.
    pub(crate) cells: Vec<CellView<'a>>,
    /// By target.
    pub(crate) results: Vec<Option<&'a TargetStepSummary>>,
}

/// The step, target and repeat that a step directory belongs to.
pub(crate) struct Place<'a> {
    pub(crate) target: usize,
    pub(crate) repeat: u32,
    pub(crate) step: &'a str,
}

/// A step that failed or was interrupted.
pub(crate) struct Failure<'a> {
    pub(crate) directory: &'a str,
    /// `None` if the directory does not belong to the plan.
    pub(crate) place: Option<Place<'a>>,
    pub(crate) reason: String,
}

/// The run.
pub(crate) struct View<'a> {
    pub(crate) run: &'a RunRecord,
    pub(crate) targets: Vec<Target<'a>>,
    /// The steps that have at least one done cell.
    pub(crate) steps: Vec<StepView<'a>>,
    pub(crate) failed: Vec<Failure<'a>>,
    comparisons: Comparisons,
}

impl<'a> View<'a> {
    pub(crate) fn new(run: &'a RunRecord) -> View<'a> {
        let targets: Vec<Target<'a>> = run
            .manifest
            .plan
            .targets
            .iter()
            .enumerate()
            .map(|(i, spec)| Target {
                name: &spec.name,
                color: svg::color(i),
                record: run.targets.iter().find(|t| t.name == spec.name),
            })
            .collect();
        let steps = run
            .manifest
            .plan
            .steps
            .iter()
            .map(|plan| StepView::new(run, plan, &targets))
            .filter(|step| !step.cells.is_empty())
            .collect();
        View {
            run,
            targets,
            steps,
            failed: failures(run),
            comparisons: Comparisons::of(run),
        }
    }

    /// A metric of `target` against `base` in a step; `None` when neither has it.
    pub(crate) fn compared(
        &self,
        step: &StepView<'_>,
        metric: &str,
        target: usize,
        base: usize,
    ) -> Option<&ComparisonRow> {
        let (target, base) = (self.name(target), self.name(base));
        self.comparisons.row(&step.plan.name, metric, target, base)
    }

    /// Whether a target is the load generator alone, which stores nothing.
    pub(crate) fn ceiling(&self, target: usize) -> bool {
        let plan = &self.run.manifest.plan;
        plan.targets
            .get(target)
            .is_some_and(TargetSpec::is_generator)
    }

    /// Whether a target is a server, whose CPU does not include the client's.
    pub(crate) fn server(&self, target: usize) -> bool {
        let spec = self.run.manifest.plan.targets.get(target);
        spec.is_some_and(TargetSpec::is_server)
    }

    /// The name of a target by its index.
    pub(crate) fn name(&self, target: usize) -> &'a str {
        self.targets.get(target).map_or("", |t| t.name)
    }

    /// The colour class of a target by its index.
    pub(crate) fn color(&self, target: usize) -> usize {
        self.targets.get(target).map_or(0, |t| t.color)
    }

    /// The colour class of a target by its name, if it is one of this report's.
    pub(crate) fn color_of(&self, name: &str) -> Option<usize> {
        let found = self.targets.iter().find(|t| t.name == name);
        found.map(|t| t.color)
    }

    /// The noise floor of a metric, when the host was calibrated for it.
    pub(crate) fn floor(&self, metric: &str) -> Option<f64> {
        let floors = &self.run.noise;
        floors
            .iter()
            .find(|(name, _)| name == metric)
            .map(|(_, f)| *f)
    }

    /// The warnings about limits that are not in force, which every section must show; empty if all
    /// are in force.
    pub(crate) fn uncapped(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for step in self.run.steps.iter().filter(|s| !s.envelope.enforced) {
            let lines = &step.envelope.lines;
            let mut reasons = step.envelope.warnings.clone();
            for line in lines.iter().filter(|l| l.requested != l.effective) {
                let note = if line.note.is_empty() {
                    "not in force"
                } else {
                    &line.note
                };
                reasons.push(format!("{}: {note}", line.limit));
            }
            if reasons.is_empty() {
                reasons.push("the limits asked for are not in force".to_owned());
            }
            for text in reasons {
                if !all.contains(&text) {
                    all.push(text);
                }
            }
        }
        all
    }
}

impl<'a> StepView<'a> {
    fn new(run: &'a RunRecord, plan: &'a StepPlan, targets: &[Target<'a>]) -> StepView<'a> {
        let mut cells: Vec<CellView<'a>> = run
            .steps
            .iter()
            .filter(|s| s.status.state == StepState::Done)
            .filter_map(|record| {
                let summary = record.summary.as_ref()?;
                let target = targets.iter().position(|t| t.name == summary.target)?;
                let here = summary.step == plan.name && summary.unsupported.is_none();
                here.then_some(CellView {
                    target,
                    repeat: summary.repeat,
                    shown: false,
                    record,
                    summary,
                })
            })
            .collect();
        for target in 0..targets.len() {
            if let Some(repeat) = typical(&cells, target) {
                for cell in cells.iter_mut().filter(|c| c.target == target) {
                    cell.shown = cell.repeat == repeat;
                }
            }
        }
        let results = targets
            .iter()
            .map(|t| {
                let all = &run.summary.results;
                all.iter()
                    .find(|r| r.target == t.name && r.step == plan.name)
            })
            .collect();
        let queries = cells.iter().any(|c| c.summary.main == Main::Queries);
        let main = if queries { Main::Queries } else { Main::Rows };
        StepView {
            plan,
            id: format!("step-{}", anchor(&plan.name)),
            operation: Operation::of(&run.manifest.plan.experiment, plan, main),
            cells,
            results,
        }
    }

    /// The shown cells in the order of the targets.
    pub(crate) fn shown(&self) -> Vec<&CellView<'a>> {
        let mut cells: Vec<_> = self.cells.iter().filter(|c| c.shown).collect();
        cells.sort_by_key(|c| c.target);
        cells
    }

    /// A metric of a target over all repeats.
    pub(crate) fn metric(&self, target: usize, name: &str) -> Option<f64> {
        let result = self.results.get(target).copied().flatten()?;
        result
            .metrics
            .get(name)
            .copied()
            .flatten()
            .filter(|v| v.is_finite())
    }

    /// A workload-specific number of a target over all repeats.
    pub(crate) fn extra(&self, target: usize, name: &str) -> Option<f64> {
        let result = self.results.get(target).copied().flatten()?;
        result.extra.get(name).copied().filter(|v| v.is_finite())
    }

    /// Whether the step measures queries; otherwise it measures rows written.
    pub(crate) fn queries(&self) -> bool {
        self.cells.iter().any(|c| c.summary.main == Main::Queries)
    }

    /// The unit of its rates.
    pub(crate) fn unit(&self) -> &'static str {
        self.operation.per_second
    }

    /// The rate of the step's main operation in a second.
    pub(crate) fn rate(&self, row: &SeriesRow) -> f64 {
        if self.queries() {
            row.query_rate
        } else {
            row.rate
        }
    }

    /// Whether the numbers of a target may be used: every repeat valid, no missed rate.
    pub(crate) fn usable(&self, target: usize) -> bool {
        let result = self.results.get(target).copied().flatten();
        result.is_some_and(|r| r.valid) && self.missed_rate(target).is_none()
    }

    /// Why a target does not support the step.
    pub(crate) fn unsupported(&self, target: usize) -> Option<&'a str> {
        let result = self.results.get(target).copied().flatten()?;
        result.unsupported.as_deref()
    }

    /// The state of a target: `n/a` (not supported), `valid`, `invalid`, `failed`, `incomplete`
    /// (repeats are missing) or `not run`.
    pub(crate) fn standing(&self, view: &View<'_>, target: usize) -> String {
        let failed = view.failed.iter().filter_map(|f| f.place.as_ref());
        let here = |p: &&Place<'_>| p.target == target && p.step == self.plan.name;
        if self.usable(target) {
            "valid"
        } else if !self.invalid_reasons(target).is_empty() {
            "invalid"
        } else if failed.filter(here).count() > 0 {
            "failed"
        } else if self.unsupported(target).is_some() {
            "n/a"
        } else if self.cells.iter().any(|c| c.target == target) {
            "incomplete"
        } else {
            "not run"
        }
        .to_owned()
    }

    /// The fraction of the requested rate that was reached, if it is below 95 % in some repeat.
    pub(crate) fn missed_rate(&self, target: usize) -> Option<f64> {
        self.cells
            .iter()
            .filter(|c| c.target == target)
            .filter_map(|c| c.summary.rate_missed)
            .min_by(f64::total_cmp)
    }

    /// Why a target's numbers are invalid.
    pub(crate) fn invalid_reasons(&self, target: usize) -> Vec<String> {
        let mut reasons = Vec::new();
        for cell in self
            .cells
            .iter()
            .filter(|c| c.target == target && !c.summary.valid)
        {
            let why = cell
                .summary
                .invalid_reason
                .as_deref()
                .unwrap_or("no reason given");
            reasons.push(format!("repeat {}: {why}", cell.repeat));
        }
        if let Some(share) = self.missed_rate(target) {
            // One more decimal than elsewhere, so that 94.6 % is not shown as 95 %.
            reasons.push(format!(
                "reached {:.1} % of the rate asked for (95 % is the least)",
                100.0 * share
            ));
        }
        reasons
    }

    /// The commit or query latencies of a target, merged over its valid repeats, or over all when
    /// none is valid.
    pub(crate) fn histogram(&self, target: usize, queries: bool) -> Option<Histogram<u64>> {
        let cells = || self.cells.iter().filter(|c| c.target == target);
        let any_valid = cells().any(|c| c.summary.valid);
        let mut merged: Option<Histogram<u64>> = None;
        for cell in cells().filter(|c| c.summary.valid || !any_valid) {
            let record = cell.record;
            let one = if queries {
                &record.query_histogram
            } else {
                &record.histogram
            };
            let Some(one) = one.as_ref().filter(|h| !h.is_empty()) else {
                continue;
            };
            match &mut merged {
                Some(all) => all.add(one).ok()?,
                None => merged = Some(one.clone()),
            }
        }
        merged
    }
}

fn failures(run: &RunRecord) -> Vec<Failure<'_>> {
    let lost = |s: &&StepRecord| s.status.state != StepState::Done || s.summary.is_none();
    let lost = run.steps.iter().filter(lost);
    lost.map(|record| failure(run, record)).collect()
}

fn failure<'a>(run: &'a RunRecord, record: &'a StepRecord) -> Failure<'a> {
    let place = place(run, &record.directory);
    let message = record.status.message.clone();
    let mut reason = message
        .unwrap_or_else(|| format!("ended in state {:?}", record.status.state).to_lowercase());
    // The worker's message names its target, which the report shows already.
    let target = place
        .as_ref()
        .and_then(|p| run.manifest.plan.targets.get(p.target));
    if let Some(rest) = target.and_then(|t| reason.strip_prefix(&format!("{}: ", t.name))) {
        reason = rest.to_owned();
    }
    Failure {
        directory: &record.directory,
        place,
        reason,
    }
}

/// A failed step has no summary, so it is identified by its directory, such as `003_lmdb_r1_load`.
fn place<'a>(run: &'a RunRecord, directory: &str) -> Option<Place<'a>> {
    let plan = &run.manifest.plan;
    let (_, named) = directory.split_once('_')?;
    let steps = |target: usize| plan.steps.iter().map(move |s| (target, s.name.as_str()));
    let pairs = (0..plan.targets.len()).flat_map(steps);
    let all = pairs.flat_map(|(t, s)| (1..=plan.repeats).map(move |repeat| (t, s, repeat)));
    let mut places = all.map(|(target, step, repeat)| Place {
        target,
        repeat,
        step,
    });
    places.find(|p| {
        let target = plan.targets.get(p.target).map_or("", |t| &t.name);
        let repeat = p.repeat;
        named == format!("{}_r{repeat}_{}", file_name(target), file_name(p.step))
    })
}

/// The repeat to show: the one with the median rate among the valid ones, or among all if none is
/// valid.
fn typical(cells: &[CellView<'_>], target: usize) -> Option<u32> {
    let of = |valid: bool| {
        let mut found: Vec<_> = cells
            .iter()
            .filter(|c| c.target == target && (c.summary.valid || !valid))
            .map(|c| (c.summary.rate_mean, c.repeat))
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let middle = found.len().saturating_sub(1) / 2;
        found.get(middle).map(|c| c.1)
    };
    of(true).or_else(|| of(false))
}

/// A name as an anchor: letters, digits and dots of ASCII stay, the rest become dashes.
pub(crate) fn anchor(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        })
        .collect()
}

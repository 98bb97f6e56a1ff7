//! Prints plain lines on standard error, for pipes and logs: one line every five seconds.

use lab_report::record::{Cell, Manifest, Plan, RunSummary, StepPlan, StepSummary};
use stdx::units::{count, seconds};

use super::note;
use super::text::{eta, plan_text, second_line, step_line};
use crate::run::{Progress, Second};

/// Seconds between two lines of a step.
const EVERY: f64 = 5.0;

/// Displays a run as plain lines.
#[derive(Debug, Default)]
pub struct Lines {
    prefix: String,
    seconds_max: f64,
    last: f64,
    warned: Vec<String>,
}

impl Progress for Lines {
    fn begin(&mut self, manifest: &Manifest) {
        note(&plan_text(&manifest.plan));
    }

    fn skipped(&mut self, plan: &Plan, cell: Cell) {
        note(&format!("{}: done before", cell_name(plan, cell)));
    }

    fn cell(&mut self, plan: &Plan, cell: Cell, index: usize) {
        note(&format!(
            "[{}/{}] {}",
            index + 1,
            plan.cells.len(),
            cell_name(plan, cell)
        ));
    }

    fn step(&mut self, plan: &Plan, cell: Cell, step: &StepPlan) {
        self.prefix = format!("{} {}", cell_name(plan, cell), step.name);
        self.seconds_max = step.seconds_max;
        self.last = 0.0;
        note(&format!("{}: {}", self.prefix, step.about));
    }

    fn second(&mut self, second: &Second) {
        if second.t - self.last < EVERY {
            return;
        }
        self.last = second.t;
        let of = if second.of > 0 {
            format!(" of {}", count(second.of as f64))
        } else {
            String::new()
        };
        note(&format!(
            "{} {:>5}  {}{of}  {}  eta {}",
            self.prefix,
            seconds(second.t),
            count(second.done as f64),
            second_line(second),
            seconds(eta(second, self.seconds_max))
        ));
    }

    fn verifying(&mut self) {
        note(&format!("{}: checking the data", self.prefix));
    }

    fn step_end(&mut self, plan: &Plan, summary: &StepSummary) {
        note(&step_line(plan, summary));
        for warning in &summary.warnings {
            note(&format!("  warning: {warning}"));
        }
    }

    fn warning(&mut self, text: &str) {
        if !self.warned.iter().any(|w| w == text) {
            self.warned.push(text.to_owned());
            note(&format!("warning: {text}"));
        }
    }

    fn end(&mut self, summary: &RunSummary) {
        if !summary.valid {
            note("the run has invalid results");
        }
    }
}

/// Display name of a cell.
pub(super) fn cell_name(plan: &Plan, cell: Cell) -> String {
    let name = plan
        .targets
        .get(cell.target)
        .map_or("?", |t| t.name.as_str());
    if plan.repeats == 1 {
        name.to_owned()
    } else {
        format!("{name} r{}", cell.repeat)
    }
}

//! Bars on a terminal: one for the step, one for the run.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lab_report::record::{Cell, Manifest, Plan, RunSummary, StepPlan, StepSummary};
use stdx::units::seconds;

use super::lines::cell_name;
use super::text::{eta, plan_text, second_line, step_line};
use crate::run::{Progress, Second};

/// The resolution of a step's bar.
const PARTS: u64 = 1000;

/// Bars on a terminal.
pub struct Bars {
    all: MultiProgress,
    step: ProgressBar,
    run: ProgressBar,
    name: String,
    seconds_max: f64,
    sparks: Vec<f64>,
    warned: Vec<String>,
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("##-")
}

impl Bars {
    /// Bars for a run that is about to start.
    #[must_use]
    pub fn new() -> Bars {
        let all = MultiProgress::new();
        let run = all.add(ProgressBar::new(0));
        run.set_style(style(
            " {prefix}  step {pos}/{len}  elapsed {elapsed}  {msg}",
        ));
        let step = all.add(ProgressBar::new(PARTS));
        step.set_style(style(" [{bar:32}] {percent:>3} %  {msg}"));
        Bars {
            all,
            step,
            run,
            name: String::new(),
            seconds_max: 0.0,
            sparks: Vec::new(),
            warned: Vec::new(),
        }
    }

    fn print(&self, text: &str) {
        // If the terminal is closed, printing fails, but the run continues.
        let _ = self.all.println(text);
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        // Clear the bars, so that the next output, perhaps an error, starts on an empty line.
        self.step.finish_and_clear();
        self.run.finish_and_clear();
    }
}

impl Default for Bars {
    fn default() -> Bars {
        Bars::new()
    }
}

impl Progress for Bars {
    fn begin(&mut self, manifest: &Manifest) {
        let plan = &manifest.plan;
        self.print(&plan_text(plan));
        self.run
            .set_length((plan.cells.len() * plan.steps.len()) as u64);
        self.run.set_prefix(plan.experiment.clone());
    }

    fn skipped(&mut self, plan: &Plan, cell: Cell) {
        self.print(&format!("{}: done before", cell_name(plan, cell)));
        self.run.inc(plan.steps.len() as u64);
    }

    fn cell(&mut self, plan: &Plan, cell: Cell, _index: usize) {
        self.name = cell_name(plan, cell);
    }

    fn step(&mut self, _plan: &Plan, _cell: Cell, step: &StepPlan) {
        self.seconds_max = step.seconds_max;
        self.sparks.clear();
        self.step.set_position(0);
        self.step.set_message("");
        self.run.set_message(format!("{} {}", self.name, step.name));
        self.run.tick();
    }

    fn second(&mut self, second: &Second) {
        let share = match second.of {
            0 => second.t / self.seconds_max.max(1e-9),
            of => second.done as f64 / of as f64,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to PARTS"
        )]
        let position = (share.clamp(0.0, 1.0) * PARTS as f64) as u64;
        self.step.set_position(position);
        if !second.settling {
            self.sparks.push(second.rate);
        }
        let left = seconds(eta(second, self.seconds_max));
        let spark = spark(&self.sparks);
        self.step
            .set_message(format!("eta {left}\n {}\n {spark}", second_line(second)));
        self.run.tick();
    }

    fn verifying(&mut self) {
        self.step.set_message("checking the data");
    }

    fn step_end(&mut self, plan: &Plan, summary: &StepSummary) {
        self.run.inc(1);
        self.print(&step_line(plan, summary));
        for warning in &summary.warnings {
            self.print(&format!("  warning: {warning}"));
        }
    }

    fn warning(&mut self, text: &str) {
        if !self.warned.iter().any(|w| w == text) {
            self.warned.push(text.to_owned());
            self.print(&format!("warning: {text}"));
        }
    }

    fn end(&mut self, summary: &RunSummary) {
        self.step.finish_and_clear();
        self.run.finish_and_clear();
        if !summary.valid {
            self.print("the run has invalid results");
        }
    }
}

/// The recent rates as a line of bars of eight heights.
fn spark(rates: &[f64]) -> String {
    let recent = rates.iter().rev().take(60).rev();
    let top = recent.clone().copied().fold(0.0, f64::max);
    let levels = "\u{2581}\u{2582}\u{2583}\u{2584}\u{2585}\u{2586}\u{2587}\u{2588}";
    recent
        .map(|rate| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 to 7"
            )]
            let level = (rate / top.max(1e-9) * 7.0).round() as usize;
            levels.chars().nth(level).unwrap_or(' ')
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spark_line_has_a_height_for_every_rate() {
        let line = spark(&[0.0, 50.0, 100.0]);
        assert_eq!(line.chars().count(), 3);
        assert!(line.ends_with('\u{2588}') && line.starts_with('\u{2581}'));
        assert_eq!(spark(&[]), "");
    }
}

//! What was published, beside what was measured: tables in the columns of the articles, the numbers
//! of the articles themselves, and whether their shape is reproduced.
//!
//! Numbers of other machines and years are never compared in size: a shape is a ratio of two
//! numbers of one run.

mod answer;
mod classic;
mod compression;
mod fill_factor;
mod insert_threads;
mod linkbench;
mod many_tables;
mod oltp;
mod programs;
mod redo_log;
mod shape;
mod tpcc;

pub use answer::answers;
pub use shape::{Reproduced, Shape};

use serde::{Deserialize, Serialize};

use crate::record::{RunRecord, TargetSpec, TargetStepSummary};

/// A value of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number; `None`: not measured.
    Number(Option<f64>),
    /// A text.
    Text(String),
}

/// A line of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The target, or the name of a published result.
    pub name: String,
    /// One value for each column.
    pub values: Vec<Value>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// What it shows.
    pub caption: String,
    /// The columns after the name.
    pub columns: Vec<String>,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line of a plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// The target, `None` for what was published.
    pub target: Option<String>,
    /// Points in the order of x.
    pub points: Vec<(f64, f64)>,
}

/// A plot on logarithmic axes, or bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Plot {
    /// Lines, both axes logarithmic.
    Lines {
        /// What it shows.
        title: String,
        /// The unit of x.
        x: String,
        /// The unit of y.
        y: String,
        /// The lines.
        curves: Vec<Curve>,
    },
    /// Points with names.
    Scatter {
        /// What it shows.
        title: String,
        /// The unit of x.
        x: String,
        /// The unit of y.
        y: String,
        /// Name, x and y.
        points: Vec<(String, f64, f64)>,
    },
    /// A bar for each name and target.
    Bars {
        /// What it shows, with its unit.
        title: String,
        /// Target, what it is of, and the value.
        bars: Vec<(String, String, Option<f64>)>,
    },
}

/// The names of the targets of a run.
fn targets(run: &RunRecord) -> Vec<&str> {
    let all = run.manifest.plan.targets.iter();
    all.map(|t| t.name.as_str()).collect()
}

/// The shapes of all targets for which `of` returns one.
fn each(run: &RunRecord, of: impl Fn(&TargetSpec) -> Option<Shape>) -> Vec<Shape> {
    run.manifest.plan.targets.iter().filter_map(of).collect()
}

/// Why a target has no numbers for a step; empty if it has.
fn why_not(run: &RunRecord, target: &str, step: &str) -> String {
    match result(run, target, step) {
        Some(r) => match &r.unsupported {
            Some(why) => why.clone(),
            None if r.valid => String::new(),
            None => "not valid".to_owned(),
        },
        None => "not run".to_owned(),
    }
}

/// The published and measured results of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// The source of the published numbers.
    pub source: String,
    /// The measured numbers, in the columns of the article.
    pub measured: Vec<Grid>,
    /// The published numbers.
    pub published: Grid,
    /// Plots of the measured numbers.
    pub plots: Vec<Plot>,
    /// The shapes.
    pub shapes: Vec<Shape>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// The published results to compare a run with; `None` for experiments without an article.
#[must_use]
pub fn beside(run: &RunRecord) -> Option<Beside> {
    let subject = Subject::of(run)?;
    let mut beside = subject.beside?(run);
    if run.manifest.plan.held() {
        beside.shapes.clear();
        beside.notes.push(
            "Clients were held to a rate (--rate), which says nothing of what they could do: no \
             published shape is looked for."
                .to_owned(),
        );
    }
    Some(beside)
}

/// What reports say about an experiment beyond its numbers.
struct Subject {
    name: &'static str,
    /// The published numbers beside a run; `None` where no article is about it.
    beside: Option<fn(&RunRecord) -> Beside>,
    /// The parts of the sentence with which a target answers its question.
    answer: fn(&RunRecord) -> Vec<answer::Part>,
}

/// Every experiment.
static SUBJECTS: [Subject; 12] = [
    subject("iibench-classic", Some(classic::beside), answer::classic),
    subject("iibench-steps", None, answer::steps),
    subject("iibench-reads", None, answer::reads),
    subject("redo-log", Some(redo_log::beside), answer::redo_log),
    subject(
        "insert-vs-threads",
        Some(insert_threads::beside),
        answer::insert_threads,
    ),
    subject("many-tables", Some(many_tables::beside), answer::tables),
    subject("tpcc", Some(tpcc::beside), answer::caps),
    subject("linkbench", Some(linkbench::beside), answer::linkbench),
    subject("oltp-read-only", Some(oltp::beside), answer::clients),
    subject("ycsb", None, answer::ycsb),
    subject(
        "fill-factor",
        Some(fill_factor::beside),
        answer::fill_factor,
    ),
    subject("compression", Some(compression::beside), answer::codecs),
];

const fn subject(
    name: &'static str,
    beside: Option<fn(&RunRecord) -> Beside>,
    answer: fn(&RunRecord) -> Vec<answer::Part>,
) -> Subject {
    Subject {
        name,
        beside,
        answer,
    }
}

impl Subject {
    /// The subject of a run; `None` for an experiment of another version.
    fn of(run: &RunRecord) -> Option<&'static Subject> {
        let name = run.manifest.plan.experiment.as_str();
        SUBJECTS.iter().find(|subject| subject.name == name)
    }
}

/// The result of a target in a step.
fn result<'a>(run: &'a RunRecord, target: &str, step: &str) -> Option<&'a TargetStepSummary> {
    let mut all = run.summary.results.iter();
    all.find(|r| r.target == target && r.step == step)
}

/// A metric, or an experiment's own number, of a target in a valid step.
fn figure(run: &RunRecord, target: &str, step: &str, name: &str) -> Option<f64> {
    let result = result(run, target, step).filter(|r| r.valid)?;
    let metric = result.metrics.get(name).copied().flatten();
    metric.or_else(|| result.extra.get(name).copied())
}

fn ratio(over: Option<f64>, under: Option<f64>) -> Option<f64> {
    let under = under.filter(|u| *u > 0.0)?;
    Some(over? / under)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::experiment::Known;

    #[test]
    fn every_known_experiment_is_a_subject() {
        let known: Vec<&str> = Known::all().map(|known| known.name).collect();
        let subjects = SUBJECTS.each_ref().map(|subject| subject.name);
        assert_eq!(known, subjects);
    }
}

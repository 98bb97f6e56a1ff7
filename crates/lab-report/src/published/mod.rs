//! What was published, beside what was measured: tables in the columns of the articles, the numbers
//! of the articles themselves, and whether their shape is reproduced.
//!
//! Numbers of other machines and years are never compared in size: a shape is a ratio of two
//! numbers of one target in one run.

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
mod tpcc;

pub use answer::answers;

use kv::Writes;
use serde::{Deserialize, Serialize};

use crate::analysis;
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

/// Whether a published shape was reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reproduced {
    /// The ratio is on the published side of 1, by more than a tenth.
    Yes,
    /// The ratio is not.
    No,
    /// A number is missing.
    NotMeasured,
    /// The shape depends on caps that were not in force for the target.
    NotJudged,
    /// The repeats differ by more than the expected effect.
    TooNoisy,
}

impl Reproduced {
    /// The verdict in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reproduced::Yes => "reproduced",
            Reproduced::No => "not reproduced",
            Reproduced::NotMeasured => "not measured",
            Reproduced::NotJudged => "not judged",
            Reproduced::TooNoisy => "too noisy to say",
        }
    }
}

/// A published shape, and its counterpart for a target of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// The target.
    pub target: String,
    /// The published finding, in a sentence.
    pub claim: String,
    /// The published ratio.
    pub published: f64,
    /// The measured ratio.
    pub measured: Option<f64>,
    /// Its 95 % interval, if several repeats decide the verdict.
    #[serde(default)]
    pub between: Option<[f64; 2]>,
    /// The verdict.
    pub verdict: Reproduced,
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

/// Minimum distance of a ratio from 1 for a shape.
const CLEAR: f64 = 0.1;

/// Maximum fraction of its rate that an engine keeps if it falls off a cliff.
const CLIFF: f64 = 0.3;

/// Minimum fraction of its rate that an engine keeps if it stays flat: far from a cliff, with room
/// for variance.
const FLAT: f64 = 0.5;

/// Whether the fraction of the rate that an engine keeps beyond memory is as expected of its kind:
/// an engine that writes pages falls off a cliff, one that writes changes stays flat.
fn holds(writes: Writes, kept: f64) -> bool {
    match writes {
        Writes::Pages => kept <= CLIFF,
        Writes::Changes => FLAT <= kept,
    }
}

impl Shape {
    fn new(target: &str, claim: &str, published: f64, measured: Option<f64>) -> Shape {
        let clear = |ratio: f64| {
            if published < 1.0 {
                ratio <= 1.0 - CLEAR
            } else {
                ratio >= 1.0 + CLEAR
            }
        };
        Shape {
            target: target.to_owned(),
            claim: claim.to_owned(),
            published,
            measured,
            between: None,
            verdict: match measured {
                Some(ratio) if clear(ratio) => Reproduced::Yes,
                Some(_) => Reproduced::No,
                None => Reproduced::NotMeasured,
            },
        }
    }

    /// A shape with one ratio per repeat: the median counts, and `holds` must be true for both ends
    /// of its interval.
    fn repeated(
        target: &str,
        claim: &str,
        published: f64,
        ratios: &[f64],
        holds: impl Fn(f64) -> bool,
    ) -> Shape {
        let between = analysis::mean_between(ratios);
        let measured = between.and_then(|_| analysis::median(ratios));
        Shape {
            between,
            verdict: match between.map(|ends| ends.map(&holds)) {
                Some([true, true]) => Reproduced::Yes,
                Some([false, false]) => Reproduced::No,
                Some(_) => Reproduced::TooNoisy,
                None => Reproduced::NotMeasured,
            },
            ..Shape::new(target, claim, published, measured)
        }
    }

    /// Replace the verdict by `holds` of the ratio, for shapes with a threshold other than 1.
    fn judged(self, holds: impl Fn(f64) -> bool) -> Shape {
        Shape {
            verdict: match self.measured {
                Some(ratio) if holds(ratio) => Reproduced::Yes,
                Some(_) => Reproduced::No,
                None => Reproduced::NotMeasured,
            },
            ..self
        }
    }

    /// Mark a shape as one that cannot be judged, whatever its ratio.
    fn unjudged(self) -> Shape {
        Shape {
            verdict: Reproduced::NotJudged,
            ..self
        }
    }

    /// The measured ratio, with its interval if it has one.
    #[must_use]
    pub fn measured_text(&self) -> String {
        let measured = crate::format::maybe(self.measured);
        match self
            .between
            .map(|ends| ends.map(|end| crate::format::maybe(Some(end))))
        {
            Some([low, high]) => format!("{measured} [{low} to {high}]"),
            None => measured,
        }
    }

    /// The shape in a line for the terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let measured = self.measured_text();
        format!(
            "{}: {}: {}, {measured} (published {})",
            self.target,
            self.claim,
            self.verdict.name(),
            crate::format::maybe(Some(self.published))
        )
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
static SUBJECTS: [Subject; 11] = [
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

    #[test]
    fn a_shape_of_repeats_holds_at_both_ends_of_its_interval() {
        let of = |ratios: &[f64]| Shape::repeated("t", "c", 0.9, ratios, |share| share < 0.98);
        let shape = of(&[0.95, 0.94, 0.96]);
        let [low, high] = shape.between.unwrap();
        assert!(low < 0.94 && 0.96 < high && high < 0.98, "{low} {high}");
        assert_eq!(
            (shape.measured, shape.verdict),
            (Some(0.95), Reproduced::Yes)
        );
        assert!(
            shape.text().contains("reproduced, 0.950 [0.9"),
            "{}",
            shape.text()
        );
        assert_eq!(of(&[1.01, 1.02, 1.03]).verdict, Reproduced::No);
        assert_eq!(of(&[0.9, 0.95, 1.1]).verdict, Reproduced::TooNoisy);
        let few = of(&[0.5, 0.5]);
        assert_eq!((few.measured, few.verdict), (None, Reproduced::NotMeasured));
    }

    #[test]
    fn a_shape_needs_a_ratio_clearly_on_the_published_side() {
        let verdict = |published, measured| Shape::new("t", "c", published, measured).verdict;
        assert_eq!(verdict(0.5, Some(0.8)), Reproduced::Yes);
        assert_eq!(verdict(0.5, Some(0.95)), Reproduced::No);
        assert_eq!(verdict(0.5, Some(1.5)), Reproduced::No);
        assert_eq!(verdict(3.0, Some(1.2)), Reproduced::Yes);
        assert_eq!(verdict(3.0, Some(1.05)), Reproduced::No);
        assert_eq!(verdict(3.0, None), Reproduced::NotMeasured);
    }
}

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
    /// The target, or the name of what was published.
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

/// Whether a shape came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reproduced {
    /// The ratio is on the published side of 1, by more than a tenth.
    Yes,
    /// It is not.
    No,
    /// A figure is missing.
    NotMeasured,
    /// It depends on caps that did not hold for the target.
    NotJudged,
    /// Repeats differ by more than what is looked for.
    TooNoisy,
}

impl Reproduced {
    /// In words.
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

/// A shape that was published, looked for in a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// The target.
    pub target: String,
    /// What was found then, in a sentence.
    pub claim: String,
    /// The ratio then.
    pub published: f64,
    /// The ratio now.
    pub measured: Option<f64>,
    /// The ends of its 95 % interval, where it is judged by repeats.
    #[serde(default)]
    pub between: Option<[f64; 2]>,
    /// Whether it came out.
    pub verdict: Reproduced,
}

/// The names of the targets of a run.
fn targets(run: &RunRecord) -> Vec<&str> {
    let all = run.manifest.plan.targets.iter();
    all.map(|t| t.name.as_str()).collect()
}

/// The shapes of those targets that have one.
fn each(run: &RunRecord, of: impl Fn(&TargetSpec) -> Option<Shape>) -> Vec<Shape> {
    run.manifest.plan.targets.iter().filter_map(of).collect()
}

/// Why a target has no numbers of a step; empty where it has them.
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

/// How far from 1 a ratio must be to count as a shape.
const CLEAR: f64 = 0.1;

/// At most so much is left of a rate that fell off a cliff, or collapsed.
const CLIFF: f64 = 0.3;

/// At least so much is left of one that stayed: far from a cliff, with room for variance.
const FLAT: f64 = 0.5;

/// Whether what is left of a rate as data outgrow memory is what such an engine is known for: pages
/// fall off a cliff, changes stay.
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

    /// A shape of which each repeat gives a ratio: their median counts, and what holds must hold
    /// for both ends of its interval.
    fn repeated(
        target: &str,
        claim: &str,
        published: f64,
        ratios: &[f64],
        holds: impl Fn(f64) -> bool,
    ) -> Shape {
        let between = analysis::median_between(ratios);
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

    /// A shape that is judged by more than the side of 1 its ratio is on.
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

    /// A shape that cannot be judged, whatever its ratio is.
    fn unjudged(self) -> Shape {
        Shape {
            verdict: Reproduced::NotJudged,
            ..self
        }
    }

    /// The ratio now, with its interval if it has one.
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

/// Everything of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// The source of the published numbers.
    pub source: String,
    /// What was measured, in the columns of the article.
    pub measured: Vec<Grid>,
    /// What was published.
    pub published: Grid,
    /// Plots of what was measured.
    pub plots: Vec<Plot>,
    /// The shapes.
    pub shapes: Vec<Shape>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// What was published beside a run; `None` for experiments that no article is about.
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

/// A metric, or a number of the experiment, of a target in a step that is valid.
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
        let shape = of(&[0.95, 0.93, 0.97]);
        assert_eq!(
            (shape.measured, shape.between),
            (Some(0.95), Some([0.93, 0.97]))
        );
        assert_eq!(shape.verdict, Reproduced::Yes);
        assert!(
            shape.text().contains("reproduced, 0.950 [0.930 to 0.970]"),
            "{}",
            shape.text()
        );
        assert_eq!(of(&[0.99, 1.0, 1.01]).verdict, Reproduced::No);
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

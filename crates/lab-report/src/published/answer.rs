//! The answer of a run to the question of its experiment: one sentence per target with measured
//! numbers. A part of a sentence is left out if its number is invalid.

use Unit::{Bytes, Number, Percent};

use super::compression::load;
use super::{Subject, figure, programs};
use crate::format;
use crate::record::RunRecord;
use crate::record::experiment::compression::{COMPRESSORS, CONSTANT};
use crate::record::experiment::many_tables::SEEKS;
use crate::record::ycsb::Core;

/// How a number reads.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Number,
    Bytes,
    Percent,
}

/// A part of a sentence: a number of a step, and the words around it; `#` stands for the number.
#[derive(Clone, Debug)]
pub(super) struct Part {
    step: String,
    figure: &'static str,
    unit: Unit,
    words: String,
}

fn part(step: &str, figure: &'static str, unit: Unit, words: &str) -> Part {
    Part {
        step: step.to_owned(),
        figure,
        unit,
        words: words.to_owned(),
    }
}

/// A rate of a step.
fn rate(step: &str, words: &str) -> Part {
    part(step, RATE, Number, words)
}

impl Part {
    fn text(&self, run: &RunRecord, target: &str) -> Option<String> {
        let of = |name| figure(run, target, &self.step, name);
        // PostgreSQL files have no map, but the server reports the size of the table.
        let reported = || of("table_bytes").filter(|_| self.figure == FILES);
        let value = of(self.figure).or_else(reported)?;
        let value = match self.unit {
            Number => format::plain(Some(value)),
            Bytes => format::bytes(value),
            Percent => format!("{:.0} %", value * 100.0),
        };
        Some(self.words.replace('#', &value))
    }
}

/// The name of each target that has valid numbers, with its sentence.
#[must_use]
pub fn answers(run: &RunRecord) -> Vec<(String, String)> {
    let parts = Subject::of(run).map_or(Vec::new(), |subject| (subject.answer)(run));
    let of = |target: &str| {
        let parts = parts.iter();
        let texts: Vec<String> = parts.filter_map(|p| p.text(run, target)).collect();
        (!texts.is_empty()).then(|| (target.to_owned(), format!("{}.", texts.join(", "))))
    };
    // The load generator alone answers nothing.
    let planned = run.manifest.plan.targets.iter();
    let measured = planned.filter(|t| !t.is_generator());
    measured.filter_map(|t| of(&t.name)).collect()
}

/// A part as the tables below declare it: step, metric, how it reads, words.
type Clause = (&'static str, &'static str, Unit, &'static str);

const RATE: &str = "rate_mean";
const WRITTEN: &str = "device_write_bytes_per_row";

const CLASSIC: [Clause; 4] = [
    ("load", RATE, Number, "# rows/s"),
    (
        "load",
        "flatness",
        Percent,
        "the last tenth at # of the first",
    ),
    ("load", WRITTEN, Bytes, "# written for a row"),
    ("load", "file_bytes", Bytes, "files of # in the end"),
];

const STEPS: [Clause; 6] = [
    ("l.i0", RATE, Number, "# rows/s without indexes"),
    (
        "l.i1",
        RATE,
        Number,
        "# with three indexes and a delete for each insert",
    ),
    (
        "qr100",
        RATE,
        Number,
        "# range queries/s during 100 inserts/s",
    ),
    ("qr1000", RATE, Number, "# during 1000 inserts/s"),
    (
        "qp100",
        RATE,
        Number,
        "# rows/s read by key during 100 inserts/s",
    ),
    ("qp1000", RATE, Number, "# during 1000 inserts/s"),
];

const READS: [Clause; 4] = [
    ("load", RATE, Number, "# rows/s loaded"),
    ("scan", RATE, Number, "# scans of a thousand entries/s"),
    ("point", RATE, Number, "# rows read by key/s"),
    ("range", RATE, Number, "# ranges of 10 entries/s"),
];

const REDO_LOG: [Clause; 9] = [
    ("sync", RATE, Number, "# commits/s with a sync for each"),
    ("sync", WRITTEN, Bytes, "# written for one"),
    (
        "sync-16",
        RATE,
        Number,
        "# with 16 clients that may share syncs",
    ),
    ("interval", RATE, Number, "# with syncs in the background"),
    ("none", RATE, Number, "# without syncs"),
    (
        "kill-sync",
        LOST,
        Number,
        "# acknowledged rows lost after a kill at durability sync",
    ),
    (
        "kill-interval",
        LOST,
        Number,
        "# lost after a kill at interval",
    ),
    (
        "power-sync",
        LOST,
        Number,
        "# lost after a power cut at sync",
    ),
    ("power-interval", LOST, Number, "# at interval"),
];

const LOST: &str = "lost_after_kill";

const INSERT_THREADS: [Clause; 3] = [
    ("memory", RATE, Number, "# rows/s by ten clients in memory"),
    ("beyond", RATE, Number, "# beyond it"),
    ("beyond", WRITTEN, Bytes, "# written for a row there"),
];

const LINKBENCH: [Clause; 4] = [
    ("requests", RATE, Number, "# requests/s"),
    ("requests", "latency_p99_ms", Number, "p99 # ms"),
    (
        "requests",
        "device_read_bytes_per_row",
        Bytes,
        "# read for one",
    ),
    ("requests", WRITTEN, Bytes, "# written"),
];

const FILL_FACTOR: [Clause; 7] = [
    ("rebuild", FILES, Bytes, "files of # when rebuilt"),
    ("round3", FILES, Bytes, "# after three rounds of changes"),
    ("round3", "map_leaf_fill", Percent, "pages # full then"),
    ("round3-75", FILES, Bytes, "# if made 75 % full"),
    ("round3-100", FILES, Bytes, "# if made 100 % full"),
    (
        "round1-75",
        "splits",
        Number,
        "# splits in the first round at 75 %",
    ),
    ("round1-100", "splits", Number, "# at 100 %"),
];

const FILES: &str = "map_file_bytes";

fn tabulated(all: &[Clause]) -> Vec<Part> {
    let parts = all
        .iter()
        .map(|(step, name, unit, words)| part(step, name, *unit, words));
    parts.collect()
}

pub(super) fn classic(_: &RunRecord) -> Vec<Part> {
    tabulated(&CLASSIC)
}

pub(super) fn steps(_: &RunRecord) -> Vec<Part> {
    tabulated(&STEPS)
}

pub(super) fn reads(_: &RunRecord) -> Vec<Part> {
    tabulated(&READS)
}

pub(super) fn redo_log(_: &RunRecord) -> Vec<Part> {
    tabulated(&REDO_LOG)
}

pub(super) fn insert_threads(_: &RunRecord) -> Vec<Part> {
    tabulated(&INSERT_THREADS)
}

pub(super) fn linkbench(_: &RunRecord) -> Vec<Part> {
    tabulated(&LINKBENCH)
}

pub(super) fn fill_factor(_: &RunRecord) -> Vec<Part> {
    tabulated(&FILL_FACTOR)
}

pub(super) fn clients(run: &RunRecord) -> Vec<Part> {
    ends(run, "clients-", |step| {
        let by = match programs::number(step) {
            Some(1.0) => "one client".to_owned(),
            number => format!("{} clients", format::plain(number)),
        };
        rate(step, &format!("# transactions/s by {by}"))
    })
}

pub(super) fn tables(run: &RunRecord) -> Vec<Part> {
    let count = |step: &str| match programs::number(step) {
        Some(1.0) => "one table".to_owned(),
        number => format!("{} tables", format::plain(number)),
    };
    let mut parts = ends(run, "insert-", |step| {
        rate(step, &format!("# rows/s into {}", count(step)))
    });
    parts.extend(ends(run, "scan-", |step| {
        let words = format!("# scanned from {}", count(step));
        part(step, "entries_per_second", Number, &words)
    }));
    parts.extend(ends(run, "disk-", |step| {
        let words = format!("# from {} within {SEEKS} reads a second", count(step));
        part(step, "entries_per_second", Number, &words)
    }));
    parts
}

pub(super) fn caps(run: &RunRecord) -> Vec<Part> {
    let mut parts = vec![rate("no-cap", "# transactions/s without a cap on I/O")];
    parts.extend(programs::steps(run, "iops-").last().map(|step| {
        let cap = format::plain(programs::number(step));
        rate(step, &format!("# with {cap} reads and writes a second"))
    }));
    parts.push(part(
        "no-cap",
        "latency_p99_ms",
        Number,
        "p99 # ms without a cap",
    ));
    parts
}

/// The first and the last step whose name starts with `prefix`.
fn ends(run: &RunRecord, prefix: &str, of: impl Fn(&str) -> Part) -> Vec<Part> {
    let steps = programs::steps(run, prefix);
    let (first, last) = (steps.first(), steps.last().filter(|_| 1 < steps.len()));
    first.into_iter().chain(last).map(|step| of(step)).collect()
}

/// The rate of each core workload of YCSB.
pub(super) fn ycsb(_: &RunRecord) -> Vec<Part> {
    let rates = Core::ALL.into_iter().map(|core| {
        let name = core.step().trim_start_matches("workload-").to_uppercase();
        rate(core.step(), &format!("# requests/s in workload {name}"))
    });
    rates.collect()
}

/// Sizes and rates with each codec, of the least compressible rows.
pub(super) fn codecs(_: &RunRecord) -> Vec<Part> {
    let Some(constant) = CONSTANT.first() else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    for codec in COMPRESSORS {
        let step = load(*constant, codec);
        let words = match codec {
            "none" => "files of # without a codec".to_owned(),
            _ => format!("# with {codec}"),
        };
        parts.push(part(&step, "file_bytes", Bytes, &words));
        parts.push(rate(&step, "loaded at # rows/s"));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::summarize;
    use crate::fixture;
    use crate::record::{StepPlan, StepSummary};

    #[test]
    fn each_target_answers_with_what_it_has() {
        let step = |target: &str, step: &str, rate: f64| StepSummary {
            step: step.to_owned(),
            extra: [("lost_after_kill".to_owned(), 3.0)].into(),
            ..fixture::step(target, 1, rate)
        };
        let steps = vec![
            step("lmdb", "sync", 1500.0),
            step("betree", "sync", 3000.0),
            step("betree", "kill-interval", 9.0),
        ];
        let mut run = fixture::run("run", &["lmdb", "betree", "null"], 1, steps.clone());
        run.manifest.plan.experiment = "redo-log".to_owned();
        let first = run.manifest.plan.steps[0].clone();
        let planned = |name: &str| StepPlan {
            name: name.to_owned(),
            ..first.clone()
        };
        run.manifest.plan.steps = ["sync", "kill-interval"].map(planned).to_vec();
        let all: Vec<_> = steps.into_iter().map(|s| (s, Vec::new())).collect();
        run.summary = summarize(&run.manifest, &all, true);
        let answers = answers(&run);
        let names: Vec<&str> = answers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["lmdb", "betree"]);
        assert!(
            answers[0]
                .1
                .starts_with("1,500 commits/s with a sync for each")
        );
        assert!(!answers[0].1.contains("lost"), "{}", answers[0].1);
        let lost = "3 lost after a kill at interval.";
        assert!(answers[1].1.ends_with(lost), "{}", answers[1].1);
        assert!(!answers[1].1.contains('#'));
    }
}

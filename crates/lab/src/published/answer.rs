//! What a run answers to the question of its experiment: a sentence for each target, in figures
//! that were measured. What a target has no valid figure of is left out of its sentence.

use super::compression::load;
use super::{figure, programs, targets};
use crate::experiment::compression::{COMPRESSORS, CONSTANT};
use crate::record::RunRecord;
use crate::report;

/// How a figure reads.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Number,
    Bytes,
    Percent,
}

/// A part of a sentence: a figure of a step, and the words around it, `#` standing for the figure.
#[derive(Clone, Debug)]
struct Part {
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
    part(step, "rate_mean", Unit::Number, words)
}

impl Part {
    fn text(&self, run: &RunRecord, target: &str) -> Option<String> {
        let value = figure(run, target, &self.step, self.figure)?;
        let value = match self.unit {
            Unit::Number => report::plain(Some(value)),
            Unit::Bytes => report::bytes(value),
            Unit::Percent => format!("{:.0} %", value * 100.0),
        };
        Some(self.words.replace('#', &value))
    }
}

/// A sentence for each target that has something to say: its name and what it did.
#[must_use]
pub fn answers(run: &RunRecord) -> Vec<(String, String)> {
    let of = |target: &str| {
        let parts = parts(run).into_iter();
        let said: Vec<String> = parts.filter_map(|p| p.text(run, target)).collect();
        (!said.is_empty()).then(|| (target.to_owned(), format!("{}.", said.join(", "))))
    };
    targets(run).into_iter().filter_map(of).collect()
}

fn parts(run: &RunRecord) -> Vec<Part> {
    use Unit::{Bytes, Number, Percent};
    match run.manifest.plan.experiment.as_str() {
        "iibench-classic" => vec![
            rate("load", "# rows/s"),
            part(
                "load",
                "flatness",
                Percent,
                "the last tenth at # of the first",
            ),
            part(
                "load",
                "device_write_bytes_per_row",
                Bytes,
                "# written for a row",
            ),
            part("load", "file_bytes", Bytes, "files of # in the end"),
        ],
        "iibench-steps" => vec![
            rate("l.i0", "# rows/s without indexes"),
            rate("l.i1", "# with three, as many being deleted"),
            rate("qr100", "# range queries/s beside 100 inserts/s"),
            rate("qr1000", "# beside 1000"),
            rate("qp100", "# rows read by key/s beside 100"),
            rate("qp1000", "# beside 1000"),
        ],
        "iibench-reads" => vec![
            rate("load", "# rows/s loaded"),
            rate("scan", "# scans of a thousand entries/s"),
            rate("point", "# rows read by key/s"),
            rate("range", "# ranges of 10 entries/s"),
        ],
        "redo-log" => vec![
            rate("sync", "# commits/s with a sync in each"),
            part(
                "sync",
                "device_write_bytes_per_row",
                Bytes,
                "# written for one",
            ),
            rate(
                "sync-16",
                "# commits/s by 16 clients whose commits may share syncs",
            ),
            rate("interval", "# with syncs in the background"),
            rate("none", "# with none"),
            lost("kill-sync", "sync"),
            lost("kill-interval", "interval"),
        ],
        "insert-vs-threads" => vec![
            rate("memory", "# rows/s by ten clients in memory"),
            rate("beyond", "# beyond it"),
            part(
                "beyond",
                "device_write_bytes_per_row",
                Bytes,
                "# written for a row there",
            ),
        ],
        "many-tables" => ends(run, &["insert-", "scan-"], |kind, step, count| match kind {
            "scan-" => part(
                step,
                "entries_per_second",
                Number,
                &format!("# scanned from {count}"),
            ),
            _ => rate(step, &format!("# rows/s into {count}")),
        }),
        "tpcc" => {
            let mut parts = vec![rate("no-cap", "# transactions/s without a cap on I/O")];
            parts.extend(programs::steps(run, "iops-").last().map(|step| {
                let cap = report::plain(programs::number(step));
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
        "linkbench" => vec![
            rate("requests", "# requests/s"),
            part("requests", "latency_p99_ms", Number, "p99 # ms"),
            part(
                "requests",
                "device_read_bytes_per_row",
                Bytes,
                "# read for one",
            ),
            part("requests", "device_write_bytes_per_row", Bytes, "# written"),
        ],
        "oltp-read-only" => ends(run, &["clients-"], |_, step, _| {
            let clients = report::plain(programs::number(step));
            rate(step, &format!("# transactions/s by {clients} clients"))
        }),
        "fill-factor" => vec![
            part(
                "rebuild",
                "map_file_bytes",
                Bytes,
                "files of # when rebuilt",
            ),
            part(
                "round3",
                "map_file_bytes",
                Bytes,
                "# after three rounds of changes",
            ),
            part("round3", "map_leaf_fill", Percent, "pages # full then"),
            part("round3-75", "map_file_bytes", Bytes, "# if made 75 % full"),
            part(
                "round3-100",
                "map_file_bytes",
                Bytes,
                "# if made 100 % full",
            ),
            part(
                "round1-75",
                "splits",
                Number,
                "# splits in the first round at 75 %",
            ),
            part("round1-100", "splits", Number, "# at 100 %"),
        ],
        "compression" => codecs(),
        _ => Vec::new(),
    }
}

fn lost(step: &str, level: &str) -> Part {
    part(
        step,
        "lost_after_kill",
        Unit::Number,
        &format!("# acknowledged rows lost to a kill at {level}"),
    )
}

/// The first and the last of the steps with each of these names.
fn ends(
    run: &RunRecord,
    kinds: &[&'static str],
    of: impl Fn(&'static str, &str, String) -> Part,
) -> Vec<Part> {
    let mut parts = Vec::new();
    for kind in kinds {
        let steps = programs::steps(run, kind);
        let (first, last) = (steps.first(), steps.last().filter(|_| 1 < steps.len()));
        for step in first.into_iter().chain(last) {
            let count = match programs::number(step) {
                Some(1.0) => "one table".to_owned(),
                number => format!("{} tables", report::plain(number)),
            };
            parts.push(of(kind, step, count));
        }
    }
    parts
}

/// Sizes and rates with each codec, of the least compressible rows.
fn codecs() -> Vec<Part> {
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
        parts.push(part(&step, "file_bytes", Unit::Bytes, &words));
        parts.push(rate(&step, "loaded at # rows/s"));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{fixture, summarize};
    use crate::record::StepSummary;

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
        let mut run = fixture::run("run", &["lmdb", "betree", "null"], 1, Vec::new());
        run.manifest.plan.experiment = "redo-log".to_owned();
        let mut names = vec!["sync", "kill-interval"].into_iter();
        let first = run.manifest.plan.steps[0].clone();
        run.manifest.plan.steps = names
            .by_ref()
            .map(|name| crate::record::StepPlan {
                name: name.to_owned(),
                ..first.clone()
            })
            .collect();
        let all: Vec<_> = steps.into_iter().map(|s| (s, Vec::new())).collect();
        run.summary = summarize(&run.manifest, &all, true);
        let answers = answers(&run);
        let names: Vec<&str> = answers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["lmdb", "betree"]);
        assert!(
            answers[0]
                .1
                .starts_with("1,500 commits/s with a sync in each")
        );
        assert!(!answers[0].1.contains("lost"), "{}", answers[0].1);
        let lost = "3 acknowledged rows lost to a kill at interval.";
        assert!(answers[1].1.ends_with(lost), "{}", answers[1].1);
        assert!(!answers[1].1.contains('#'));
    }
}

//! The redo log articles of 2014: the cost of a sync in every commit, and the bytes written per
//! insert.

use super::shape::{Measured, Repeat};
use super::{
    Beside, Grid, Line, Plot, Shape, Value, figure, programs, ratio, targets, why_not, words,
};
use crate::analysis::median;
use crate::record::{RunRecord, StepSummary};

const SOURCE: &str = "Mark Callaghan's articles on redo logs, March 2014: 10 M rows, one client, \
                      one document an insert";

/// Name, bytes per document, MB/s written, GB written, seconds, bytes written per insert, inserts
/// per second, log bytes per insert; what the article does not give is NaN.
const PUBLISHED: [(&str, [f64; 7]); 6] = [
    (
        "InnoDB, sync",
        [146.0, 18.9, 54.3, 3071.0, 5690.0, 3257.0, 785.0],
    ),
    (
        "InnoDB, lazy",
        [146.0, 2.8, 5.8, 2251.0, 613.0, 4442.0, 785.0],
    ),
    (
        "TokuMX, sync",
        [125.0, 31.0, 86.8, 2794.0, 9104.0, 3579.0, 251.0],
    ),
    (
        "MongoDB 2.6 MMAPv1, sync",
        [492.0, 23.1, 312.0, 13_535.0, 32_712.0, 739.0, 8733.0],
    ),
    (
        "MongoDB 2.6 MMAPv1, lazy",
        [429.0, 40.5, 79.8, 1969.0, 8365.0, 5078.0, 2294.0],
    ),
    (
        "MongoDB 2.6 MMAPv1, no journal",
        [440.0, 34.1, 42.0, 1226.0, 4401.0, 8154.0, f64::NAN],
    ),
];

/// Steps that insert.
const INSERTS: [&str; 6] = ["sync", "group", "interval", "none", "sync-16", "group-16"];

/// Prefixes of the steps that end with a kill, and what is lost with it.
const KILLS: [(&str, &str); 2] = [("kill-", "process"), ("power-", "power")];

pub(super) fn beside(run: &RunRecord) -> Beside {
    let targets = targets(run);
    Beside {
        source: SOURCE.to_owned(),
        measured: vec![inserts(run, &targets), kills(run, &targets)],
        published: published(),
        plots: vec![
            bars(run, &targets, "rate_mean", "Inserts/s"),
            bars(
                run,
                &targets,
                "device_write_bytes_per_row",
                "Bytes written to the device for each insert",
            ),
        ],
        shapes: targets.iter().flat_map(|t| shapes(run, t)).collect(),
        notes: words(&[
            "sync: every commit is synced before it returns; group: so too, but commits of several \
             clients may share a sync; interval: the log is synced in intervals (lazy in the \
             articles); none: no sync.",
            "A kill of the process leaves the page cache whole: what is lost then was still in the \
             process. With the power the page cache is lost too; what a device holds in a cache of \
             its own is not part of it.",
            "Padding is log bytes by the bytes of the inserted keys and values: what a log that is \
             written in blocks adds when each commit must reach the disk.",
        ]),
    }
}

fn published() -> Grid {
    programs::published(
        "Published in 2014, on other machines: shapes only",
        &[
            "bytes/row",
            "MB/s written",
            "GB written",
            "secs",
            "B written/insert",
            "inserts/s",
            "log B/insert",
        ],
        &PUBLISHED,
    )
}

/// Bytes written per row of a step for a reason, or for all reasons except the log.
fn by_reason(run: &RunRecord, target: &str, step: &str, log: bool) -> Option<f64> {
    let summaries = run.steps.iter().filter_map(|s| s.summary.as_ref());
    let here = summaries.filter(|s| s.target == target && s.step == step && s.valid);
    let each: Vec<f64> = here.filter_map(|s| reasons(s, log)).collect();
    median(&each)
}

fn reasons(step: &StepSummary, log: bool) -> Option<f64> {
    if step.rows == 0 || step.written_by_reason.is_empty() {
        return None;
    }
    let reasons = step.written_by_reason.iter();
    let own = reasons.filter(|(name, _)| (name.as_str() == "log") == log);
    Some(own.map(|(_, bytes)| *bytes).sum::<u64>() as f64 / step.rows as f64)
}

fn inserts(run: &RunRecord, targets: &[&str]) -> Grid {
    let mut lines = Vec::new();
    for target in targets {
        for step in INSERTS {
            let of = |name: &str| figure(run, target, step, name);
            let rows = of("rows");
            let log = by_reason(run, target, step, true);
            let bytes = ratio(of("logical_bytes"), rows);
            let syncs = of("log_syncs").or_else(|| of("fsyncs"));
            let numbers = [
                of("rate_mean"),
                of("latency_p50_ms"),
                of("latency_p99_ms"),
                of("latency_max_ms"),
                ratio(of("file_bytes"), rows),
                log,
                by_reason(run, target, step, false),
                of("device_write_bytes_per_row"),
                ratio(syncs, rows),
                ratio(log, bytes),
            ];
            let mut values = vec![Value::Text(step.to_owned())];
            values.extend(numbers.map(Value::Number));
            values.push(Value::Text(why_not(run, target, step)));
            lines.push(Line {
                name: (*target).to_owned(),
                values,
            });
        }
    }
    Grid {
        caption: "Inserts, one row a commit; the number after a level is that of clients"
            .to_owned(),
        columns: words(&[
            "level",
            "inserts/s",
            "p50 ms",
            "p99 ms",
            "max ms",
            "bytes/row",
            "log B/insert",
            "data B/insert",
            "device B/insert",
            "syncs/insert",
            "log padding",
            "n/a because",
        ]),
        lines,
    }
}

fn kills(run: &RunRecord, targets: &[&str]) -> Grid {
    let all = |(prefix, what): (&'static str, &'static str)| {
        let steps = programs::steps(run, prefix).into_iter();
        steps.map(move |step| (what, step))
    };
    let ends: Vec<(&str, &str)> = KILLS.into_iter().flat_map(all).collect();
    let mut lines = Vec::new();
    for target in targets {
        for (what, step) in &ends {
            let of = |name: &str| figure(run, target, step, name);
            let opens = match of("opens_after_kill") {
                Some(yes) if yes > 0.0 => "yes",
                Some(_) => "no",
                None => "n/a",
            };
            let level = step.split_once('-').map_or("", |(_, level)| level);
            let mut values = [level, *what, opens]
                .map(|text| Value::Text(text.to_owned()))
                .to_vec();
            let numbers = [
                of("acknowledged"),
                of("lost_after_kill"),
                of("unacknowledged_found"),
                of("recovery_seconds"),
            ];
            values.extend(numbers.map(Value::Number));
            values.push(Value::Text(why_not(run, target, step)));
            lines.push(Line {
                name: (*target).to_owned(),
                values,
            });
        }
    }
    Grid {
        caption: "After kill -9 of the process, and after the power was cut".to_owned(),
        columns: words(&[
            "level",
            "lost with",
            "opens",
            "acknowledged",
            "lost",
            "there, not acknowledged",
            "recovery s",
            "n/a because",
        ]),
        lines,
    }
}

fn bars(run: &RunRecord, targets: &[&str], metric: &str, title: &str) -> Plot {
    // Targets beside each other at each level.
    let pairs = INSERTS
        .iter()
        .flat_map(|s| targets.iter().map(move |t| (*t, *s)));
    let bars = pairs.filter(|(t, s)| figure(run, t, s, "rows").is_some());
    Plot::Bars {
        title: title.to_owned(),
        bars: bars
            .map(|(t, s)| (t.to_owned(), s.to_owned(), figure(run, t, s, metric)))
            .collect(),
    }
}

fn shapes(run: &RunRecord, target: &str) -> Vec<Shape> {
    let of = |step: &str, name: &str| figure(run, target, step, name);
    let compared = |name: &str, over: &str, under: &str| {
        Measured::of(run, &[(target, over), (target, under)], |repeat| {
            ratio(
                repeat.figure(target, over, name),
                repeat.figure(target, under, name),
            )
        })
    };
    let padded = Measured::of(run, &[(target, "sync"), (target, "interval")], |repeat| {
        let written = repeat.figure(target, "sync", "device_write_bytes_per_row");
        ratio(written, records(repeat, target))
    });
    if of("sync", "rate_mean").is_none() && of("interval", "rate_mean").is_none() {
        return Vec::new();
    }
    vec![
        Shape::new(
            target,
            "a sync in every commit costs rate (inserts/s of sync by interval; InnoDB then)",
            3257.0 / 4442.0,
            &compared("rate_mean", "sync", "interval"),
        ),
        Shape::new(
            target,
            "a sync in every commit writes more (device bytes per insert, sync by interval; InnoDB \
             then)",
            5690.0 / 613.0,
            &compared("device_write_bytes_per_row", "sync", "interval"),
        ),
        Shape::new(
            target,
            "a sync for each insert writes several times what the log needs (device bytes per \
             insert by bytes of the log's records; InnoDB then)",
            5690.0 / 785.0,
            &padded,
        ),
        Shape::new(
            target,
            "without a log inserts are faster than with a lazy one (inserts/s of none by interval; \
             MongoDB then)",
            8154.0 / 5078.0,
            &compared("rate_mean", "none", "interval"),
        ),
    ]
}

/// Bytes of log records per insert where no commit waits for the disk: blocks are then full when
/// they are written.
fn records(repeat: &Repeat<'_>, target: &str) -> Option<f64> {
    reasons(repeat.summary(target, "interval")?, true)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::analysis::summarize;
    use crate::fixture;
    use crate::published::Reproduced;
    use crate::record::StepSummary;

    /// A thousand rows at each of three levels.
    fn run() -> RunRecord {
        let step = |name: &str, rate: f64, log: u64, written: u64| StepSummary {
            step: name.to_owned(),
            written_by_reason: BTreeMap::from([
                ("log".to_owned(), log),
                ("flush".to_owned(), 50_000),
            ]),
            device_write_bytes: Some(written),
            extra: BTreeMap::from([("log_syncs".to_owned(), 500.0)]),
            ..fixture::step("betree", 1, rate)
        };
        let steps = vec![
            step("sync", 700.0, 4_000_000, 5_000_000),
            step("interval", 7000.0, 300_000, 600_000),
            step("none", 7100.0, 300_000, 600_000),
        ];
        let steps = fixture::repeated(&steps);
        let mut run = fixture::run("run", &["betree"], 3, steps.clone());
        let plan = run.manifest.plan.steps[0].clone();
        run.manifest.plan.steps = ["sync", "interval", "none", "group"]
            .map(|name| {
                let mut step = plan.clone();
                name.clone_into(&mut step.name);
                step
            })
            .to_vec();
        let with_rates: Vec<_> = steps.into_iter().map(|s| (s, Vec::new())).collect();
        run.summary = summarize(&run.manifest, &with_rates, true);
        run
    }

    #[test]
    fn costs_are_for_each_insert_and_shapes_are_judged() {
        let beside = beside(&run());
        let inserts = &beside.measured[0];
        let column = |name: &str| inserts.columns.iter().position(|c| c == name).unwrap();
        let sync = &inserts.lines[0].values;
        let number = |name: &str| sync[column(name)].clone();
        assert_eq!(number("log B/insert"), Value::Number(Some(4000.0)));
        assert_eq!(number("data B/insert"), Value::Number(Some(50.0)));
        assert_eq!(number("device B/insert"), Value::Number(Some(5000.0)));
        assert_eq!(number("syncs/insert"), Value::Number(Some(0.5)));
        // 10 bytes of keys and values a row.
        assert_eq!(number("log padding"), Value::Number(Some(400.0)));
        let verdicts: Vec<Reproduced> = beside.shapes.iter().map(|s| s.verdict).collect();
        let (yes, no, more) = (Reproduced::Yes, Reproduced::No, Reproduced::Stronger);
        assert_eq!(verdicts, [more, yes, more, no]);
        assert_eq!(beside.shapes[2].measured, Some(5000.0 / 300.0));
        assert_eq!(beside.published.lines.len(), 6);
        assert_eq!(beside.published.lines[5].values[6], Value::Number(None));
        for grid in beside.measured.iter().chain([&beside.published]) {
            let fits = |l: &Line| l.values.len() == grid.columns.len();
            assert!(grid.lines.iter().all(fits), "{}", grid.caption);
        }
    }
}

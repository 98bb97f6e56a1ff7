//! The article on InnoDB's fill factor: how the fill factor of pages affects splits and merges.

use super::shape::Measured;
use super::{Beside, Grid, Line, Plot, Shape, Value, figure, ratio, targets, why_not, words};
use crate::record::RunRecord;
use crate::record::experiment::fill_factor::{FILLS, ROUNDS, name};

const SOURCE: &str = "The article on InnoDB's page merges and fill factor: 2 M rows keyed by a \
                      hash, the table rebuilt at each fill factor, then 400 rounds of 10 k inserts \
                      and 10 k deletes";

/// Fill factor, splits, merge attempts, merges.
const PUBLISHED: [(u8, [f64; 3]); 6] = [
    (75, [63.0, 4.0, 3.0]),
    (80, [565.0, 108.0, 34.0]),
    (82, [1363.0, 348.0, 106.0]),
    (83, [2063.0, 658.0, 203.0]),
    (85, [4350.0, 1324.0, 318.0]),
    (100, [44_771.0, 15_527.0, 2323.0]),
];

/// Number of rows in the article, rows that it replaced, and rows replaced at a time.
const ROWS: f64 = 2e6;
const EXCHANGED: f64 = 4e6;
const AT_A_TIME: u64 = 10_000;

pub(super) fn beside(run: &RunRecord) -> Beside {
    let targets = targets(run);
    Beside {
        source: SOURCE.to_owned(),
        measured: vec![fills(run, &targets), rounds(run, &targets)],
        published: published(),
        plots: vec![bars(run, &targets)],
        shapes: targets.iter().flat_map(|t| shapes(run, t)).collect(),
        notes: std::iter::once(scaled(run)).chain(words(&[
            "before: after the rebuild (after the load, where the engine cannot rebuild); after: \
             when the last round had settled. The maps of both \
             are below.",
            "Sizes (MB) are of all files of a store, the log and what belongs to the server itself \
             included; of InnoDB and PostgreSQL of the files of the table and its key alone.",
            "Leaf fill is read from the files, page by page: of betree it is the share of its \
             extents in use, of WiredTiger the size of pages before compression against the \
             largest.",
            "A dash for the fill factor: the engine's own default. \
             Engines that copy pages or merge runs have no fill factor to set.",
            "The article judges InnoDB: the rise of its splits is looked for in targets whose \
             fill factor can be set and which count splits, from 83 to 100 per cent or, where \
             83 was not run, from 75.",
        ])).collect(),
    }
}

fn published() -> Grid {
    let line = |(fill, values): &(u8, [f64; 3])| Line {
        name: format!("InnoDB, {fill} %"),
        values: values
            .iter()
            .copied()
            .chain(values.first().map(|splits| splits / EXCHANGED * 1e3))
            .map(|v| Value::Number(Some(v)))
            .collect(),
    };
    Grid {
        caption: "Published, over 4 M inserts and as many deletes: shapes only".to_owned(),
        columns: words(&["splits", "merge attempts", "merges", "splits/1000 inserts"]),
        lines: PUBLISHED.iter().map(line).collect(),
    }
}

/// A sentence about the size of the run relative to the article.
fn scaled(run: &RunRecord) -> String {
    let steps = &run.manifest.plan.steps;
    let asked = |name: &str| {
        let step = steps.iter().find(|s| s.name == name);
        step.map_or(0.0, |s| s.operations as f64)
    };
    let rows = asked("load");
    let exchanged: f64 = (1..=ROUNDS).map(|n| asked(&round(n, None))).sum();
    let batch = steps.iter().find(|s| s.name == "load");
    let batch = batch.and_then(|s| s.work.get("batch")?.as_u64());
    let number = |value: f64| crate::format::maybe(Some(value.round()));
    let of = |now: f64, then: f64| match now / then {
        share if share < 0.999 => format!("1/{}", crate::format::maybe(Some(then / now))),
        _ => "all".to_owned(),
    };
    format!(
        "Scaled: of the article's {} rows {} are loaded ({}), and of the {} it exchanges, {} at a \
         time, {} are ({}), {} at a time; that is {} rows exchanged for each that is there, and 2 \
         in the article. Splits for 1000 inserts compare with its own, their number does not.",
        number(ROWS),
        number(rows),
        of(rows, ROWS),
        number(EXCHANGED),
        number(AT_A_TIME as f64),
        number(exchanged),
        of(exchanged, EXCHANGED),
        batch.map_or("some".to_owned(), |batch| number(batch as f64)),
        crate::format::maybe(ratio(Some(exchanged), Some(rows))),
    )
}

/// The fill factors of the run; the default comes first.
fn planned(run: &RunRecord) -> Vec<Option<u8>> {
    let all = std::iter::once(None).chain(FILLS.into_iter().map(Some));
    let there = |fill: &Option<u8>| {
        let name = name("rebuild", *fill);
        run.manifest.plan.steps.iter().any(|s| s.name == name)
    };
    all.filter(there).collect()
}

fn round(number: u32, fill: Option<u8>) -> String {
    name(&format!("round{number}"), fill)
}

/// A counter over all rounds; `None` where it was not counted in each.
fn over_rounds(run: &RunRecord, target: &str, fill: Option<u8>, counter: &str) -> Option<f64> {
    let of = |number| figure(run, target, &round(number, fill), counter);
    (1..=ROUNDS).map(of).sum()
}

/// The size of the table in MB, or of all files if the server does not report it.
fn megabytes(of: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let bytes = of("table_bytes").or_else(|| of("file_bytes"));
    bytes.map(|bytes| bytes / 1e6)
}

const FILL_COLUMNS: [&str; 16] = [
    "fill %",
    "MB before",
    "MB after",
    "leaves before",
    "leaves after",
    "leaf fill % before",
    "leaf fill % after",
    "free % after",
    "splits",
    "merge attempts",
    "merges",
    "reorganizations",
    "splits/1000 inserts",
    "device kB/insert",
    "extents after",
    "n/a because",
];

fn fills(run: &RunRecord, targets: &[&str]) -> Grid {
    let mut lines = Vec::new();
    for target in targets {
        for fill in planned(run) {
            let (first, last) = (name("rebuild", fill), round(ROUNDS, fill));
            let loaded = name("load", fill);
            let before = |what: &str| {
                let rebuilt = figure(run, target, &first, what);
                rebuilt.or_else(|| figure(run, target, &loaded, what))
            };
            let after = |what: &str| figure(run, target, &last, what);
            let share = |value: Option<f64>| value.map(|v| 100.0 * v);
            let free = ratio(after("map_free_bytes"), after("map_file_bytes"));
            let mut values = vec![Value::Text(fill.map_or("-".to_owned(), |f| f.to_string()))];
            let written: Option<f64> = (1..=ROUNDS)
                .map(|n| figure(run, target, &round(n, fill), "device_write_bytes_per_row"))
                .sum();
            let numbers = [
                megabytes(before),
                megabytes(after),
                before("map_leaves"),
                after("map_leaves"),
                share(before("map_leaf_fill")),
                share(after("map_leaf_fill")),
                share(free),
                over_rounds(run, target, fill, "splits"),
                over_rounds(run, target, fill, "merge_attempts"),
                over_rounds(run, target, fill, "merges"),
                over_rounds(run, target, fill, "reorganizations"),
                ratio(
                    over_rounds(run, target, fill, "splits"),
                    over_rounds(run, target, fill, "rows"),
                )
                .map(|splits| splits * 1e3),
                written.map(|bytes| bytes / f64::from(ROUNDS) / 1e3),
                after("map_extents"),
            ];
            values.extend(numbers.map(Value::Number));
            values.push(Value::Text(why_not(run, target, &first)));
            lines.push(Line {
                name: (*target).to_owned(),
                values,
            });
        }
    }
    Grid {
        caption: "By fill factor: before and after the rounds".to_owned(),
        columns: words(&FILL_COLUMNS),
        lines,
    }
}

fn rounds(run: &RunRecord, targets: &[&str]) -> Grid {
    let mut lines = Vec::new();
    for target in targets {
        for fill in planned(run) {
            for number in 1..=ROUNDS {
                let step = round(number, fill);
                let of = |what: &str| figure(run, target, &step, what);
                if of("rows").is_none() {
                    continue;
                }
                let fill = fill.map_or("-".to_owned(), |f| f.to_string());
                let mut values = vec![Value::Text(fill), Value::Text(number.to_string())];
                let numbers = [
                    of("rows"),
                    of("rate_mean"),
                    of("splits"),
                    of("merge_attempts"),
                    of("merges"),
                    megabytes(of),
                ];
                values.extend(numbers.map(Value::Number));
                lines.push(Line {
                    name: (*target).to_owned(),
                    values,
                });
            }
        }
    }
    Grid {
        caption: "Round by round: rows inserted, and as many deleted".to_owned(),
        columns: words(&[
            "fill %",
            "round",
            "rows inserted",
            "rows/s",
            "splits",
            "merge attempts",
            "merges",
            "MB",
        ]),
        lines,
    }
}

fn bars(run: &RunRecord, targets: &[&str]) -> Plot {
    let mut bars = Vec::new();
    for target in targets {
        for fill in planned(run) {
            let splits = over_rounds(run, target, fill, "splits");
            if splits.is_some() {
                let name = fill.map_or("as it is".to_owned(), |f| format!("{f} %"));
                bars.push(((*target).to_owned(), name, splits));
            }
        }
    }
    Plot::Bars {
        title: "Splits in all rounds".to_owned(),
        bars,
    }
}

/// The rise of splits from 83 to 100 per cent, or from 75 where 83 was not run, where a fill factor
/// was set and splits were counted.
fn shapes(run: &RunRecord, target: &str) -> Vec<Shape> {
    let splits = |fill| over_rounds(run, target, Some(fill), "splits");
    let from = if splits(83).is_some() { 83 } else { 75 };
    let then = |fill: u8| PUBLISHED.iter().find(|p| p.0 == fill).map(|p| p.1[0]);
    let (Some(_), Some(published)) = (splits(100), ratio(then(100), then(from))) else {
        return Vec::new();
    };
    let names = |fill: u8| (1..=ROUNDS).map(move |n| round(n, Some(fill)));
    let all: Vec<String> = names(from).chain(names(100)).collect();
    let steps: Vec<(&str, &str)> = all.iter().map(|step| (target, step.as_str())).collect();
    let measured = Measured::of(run, &steps, |repeat| {
        let of = |fill: u8| -> Option<f64> {
            let each = names(fill).map(|step| repeat.figure(target, &step, "splits"));
            each.sum()
        };
        // Zero splits count as one.
        Some(of(100)? / of(from)?.max(1.0))
    });
    let claim = format!("splits rise from fill factor {from} to 100 (InnoDB then)");
    vec![Shape::new(target, &claim, published, &measured)]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::analysis::summarize;
    use crate::fixture;
    use crate::published::Reproduced;
    use crate::record::StepSummary;

    fn run(splits: [f64; 2]) -> RunRecord {
        let mut steps = Vec::new();
        for (fill, splits) in [75, 100].into_iter().zip(splits) {
            for step in ["rebuild", "round1", "round2", "round3"] {
                steps.push(StepSummary {
                    step: name(step, Some(fill)),
                    extra: BTreeMap::from([
                        ("splits".to_owned(), splits),
                        ("map_leaf_fill".to_owned(), 0.7),
                    ]),
                    ..fixture::step("innodb", 1, 1000.0)
                });
            }
        }
        let repeated = fixture::repeated(&steps);
        let mut run = fixture::run("run", &["innodb"], 3, repeated.clone());
        let plan = run.manifest.plan.steps[0].clone();
        run.manifest.plan.experiment = "fill-factor".to_owned();
        run.manifest.plan.steps = steps
            .iter()
            .map(|s| {
                let mut step = plan.clone();
                step.name.clone_from(&s.step);
                step
            })
            .collect();
        let with_rates: Vec<_> = repeated.into_iter().map(|s| (s, Vec::new())).collect();
        run.summary = summarize(&run.manifest, &with_rates, true);
        run
    }

    #[test]
    fn sizes_are_of_the_table_where_the_server_reports_it() {
        let mut sized = run([10.0, 200.0]);
        for result in &mut sized.summary.results {
            result.extra.insert("table_bytes".to_owned(), 3e6);
        }
        let size = |run: &RunRecord| {
            let grid = &beside(run).measured[0];
            let column = grid.columns.iter().position(|c| c == "MB after").unwrap();
            grid.lines[0].values[column].clone()
        };
        assert_eq!(size(&sized), Value::Number(Some(3.0)));
        assert_ne!(size(&run([10.0, 200.0])), Value::Number(Some(3.0)));
    }

    #[test]
    fn the_report_states_its_scale() {
        let mut run = run([10.0, 200.0]);
        let step = run.manifest.plan.steps[0].clone();
        let asked = [
            ("load", 400_000),
            ("round1", 40_000),
            ("round2", 40_000),
            ("round3", 40_000),
        ];
        run.manifest
            .plan
            .steps
            .extend(asked.map(|(name, operations)| {
                let mut step = step.clone();
                step.name = name.to_owned();
                step.operations = operations;
                step.work = serde_json::json!({ "work": "load", "batch": 100 });
                step
            }));
        let note = beside(&run).notes.remove(0);
        assert!(
            note.contains("2,000,000 rows 400,000 are loaded (1/5.00)"),
            "{note}"
        );
        assert!(
            note.contains("120,000 are (1/33.3), 100 at a time"),
            "{note}"
        );
        assert!(
            note.contains("that is 0.300 rows exchanged for each"),
            "{note}"
        );
    }

    #[test]
    fn splits_are_summed_over_rounds_and_the_rise_is_judged() {
        let steep = beside(&run([10.0, 7000.0]));
        let [shape] = steep.shapes.as_slice() else {
            panic!("{:?}", steep.shapes)
        };
        assert_eq!(
            (shape.measured, shape.verdict),
            (Some(700.0), Reproduced::Yes)
        );
        // The published rise is that of the fill factors run: 710 from 75 to 100.
        let gentle = beside(&run([10.0, 200.0]));
        assert_eq!(gentle.shapes[0].verdict, Reproduced::Weaker);
        let flat = beside(&run([10.0, 10.0]));
        assert_eq!(flat.shapes[0].verdict, Reproduced::No);
        let grid = &steep.measured[0];
        let column = grid.columns.iter().position(|c| c == "splits").unwrap();
        assert_eq!(grid.lines[0].values[column], Value::Number(Some(30.0)));
        assert_eq!(steep.measured[1].lines.len(), 6);
        for grid in steep.measured.iter().chain([&steep.published]) {
            let fits = |l: &Line| l.values.len() == grid.columns.len();
            assert!(grid.lines.iter().all(fits), "{}", grid.caption);
        }
    }
}

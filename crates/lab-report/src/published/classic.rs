//! The insert benchmark as published in 2014: the rate of each interval as the store outgrows
//! memory.

use kv::Writes;

use super::shape::{Measured, falls, stays};
use super::{Beside, Curve, Grid, Line, Plot, Shape, Value, each, ratio, targets, words};
use crate::analysis::median;
use crate::record::{RunRecord, TargetSpec};

const SOURCE: &str = "Mark Callaghan's insert benchmark of 2014: one client, up to 2 G rows, 1000 \
                      a commit, three indexes, every commit synced, 72 GB of memory, 8 disks that \
                      turn";

/// Product, interval of 100 M rows (from 1), GB, bytes per row, MB/s written, GB written, seconds,
/// inserts per second.
const PUBLISHED: [(&str, u32, [f64; 6]); 9] = [
    ("InnoDB", 1, [16.0, 171.0, 28.9, 124.0, 4290.0, 23_308.0]),
    ("InnoDB", 5, [75.0, 161.0, 19.8, 462.0, 23_337.0, 4285.0]),
    ("InnoDB", 10, [148.0, 158.0, 15.4, 1515.0, 98_413.0, 1016.0]),
    ("TokuMX", 1, [9.2, 98.0, 11.1, 79.0, 7127.0, 14_030.0]),
    ("TokuMX", 5, [39.0, 83.0, 11.1, 84.0, 7584.0, 13_186.0]),
    ("TokuMX", 10, [74.0, 79.0, 10.9, 92.0, 8436.0, 11_853.0]),
    ("TokuMX", 20, [142.0, 76.0, 12.6, 99.0, 7868.0, 12_709.0]),
    (
        "MongoDB 2.6",
        1,
        [42.0, 450.0, 47.9, 1446.0, 30_199.0, 3311.0],
    ),
    (
        "MongoDB 2.4",
        5,
        [160.0, 344.0, 4.7, 2105.0, 441_534.0, 202.0],
    ),
];

pub(super) fn beside(run: &RunRecord) -> Beside {
    let targets = targets(run);
    let mut curves: Vec<Curve> = targets.iter().filter_map(|t| curve(run, t)).collect();
    curves.extend(["InnoDB", "TokuMX"].map(old));
    Beside {
        source: SOURCE.to_owned(),
        measured: Vec::new(),
        published: published(),
        plots: vec![Plot::Lines {
            title: "Inserts per second, by interval".to_owned(),
            x: "interval".to_owned(),
            y: "inserts/s".to_owned(),
            curves,
        }],
        shapes: each(run, |target| shape(run, target)),
        notes: words(&[
            "An interval was 100 M rows then, and is a twelfth of the rows of this run; memory was \
             filled after some 300 M rows.",
            "What was new then was a line that stays flat (TokuMX) where that of a B-tree falls.",
        ]),
    }
}

fn published() -> Grid {
    let line = |(name, interval, values): &(&str, u32, [f64; 6])| {
        let mut all = vec![Value::Text(interval.to_string())];
        all.extend(values.iter().map(|v| Value::Number(Some(*v))));
        Line {
            name: (*name).to_owned(),
            values: all,
        }
    };
    Grid {
        caption: "Published in 2014, on another machine: shapes only".to_owned(),
        columns: words(&[
            "interval",
            "GB",
            "bytes/row",
            "MB/s written",
            "GB written",
            "secs",
            "inserts/s",
        ]),
        lines: PUBLISHED.iter().map(line).collect(),
    }
}

fn old(name: &str) -> Curve {
    let own = PUBLISHED.iter().filter(|(product, ..)| *product == name);
    Curve {
        name: format!("{name}, 2014"),
        target: None,
        points: own
            .map(|(_, interval, [.., rate])| (f64::from(*interval), *rate))
            .collect(),
    }
}

/// The median over the repeats of the rate of each interval.
fn rates(run: &RunRecord, target: &str) -> Vec<(f64, f64)> {
    let summaries = run.steps.iter().filter_map(|s| s.summary.as_ref());
    let valid: Vec<_> = summaries
        .filter(|s| s.target == target && s.step == "load" && s.valid)
        .collect();
    let most = valid.iter().map(|s| s.intervals.len()).max().unwrap_or(0);
    let at = |interval: usize| {
        let each: Vec<f64> = valid
            .iter()
            .filter_map(|s| s.intervals.get(interval))
            .map(|i| i.rate)
            .collect();
        median(&each).map(|rate| ((interval + 1) as f64, rate))
    };
    (0..most).filter_map(at).collect()
}

fn curve(run: &RunRecord, target: &str) -> Option<Curve> {
    let points = rates(run, target);
    (!points.is_empty()).then(|| Curve {
        name: target.to_owned(),
        target: Some(target.to_owned()),
        points,
    })
}

fn shape(run: &RunRecord, target: &TargetSpec) -> Option<Shape> {
    let (writes, name) = (target.writes()?, target.name.as_str());
    let place = (name, "load");
    let measured = Measured::beyond_memory(run, &[place], place, |repeat| {
        let load = repeat.summary(name, "load")?;
        let [first, .., last] = load.intervals.as_slice() else {
            return None;
        };
        ratio(Some(last.rate), Some(first.rate))
    });
    let (claim, then) = match writes {
        Writes::Pages => (
            "a B-tree inserts at a fraction of its first rate once its data outgrow memory (last \
             by first interval; InnoDB then)",
            1016.0 / 23_308.0,
        ),
        Writes::Changes => (
            "a write-optimised engine keeps its rate when its data outgrow memory (last by first \
             interval; TokuMX then)",
            12_709.0 / 14_030.0,
        ),
    };
    Some(Shape::judged(
        name,
        claim,
        Some(then),
        &measured,
        |kept| match writes {
            Writes::Pages => falls(Some(then), kept),
            Writes::Changes => stays(Some(then), kept),
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::published::Reproduced;
    use crate::record::{IntervalRow, StepSummary};

    #[test]
    fn published_lines_stand_beside_those_of_the_run() {
        let step = |target: &str, rates: &[f64]| StepSummary {
            step: "load".to_owned(),
            live_bytes: 3000,
            intervals: rates
                .iter()
                .map(|rate| IntervalRow {
                    rate: *rate,
                    ..IntervalRow::default()
                })
                .collect(),
            ..fixture::step(target, 1, 1.0)
        };
        let steps = vec![
            step("lmdb", &[1000.0, 300.0, 50.0]),
            step("betree", &[1000.0, 900.0, 1000.0]),
        ];
        let mut run = fixture::run("run", &["lmdb", "betree"], 3, fixture::repeated(&steps));
        run.manifest.plan.limits.memory = Some(stdx::ByteSize(1000));
        run.manifest.plan.targets = vec![
            fixture::engine("lmdb", Writes::Pages),
            fixture::engine("betree", Writes::Changes),
        ];
        run.manifest.plan.data_bytes = 3000;
        // The bytes loaded count (S4).
        let loaded = |run: &mut RunRecord, bytes: u64| {
            for summary in run.steps.iter_mut().filter_map(|s| s.summary.as_mut()) {
                summary.live_bytes = bytes;
            }
        };
        loaded(&mut run, 2999);
        let shape = &beside(&run).shapes[0];
        assert_eq!(shape.measured, None, "shape: S4");
        assert!(
            shape.text().contains("not measured: loaded 2.99 x"),
            "shape: S5"
        );
        loaded(&mut run, 3000);
        let beside = beside(&run);
        assert_eq!(beside.published.lines.len(), 9);
        assert!(beside.published.lines.iter().all(|l| l.values.len() == 7));
        let Plot::Lines { curves, .. } = &beside.plots[0] else {
            panic!("no lines");
        };
        let points: Vec<_> = curves.iter().map(|c| c.points.len()).collect();
        assert_eq!(points, [3, 3, 3, 4]);
        let [fell, stayed] = beside.shapes.as_slice() else {
            panic!("{:?}", beside.shapes)
        };
        assert!((fell.measured.unwrap() - 0.05).abs() < 1e-9);
        assert_eq!(
            (fell.verdict, stayed.verdict),
            (Reproduced::Yes, Reproduced::Yes)
        );
    }
}

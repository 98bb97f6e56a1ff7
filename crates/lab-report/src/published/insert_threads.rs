//! The insert benchmark article of December 2015 (Vadim Tkachenko, Percona).

use kv::Writes;

use super::programs::{grid, published};
use super::shape::{Measured, falls, stays};
use super::{Beside, Plot, Shape, each, figure, ratio, targets, words};
use crate::record::experiment::insert_threads::{BEYOND, FIRST};
use crate::record::{RunRecord, TargetSpec};

const SOURCE: &str = "Vadim Tkachenko's insert benchmark (Percona, December 2015): 1 B rows, 3 \
                      indexes, 10 threads, cache 10 GB in a process of 20 GB, one SATA SSD";

/// The statements of the article as numbers: inserts per second in memory, if given.
const PUBLISHED: [(&str, [f64; 1]); 4] = [
    (
        "WiredTiger B-tree: above 100k/s in memory, then a cliff",
        [100_000.0],
    ),
    ("PerconaFT: nearly constant, with variance", [f64::NAN]),
    ("RocksDB: nearly constant, with stalls", [f64::NAN]),
    ("WiredTiger LSM: declining", [f64::NAN]),
];

pub(super) fn beside(run: &RunRecord) -> Beside {
    let columns = [
        ("inserts/s", "rate_mean", 1.0),
        ("first tenth", "rate_first_tenth", 1.0),
        ("last tenth", "rate_last_tenth", 1.0),
        ("worst s", "worst_second", 1.0),
        ("p99 ms", "latency_p99_ms", 1.0),
        ("max ms", "latency_max_ms", 1.0),
        ("stalls s", "stall_seconds", 1.0),
        ("B written/insert", "device_write_bytes_per_row", 1.0),
        ("CPU us/insert", "cpu_us_per_row", 1.0),
        ("files GB", "file_bytes", 1e-9),
    ];
    let names = targets(run);
    let bars = names.iter().flat_map(|target| {
        [(FIRST, "rate_mean"), (BEYOND, "rate_last_tenth")].map(|(step, name)| {
            let value = figure(run, target, step, name);
            ((*target).to_owned(), step.to_owned(), value)
        })
    });
    Beside {
        source: SOURCE.to_owned(),
        measured: vec![grid(
            run,
            "Inserts by ten clients",
            &[FIRST, BEYOND],
            &columns,
        )],
        published: published(
            "Published in 2015, on another machine, as it says in words",
            &["inserts/s in memory"],
            &PUBLISHED,
        ),
        plots: vec![Plot::Bars {
            title: "Inserts/s in memory, and of the last tenth beyond it".to_owned(),
            bars: bars.collect(),
        }],
        shapes: each(run, |target| shape(run, target)),
        notes: words(&[
            "The article gives its numbers in plots, so there is no published ratio: a rate that \
             falls to 30 % or less is a cliff, and one that keeps 85 % or more is constant.",
        ]),
    }
}

/// The ratio of the last tenth of the rate beyond memory to the rate in memory.
fn shape(run: &RunRecord, target: &TargetSpec) -> Option<Shape> {
    let (writes, name) = (target.writes()?, target.name.as_str());
    let steps = [(name, FIRST), (name, BEYOND)];
    let measured = Measured::beyond_memory(run, &steps, (name, BEYOND), |repeat| {
        ratio(
            repeat.figure(name, BEYOND, "rate_last_tenth"),
            repeat.figure(name, FIRST, "rate_mean"),
        )
    });
    let claim = match writes {
        Writes::Pages => "a B-tree falls off a cliff",
        Writes::Changes => "a write-optimised engine stays nearly constant",
    };
    let claim = format!("{claim} (last tenth beyond memory by the rate within it)");
    Some(Shape::judged(
        name,
        &claim,
        None,
        &measured,
        |kept| match writes {
            Writes::Pages => falls(None, kept),
            Writes::Changes => stays(None, kept),
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::summarize;
    use crate::fixture;
    use crate::published::Reproduced;
    use crate::record::StepSummary;

    #[test]
    fn b_trees_must_fall_and_the_others_stay_and_neither_is_both() {
        // Rates beyond memory, relative to 1,000 rows per second in memory.
        let (pages, changes) = (Writes::Pages, Writes::Changes);
        let left = [
            ("mariadb", pages, 200.0, Reproduced::Yes),
            ("serve:engine=lmdb", pages, 400.0, Reproduced::Weaker),
            ("mariadb:engine=myrocks", changes, 400.0, Reproduced::No),
            ("betree", changes, 900.0, Reproduced::Yes),
        ];
        let names: Vec<&str> = left.iter().map(|l| l.0).chain(["null"]).collect();
        let steps: Vec<StepSummary> = left
            .iter()
            .flat_map(|(target, _, rate, _)| {
                [(FIRST, 1000.0), (BEYOND, *rate)].map(|(name, rate)| StepSummary {
                    step: name.to_owned(),
                    rate_last_tenth: rate,
                    live_bytes: 3000,
                    ..fixture::step(target, 1, rate)
                })
            })
            .collect();
        let all = fixture::repeated(&steps);
        let mut run = fixture::run("run", &names, 3, all.clone());
        run.manifest.plan.limits.memory = Some(stdx::ByteSize(1000));
        for (spec, (_, writes, ..)) in run.manifest.plan.targets.iter_mut().zip(left) {
            *spec = fixture::engine(&spec.name, writes);
        }
        let plan = run.manifest.plan.steps[0].clone();
        let named = |name: &str| {
            let mut plan = plan.clone();
            name.clone_into(&mut plan.name);
            plan
        };
        run.manifest.plan.steps = [FIRST, BEYOND].map(named).to_vec();
        let with_rates: Vec<_> = all.into_iter().map(|s| (s, Vec::new())).collect();
        run.summary = summarize(&run.manifest, &with_rates, true);
        let shapes = beside(&run).shapes;
        let verdicts: Vec<(&str, Reproduced)> = shapes
            .iter()
            .map(|s| (s.target.as_str(), s.verdict))
            .collect();
        let expected: Vec<(&str, Reproduced)> = left.iter().map(|l| (l.0, l.3)).collect();
        assert_eq!(verdicts, expected, "null is of neither family");
    }
}

//! The insert benchmark article of 2015.

use super::programs::{grid, published};
use super::{Beside, Plot, Shape, figure, ratio, targets, words};
use crate::experiment::insert_threads::{BEYOND, FIRST};
use crate::record::RunRecord;

const SOURCE: &str = "Mark Callaghan's insert benchmark of 2015: 1 B rows, 3 indexes, 10 threads, \
                      cache 10 GB in a process of 20 GB, one SATA SSD";

/// What it says in words, as figures: inserts per second in memory, where it gives one.
const PUBLISHED: [(&str, [f64; 1]); 4] = [
    (
        "WiredTiger B-tree: above 100k/s in memory, then a cliff",
        [100_000.0],
    ),
    ("PerconaFT: nearly constant, with variance", [f64::NAN]),
    ("RocksDB: nearly constant, with stalls", [f64::NAN]),
    ("WiredTiger LSM: declining", [f64::NAN]),
];

/// Engines of which the article tells, or their like: B-trees fall, the others do not.
const FALL: [&str; 4] = ["lmdb", "wiredtiger", "innodb", "postgres"];

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
        shapes: names.iter().map(|t| shape(run, t)).collect(),
        notes: words(&[
            "The article gives its figures in plots: a fall to a tenth stands for its cliff, and \
             the whole rate for what is constant.",
        ]),
    }
}

/// The rate of the last tenth beyond memory by the rate within it.
fn shape(run: &RunRecord, target: &str) -> Shape {
    let now = ratio(
        figure(run, target, BEYOND, "rate_last_tenth"),
        figure(run, target, FIRST, "rate_mean"),
    );
    if FALL.iter().any(|name| target.contains(name)) {
        let claim = "a B-tree falls off a cliff (last tenth beyond memory by the rate within it)";
        return Shape::new(target, claim, 0.1, now);
    }
    // Flat is no side of 1: the claim is that it keeps what a B-tree loses, ten times as much.
    let claim = "it keeps far more than a tenth, which is what a B-tree keeps (share by a tenth)";
    Shape::new(target, claim, 10.0, now.map(|share| share / 0.1))
}

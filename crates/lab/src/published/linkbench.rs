//! Published runs of LinkBench.

use super::programs::{grid, published, steps};
use super::{Beside, Plot, figure, targets, words};
use crate::record::RunRecord;
use crate::workload::linkbench::KINDS;

const SOURCE: &str = "Percona's runs of LinkBench on InnoDB and TokuDB (115 GiB, cache 12 GiB): \
                      link adds in 10 seconds";

/// Adds per 10 s on a SATA SSD and on a PCIe one.
const PUBLISHED: [(&str, [f64; 2]); 3] = [
    ("InnoDB", [6029.0, 27_739.0]),
    ("InnoDB, 8 KiB pages", [6911.0, 9853.0]),
    ("TokuDB", [14_633.0, 20_594.0]),
];

/// The numbers of each request.
const NUMBERS: [(&str, &str); 5] = [
    ("count", "count"),
    ("p50 ms", "p50_ms"),
    ("p95 ms", "p95_ms"),
    ("p99 ms", "p99_ms"),
    ("max ms", "max_ms"),
];

pub(super) fn beside(run: &RunRecord) -> Beside {
    let mut all = steps(run, "warm");
    all.extend(steps(run, "requests"));
    let columns = [
        ("requests/s", "rate_mean", 1.0),
        ("p99 ms", "latency_p99_ms", 1.0),
        ("reads/request", "device_read_ios_per_row", 1.0),
        ("KB read/request", "device_read_bytes_per_row", 1e-3),
        ("KB written/request", "device_write_bytes_per_row", 1e-3),
        ("CPU us/request", "cpu_us_per_row", 1.0),
        ("switches/request", "switches_per_row", 1.0),
        ("conflicts", "conflicts", 1.0),
        ("files GB", "file_bytes", 1e-9),
    ];
    let names = targets(run);
    let bars = names.iter().map(|target| {
        let value = figure(run, target, "requests", "rate_mean");
        ((*target).to_owned(), "requests".to_owned(), value)
    });
    Beside {
        source: SOURCE.to_owned(),
        measured: vec![grid(run, "Requests", &all, &columns), kinds(run)],
        published: published(
            "Published, on other machines: adds in 10 s, of which 9 in 100 requests are; shapes \
                      only",
            &["SATA SSD", "PCIe SSD"],
            &PUBLISHED,
        ),
        plots: vec![Plot::Bars {
            title: "Requests/s".to_owned(),
            bars: bars.collect(),
        }],
        shapes: Vec::new(),
        notes: words(&[
            "After every step each node's count is compared with its visible links, and the links \
             with their index: a difference makes the step invalid.",
            "Out-degrees follow a Pareto distribution of the mean of the original's own table.",
        ]),
    }
}

/// A line for each target and request.
fn kinds(run: &RunRecord) -> super::Grid {
    let mut lines = Vec::new();
    for target in targets(run) {
        for kind in KINDS {
            let mut values = vec![super::Value::Text(kind.to_owned())];
            values.extend(NUMBERS.map(|(_, number)| {
                let name = format!("{kind}_{number}");
                super::Value::Number(figure(run, target, "requests", &name))
            }));
            lines.push(super::Line {
                name: target.to_owned(),
                values,
            });
        }
    }
    let mut columns = vec!["request".to_owned()];
    columns.extend(NUMBERS.map(|(head, _)| head.to_owned()));
    super::Grid {
        caption: "Each kind of request".to_owned(),
        columns,
        lines,
    }
}

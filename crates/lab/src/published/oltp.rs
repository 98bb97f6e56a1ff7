//! The article on encryption at rest: what more and more threads do.

use super::programs::{curves, grid, number, published, steps};
use super::{Beside, Shape, figure, ratio, targets, words};
use crate::record::RunRecord;

const SOURCE: &str = "Percona's article on encryption at rest: sysbench oltp_read_only, 20 tables \
                      of 10 M rows, pool 5 GB (I/O heavy), 300 s";

/// Transactions per second by threads: encrypted and plain.
const PUBLISHED: [(&str, [f64; 2]); 2] = [
    ("1 thread", [389.0, 423.0]),
    ("64 threads and more", [8570.0, 8570.0]),
];

pub(super) fn beside(run: &RunRecord) -> Beside {
    let all = steps(run, "clients-");
    let columns = [
        ("tps", "rate_mean", 1.0),
        ("p50 ms", "latency_p50_ms", 1.0),
        ("p99 ms", "latency_p99_ms", 1.0),
        ("max ms", "latency_max_ms", 1.0),
        ("reads/trx", "device_read_ios_per_row", 1.0),
        ("KB read/trx", "device_read_bytes_per_row", 1e-3),
        ("CPU us/trx", "cpu_us_per_row", 1.0),
        ("switches/trx", "switches_per_row", 1.0),
    ];
    Beside {
        source: SOURCE.to_owned(),
        measured: vec![grid(
            run,
            "Read-only transactions by clients",
            &all,
            &columns,
        )],
        published: published(
            "Published, on other machines: transactions/s, shapes only",
            &["encrypted", "plain"],
            &PUBLISHED,
        ),
        plots: vec![curves(
            run,
            ["Transactions/s by clients", "clients", "transactions/s"],
            &all,
            "rate_mean",
            Vec::new(),
        )],
        shapes: targets(run)
            .into_iter()
            .filter_map(|t| shape(run, t, &all))
            .collect(),
        notes: words(&[
            "A transaction is 10 rows by primary key and 4 ranges of 100 rows, which the client \
             itself adds, sorts or makes distinct.",
            "To compare encryption on and off, name a target with it and one without: engines here \
             have none of their own.",
        ]),
    }
}

/// Threads of the article gain twenty times.
fn shape(run: &RunRecord, target: &str, steps: &[&str]) -> Option<Shape> {
    let (first, last) = (steps.first()?, steps.last()?);
    let rate = |step: &str| figure(run, target, step, "rate_mean");
    let most = number(last)?;
    Some(Shape::new(
        target,
        &format!("more clients do more (tps of {most} by that of one; 64 by one then)"),
        8570.0 / 423.0,
        ratio(rate(last), rate(first)),
    ))
}

//! The article on encryption at rest: what more and more threads do.

use super::programs::{curves, grid, number, published, steps};
use super::{Beside, Shape, figure, ratio, targets, words};
use crate::record::{RunRecord, TargetSpec};

const SOURCE: &str = "Percona's article on encryption at rest: sysbench oltp_read_only, 20 tables \
                      of 10 M rows, pool 5 GB (I/O heavy), 300 s";

/// Transactions per second by threads: encrypted and plain.
const PUBLISHED: [(&str, [f64; 2]); 2] = [
    ("1 thread", [389.0, 423.0]),
    ("64 threads and more", [8570.0, 8570.0]),
];

/// A cost this small may be noise.
const COST: f64 = 0.02;

/// A cost up to this is not seen among many clients.
const UNSEEN: f64 = 0.05;

pub(super) fn beside(run: &RunRecord) -> Beside {
    let all = steps(run, "clients-");
    let columns = [
        ("transactions/s", "rate_mean", 1.0),
        ("p50 ms", "latency_p50_ms", 1.0),
        ("p99 ms", "latency_p99_ms", 1.0),
        ("max ms", "latency_max_ms", 1.0),
        ("reads/transaction", "device_read_ios_per_row", 1.0),
        ("KB read/transaction", "device_read_bytes_per_row", 1e-3),
        ("CPU us/transaction", "cpu_us_per_row", 1.0),
        ("switches/transaction", "switches_per_row", 1.0),
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
            .chain(costs(run, &all))
            .collect(),
        notes: words(&[
            "A transaction is 10 rows by primary key and 4 ranges of 100 rows, which the client \
             itself adds, sorts or makes distinct.",
            "To compare encryption on and off, name a target with it and one without, and repeats: \
             mariadb,mariadb:encrypt=1 --repeats 3, or mariadb:tls=0,mariadb:tls=1. The targets \
             of a run are interleaved, and each repeat gives one ratio. With fewer than three \
             repeats what encryption costs is not told from noise, and reads not measured; with \
             more it is told if the whole 95 % interval of the median says the same.",
        ]),
    }
}

/// What encryption costs, where the run has a target with it and the same one without.
fn costs(run: &RunRecord, steps: &[&str]) -> Vec<Shape> {
    let (Some(few), Some(many)) = (steps.first(), steps.last()) else {
        return Vec::new();
    };
    let mut shapes = Vec::new();
    for (plain, encrypted, what) in pairs(run) {
        let shares = |step: &str| shares(run, [plain, encrypted], step);
        let with = "(transactions/s with it by those without, the median of the repeats)";
        let claim = format!("at one client {what} costs {with}");
        let then = 389.0 / 423.0;
        shapes.push(Shape::repeated(
            encrypted,
            &claim,
            then,
            &shares(few),
            |share| share < 1.0 - COST,
        ));
        let most = number(many).unwrap_or(0.0);
        let claim = format!("at {most} clients {what} is not seen {with}");
        shapes.push(Shape::repeated(
            encrypted,
            &claim,
            1.0,
            &shares(many),
            |share| 1.0 - UNSEEN <= share,
        ));
    }
    shapes
}

/// The rate with encryption by that without it, in each repeat: what changes from one repeat to the
/// next, such as the pace of a device that is shared, concerns both.
fn shares(run: &RunRecord, [plain, encrypted]: [&str; 2], step: &str) -> Vec<f64> {
    let rate = |target: &str, repeat: u32| {
        let mut all = run.steps.iter().filter_map(|s| s.summary.as_ref());
        let of = all.find(|s| s.target == target && s.step == step && s.repeat == repeat)?;
        of.valid.then_some(of.rate_mean)
    };
    (1..=run.manifest.plan.repeats)
        .filter_map(|repeat| ratio(rate(encrypted, repeat), rate(plain, repeat)))
        .collect()
}

/// Targets that differ in one kind of encryption alone: without, with, and what it is called.
fn pairs(run: &RunRecord) -> Vec<(&str, &str, &'static str)> {
    let targets = &run.manifest.plan.targets;
    let mut pairs = Vec::new();
    for (option, what) in [
        ("encrypt", "encryption at rest"),
        ("tls", "encryption of connections"),
    ] {
        // Connections over a socket are compared with nothing: encrypted ones go over TCP.
        let base = if option == "tls" { Some(false) } else { None };
        for with in targets.iter().filter(|t| set(t, option) == Some(true)) {
            let others = |t: &TargetSpec| {
                let mut rest = t.options.clone();
                rest.remove(option);
                rest
            };
            let without = targets.iter().find(|t| {
                let off = set(t, option).is_none_or(|on| !on);
                let alike = t.engine == with.engine && others(t) == others(with);
                off && alike && (base.is_none() || set(t, option) == base)
            });
            pairs.extend(without.map(|w| (w.name.as_str(), with.name.as_str(), what)));
        }
    }
    pairs
}

/// Whether a target has such an option, and what it says.
fn set(target: &TargetSpec, option: &str) -> Option<bool> {
    let value = target.options.get(option)?;
    crate::target::switch(option, value).ok()
}

/// Threads of the article gain twenty times.
fn shape(run: &RunRecord, target: &str, steps: &[&str]) -> Option<Shape> {
    let (first, last) = (steps.first()?, steps.last()?);
    let rate = |step: &str| figure(run, target, step, "rate_mean");
    let most = number(last)?;
    Some(Shape::new(
        target,
        &format!("more clients do more (transactions/s of {most} by that of one; 64 by one then)"),
        8570.0 / 423.0,
        ratio(rate(last), rate(first)),
    ))
}

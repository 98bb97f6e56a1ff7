//! The article on encryption at rest: throughput by number of threads.

use super::programs::{curves, grid, number, published, steps};
use super::shape::{Measured, Reproduced, banded};
use super::{Beside, Shape, ratio, targets, words};
use crate::record::{RunRecord, TargetSpec, switch};

const SOURCE: &str = "Percona's article on encryption at rest: sysbench oltp_read_only, 20 tables \
                      of 10 M rows, pool 5 GB (I/O heavy), 300 s";

/// Transactions per second by threads: encrypted and plain.
const PUBLISHED: [(&str, [f64; 2]); 2] = [
    ("1 thread", [389.0, 423.0]),
    ("64 threads and more", [8570.0, 8570.0]),
];

/// Maximum difference that counts as invisible among many clients.
const UNSEEN: f64 = 0.05;

/// Minimum cost of encryption that counts as one.
const COST_MIN: f64 = 0.01;

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
             of a run are interleaved, and each repeat gives one ratio. The cost is the share of \
             the rate that is lost, and compared with the published one (8 % at one client).",
        ]),
    }
}

/// The cost of encryption, if the run has a target with it and the same target without it.
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
        let costs = |share: f64| {
            let cost = 1.0 - share;
            banded(1.0 - then, cost, true, COST_MIN <= cost)
        };
        let one = shares(few);
        let shape = Shape::judged(encrypted, &claim, Some(then), &one, costs);
        shapes.push(shape);
        let most = number(many).unwrap_or(0.0);
        let claim = format!("at {most} clients {what} is not seen {with}");
        let unseen = |share: f64| match (1.0 - UNSEEN..=1.0 / (1.0 - UNSEEN)).contains(&share) {
            true => (Reproduced::Yes, None),
            false => (Reproduced::No, None),
        };
        let all = shares(many);
        let shape = Shape::judged(encrypted, &claim, Some(1.0), &all, unseen);
        shapes.push(shape);
    }
    shapes
}

/// The ratio of the rate with encryption to that without, per repeat: changes between repeats, such
/// as the speed of a shared device, affect both.
fn shares(run: &RunRecord, [plain, encrypted]: [&str; 2], step: &str) -> Measured {
    Measured::of(run, &[(plain, step), (encrypted, step)], |repeat| {
        let rate = |target: &str| repeat.figure(target, step, "rate_mean");
        ratio(rate(encrypted), rate(plain))
    })
}

/// Pairs of targets that differ only in one kind of encryption: without it, with it, and its name.
fn pairs(run: &RunRecord) -> Vec<(&str, &str, &'static str)> {
    let targets = &run.manifest.plan.targets;
    let mut pairs = Vec::new();
    for (option, what) in [
        ("encrypt", "encryption at rest"),
        ("tls", "encryption of connections"),
    ] {
        // Connections over a Unix socket have no encrypted counterpart: encrypted ones use TCP.
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

/// The value of a switch among the options of a target; `None` without it.
fn set(target: &TargetSpec, option: &str) -> Option<bool> {
    let value = target.options.get(option)?;
    switch(option, value).ok()
}

/// In the article the rate increases twenty times with the threads.
fn shape(run: &RunRecord, target: &str, steps: &[&str]) -> Option<Shape> {
    let (first, last) = (steps.first()?, steps.last()?);
    let measured = Measured::of(run, &[(target, *first), (target, *last)], |repeat| {
        let rate = |step: &str| repeat.figure(target, step, "rate_mean");
        ratio(rate(last), rate(first))
    });
    let most = number(last)?;
    Some(Shape::new(
        target,
        &format!("more clients do more (transactions/s of {most} by that of one; 64 by one then)"),
        8570.0 / 423.0,
        &measured,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::summarize;
    use crate::fixture;
    use crate::published::Reproduced;
    use crate::record::{StepPlan, StepSummary};

    /// A run whose repeats have these rates at one client, and 500 transactions/s at 256.
    fn run(rates: &[[f64; 2]]) -> RunRecord {
        let targets = ["mariadb", "mariadb:encrypt=1"]
            .map(fixture::server)
            .to_vec();
        let mut steps = Vec::new();
        for (repeat, rates) in (1..).zip(rates) {
            for (target, rate) in targets.iter().zip(rates) {
                for (step, rate) in [("clients-1", *rate), ("clients-256", 500.0)] {
                    steps.push(StepSummary {
                        step: step.to_owned(),
                        seconds: 30.0,
                        ..fixture::step(&target.name, repeat, rate)
                    });
                }
            }
        }
        let names: Vec<&str> = targets.iter().map(|t| t.name.as_str()).collect();
        let repeats = u32::try_from(rates.len()).unwrap();
        let mut run = fixture::run("run", &names, repeats, steps.clone());
        let first = run.manifest.plan.steps[0].clone();
        let planned = |name: &str| StepPlan {
            name: name.to_owned(),
            ..first.clone()
        };
        run.manifest.plan.steps = ["clients-1", "clients-256"].map(planned).to_vec();
        run.manifest.plan.targets = targets;
        let all: Vec<_> = steps.into_iter().map(|s| (s, Vec::new())).collect();
        run.summary = summarize(&run.manifest, &all, true);
        run
    }

    #[test]
    fn a_cost_is_judged_by_the_ratios_of_repeats() {
        let costs = |rates: &[[f64; 2]]| {
            let run = run(rates);
            costs(&run, &["clients-1", "clients-256"])
        };
        // The speed of the machine changes by more than encryption costs, for both alike.
        let costly = costs(&[[400.0, 360.0], [200.0, 184.0], [300.0, 273.0]]);
        let [low, high] = costly[0].between.unwrap();
        assert_eq!(costly[0].measured, Some(0.91));
        assert!(0.88 < low && low < 0.9 && 0.92 < high && high < 0.94);
        assert_eq!(costly[0].verdict, Reproduced::Yes);
        assert_eq!(
            (costly[1].measured, costly[1].verdict),
            (Some(1.0), Reproduced::Yes)
        );
        let noisy = costs(&[[400.0, 360.0], [200.0, 230.0], [300.0, 273.0]]);
        assert_eq!(noisy[0].verdict, Reproduced::Inconclusive);
        let free = costs(&[[400.0, 412.0], [200.0, 206.0], [300.0, 309.5]]);
        assert_eq!(free[0].verdict, Reproduced::No);
        let few = costs(&[[400.0, 100.0], [200.0, 50.0]]);
        assert_eq!(
            (few[0].measured, few[0].verdict),
            (Some(0.25), Reproduced::Inconclusive)
        );
    }
}

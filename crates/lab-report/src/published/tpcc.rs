//! The articles on TPC-C under IOPS caps of 2018.

use kv::Writes;

use super::programs::{Column, curve, curves, grid, number, published, steps};
use super::shape::{Judged, Measured, banded};
use super::{Beside, Curve, Grid, Plot, Shape, ratio, targets, words};
use crate::analysis::escaped;
use crate::cost::{self, CostOptions, Mode};
use crate::record::{Prices, RunRecord};

const SOURCE: &str = "Percona's articles on MyRocks and InnoDB under IOPS caps, 2018: Percona \
                      Server 5.7.22, c5.9xlarge, io1 volumes, 5000 warehouses, 471 GB in \
                      InnoDB and 91 GB in MyRocks, caches of 27 and 54 GB";

/// Cache in GB, IOPS, transactions per second of InnoDB and of MyRocks.
const PUBLISHED: [(f64, f64, f64, f64); 8] = [
    (27.0, 5000.0, 133.0, 481.0),
    (27.0, 10_000.0, 286.0, 1224.0),
    (27.0, 15_000.0, 436.0, 1840.0),
    (27.0, 20_000.0, 585.0, 2337.0),
    (27.0, 30_000.0, 754.0, 2509.0),
    (54.0, 5000.0, 198.0, 668.0),
    (54.0, 10_000.0, 434.0, 1600.0),
    (54.0, 30_000.0, 1097.0, 2691.0),
];

/// InnoDB with 27 GB: the ratio of the rates with 30,000 and 5,000 operations per second, and the
/// ratio of these caps.
const INNODB: (f64, f64) = (754.0 / 133.0, 6.0);

/// MyRocks with 27 GB: the same for the two highest caps, 20,000 and 30,000.
const MYROCKS: (f64, f64) = (2509.0 / 2337.0, 1.5);

/// Rates grow with the power `x` of the cap: they follow it from this `x` on, and level off up to
/// an `x` of 1 minus this.
const FOLLOWS: f64 = 0.1;

/// The columns of the caps, and of the five transactions.
const COLUMNS: [Column; 12] = [
    ("transactions/s, median", "median_second", 1.0),
    ("transactions/s, mean", "rate_mean", 1.0),
    ("worst s", "worst_second", 1.0),
    ("p99 ms", "latency_p99_ms", 1.0),
    ("reads/transaction", "device_read_ios_per_row", 1.0),
    ("writes/transaction", "device_write_ios_per_row", 1.0),
    ("KB read/transaction", "device_read_bytes_per_row", 1e-3),
    ("KB written/transaction", "device_write_bytes_per_row", 1e-3),
    ("CPU us/transaction", "cpu_us_per_row", 1.0),
    ("conflicts", "conflicts", 1.0),
    ("files MB", "file_bytes", 1e-6),
    ("stalls s", "stall_seconds", 1.0),
];
const KINDS: [Column; 8] = [
    ("new orders", "new_order_count", 1.0),
    ("new order p95 ms", "new_order_p95_ms", 1.0),
    ("payments", "payment_count", 1.0),
    ("payment p95 ms", "payment_p95_ms", 1.0),
    ("order status p95 ms", "order_status_p95_ms", 1.0),
    ("delivery p95 ms", "delivery_p95_ms", 1.0),
    ("stock level p95 ms", "stock_level_p95_ms", 1.0),
    ("rolled back", "rolled_back", 1.0),
];

pub(super) fn beside(run: &RunRecord) -> Beside {
    let mut all = steps(run, "no-cap");
    all.extend(steps(run, "iops-"));
    let capped = steps(run, "iops-");
    let mut plots = vec![curves(
        run,
        [
            "Transactions/s by cap",
            "I/O operations/s allowed",
            "transactions/s",
        ],
        &capped,
        "median_second",
        vec![
            small_cache("InnoDB, 27 GB", |p| p.2),
            small_cache("MyRocks, 27 GB", |p| p.3),
        ],
    )];
    plots.extend(money(run, &capped));
    Beside {
        source: SOURCE.to_owned(),
        measured: vec![
            grid(run, "TPC-C transactions, cap by cap", &all, &COLUMNS),
            grid(run, "The five transactions", &all, &KINDS),
        ],
        published: then(),
        plots,
        shapes: shapes(run, &capped),
        notes: unjudged(run).into_iter().chain(words(&[
            "A cap of N allows N reads and N writes a second each; volumes in the cloud count both \
             together.",
            "A transaction that was in conflict with another is done again, and its latency counts \
             from its first beginning.",
            "The consistency conditions 1 to 4 of the specification are checked after every step; \
             one that is broken makes the step invalid.",
            "Texts of variant percona are one character repeated, which flatters engines that \
             compress; those of variant spec are random.",
        ])).collect(),
    }
}

/// A shape of targets under caps; not judged if the writes of one of them bypass the caps.
fn held(run: &RunRecord, of: &[&str], shape: Shape) -> Shape {
    match of.iter().any(|target| escaped(run, target)) {
        true => shape.unjudged(),
        false => shape,
    }
}

/// Why shapes are not judged.
fn unjudged(run: &RunRecord) -> Option<String> {
    let targets = targets(run).into_iter();
    let names: Vec<&str> = targets.filter(|target| escaped(run, target)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Not judged: {}. Control groups v1 do not cap what is written through the page cache, \
             so what these did within a cap is not what the cap allows; version 2 caps it.",
            names.join(", ")
        )
    })
}

/// The table of the articles.
fn then() -> Grid {
    let rows: Vec<(String, [f64; 2])> = PUBLISHED
        .iter()
        .map(|(cache, iops, innodb, myrocks)| {
            (
                format!("{cache} GB cache, {iops} IOPS"),
                [*innodb, *myrocks],
            )
        })
        .collect();
    let rows: Vec<(&str, [f64; 2])> = rows.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    published(
        "Published in 2018, on other machines: transactions/s, shapes only",
        &["InnoDB", "MyRocks"],
        &rows,
    )
}

fn small_cache(name: &str, of: fn(&(f64, f64, f64, f64)) -> f64) -> Curve {
    let small = PUBLISHED.iter().filter(|p| p.0 < 30.0);
    let points: Vec<(f64, f64)> = small.map(|p| (p.1, of(p))).collect();
    curve(name, &points)
}

/// Transactions per second against the price of a volume with the capacity of each cap.
fn money(run: &RunRecord, capped: &[&str]) -> Option<Plot> {
    let prices = run.prices.clone().unwrap_or_else(Prices::default_prices);
    let cost = cost::estimate(run, &prices, &CostOptions::default());
    let kind = prices.volumes.last()?.name.clone();
    let mut curves = Vec::new();
    for target in targets(run) {
        let lines = cost.lines.iter().filter(|l| {
            l.target == target
                && l.volume == kind
                && l.mode == Mode::Provisioned
                && capped.contains(&l.step.as_str())
        });
        let mut points: Vec<(f64, f64)> = lines
            .filter_map(|l| Some((l.storage?, l.rate)))
            .filter(|(dollars, rate)| 0.0 < *dollars && 0.0 < *rate)
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !points.is_empty() {
            curves.push(Curve {
                name: target.to_owned(),
                target: Some(target.to_owned()),
                points,
            });
        }
    }
    (!curves.is_empty()).then(|| Plot::Lines {
        title: format!(
            "Transactions/s for money: volumes of kind {kind}, {}",
            prices.name
        ),
        x: "dollars a month for storage".to_owned(),
        y: "transactions/s".to_owned(),
        curves,
    })
}

/// The exponent of the rate as a function of the cap; 1 if proportional. From the ratios of both,
/// of which that of the caps is above 1.
fn exponent(rates: f64, caps: f64) -> f64 {
    rates.ln() / caps.ln()
}

/// The verdict on an exponent: that of an engine that writes pages follows the cap, another one
/// does not.
fn follows(pages: bool, then: f64, exponent: f64) -> Judged {
    match pages {
        true => banded(then, exponent, true, FOLLOWS <= exponent),
        false => banded(then, exponent, false, exponent <= 1.0 - FOLLOWS),
    }
}

fn shapes(run: &RunRecord, capped: &[&str]) -> Vec<Shape> {
    let cap = |step: &str| number(step).unwrap_or(0.0);
    let mut by_cap: Vec<&str> = capped.to_vec();
    by_cap.sort_by(|a, b| cap(a).total_cmp(&cap(b)));
    let (Some(tight), Some(loose)) = (by_cap.first(), by_cap.last()) else {
        return Vec::new();
    };
    let rates = |over: (&str, &str), under: (&str, &str)| {
        Measured::of(run, &[over, under], |repeat| {
            let rate = |(target, step)| repeat.figure(target, step, "median_second");
            ratio(rate(over), rate(under)).filter(|rates| 0.0 < *rates)
        })
    };
    let all = run.manifest.plan.targets.iter();
    let engines: Vec<(&str, Option<Writes>)> = all.map(|t| (t.name.as_str(), t.writes())).collect();
    let mut shapes = Vec::new();
    for (target, writes) in engines.iter().filter(|_| tight != loose) {
        // Over all caps, or between the two loosest.
        let (from, then) = match writes {
            Some(Writes::Pages) => (*tight, INNODB),
            Some(Writes::Changes) => (
                by_cap.iter().rev().nth(1).copied().unwrap_or(tight),
                MYROCKS,
            ),
            None => continue,
        };
        let caps = cap(loose) / cap(from);
        let now = rates((*target, *loose), (*target, from)).map(|rates| exponent(rates, caps));
        let then = exponent(then.0, then.1);
        let (claim, who, pages) = match writes {
            Some(Writes::Pages) => ("is proportional to", "InnoDB", true),
            _ => ("is no longer bound by", "MyRocks", false),
        };
        let claim = format!(
            "the rate {claim} the operations allowed (exponent of transactions/s by cap, {from} \
             to {loose}; {who} then)"
        );
        let shape = Shape::judged(target, &claim, Some(then), &now, |exponent| {
            follows(pages, then, exponent)
        });
        shapes.push(held(run, &[target], shape));
    }
    let of = |wanted: Writes| -> Vec<&str> {
        let all = engines.iter().filter(|(_, f)| *f == Some(wanted));
        all.map(|(name, _)| *name).collect()
    };
    for write in of(Writes::Changes) {
        for page in of(Writes::Pages) {
            let shape = Shape::new(
                write,
                &format!("at {tight} it does more than {page} (MyRocks by InnoDB then)"),
                481.0 / 133.0,
                &rates((write, *tight), (page, *tight)),
            );
            shapes.push(held(run, &[write, page], shape));
        }
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::summarize;
    use crate::fixture;
    use crate::published::Reproduced;
    use crate::record::StepSummary;

    #[test]
    fn pages_follow_the_operations_and_changes_do_not() {
        // Proportional to the cap; and flat from the tightest cap on.
        let rates = [
            ("mariadb", [14.0, 28.0, 56.0]),
            ("mariadb:engine=myrocks", [50.0, 210.0, 237.0]),
        ];
        let caps = [250, 500, 1000];
        let steps: Vec<StepSummary> = rates
            .iter()
            .flat_map(|(target, rates)| {
                caps.iter().zip(rates).map(|(cap, rate)| StepSummary {
                    step: format!("iops-{cap}"),
                    median_second: *rate,
                    ..fixture::step(target, 1, *rate)
                })
            })
            .collect();
        let names = rates.map(|r| r.0);
        let all = fixture::repeated(&steps);
        let mut run = fixture::run("run", &names, 3, all.clone());
        run.manifest.plan.targets = vec![
            fixture::engine(names[0], Writes::Pages),
            fixture::engine(names[1], Writes::Changes),
        ];
        let plan = run.manifest.plan.steps[0].clone();
        let named = |cap: &i32| {
            let mut plan = plan.clone();
            plan.name = format!("iops-{cap}");
            plan
        };
        run.manifest.plan.steps = caps.iter().map(named).collect();
        let with_rates: Vec<_> = all.into_iter().map(|s| (s, Vec::new())).collect();
        run.summary = summarize(&run.manifest, &with_rates, true);
        let shapes = beside(&run).shapes;
        let verdicts: Vec<Reproduced> = shapes.iter().map(|s| s.verdict).collect();
        assert_eq!(verdicts, [Reproduced::Yes; 3], "{shapes:?}");
        assert!((shapes[0].measured.unwrap() - 1.0).abs() < 0.01);
        assert!((shapes[1].measured.unwrap() - 0.175).abs() < 0.001);
        assert_eq!(shapes[2].measured, Some(50.0 / 14.0));
        judged_where_caps_hold(&mut run);
    }

    /// On a machine with control groups v1 a target that writes through the page cache is not
    /// judged, nor what is held against it.
    fn judged_where_caps_hold(run: &mut RunRecord) {
        use crate::fixture::{envelope, target_record};
        let names: Vec<String> = super::targets(run)
            .iter()
            .map(|n| (*n).to_owned())
            .collect();
        let mut verdicts = |mode: &str, direct: [bool; 2]| {
            run.targets = names
                .iter()
                .zip(direct)
                .map(|(name, direct_io)| target_record(name, direct_io))
                .collect();
            for step in &mut run.steps {
                step.envelope = envelope(mode, "write IOPS");
            }
            let beside = beside(run);
            let noted = beside
                .notes
                .iter()
                .any(|note| note.starts_with("Not judged"));
            let all: Vec<Reproduced> = beside.shapes.iter().map(|s| s.verdict).collect();
            assert_eq!(noted, all.contains(&Reproduced::NotJudged));
            all
        };
        let (yes, not) = (Reproduced::Yes, Reproduced::NotJudged);
        assert_eq!(verdicts("cgroup v1", [true, false]), [yes, not, not]);
        assert_eq!(verdicts("cgroup v1", [false, true]), [not, yes, not]);
        assert_eq!(verdicts("cgroup v1", [true, true]), [yes; 3]);
        assert_eq!(verdicts("cgroup v2", [false, false]), [yes; 3]);
    }
}

//! Published runs of LinkBench.

use super::programs::{grid, published, steps};
use super::{Beside, Grid, Line, Plot, Value, figure, ratio, targets, words};
use crate::record::RunRecord;
use crate::record::linkbench::{KINDS, Mix};

const SOURCE: &str = "Percona's runs of LinkBench on InnoDB and TokuDB (115 GiB, cache 12 GiB): \
                      link adds in 10 seconds";

/// Adds per 10 s on a SATA SSD and on a PCIe one.
const PUBLISHED: [(&str, [f64; 2]); 3] = [
    ("InnoDB", [6029.0, 27_739.0]),
    ("InnoDB, 8 KiB pages", [6911.0, 9853.0]),
    ("TokuDB", [14_633.0, 20_594.0]),
];

/// The columns of each request: heading and number.
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
        measured: vec![grid(run, "Requests", &all, &columns), adds(run), kinds(run)],
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
            "Adds are requests of kind addlink, counted over all of the step requests. The numbers \
             published are of graphs of 115 GiB on other machines: what compares is how engines \
             stand to each other, not sizes.",
            "Shares of the mix facebook are those of the paper (FBWorkload.properties); of the mix \
             callaghan four are those of its configuration, and the other six those of the paper \
             among each other.",
            "Out-degrees follow a Pareto distribution of the mean of the original's own table.",
        ]),
    }
}

/// The requests that the published runs count.
const ADD: &str = "addlink";

/// The measured adds, with the published ones below.
fn adds(run: &RunRecord) -> Grid {
    let here = |target: &str| {
        let of = |name: &str| figure(run, target, "requests", name);
        let adds = ratio(of(&format!("{ADD}_count")), of("seconds")).map(|rate| rate * 10.0);
        let device = Value::Text("this machine, this run".to_owned());
        Line {
            name: target.to_owned(),
            values: vec![Value::Number(adds), device],
        }
    };
    let then = |(name, values): &(&str, [f64; 2])| {
        let devices = ["SATA SSD", "PCIe SSD"];
        let lines = values.iter().zip(devices).map(|(value, device)| Line {
            name: format!("{name}, published"),
            values: vec![
                Value::Number(Some(*value)),
                Value::Text(format!("{device}, 115 GiB, cache 12 GiB")),
            ],
        });
        lines.collect::<Vec<_>>()
    };
    let own = targets(run).into_iter().map(here);
    Grid {
        caption: "Links added in 10 s, beside those published (shapes only)".to_owned(),
        columns: words(&["adds in 10 s", "where"]),
        lines: own.chain(PUBLISHED.iter().flat_map(then)).collect(),
    }
}

/// The shares of requests in the mix of the run, in per cent; `None` if the mix is unknown.
fn shares(run: &RunRecord) -> Option<[f64; 10]> {
    let mix = run.manifest.plan.params.get("mix")?;
    let mix: Mix = serde_json::from_value(mix.clone()).ok()?;
    Some(mix.weights())
}

/// One row per target and request, with its measured share and its share in the mix.
fn kinds(run: &RunRecord) -> Grid {
    let mut lines = Vec::new();
    let mix = shares(run);
    for target in targets(run) {
        let count = |kind: &str| figure(run, target, "requests", &format!("{kind}_count"));
        let all: Option<f64> = KINDS.iter().map(|kind| count(kind)).sum();
        for (place, kind) in KINDS.into_iter().enumerate() {
            let mut values = vec![Value::Text(kind.to_owned())];
            values.push(Value::Number(
                ratio(count(kind), all).map(|share| share * 100.0),
            ));
            let published = mix.and_then(|shares| shares.get(place).copied());
            values.push(Value::Number(published));
            values.extend(NUMBERS.map(|(_, number)| {
                let name = format!("{kind}_{number}");
                Value::Number(figure(run, target, "requests", &name))
            }));
            lines.push(Line {
                name: target.to_owned(),
                values,
            });
        }
    }
    let mut columns = words(&["request", "share %", "share %, published"]);
    columns.extend(NUMBERS.map(|(head, _)| head.to_owned()));
    Grid {
        caption: "Each kind of request".to_owned(),
        columns,
        lines,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::analysis::summarize;
    use crate::fixture;
    use crate::record::StepSummary;

    #[test]
    fn what_was_published_stands_beside_what_was_measured() {
        let counts = KINDS.map(|kind| (format!("{kind}_count"), 100.0));
        let step = StepSummary {
            step: "requests".to_owned(),
            extra: BTreeMap::from(counts),
            seconds: 20.0,
            ..fixture::step("lmdb", 1, 50.0)
        };
        let mut run = fixture::run("run", &["lmdb"], 1, vec![step.clone()]);
        run.manifest.plan.experiment = "linkbench".to_owned();
        run.manifest.plan.params = serde_json::json!({
            "workload": "linkbench", "seed": 1, "nodes": 1000, "mix": "facebook",
        });
        run.manifest.plan.steps[0].name = "requests".to_owned();
        run.summary = summarize(&run.manifest, &[(step, Vec::new())], true);
        let beside = beside(&run);
        let adds = &beside.measured[1];
        assert_eq!(adds.lines[0].values[0], Value::Number(Some(50.0)));
        let then: Vec<&str> = adds.lines[1..].iter().map(|l| l.name.as_str()).collect();
        assert_eq!(then.len(), 6);
        assert!(
            then.iter().all(|name| name.ends_with(", published")),
            "{then:?}"
        );
        assert_eq!(adds.lines[1].values[0], Value::Number(Some(6029.0)));
        let kinds = &beside.measured[2];
        let list = &kinds.lines[0].values;
        assert_eq!(list[1], Value::Number(Some(10.0)));
        assert_eq!(list[2], Value::Number(Some(50.71)));
        for grid in &beside.measured {
            let fits = |l: &Line| l.values.len() == grid.columns.len();
            assert!(grid.lines.iter().all(fits), "{}", grid.caption);
        }
    }
}

//! Pages of made-up sweeps.

use std::env;
use std::fs;
use std::path::Path;

use super::sweep;
use crate::fixture;
use crate::record::{NamedVolume, Prices, SweepAxis, SweepCell, SweepRecord, SweepValue};

/// Targets of the sweep, with the factor of their rates.
const TARGETS: [(&str, f64); 2] = [("betree", 2.0), ("lmdb", 1.0)];

/// Two caches and four volumes of the prices of 2018, three repeats each; one run is missing.
fn record() -> SweepRecord {
    let prices = Prices::parse(&Prices::text("aws-2018-article").unwrap()).unwrap();
    let names = ["io1-1000", "io1-5000", "gp2", "2xgp2"];
    let volumes = names.map(|name| NamedVolume::parse(name, &prices).unwrap());
    let value = |volume: &NamedVolume| SweepValue {
        text: volume.name.clone(),
        number: Some(volume.iops as f64),
        volume: Some(volume.clone()),
    };
    let mut sweep = fixture::sweep(&[27.0, 54.0]);
    sweep.targets = TARGETS.map(|t| t.0.to_owned()).into();
    sweep.axes.push(SweepAxis {
        name: "volume".to_owned(),
        unit: "operations/s".to_owned(),
        values: volumes.iter().map(value).collect(),
    });
    let (mut cells, mut runs) = (Vec::new(), Vec::new());
    for cache in 0..2 {
        for (at, volume) in volumes.iter().enumerate() {
            let rate = (volume.iops as f64).min(9000.0) * (1.0 + 0.4 * cache as f64);
            let mut run = run(rate);
            run.manifest.plan.volume = Some(volume.clone());
            run.prices = Some(prices.clone());
            cells.push(SweepCell {
                directory: format!("cache-{cache}_{}", volume.name),
                values: vec![cache, at],
                plan: run.manifest.plan.clone(),
            });
            runs.push(Ok(run));
        }
    }
    runs[7] = Err("not <run> yet".to_owned());
    sweep.cells = cells;
    SweepRecord { sweep, runs }
}

fn run(rate: f64) -> crate::record::RunRecord {
    let steps = TARGETS.iter().flat_map(|(name, factor)| {
        (1..=3).map(move |repeat| {
            let mut step = fixture::step(name, repeat, rate * factor + f64::from(repeat));
            (step.file_bytes, step.file_bytes_max) = (90_000_000_000, 90_000_000_000);
            step.live_bytes = 80_000_000_000;
            step
        })
    });
    let names = TARGETS.map(|t| t.0);
    fixture::run("cell", &names, 3, steps.collect())
}

/// Keep the page to be looked at, where the environment asks for that.
fn keep(name: &str, page: &str) {
    if let Ok(keep) = env::var("ROMANESCO_REPORT_DIR") {
        fs::write(Path::new(&keep).join(name), page).expect("the page is kept");
    }
}

#[test]
fn the_page_has_matrix_heat_maps_curves_costs_and_plateaus() {
    let page = sweep(&record()).unwrap().replace("&#x2f;", "/");
    keep("sweep.html", &page);
    assert!(page.contains("test by cache and volume: of"), "no headline");
    assert!(
        page.contains("the plateau begins from volume gp2: up to 2xgp2"),
        "no plateau"
    );
    assert!(
        page.contains("54M: not &lt;run&gt; yet"),
        "a missing run is named and escaped"
    );
    assert!(page.contains("<span class=\"tag warn\">inconclusive</span>"));
    assert!(
        page.contains("cache-0_io1-1000/report.html"),
        "no link to a run"
    );
    assert!(
        !page.contains("cache-1_2xgp2/report.html"),
        "a link to a run that is missing"
    );
    for id in [
        "heat-0-load",
        "heat-1-load",
        "curve-0-load-0",
        "curve-1-load-1",
        "prices-load",
    ] {
        assert!(page.contains(&format!("<figure id=\"{id}\"")), "no {id}");
    }
    assert!(page.contains("$ per million") && page.contains("aws-2018-article of 2018-08-01"));
    assert!(page.contains("1 of 8 runs have no result"));
    let outside = page.replace("http://www.w3.org", "");
    assert!(!outside.contains("http://") && !outside.contains("https://"));
}

#[test]
fn values_without_an_order_are_bars_and_have_no_plateau() {
    let mut record = SweepRecord {
        sweep: fixture::sweep(&[1.0, 2.0]),
        runs: vec![Ok(run(100.0)), Ok(run(300.0))],
    };
    record.sweep.targets = TARGETS.map(|t| t.0.to_owned()).into();
    "codec".clone_into(&mut record.sweep.axes[0].name);
    for (value, text) in record.sweep.axes[0].values.iter_mut().zip(["none", "fast"]) {
        value.number = None;
        text.clone_into(&mut value.text);
    }
    let page = sweep(&record).unwrap();
    keep("sweep-codec.html", &page);
    assert!(page.contains("<h1>test by codec</h1>"));
    assert!(page.contains("no plateau is looked for"));
    assert!(page.contains("<figure id=\"bars-load\"") && page.contains("<figure id=\"heat-load\""));
    assert!(!page.contains("id=\"curve-"));
}

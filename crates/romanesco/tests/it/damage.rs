//! Tests of damaged results: every command reports an error that names the file, and never panics.

use std::fs;

use crate::program::Place;

const GARBAGE: &[u8] = b"gar{bage\xff\x00,\n1,2";

fn run() -> Place {
    let place = Place::new();
    place
        .lab("run iibench-classic -t memory,null --rows 2000 --settle 0 --out run --quiet")
        .exits(0);
    place
}

#[test]
fn another_schema_is_refused_with_both_versions() {
    let place = run();
    let manifest = place.text("run/manifest.json");
    let other = manifest.replacen("\"schema\": 1", "\"schema\": 99", 1);
    assert_ne!(manifest, other);
    fs::write(place.path("run/manifest.json"), &other).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    for command in [
        "report run",
        "resume run",
        "watch run --once",
        "compare run",
        "stop run",
    ] {
        place
            .lab(command)
            .refuses(3, &["schema 99", "schema 1", version, "run"]);
    }
    assert_eq!(
        place.text("run/manifest.json"),
        other,
        "nothing was changed"
    );
}

#[test]
fn damaged_records_are_named() {
    let place = run();
    let step = "run/steps/001_memory_r1_load";
    for file in [
        "run/manifest.json".to_owned(),
        "run/summary.json".to_owned(),
        "run/env/targets.json".to_owned(),
        format!("{step}/summary.json"),
        format!("{step}/status.json"),
        format!("{step}/stalls.json"),
    ] {
        let whole = fs::read(place.path(&file)).unwrap();
        for damage in [GARBAGE, b"", b"{}", &whole[..whole.len() / 2]] {
            // For some records an empty object or list is valid.
            fs::write(place.path(&file), damage).unwrap();
            for command in [
                "report run",
                "export run",
                "compare run",
                "watch run --once",
            ] {
                let ran = place.lab(command);
                assert!(!ran.err.contains("panicked"), "{file}: {}", ran.err);
                ran.refuses(3, &[file.as_str().rsplit('/').next().unwrap()]);
            }
        }
        fs::write(place.path(&file), whole).unwrap();
    }
    place.lab("report run").exits(0);
}

#[test]
fn damaged_series_cost_their_charts_only() {
    let place = run();
    let step = "run/steps/001_memory_r1_load";
    for name in ["series.csv", "engine.csv", "hist.hlog", "envelope.json"] {
        let file = format!("{step}/{name}");
        let whole = fs::read(place.path(&file)).unwrap();
        for damage in [GARBAGE, b"", &whole[..whole.len() / 2]] {
            fs::write(place.path(&file), damage).unwrap();
            for command in [
                "report run",
                "export run",
                "compare run",
                "export run --format hgrm",
            ] {
                let ran = place.lab(command);
                assert!(!ran.err.contains("panicked"), "{file}: {}", ran.err);
            }
            place.lab("report run").exits(0);
        }
        fs::remove_file(place.path(&file)).unwrap();
        place.lab("report run").exits(0);
        fs::write(place.path(&file), whole).unwrap();
    }
}

#[test]
fn a_lost_summary_is_written_again() {
    let place = run();
    fs::write(place.path("run/summary.json"), GARBAGE).unwrap();
    let refused = place.lab("resume run").exits(3);
    assert!(refused.err.contains("summary.json is damaged") && refused.err.contains("remove it"));
    fs::remove_file(place.path("run/summary.json")).unwrap();
    place.lab("resume run").exits(0);
    place.whole("run");
}

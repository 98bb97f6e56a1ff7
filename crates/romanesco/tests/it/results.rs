//! Tests of the results of a run: the numbers of every step, the report, and every command that
//! reads them.

use serde_json::Value;

use crate::program::{Place, power_can_be_cut};

/// Names of numbers that every step of every target must have.
const FIGURES: [&str; 18] = [
    "rows",
    "rate_mean",
    "rate_first_tenth",
    "rate_last_tenth",
    "worst_second",
    "median_second",
    "stall_seconds",
    "latency_p50_ms",
    "latency_p99_ms",
    "latency_p999_ms",
    "latency_max_ms",
    "device_write_bytes",
    "device_read_bytes",
    "logical_bytes",
    "file_bytes",
    "cpu_seconds",
    "settle_seconds",
    "write_amplification",
];

#[test]
fn a_classic_run_leaves_every_figure() {
    let place = Place::new();
    place
        .lab("run iibench-classic -t memory,lmdb,null --rows 12000 --time 600 --settle 1 --out run")
        .exits(0);
    let summary = place.whole("run");
    let results = summary["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    for result in results {
        assert_eq!(result["valid"], true);
        for name in FIGURES {
            // The machine may have no counters of its device; the field exists anyway.
            let field = result
                .get(name)
                .unwrap_or_else(|| panic!("no {name} in {result:#}"));
            assert!(field.is_number() || name.contains("device") || name.contains("amplif"));
        }
        assert_eq!(result["rows"], 12_000.0);
        assert_eq!(result["logical_bytes"], 12_000.0 * 236.0);
    }
    for step in summary["steps"].as_array().unwrap() {
        check_step(step);
    }
    assert_eq!(place.count("run", "done"), 3);
}

fn check_step(step: &Value) {
    let target = step["target"].as_str().unwrap();
    let checked = target != "null";
    assert_eq!(step["ended"], "operations");
    assert_eq!(step["integrity"]["checked"], checked);
    assert_eq!(step["integrity"]["faults"], Value::Array(Vec::new()));
    if checked {
        assert_eq!(step["integrity"]["rows_found"], 12_000);
    }
    let intervals = step["intervals"].as_array().unwrap();
    assert_eq!(intervals.len(), 12, "{target}");
    let last = intervals.last().unwrap();
    assert_eq!(last["rows"], 12_000);
    let mut before = 0;
    for interval in intervals {
        let now = interval["rows"].as_u64().unwrap();
        assert_eq!(now - before, 1000);
        before = now;
    }
    // The usage of the lab process, not of the worker: it samples once a second and holds no data.
    let cpu = step["lab_cpu_seconds"].as_f64().unwrap();
    let seconds = step["seconds"].as_f64().unwrap() + step["settle_seconds"].as_f64().unwrap();
    assert!((0.0..=seconds + 5.0).contains(&cpu), "{cpu} s of CPU");
    let memory = step["lab_rss_bytes"].as_u64().unwrap();
    assert!((1 << 20..256 << 20).contains(&memory), "{memory} bytes");
}

#[test]
fn the_steps_keep_the_size_constant() {
    let place = Place::new();
    place
        .lab("run iibench-steps -t lmdb --rows 4000 --time 0.4 --settle 1 --out run --mem 0")
        .exits(0);
    let summary = place.whole("run");
    let steps = summary["steps"].as_array().unwrap();
    let names: Vec<&str> = steps.iter().map(|s| s["step"].as_str().unwrap()).collect();
    let expected = [
        "l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000",
    ];
    assert_eq!(names, expected);
    // A slow machine loads fewer rows in that time; all loaded rows are kept.
    let loaded = &steps[0]["rows"];
    assert!(loaded.as_u64() > Some(0), "{loaded}");
    for step in steps {
        assert_eq!(step["valid"], true, "{step:#}");
        assert_eq!(step["integrity"]["checked"], true);
        if step["step"] == "l.i0" || step["step"] == "l.x" {
            continue;
        }
        assert_eq!(step["rows"], step["rows_deleted"], "{step:#}");
        assert_eq!(&step["integrity"]["rows_found"], loaded, "{step:#}");
    }
    for step in &steps[4..] {
        assert_eq!(step["main"], "queries");
        assert!(step["queries"]["queries"].as_u64().unwrap() > 0);
    }
}

#[test]
fn equal_targets_make_an_aa_run() {
    let place = Place::new();
    let line = "run iibench-classic -t memory,memory --rows 2000 --repeats 2 --settle 0 --out run";
    let ran = place.lab(line).exits(0);
    assert!(
        ran.err
            .contains("A/A: memory#1 and memory#2 are the same target"),
        "{}",
        ran.err
    );
    let summary = place.whole("run");
    for step in summary["steps"].as_array().unwrap() {
        let others = &step["others"];
        assert!(0 < others["cpus"].as_u64().unwrap(), "{others:#}");
        assert!(others["disturbed"].is_array());
    }
    let compared = place.lab("compare run").exits(0).out;
    assert!(compared.contains("A/A: memory#1"), "{compared}");
    let page = place.text("run/report.html");
    assert!(page.contains("A&#x2f;A run of memory"));
}

#[test]
fn every_command_reads_the_results() {
    let place = Place::new();
    place
        .lab("run iibench-classic -t memory,null --rows 2000 --settle 0 --out run --quiet")
        .exits(0);
    for format in ["json", "csv", "tsv", "md", "hgrm", "otava"] {
        let text = place
            .lab(&format!("export run --format {format}"))
            .exits(0)
            .out;
        assert!(
            text.contains("memory") || format == "hgrm",
            "{format}: {text}"
        );
    }
    place.lab("export run --format csv -o run.csv").exits(0);
    assert!(place.text("run.csv").contains("rate_mean"));
    let compared = place.lab("compare run --base null --single").exits(0).out;
    assert!(compared.contains("rate_mean") && compared.contains("x"));
    for command in ["compare run --base null", "check run --base run"] {
        place
            .lab(command)
            .refuses(3, &["single repeat", "--single"]);
    }
    place.lab("check run --base run --single").exits(0);
    let strict = "check run --base run --fail-if rows>5 --json";
    let verdict: Value = serde_json::from_str(&place.lab(strict).exits(1).out).unwrap();
    assert!(verdict.is_object());
    // The baseline may be a file exported from a run.
    place.lab("export run --format json -o base.json").exits(0);
    std::fs::copy(place.path("run/summary.json"), place.path("alone.json")).unwrap();
    for (base, note) in [
        ("run/summary.json", ""),
        ("base.json", ""),
        ("alone.json", "alone.json has no plan"),
    ] {
        let said = place
            .lab(&format!("check run --base {base} --single"))
            .exits(0)
            .out;
        assert!(said.contains(note), "{base}: {said}");
    }
    for (base, needle) in [
        ("run/manifest.json", "it is the manifest of a run"),
        ("run/cost.json", "it is the cost of a run"),
        ("run/report.html", "is no base"),
        ("gone.json", "gone.json"),
    ] {
        let ran = place.lab(&format!("check run --base {base}"));
        ran.refuses(3, &[needle, "lab export --format json"]);
    }
    let watched = place.lab("watch run --once").exits(0).out;
    assert!(watched.contains("steps 2/2  complete"), "{watched}");
    place.lab("report run -o first.html").exits(0);
    assert!(place.text("first.html").contains("<html"));
    place
        .lab("stop run")
        .refuses(3, &["no romanesco works on run"]);
    // A completed run is not repeated.
    let again = place.lab("resume run").exits(0).err;
    assert_eq!(again.matches("done before").count(), 2, "{again}");
    place.lab("list").exits(0);
    let listed = place.lab("list --json").exits(0).out;
    assert!(serde_json::from_str::<Value>(&listed).unwrap()["targets"].is_array());
    let doctor = place.lab("doctor --json");
    assert!(
        serde_json::from_str::<Value>(&doctor.out)
            .unwrap()
            .is_array()
    );
}

#[test]
fn a_run_keeps_its_prices_and_is_priced_again() {
    let place = Place::new();
    place
        .lab(
            "run iibench-classic -t lmdb,null --rows 3000 --settle 0 --prices local --quiet --out \
             run",
        )
        .exits(0);
    assert!(place.text("run/prices.toml").contains("name = \"local\""));
    let kept = place.json("run/cost.json");
    assert_eq!(kept["prices"]["name"], "local");
    let lines = kept["lines"].as_array().unwrap();
    assert!(!lines.is_empty() && lines.iter().all(|l| l["target"] == "lmdb"));
    let again = "cost run --prices aws-2018-article --size 1000G --json";
    let again: Value = serde_json::from_str(&place.lab(again).exits(0).out).unwrap();
    assert_eq!(again["prices"]["date"], "2018-08-01");
    // Without caps, the lines of provisioned storage have no price, and state the reason.
    let capped = again["lines"].as_array().unwrap().iter();
    let mut capped = capped.filter(|l| l["mode"] == "provisioned");
    assert!(capped.all(|l| l["total"].is_null() && l["reason"].is_string()));
    let table = place.lab("cost run").exits(0).out;
    assert!(
        table.contains("nvme") && table.contains("own server"),
        "{table}"
    );
    assert!(place.text("run/report.html").contains("id=\"cost\""));
    place
        .lab("cost run --prices nonsense")
        .refuses(3, &["aws-2025"]);
    place
        .lab("run iibench-classic -t null --prices nonsense --out other")
        .refuses(3, &["unknown prices"]);
}

#[test]
fn the_redo_log_is_measured_level_by_level_and_killed() {
    let place = Place::new();
    let run = "run redo-log -t betree,lmdb,memory --rows 2000 --time 0.5 --settle 1 --mem 0";
    let said = place.lab(&format!("{run} --out run")).exits(0);
    let summary = place.whole("run");
    let steps = summary["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 42);
    let of = |target: &str, step: &str| {
        let mut found = steps.iter();
        found
            .find(|s| s["target"] == target && s["step"] == step)
            .unwrap()
    };
    for level in ["sync", "group", "interval", "none"] {
        assert_eq!(of("betree", level)["valid"], true);
        for end in ["kill", "power"] {
            let killed = of("betree", &format!("{end}-{level}"));
            if end == "power" && killed["unsupported"].is_string() {
                assert!(!power_can_be_cut(), "{killed:#}");
                continue;
            }
            assert_eq!(killed["valid"], true, "{killed:#}");
            let extra = &killed["extra"];
            assert!(extra["acknowledged"].as_f64().unwrap() > 0.0, "{killed:#}");
            assert_eq!(extra["opens_after_kill"], 1.0);
            assert!(extra["recovery_seconds"].is_number());
            if ["sync", "group"].contains(&level) {
                assert_eq!(extra["lost_after_kill"], 0.0, "{killed:#}");
            }
        }
    }
    // LMDB syncs nothing before it closes; betree may sync a checkpoint, even during the power cut.
    let unsynced = of("lmdb", "power-none");
    if unsynced["unsupported"].is_null() {
        let lost = unsynced["extra"]["lost_after_kill"].as_f64();
        assert!(lost > Some(0.0), "{unsynced:#}");
    }
    // An unsupported level is reported as such; it is not a fault.
    let lmdb = of("lmdb", "interval");
    assert!(lmdb["unsupported"].as_str().unwrap().contains("no log"));
    assert!(of("memory", "sync")["unsupported"].is_string());
    assert_eq!(of("memory", "none")["valid"], true);
    assert!(said.err.contains("a sync in every commit"), "{}", said.err);
    let page = place.text("run/report.html");
    assert!(page.contains("id=\"published\"") && page.contains("InnoDB, lazy"));
    // The data directory is empty: only the results are left.
    assert!(place.names("run/data").is_empty());
    place
        .lab("run redo-log -t memory --durability sync --out other")
        .refuses(3, &["redo-log sets --durability itself"]);
}

#[test]
fn a_calibration_goes_into_later_runs() {
    let place = Place::new();
    // Tests run on busy machines, too.
    let command = "calibrate --aa 3 --preset smoke --target null --allow-busy";
    let ran = place.lab(command).exits(0);
    assert!(ran.out.contains("A/A noise floor of null"), "{}", ran.out);
    assert_eq!(place.names("."), ["state"]);
    place
        .lab("run iibench-classic -t null --rows 2000 --settle 0 --out run")
        .exits(0);
    assert!(place.json("run/calibration.json")["noise"].is_object());
}

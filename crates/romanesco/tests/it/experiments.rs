//! Tests of experiments with several tables: complete runs, refused and resumed ones, and a worker
//! that dies.

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Place, send};

/// The summary of a step of a target.
fn step<'a>(summary: &'a Value, target: &str, name: &str) -> &'a Value {
    let steps = summary["steps"].as_array().unwrap();
    let found = steps
        .iter()
        .find(|s| s["target"] == target && s["step"] == name);
    found.unwrap_or_else(|| panic!("no {target} {name} in {summary:#}"))
}

/// Run an experiment with preset smoke on two engines; returns its summary.
fn smoke(place: &Place, experiment: &str, more: &str) -> Value {
    let line =
        format!("run {experiment} -t memory,betree --preset smoke --settle 0.2 --out run {more}");
    place.lab(&line).exits(0);
    place.whole("run")
}

/// As [`smoke`] with steps that end with their time, which grows until `enough` operations were
/// done: a busy machine may give a step no processor for all of a short time.
fn timed(experiment: &str, more: &str, enough: impl Fn(&Value) -> bool) -> (Place, Value) {
    let mut seconds = 0.4;
    loop {
        let place = Place::new();
        let summary = smoke(&place, experiment, &format!("--time {seconds} {more}"));
        if enough(&summary) || LONGEST < seconds {
            return (place, summary);
        }
        seconds *= 4.0;
    }
}

/// The longest time of a step of [`timed`], in seconds. A passing test does not reach it, even on
/// a slow and busy machine.
const LONGEST: f64 = 60.0;

/// Operations of all kinds of a step of betree.
fn operations(summary: &Value, name: &str) -> f64 {
    let extra = &step(summary, "betree", name)["extra"];
    let counts = extra.as_object().unwrap().iter();
    let counts = counts.filter(|(name, _)| name.ends_with("_count"));
    counts.filter_map(|(_, count)| count.as_f64()).sum()
}

/// The number of queries of a step of a target.
fn queries(summary: &Value, target: &str, name: &str) -> u64 {
    step(summary, target, name)["queries"]["queries"]
        .as_u64()
        .unwrap_or(0)
}

#[test]
fn tpcc_keeps_its_conditions_under_every_cap() {
    for variant in ["spec", "percona"] {
        let (place, summary) = timed("tpcc", &format!("--variant {variant}"), |summary| {
            let steps = ["no-cap", "iops-5000"].into_iter();
            let mut steps = steps.flat_map(|name| [("memory", name), ("betree", name)]);
            steps.all(|(target, name)| 0 < queries(summary, target, name))
        });
        for target in ["memory", "betree"] {
            let load = step(&summary, target, "load");
            assert!(load["rows"].as_u64().unwrap() > 15_000, "{load:#}");
            for name in ["no-cap", "iops-5000"] {
                let mix = step(&summary, target, name);
                assert_eq!(mix["integrity"]["checked"], true);
                assert_eq!(
                    mix["integrity"]["rows_expected"],
                    mix["integrity"]["rows_found"]
                );
                assert!(mix["queries"]["queries"].as_u64().unwrap() > 0, "{mix:#}");
            }
            assert!(step(&summary, target, "no-cap")["extra"]["conflicts"].is_number());
        }
        let report = place.text("run/report.html");
        assert!(report.contains("TPC-C transactions, cap by cap"));
    }
}

#[test]
fn linkbench_counts_its_links_in_both_mixes() {
    for variant in ["facebook", "callaghan"] {
        // A request in eight or more reads a node.
        let (place, summary) = timed("linkbench", &format!("--variant {variant}"), |summary| {
            200.0 <= operations(summary, "requests")
        });
        let asked = step(&summary, "betree", "requests");
        assert!(
            asked["extra"]["getnode_count"].as_f64().unwrap() > 0.0,
            "{asked:#}"
        );
        assert!(
            place
                .text("run/report.html")
                .contains("Each kind of request")
        );
    }
}

#[test]
fn tables_are_filled_fresh_and_scanned_cold() {
    let place = Place::new();
    let summary = smoke(&place, "many-tables", "--rows 1000 --time 600");
    for tables in [1, 10, 100] {
        let insert = step(&summary, "betree", &format!("insert-{tables}"));
        assert_eq!(insert["rows"], 1000);
        let scan = step(&summary, "betree", &format!("scan-{tables}"));
        assert_eq!(scan["queries"]["entries"], 1000);
        let unsupported = &step(&summary, "memory", &format!("scan-{tables}"))["unsupported"];
        assert!(unsupported.as_str().unwrap().contains("disk"));
    }
}

#[test]
fn clients_read_more_and_more_at_once() {
    let (_, summary) = timed("oltp-read-only", "", |summary| {
        let mut steps = ["clients-1", "clients-4"].into_iter();
        steps.all(|name| 0 < queries(summary, "betree", name))
    });
    for name in ["clients-1", "clients-4"] {
        let read = step(&summary, "betree", name);
        assert!(
            read["queries"]["entries"].as_u64().unwrap() >= 14,
            "{read:#}"
        );
        assert_eq!(read["rows"], 0);
    }
}

/// The caps on reads and writes that were in force in a step.
fn caps(place: &Place, name: &str) -> [u64; 2] {
    let names = place.names("run/steps");
    let end = format!("_betree_r1_{name}");
    let directory = names.iter().find(|n| n.ends_with(&end)).unwrap();
    let envelope = place.json(format!("run/steps/{directory}/envelope.json"));
    ["read IOPS", "write IOPS"].map(|limit| {
        let mut lines = envelope["lines"].as_array().unwrap().iter();
        let line = lines.find(|line| line["limit"] == limit).unwrap();
        line["effective"].as_u64().unwrap()
    })
}

#[test]
fn many_tables_are_scanned_within_the_reads_of_a_disk_that_seeks() {
    let place = Place::new();
    let summary = smoke(
        &place,
        "many-tables",
        "--rows 1000 --time 600 --variant disk",
    );
    for name in ["disk-1", "disk-10", "disk-100"] {
        // An engine without files does not support a cold scan, capped or not.
        assert!(step(&summary, "memory", name)["unsupported"].is_string());
        let disk = step(&summary, "betree", name);
        match disk["unsupported"].as_str() {
            Some(why) => assert!(why.contains("not in force"), "{why}"),
            None => {
                assert_eq!(disk["queries"]["entries"], 1000, "{disk:#}");
                assert_eq!(caps(&place, name), [200, 200], "{name}");
            }
        }
    }
    let report = place.text("run/report.html");
    assert!(report.contains("within 200 reads a second"));
}

#[test]
fn ten_writers_insert_in_memory_and_beyond() {
    let place = Place::new();
    let summary = smoke(&place, "insert-vs-threads", "--rows 8000 --time 600");
    let both = ["memory", "beyond"].map(|name| {
        let rows = &step(&summary, "betree", name)["rows"];
        rows.as_u64().unwrap()
    });
    assert_eq!(both, [2000, 6000]);
}

#[test]
fn ycsb_runs_each_core_workload_of_each_variant() {
    for variant in ["zipfian", "100-kb"] {
        // Half of the operations of workload A are updates, a twentieth of those of D inserts, and
        // nearly all of E scans: these numbers of operations have one of them.
        let least = [("a", 40.0), ("d", 500.0), ("e", 10.0)];
        let (place, summary) = timed("ycsb", &format!("--variant {variant}"), |summary| {
            let mut steps = least.into_iter();
            steps.all(|(letter, least)| least <= operations(summary, &format!("workload-{letter}")))
        });
        for (letter, kind) in [("a", "update"), ("d", "insert"), ("e", "scan")] {
            let done = step(&summary, "betree", &format!("workload-{letter}"));
            let count = done["extra"][format!("{kind}_count")].as_f64();
            assert!(Some(0.0) < count, "{done:#}");
        }
        let report = place.text("run/report.html");
        assert!(report.contains("Kinds of operations") && report.contains("read modify write"));
    }
}

#[test]
fn the_document_server_runs_them_too() {
    for experiment in ["tpcc", "linkbench", "oltp-read-only", "many-tables", "ycsb"] {
        let place = Place::new();
        let line = format!(
            "run {experiment} -t serve --preset smoke --time 0.4 --settle 0.2 --rows 1000 --out run"
        );
        place.lab(&line).exits(0);
        place.whole("run");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    for (more, needles) in [
        ("tpcc --variant percone", vec!["percona"]),
        ("tpcc --payload 100:50", vec!["--payload", "tpcc"]),
        ("linkbench --batch 5", vec!["--batch", "linkbench"]),
        (
            "oltp-read-only --variant x",
            vec!["--variant", "no variants"],
        ),
        ("oltp-read-only --clients 4,4", vec!["--clients", "twice"]),
        ("tpcc --clients 1,2", vec!["--clients", "one number"]),
        ("iibench-classic --variant spec", vec!["--variant"]),
        ("many-tables --rate 100", vec!["--rate"]),
    ] {
        place
            .lab(&format!("run {more} -t memory --out run"))
            .refuses(3, &needles);
    }
    let told = place
        .lab("run tpcc -t null,memory --dry-run --preset smoke")
        .exits(0)
        .out;
    assert!(told.contains("null: n/a: it keeps nothing"), "{told}");
}

#[test]
fn an_interrupted_run_with_tables_is_resumed() {
    let place = Place::new();
    let line = "run tpcc -t betree --preset smoke --time 3 --settle 0.2 --out run";
    let mut running = place.start(line);
    place.await_step("run", "_no-cap");
    running.signal(Signal::INT);
    assert_eq!(running.end(), 130, "{}", place.text("background.txt"));
    place.lab("resume run").exits(0);
    place.whole("run");
}

#[test]
fn a_worker_killed_in_its_transactions_fails_its_target_only() {
    let place = Place::new();
    let line = "run linkbench -t betree,memory --preset smoke --time 3 --settle 0.2 --out run";
    let mut running = place.start(line);
    place.await_step("run", "_betree_r1_requests");
    send(running.worker(), Signal::KILL);
    assert_eq!(running.end(), 2, "{}", place.text("background.txt"));
    assert_eq!(place.count("run", "failed"), 1);
    assert_eq!(place.count("run", "done"), 5, "{:?}", place.statuses("run"));
}

#[test]
fn all_experiments_make_one_page() {
    let place = Place::new();
    let line = "run all -t memory --preset smoke --rows 1000 --time 0.2 --settle 0.1 --out all";
    place.lab(line).exits(0);
    let page = place.text("all/report.html");
    for name in ["iibench-classic", "redo-log", "tpcc", "many-tables"] {
        assert!(page.contains(&format!("{name}/report.html")), "{name}");
        assert!(place.path(&format!("all/{name}/report.html")).exists());
    }
    // A second call finds that all of them are complete.
    let told = place.lab(line).exits(0).err;
    assert!(told.contains("done before"), "{told}");
}

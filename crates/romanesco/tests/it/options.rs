//! Tests of the settings: each setting reaches the run, and the sources override each other in the
//! documented order.

use std::fs;

use serde_json::Value;

use crate::program::{Place, finish};

const TINY: &str = "--rows 3000 --time 600 --settle 0 --out run";

fn classic(options: &str) -> (Place, Value) {
    let place = Place::new();
    place
        .lab(&format!("run iibench-classic {TINY} {options}"))
        .exits(0);
    let summary = place.whole("run");
    (place, summary)
}

#[test]
fn an_open_loop_keeps_its_schedule_in_mind() {
    let (_place, summary) = classic("-t memory --rate 6000 --batch 20 --arrival uniform");
    let step = &summary["steps"][0];
    assert_eq!(step["rate_target"], 6000.0);
    assert_eq!(step["rows"], 3000);
    // The schedule takes half a second; a slow machine takes longer, no machine takes less.
    assert!(step["seconds"].as_f64().unwrap() > 0.4, "{step:#}");
}

#[test]
fn the_highest_sustained_rate_is_looked_for_in_open_loops() {
    let place = Place::new();
    let said = place
        .lab("run iibench-classic -t lmdb --rows 3000 --time 0.4 --settle 0 --rate auto --out run")
        .exits(0);
    let summary = place.whole("run");
    let steps = summary["steps"].as_array().unwrap();
    let names: Vec<&str> = steps.iter().map(|s| s["step"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "load", "load-50", "load-70", "load-80", "load-90", "load-95"
        ]
    );
    let closed = steps[0]["rate_mean"].as_f64().unwrap();
    assert_eq!(steps[0]["rate_target"], Value::Null);
    let asked = steps[1]["rate_target"].as_f64().unwrap();
    assert!((asked / closed - 0.5).abs() < 1e-9, "{asked} of {closed}");
    // Whether the rate is sustained depends on the machine, but the message is always printed.
    assert!(said.err.contains("lmdb sustains"), "{}", said.err);
    assert!(place.text("run/report.html").contains("id=\"sustained\""));
    let mut lines = place.json("run/cost.json")["lines"]
        .as_array()
        .unwrap()
        .clone();
    lines.retain(|l| l["step"] != "load");
    assert!(lines.is_empty(), "{lines:#?}");
}

#[test]
fn mixes_have_their_highest_sustained_rate_and_its_price() {
    let place = Place::new();
    let line = "run linkbench -t lmdb --preset smoke --time 0.6 --settle 0 --rate auto --out run";
    let said = place.lab(line).exits(0);
    let summary = place.whole("run");
    let steps = summary["steps"].as_array().unwrap();
    let names: Vec<&str> = steps.iter().map(|s| s["step"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "load",
            "warm",
            "requests",
            "requests-50",
            "requests-70",
            "requests-80",
            "requests-90",
            "requests-95"
        ]
    );
    let closed = steps[2]["rate_mean"].as_f64().unwrap();
    for (step, share) in steps[3..].iter().zip([0.5, 0.7, 0.8, 0.9, 0.95]) {
        let asked = step["rate_target"].as_f64().unwrap();
        assert!((asked / closed - share).abs() < 1e-9, "{asked} of {closed}");
        assert!(step["queries"]["queries"].as_u64().unwrap() > 0, "{step:#}");
    }
    let unit = said.err.contains("requests/s in requests");
    assert!(unit || said.err.contains("sustains none"), "{}", said.err);
    let cost = place.json("run/cost.json");
    for line in cost["lines"].as_array().unwrap() {
        let of = line["step"].as_str().unwrap();
        assert!(["load", "warm", "requests"].contains(&of), "{line:#}");
        // Each line has either a rate or the reason why it has none.
        let none = line["sustainable"].is_null();
        assert_ne!(none, line["sustainable_reason"].is_null(), "{line:#}");
        let priced = !line["total"].is_null() && !none;
        assert_eq!(
            line["sustainable_per_dollar"].is_number(),
            priced,
            "{line:#}"
        );
        assert!(of == "requests" || none, "{line:#}");
    }
    let terminal = place.lab("cost run").exits(0);
    assert!(terminal.out.contains("sustained per $"), "{}", terminal.out);
}

#[test]
fn mixes_go_at_a_rate() {
    let place = Place::new();
    let line = "run oltp-read-only -t memory --preset smoke --settle 0 --rate 40 --arrival uniform \
                --out run";
    let planned = place.lab(&format!("{line} --dry-run")).exits(0);
    let said = planned.out + &planned.err;
    assert_eq!(
        said.matches("open loop at 40 transactions/s").count(),
        2,
        "{said}"
    );
    place.lab(line).exits(0);
    let summary = place.whole("run");
    let steps = summary["steps"].as_array().unwrap();
    assert_eq!(steps[0]["rate_target"], Value::Null, "loads are not mixes");
    for step in &steps[1..] {
        assert_eq!(step["rate_target"], 40.0);
        // The schedule bounds the number from above, even if the machine's timer is late.
        let done = step["queries"]["queries"].as_f64().unwrap();
        let due = 40.0 * step["seconds"].as_f64().unwrap() + 4.0;
        assert!((1.0..=due).contains(&done), "{step:#}");
    }
    let report = place.text("run/report.html");
    assert!(report.contains("no published shape is looked for"));
}

#[test]
fn queries_run_beside_the_load() {
    // By its schedule the load lasts two seconds. Even if it is delayed and then does all due
    // operations at once, it leaves time for queries.
    let (_place, summary) = classic("-t memory,lmdb --queries 200 --rate 1500 --batch 20");
    for step in summary["steps"].as_array().unwrap() {
        let queries = &step["queries"];
        assert!(queries["queries"].as_u64().unwrap() > 0, "{step:#}");
        assert!(queries["entries"].as_u64().unwrap() > 0, "{step:#}");
        assert_eq!(step["main"], "rows");
    }
}

#[test]
fn shapes_payloads_and_clients_are_as_asked() {
    let (place, summary) = classic(
        "-t memory,lmdb --index-shape uniform --payload 64:0 --clients 4 --codec none --threads 1",
    );
    assert_eq!(summary["steps"][1]["rows"], 3000);
    let plan = &place.json("run/manifest.json")["plan"];
    assert_eq!(plan["clients"], 4);
    assert_eq!(plan["params"]["shape"], "uniform");
    assert_eq!(plan["codec"], "none");
}

#[test]
fn repeats_are_interleaved() {
    let (place, summary) = classic("-t memory,null --repeats 2");
    let names: Vec<String> = place.names("run/steps");
    let order = [
        "001_memory_r1_load",
        "002_null_r1_load",
        "003_null_r2_load",
        "004_memory_r2_load",
    ];
    assert_eq!(names, order);
    assert_eq!(summary["results"][0]["repeats_valid"], 2);
}

#[test]
fn every_durability_runs() {
    for level in ["sync", "group", "interval", "none"] {
        let (place, _) = classic(&format!("-t lmdb --durability {level} --interval-ms 10"));
        let targets = place.json("run/env/targets.json");
        let told = targets[0]["durability"].as_str().unwrap();
        assert!(told.starts_with(level), "{told}");
    }
}

#[test]
fn the_same_seed_makes_the_same_data() {
    let run = |seed: u64| {
        let place = Place::new();
        let line = format!("run iibench-classic -t lmdb {TINY} --seed {seed} --keep-data");
        place.lab(&line).exits(0);
        let file = place.names("run/data/lmdb-r1");
        assert!(file.iter().any(|n| n.contains("mdb")), "{file:?}");
        let options = kv::EngineOptions::default();
        digest(&place.path("run/data/lmdb-r1"), &options)
    };
    let (first, again, other) = (run(7), run(7), run(8));
    assert_eq!(first, again);
    assert_ne!(first, other);
}

/// A digest of every key and value of every tree.
fn digest(dir: &std::path::Path, options: &kv::EngineOptions) -> u64 {
    let engine = lab::targets::factory("lmdb")
        .unwrap()
        .open(dir, options)
        .unwrap();
    let mut sum = 0u64;
    let mut entries = 0;
    for name in lab::workload::iibench::TREES {
        let tree = engine.open_tree(name).unwrap();
        let snapshot = engine.begin_read().unwrap();
        let mut cursor = snapshot
            .cursor(tree, kv::KeyRange::ALL, kv::Direction::Forward)
            .unwrap();
        while cursor.advance().unwrap() {
            entries += 1;
            let key = stdx::hash::hash64(cursor.key());
            sum = sum.rotate_left(1) ^ key ^ stdx::hash::hash64(cursor.value()).rotate_left(7);
        }
    }
    assert_eq!(entries, 4 * 3000);
    sum
}

#[test]
fn a_dry_run_writes_nothing() {
    let place = Place::new();
    let text = place
        .lab("run iibench-steps -t lmdb --dry-run --out run")
        .exits(0)
        .out;
    for needle in ["qp1000", "disk", "needed at once", "about", "seed 42"] {
        assert!(text.contains(needle), "no {needle:?} in {text}");
    }
    assert_eq!(place.names("."), [""; 0]);
    let text = place
        .lab("run iibench-steps -t lmdb --dry-run --json")
        .exits(0)
        .out;
    let plan: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(plan["plan"]["steps"].as_array().unwrap().len(), 10);
}

#[test]
fn json_is_one_object_a_line() {
    let place = Place::new();
    let ran = place
        .lab(&format!("run iibench-classic -t memory,null {TINY} --json"))
        .exits(0);
    let events: Vec<String> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{line}: {e}")))
        .map(|value| value["event"].as_str().unwrap().to_owned())
        .collect();
    for event in [
        "begin",
        "cell",
        "step",
        "second",
        "verifying",
        "step_end",
        "end",
        "report",
    ] {
        assert!(
            events.iter().any(|e| e == event),
            "no {event} in {events:?}"
        );
    }
    let quiet = place.lab("run iibench-classic -t null --rows 2000 --settle 0 --out q --quiet");
    let quiet = quiet.exits(0);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("", ""));
}

#[test]
fn flags_precede_variables_and_variables_the_file() {
    let place = Place::new();
    let file = "[run]\nexperiments = [\"iibench-classic\"]\nseed = 1\nrows = 2000\nrate = 5.0\n\
                repeats = 4\n[[target]]\nname = \"nothing\"\nengine = \"null\"\n";
    fs::write(place.path("lab.toml"), file).unwrap();
    let mut command = place.command("run --dry-run --json --rate max --repeats 3");
    command.env("LAB_SEED", "2").env("LAB_REPEATS", "9");
    let plan: Value = serde_json::from_str(&finish(command).exits(0).out).unwrap();
    let plan = &plan["plan"];
    assert_eq!(plan["repeats"], 3, "a flag goes before a variable");
    assert_eq!(plan["seed"], 2, "a variable goes before the file");
    assert_eq!(
        plan["steps"][0]["operations"], 2000,
        "the file before the preset"
    );
    assert_eq!(plan["steps"][0]["load"], "closed", "max overrides a rate");
    assert_eq!(plan["targets"][0]["name"], "nothing");
    assert_eq!(plan["preset"], "quick");
}

#[test]
fn mistakes_in_the_file_are_named_with_their_line() {
    let place = Place::new();
    for (text, needles) in [
        ("[run]\n\nsede = 1\n", ["line 3", "sede"]),
        ("[limits]\nmem = \"lots\"\n", ["line 2", "lots"]),
        ("[run\n", ["line 1", "lab.toml"]),
        (
            "[[target]]\nengine=\"null\"\nname=\"a\"\n[[target]]\nengine=\"memory\"\nname=\"a\"\n",
            ["\"a\"", "another name"],
        ),
    ] {
        fs::write(place.path("lab.toml"), text).unwrap();
        place
            .lab("run iibench-classic --out run")
            .refuses(3, &needles);
        assert_eq!(place.names("."), ["lab.toml"]);
    }
}

//! Tests of pages: maps of stores, the experiments that draw them, and codecs on the contents of
//! files.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::program::Place;

/// A run that keeps its stores.
const KEPT: &str = "run iibench-classic -t betree,lmdb --rows 5000 --time 600 --mem 0 --cache 16M \
                    --settle 5 --keep-data --quiet --out run";

#[test]
fn a_store_is_drawn_on_the_terminal_as_a_page_and_as_json() {
    let place = Place::new();
    place.lab(KEPT).exits(0);
    for engine in ["betree", "lmdb"] {
        let store = format!("run/data/{engine}-r1");
        let plain = place.lab(&format!("map {store}")).exits(0).out;
        assert!(plain.is_ascii() && plain.contains("rows"), "{plain}");
        assert!(plain.starts_with(engine), "{plain}");
        let coloured = place.lab(&format!("map {store} --ansi")).exits(0).out;
        assert!(coloured.contains("\u{1b}[38;"), "{coloured}");
        place
            .lab(&format!("map {store} --html {engine}.html"))
            .exits(0);
        let page = place.text(&format!("{engine}.html"));
        assert!(page.contains("<svg") && !page.contains("http://") && !page.contains("https://"));
        let json = place.lab(&format!("map {store} --json")).exits(0).out;
        let map: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(map["kind"], engine);
        assert!(map["sums"]["file_bytes"].as_u64().unwrap() > 500_000);
    }
    let file = place.lab("map run/data/lmdb-r1/data.mdb").exits(0).out;
    assert!(file.contains("index3"), "{file}");
}

#[test]
fn what_cannot_be_drawn_is_refused_by_name() {
    let place = Place::new();
    place.lab("map nowhere").refuses(3, &["nowhere"]);
    fs::write(place.path("letter.txt"), "dear reader").unwrap();
    place
        .lab("map letter.txt")
        .refuses(3, &["letter.txt", "store"]);
    fs::create_dir(place.path("empty")).unwrap();
    place.lab("map empty").refuses(3, &["empty", "no store"]);
    fs::write(place.path("t.ibd"), [0; 65_536]).unwrap();
    place.lab("map t.ibd").refuses(3, &["t.ibd", "tablespace"]);
}

#[test]
fn fill_factor_draws_before_and_after() {
    let place = Place::new();
    let line = "run fill-factor -t betree,lmdb,memory --preset smoke --rows 3000 --mem 0 \
                --settle 5 --out run";
    let told = place.lab(line).exits(0).err;
    place.whole("run");
    let steps = place.names("run/steps");
    let map = |engine: &str, step: &str| {
        let name = format!("_{engine}_r1_{step}");
        let directory = steps.iter().find(|s| s.ends_with(&name)).unwrap();
        place.json(format!("run/steps/{directory}/map.json"))
    };
    for engine in ["betree", "lmdb"] {
        let rebuilds = lab::targets::factory(engine)
            .unwrap()
            .capabilities()
            .compaction;
        let before = if rebuilds { "rebuild" } else { "load" };
        for step in [before, "round3"] {
            let map = map(engine, step);
            assert_eq!(map["kind"], engine);
            assert!(!map["panels"].as_array().unwrap().is_empty());
        }
    }
    // An engine without a fill factor has no results at 75 and 100.
    let summary = place.json("run/summary.json");
    let results = summary["results"].as_array().unwrap();
    let at = results
        .iter()
        .find(|r| r["target"] == "lmdb" && r["step"] == "load-75");
    let why = at.unwrap()["unsupported"].as_str().unwrap();
    assert!(why.contains("no fill factor"), "{why}");
    let report = place.text("run/report.html");
    assert!(report.contains("Maps of the files") && report.contains("after round3"));
    assert!(!told.contains("panicked"), "{told}");
}

#[test]
fn compression_tries_codecs_and_reads_cold() {
    let place = Place::new();
    let line = "run compression -t betree,lmdb --preset smoke --rows 2000 --time 0.3 --mem 0 \
                --settle 5 --out run";
    place.lab(line).exits(0);
    place.whole("run");
    let summary = place.json("run/summary.json");
    let results = summary["results"].as_array().unwrap();
    let step = |target: &str, name: &str| {
        let mut results = results.iter();
        let found = results.find(|r| r["target"] == target && r["step"] == name);
        found.unwrap()
    };
    let extra = &step("betree", "load-50-none")["extra"];
    for codec in [
        "none", "snappy", "lz4", "zlib-6", "zstd-1", "zstd-3", "zstd-9",
    ] {
        for block in [4096, 16_384, 65_536, 131_072] {
            let name = format!("codec.{codec}.{block}.ratio");
            let ratio = extra[&name].as_f64().unwrap();
            assert!((0.9..5.0).contains(&ratio), "{name} {ratio}");
        }
    }
    for codec in lab::targets::factory("betree").unwrap().codecs() {
        let point = step("betree", &format!("point-50-{}", codec.name));
        assert!(point["query_rate"].as_f64().unwrap() > 0.0, "{point}");
    }
    for codec in ["snappy", "lz4", "zlib", "zstd"] {
        let load = step("lmdb", &format!("load-50-{codec}"));
        let why = load["unsupported"].as_str().unwrap();
        assert_eq!(why, format!("it has no codec {codec}"));
    }
    let report = place.text("run/report.html");
    assert!(report.contains("Ratio by speed of decompression"));
}

#[test]
fn an_experiment_that_sets_its_codecs_refuses_others() {
    let place = Place::new();
    let line = "run compression -t betree --codec none --out run";
    place.lab(line).refuses(3, &["--codec", "step by step"]);
    let line = "run fill-factor -t betree --rate 100 --out run";
    place.lab(line).refuses(3, &["--rate"]);
}

#[test]
fn an_interrupted_run_of_stores_is_resumed() {
    let place = Place::new();
    let mut running = place.start(
        "run compression -t betree --preset smoke --rows 2000 --time 0.5 --mem 0 --settle 1 --out \
         run",
    );
    place.await_step("run", "_point-50-none");
    running.signal(Signal::INT);
    assert_eq!(running.end(), 130);
    assert!(!place.path("run/data").exists());
    place.lab("resume run").exits(0);
    place.whole("run");
}

//! What share of the rate of `cp` does a backup of a betree store reach on this disk?
//!
//! Fills a store, then alternates: `cp` of the data file and a sync of the copy; a backup to a
//! directory with each codec, and one with a throttle of 100 MB/s. The page cache is dropped before
//! each, which needs root; without it the line `cached` is printed. Prints MB/s of the data file.
//!
//! `cargo bench -p backup --bench copy -- --dir /disk --gib 4 --repeats 3`
#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark ends with a panic"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use backup::{Codec, Facts, Monotonic, Place, Throttle, take};
use clap::Parser;
use kv::{Batch, Durability, Engine, EngineOptions, Flow, TreeOptions};
use stdx::rng::Rng;

/// Bytes per second of the throttled backup.
const THROTTLE: u64 = 100_000_000;

/// Bytes of a value, which does not compress.
const VALUE: usize = 1_000;

#[derive(Parser)]
struct Options {
    /// Directory for the store and its copies
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// GiB of values
    #[arg(long, default_value_t = 1)]
    gib: u64,
    #[arg(long, default_value_t = 3)]
    repeats: u32,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn fill(engine: &dyn Engine, bytes: u64) {
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let mut rng = Rng::new(1);
    let mut value = vec![0; VALUE];
    for _ in 0..bytes / (1_000 * VALUE as u64) {
        let mut batch = Batch::new();
        for _ in 0..1_000 {
            rng.fill(&mut value);
            batch.put(tree, &rng.next_u64().to_be_bytes(), &value);
        }
        engine.write(&batch, Durability::None).unwrap();
    }
    engine.checkpoint().unwrap();
}

/// Write everything back and drop the page cache; returns whether it could.
fn drop_caches() -> bool {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

/// Run `work`, and print the rate at which `bytes` were copied.
fn measure(what: &str, bytes: u64, work: impl FnOnce()) -> f64 {
    let cold = drop_caches();
    let begun = stdx::time::now();
    work();
    let rate = bytes as f64 / begun.elapsed().as_secs_f64() / 1e6;
    let note = if cold { "" } else { " cached" };
    println!("{what:>16} {rate:>8.0} MB/s{note}");
    rate
}

fn copy_by_cp(from: &Path, to: &Path) {
    for command in [&["cp"][..], &["sync"]] {
        let mut run = Command::new(command.first().unwrap());
        match command {
            ["cp"] => run.arg(from).arg(to),
            _ => run.arg(to),
        };
        assert!(run.status().unwrap().success());
    }
}

fn main() {
    let options = Options::parse();
    let folder = options
        .dir
        .join(format!("copy-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let store = folder.join("store");
    let factory = kv_betree::factory();
    let engine = factory.open(&store, &EngineOptions::default()).unwrap();
    fill(&*engine, options.gib << 30);
    let data = store.join("data.betree");
    let bytes = fs::metadata(&data).unwrap().len();
    println!("{bytes} bytes");
    let target = folder.join("target");
    let backup = |codec, throttle: Option<u64>| {
        let throttle = throttle.map(|rate| Throttle::new(rate, Box::new(Monotonic::default())));
        let place = Place::Directory(target.clone());
        let facts = Facts::default();
        let mut watch = |_| Flow::Continue;
        let taken = take(&*engine, &place, codec, throttle, facts, None, &mut watch);
        taken
            .unwrap()
            .unwrap()
            .files
            .iter()
            .map(|f| f.size)
            .sum::<u64>()
    };
    for repeat in 1..=options.repeats {
        println!("repeat {repeat}");
        let cp = measure("cp", bytes, || copy_by_cp(&data, &target));
        fs::remove_file(&target).unwrap();
        for (name, codec, throttle) in [
            ("backup none", Codec::None, None),
            ("backup lz4", Codec::Lz4, None),
            ("backup zstd", Codec::Zstd, None),
            ("backup throttled", Codec::None, Some(THROTTLE)),
        ] {
            // A backup leaves out free space: the rate is that of what it copies.
            let mut copied = 0;
            let rate = measure(name, bytes, || copied = backup(codec, throttle));
            let share = rate * copied as f64 / bytes as f64 / cp;
            println!("{:>16} {:>8.0} % of cp, {copied} bytes", "", share * 100.0);
            fs::remove_dir_all(&target).unwrap();
        }
    }
    drop(engine);
    fs::remove_dir_all(&folder).unwrap();
}

//! Short runs on every persistent engine that is compiled in.

use std::path::Path;

use kv::Durability;
use torture::{Config, run};

/// Number of cycles of a run: enough for every kind of ending.
const CYCLES: u32 = 40;

/// A seed that draws every kind of ending.
const SEED: u64 = 22;

/// The parameters of a run.
pub(crate) fn config(engine: &str, seed: u64, directory: &Path) -> Config {
    Config {
        engine: engine.to_owned(),
        cycles: CYCLES,
        seed,
        directory: directory.join("torture"),
        program: env!("CARGO_BIN_EXE_torture").into(),
        copy: false,
        kept: Durability::Group,
        canary: false,
        lie: None,
        abort: None,
    }
}

/// WiredTiger 3.2.1 (Debian) is excluded: if it is killed while it creates a store, it may refuse
/// to open the store again ("the library has failed").
const ENGINES: &[&str] = &["betree", "lmdb", "rocksdb"];

#[test]
fn nothing_acknowledged_is_lost() {
    let there = lab::targets::defaults();
    for engine in ENGINES.iter().filter(|engine| there.contains(engine)) {
        let directory = tempfile::tempdir().unwrap();
        let mut notes = 0;
        let summary = run(&config(engine, SEED, directory.path()), &mut |_| notes += 1);
        let summary = summary.unwrap_or_else(|failure| panic!("{failure}"));
        println!("{summary}");
        assert_eq!(notes, CYCLES + 1, "{summary}");
        // Minimum counts, so that a run without effect fails the test. LMDB closes within a
        // millisecond, so a kill mostly comes too late.
        let ended = summary.kills() + summary.closed;
        let over = if *engine == "lmdb" { summary.closed } else { 0 };
        assert!(1 <= summary.killed_closing + over, "{summary}");
        assert!(5 <= summary.killed_opening + summary.aborted, "{summary}");
        assert!(3 <= summary.aborted || *engine != "betree", "{summary}");
        assert_eq!(ended, u64::from(CYCLES) + 1, "{summary}");
        assert!(20 <= summary.kills(), "{summary}");
        assert!(20 <= summary.checks, "{summary}");
        assert!(1 <= summary.rivals, "{summary}");
        assert!(200 <= summary.counts.acked, "{summary}");
        assert!(50 <= summary.counts.promised, "{summary}");
        assert!(1 <= summary.verdict.unreported, "{summary}");
    }
}

/// Commits of betree at `interval` are written to the operating system when the call returns.
#[test]
fn betree_keeps_interval_commits() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config("betree", SEED, directory.path());
    config.kept = Durability::Interval;
    let summary = run(&config, &mut |_| ()).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(20 <= summary.kills(), "{summary}");
    assert!(100 <= summary.counts.promised, "{summary}");
}

/// LMDB has no log: at every level, its commits are written to the operating system.
#[test]
fn lmdb_keeps_every_level() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config("lmdb", 8, directory.path());
    config.kept = Durability::None;
    let summary = run(&config, &mut |_| ()).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(summary.counts.promised, summary.counts.acked, "{summary}");
    assert_eq!(summary.verdict.lost_unpromised, 0, "{summary}");
    assert!(100 <= summary.counts.acked, "{summary}");
}

#[test]
fn an_engine_that_keeps_nothing_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let failure = run(&config("memory", 1, directory.path()), &mut |_| ()).unwrap_err();
    assert!(failure.violation.is_none());
    assert!(failure.story.contains("keeps nothing"), "{failure}");
    assert!(!directory.path().join("torture").exists());
}

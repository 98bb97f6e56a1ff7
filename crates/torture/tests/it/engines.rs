//! Short runs on every persistent engine that is compiled in.

use std::path::Path;

use kv::Durability;
use torture::{Config, run};

/// Cycles of a run: enough for every kind of ending.
const CYCLES: u32 = 40;

/// A run of `engine` in `directory`.
pub(crate) fn config(engine: &str, seed: u64, directory: &Path) -> Config {
    Config {
        engine: engine.to_owned(),
        cycles: CYCLES,
        seed,
        directory: directory.join("torture"),
        program: env!("CARGO_BIN_EXE_torture").into(),
        copy: false,
        kept: Durability::Interval,
        canary: false,
        lie: None,
    }
}

#[test]
fn nothing_acknowledged_is_lost() {
    for engine in lab::target::defaults() {
        let directory = tempfile::tempdir().unwrap();
        let mut told = 0;
        let summary = run(&config(engine, 20, directory.path()), &mut |_| told += 1);
        let summary = summary.unwrap_or_else(|failure| panic!("{failure}"));
        println!("{summary}");
        assert_eq!(told, CYCLES + 1, "{summary}");
        // Floors, so that a run that does nothing does not pass.
        let ended = summary.kills() + summary.closed;
        assert_eq!(ended, u64::from(CYCLES) + 1, "{summary}");
        assert!(20 <= summary.kills(), "{summary}");
        assert!(20 <= summary.checks, "{summary}");
        assert!(1 <= summary.rivals, "{summary}");
        assert!(200 <= summary.counts.acked, "{summary}");
        assert!(50 <= summary.counts.promised, "{summary}");
        assert!(1 <= summary.verdict.unsaid, "{summary}");
    }
}

#[test]
fn an_engine_that_keeps_nothing_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let failure = run(&config("memory", 1, directory.path()), &mut |_| ()).unwrap_err();
    assert!(failure.violation.is_none());
    assert!(failure.story.contains("keeps nothing"), "{failure}");
    assert!(!directory.path().join("torture").exists());
}

//! A replica set of different engines suffers faults while clients write; and clients that cheat
//! must be detected.

use std::path::Path;
use std::time::Duration;

use torture::cluster::{self, Config};

fn config(seed: u64, rounds: u64, directory: &Path) -> Config {
    Config {
        members: ["betree", "lmdb", "betree"].map(str::to_owned).to_vec(),
        // One comparison.
        time: Duration::ZERO,
        rounds,
        seed,
        directory: directory.join("torture"),
        program: env!("CARGO_BIN_EXE_torture").into(),
        clients: 2,
        skips: false,
    }
}

/// Laws C1 to C8.
#[test]
fn a_set_of_different_engines_keeps_its_promises() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(4, 7, directory.path());
    let summary = cluster::run(&config, &mut |_| ()).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{summary}");
    // Minimum counts, so that a run without effect fails the test.
    assert!(7 <= summary.suffered() && 2 <= summary.terms, "{summary}");
    assert!(5 <= summary.acked && 1 <= summary.again, "{summary}");
    assert!(10 <= summary.loose && 20 <= summary.majority, "{summary}");
    assert!(1 <= summary.linearizable, "{summary}");
    assert!(20 <= summary.events && 2 <= summary.resumed, "{summary}");
    assert_eq!(summary.laps, 1, "{summary}");
}

/// Law C1.
#[test]
fn a_write_that_was_never_sent_to_a_set_is_missed() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(5, 2, directory.path());
    config.skips = true;
    let failure = cluster::run(&config, &mut |_| ()).unwrap_err();
    assert!(failure.broken, "{failure}");
    let story = failure.story;
    let parts = ["is lost", "should", "was answered", "C3", "C1"];
    assert!(parts.iter().any(|part| story.contains(part)), "{story}");
    for part in [
        "seed 5",
        "--cluster",
        "journal.txt",
        "the last faults",
        "member 2",
    ] {
        assert!(story.contains(part), "no {part:?} in {story}");
    }
}

/// Seeds that are tried until a plant is found.
#[cfg(feature = "plants")]
const SEEDS: u64 = 12;

/// Each bug of `docdb::plant` is found by some run; the variable `ROMANESCO_PLANTS` names some.
#[cfg(feature = "plants")]
#[test]
fn every_planted_bug_is_found() {
    use std::process::Command;

    let wanted = std::env::var("ROMANESCO_PLANTS").unwrap_or_default();
    let mut passed = Vec::new();
    for (_, plant) in docdb::plant::Plant::ALL {
        if !wanted.is_empty() && !wanted.split(',').any(|name| name == plant) {
            continue;
        }
        let found = (1..=SEEDS).find_map(|seed| {
            let directory = tempfile::tempdir().unwrap();
            let output = Command::new(env!("CARGO_BIN_EXE_torture"))
                .args([
                    "--cluster",
                    "60",
                    "--clients",
                    "2",
                    "--seed",
                    &seed.to_string(),
                ])
                .arg("--dir")
                .arg(directory.path().join("torture"))
                .env("ROMANESCO_PLANT", plant)
                .output()
                .unwrap();
            let story = String::from_utf8_lossy(&output.stderr).into_owned();
            let line = story.lines().next().unwrap_or_default().to_owned();
            (output.status.code() == Some(1)).then_some((seed, line))
        });
        match found {
            Some((seed, line)) => println!("{plant}: seed {seed}: {line:.160}"),
            None => passed.push(plant),
        }
    }
    assert!(passed.is_empty(), "not found: {passed:?}");
}

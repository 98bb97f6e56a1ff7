//! Random mutations of sound inputs, thrown at every decoder and at the engine as a whole.
//!
//! ```sh
//! cargo test -p betree --test fuzz                                  # each target a little
//! cargo test -p betree --test fuzz --release -- TARGET --runs N     # one of them, N times
//! cargo test -p betree --test fuzz -- TARGET --input HEX            # exactly this input
//! ```
//! Inputs that failed once are in `testdata/fuzz/TARGET`, in hexadecimal digits, and run first.
//! There is no coverage to go by; instead a target distinguishes kinds of outcomes, and an input
//! with a new one becomes a parent of others. `ROMANESCO_SEED` draws other inputs.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod engine;
mod mutate;
mod open;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use betree::fuzzing::{TARGETS, Target};
use stdx::rng::Rng;
use stdx::tape::Tape;

/// Maximum number of parents.
const PARENTS: usize = 2_000;

const ENGINE: &[Target] = &[engine::TARGET, open::TARGET];

/// Default number of runs per target: a second or two each.
fn few(target: &Target) -> u64 {
    match target.name {
        "engine" => 60,
        "open" => 300,
        _ => 30_000,
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let all = || TARGETS.iter().chain(ENGINE);
    let find = |name: &str| all().find(|target| target.name == name);
    let outcome = match arguments.as_slice() {
        [name, "--runs", runs] => find(name).zip(runs.parse().ok()),
        [name, "--input", hex] => {
            let tape = Tape::from_hex(hex);
            return match find(name).zip(tape.ok()) {
                Some((target, tape)) => finish(try_one(target, tape.bytes()).map(|_| ())),
                None => usage(),
            };
        }
        // Arguments that the test runner passes to all test programs are ignored.
        _ => {
            return finish(all().try_for_each(|target| fuzz(target, few(target))));
        }
    };
    match outcome {
        Some((target, runs)) => finish(fuzz(target, runs)),
        None => usage(),
    }
}

fn usage() -> ExitCode {
    let names: Vec<&str> = TARGETS.iter().chain(ENGINE).map(|t| t.name).collect();
    eprintln!("usage: [TARGET --runs N | TARGET --input HEX], TARGET one of {names:?}");
    ExitCode::from(2)
}

fn finish(outcome: Result<(), ()>) -> ExitCode {
    if outcome.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Run one input. Returns an error if it panicked, after printing how to reproduce that.
fn try_one(target: &Target, input: &[u8]) -> Result<u64, ()> {
    catch_unwind(AssertUnwindSafe(|| (target.decode)(input))).map_err(|_| {
        let hex = Tape::new(input.to_vec()).to_hex();
        if hex.len() < 50_000 {
            eprintln!(
                "repeat: cargo test -p betree --test fuzz -- {} --input {hex}",
                target.name
            );
            return;
        }
        let path = env::temp_dir().join(format!("{}.hex", target.name));
        let kept = fs::write(&path, hex);
        eprintln!(
            "the input of {} is in {}: {kept:?}",
            target.name,
            path.display()
        );
    })
}

/// Inputs that failed in the past.
fn regressions(target: &Target) -> Vec<Vec<u8>> {
    // Tests run in their package's folder; the folder of the build may be of another clone.
    let folder = Path::new("testdata/fuzz").join(target.name);
    let Ok(files) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = files
        .map(|file| file.expect("a folder reads").path())
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let hex = fs::read_to_string(&path).expect("a file of hexadecimal digits reads");
        Tape::from_hex(&hex)
            .expect("hexadecimal digits")
            .bytes()
            .to_vec()
    };
    paths.into_iter().map(read).collect()
}

fn fuzz(target: &Target, runs: u64) -> Result<(), ()> {
    let seed = env::var("ROMANESCO_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut rng = Rng::new(seed);
    let mut parents = (target.seeds)();
    let failed_once = regressions(target);
    let mut kinds = BTreeSet::new();
    for input in parents.iter().chain(&failed_once) {
        kinds.insert(try_one(target, input)?);
    }
    parents.extend(failed_once);
    let begin = stdx::time::now();
    for _ in 0..runs {
        let input = mutate::mutate(&parents, target.repair, &mut rng);
        if kinds.insert(try_one(target, &input)?) && parents.len() < PARENTS {
            parents.push(input);
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "fuzz {}: {runs} runs in {seconds:.1} s, {} kinds of outcomes, seed {seed}",
        target.name,
        kinds.len()
    );
    Ok(())
}

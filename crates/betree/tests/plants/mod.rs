//! Tests of the tests: each planted bug (`src/plant.rs`) must make a lane fail that passes without
//! it.
//!
//! The lanes are tests of this binary, run by it again in processes of their own: a bug is planted
//! for a whole process, and may end it in any way. Budgets are small: a lane takes a few seconds to
//! find a bug, and is taken for hung only after minutes.

mod table;

use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

pub(crate) use table::Binary;
use table::{Lane, TABLE};

/// Maximum time for a lane to find a bug, or to pass without one.
const LIMIT: Duration = Duration::from_secs(300);

/// The outcome of a lane.
enum End {
    Passed,
    /// Failed, with the first line that states the reason.
    Failed(String),
    Hung,
}

/// Run every lane of `binary` without a bug and with each of its bugs.
pub(crate) fn drive(binary: Binary) {
    assert_table_is_complete();
    let only = std::env::var("BETREE_PLANTS").ok();
    if let Some(only) = &only {
        let known = TABLE.iter().any(|(plant, _)| only == plant);
        assert!(known, "BETREE_PLANTS={only}: no plant has this name");
    }
    let mut jobs: VecDeque<(Option<&str>, &Lane)> = VecDeque::new();
    let mut lanes: Vec<&Lane> = Vec::new();
    let of_binary = TABLE.iter().filter(|(_, lane)| lane.binary == binary);
    for (plant, lane) in of_binary {
        if only.as_ref().is_some_and(|only| only != plant) {
            continue;
        }
        if !lanes.contains(&lane) {
            lanes.push(lane);
            jobs.push_back((None, lane));
        }
        jobs.push_back((Some(plant), lane));
    }
    let (give, take) = mpsc::channel();
    let workers = thread::available_parallelism()
        .map_or(2, usize::from)
        .min(4);
    let parts: Vec<Vec<_>> = (0..workers)
        .map(|worker| jobs.iter().skip(worker).step_by(workers).copied().collect())
        .collect();
    let mut wrong = Vec::new();
    thread::scope(|scope| {
        for part in parts {
            let give = give.clone();
            scope.spawn(move || {
                for (plant, lane) in part {
                    let begin = stdx::time::now();
                    let end = run(plant, lane);
                    let took = stdx::time::now() - begin;
                    give.send((plant, lane, end, took))
                        .expect("the driver listens");
                }
            });
        }
        drop(give);
        for (plant, lane, end, took) in take {
            let (name, seconds) = (plant.unwrap_or("(none)"), took.as_secs_f64());
            let (found, said) = match &end {
                End::Passed => (false, "passed"),
                End::Failed(why) => (true, why.as_str()),
                End::Hung => (true, "hung"),
            };
            println!("{name:26} {:52} {seconds:6.1} s  {said}", lane.to_string());
            if found != plant.is_some() {
                wrong.push(format!("{name} in {lane}: {said}"));
            }
        }
    });
    assert!(
        wrong.is_empty(),
        "a bug must be found, and nothing without one:\n{}",
        wrong.join("\n")
    );
}

fn assert_table_is_complete() {
    // plant: I1.
    let planted: BTreeSet<&str> = betree::plant::names().into_iter().collect();
    let listed: BTreeSet<&str> = TABLE.iter().map(|(plant, _)| *plant).collect();
    assert_eq!(
        planted, listed,
        "every plant has a lane, every lane a plant"
    );
}

/// Run `lane` in a process of its own.
fn run(plant: Option<&str>, lane: &Lane) -> End {
    let this = std::env::current_exe().expect("a test is a file");
    let mut command = Command::new(this);
    for (name, _) in std::env::vars() {
        if name.starts_with("BETREE_") || name.starts_with("ROMANESCO_") {
            command.env_remove(name);
        }
    }
    command
        .args([lane.test, "--exact", "--test-threads=1", "--nocapture"])
        .env("RUST_BACKTRACE", "0")
        .envs(lane.settings.iter().copied())
        .envs(plant.map(|plant| ("BETREE_PLANT", plant)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("this program starts again");
    let errors = child.stderr.take().expect("it is piped");
    let (give, take) = mpsc::channel();
    let reader = thread::Builder::new();
    let reader = reader.spawn(move || {
        let lines: Vec<String> = BufReader::new(errors)
            .lines()
            .map_while(Result::ok)
            .collect();
        // The receiver is gone after the limit.
        let _ = give.send(lines);
    });
    let reader = reader.expect("a thread can be had");
    let lines = take.recv_timeout(LIMIT);
    if lines.is_err() {
        child.kill().expect("it is a child");
    }
    let status = child.wait().expect("it is a child");
    reader.join().expect("reading does not panic");
    match lines {
        Err(_) => End::Hung,
        Ok(_) if status.success() => End::Passed,
        Ok(lines) => End::Failed(reason(&lines, &status.to_string())),
    }
}

/// The first error message of a process, on one line.
fn reason(lines: &[String], status: &str) -> String {
    let panic = lines.iter().position(|line| line.contains("panicked at"));
    let said = lines.iter().skip(panic.map_or(0, |at| at + 1));
    let said: Vec<&str> = said
        .map(|line| line.trim())
        .filter(|l| !l.is_empty())
        .collect();
    match said.first() {
        Some(first) => first.chars().take(90).collect(),
        None => status.to_owned(),
    }
}

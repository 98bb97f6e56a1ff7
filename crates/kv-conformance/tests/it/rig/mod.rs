//! An engine with planted bugs, each of which the laws must detect.

mod content;
mod cursor;
mod engine;
mod pieces;
mod plant;
mod view;

use std::panic::{AssertUnwindSafe, catch_unwind};

use kv::EngineOptions;
use kv_conformance::{
    Bench, Law, Subject, check_laws, check_seed, check_seed_quickly, check_tape, laws,
};

pub(crate) use engine::RigFactory;
use plant::Plant;

/// Number of seeds of random runs that are tried to find a bug.
const SEEDS: u64 = 24;

fn law_that_catches(subject: &Subject, late: bool) -> Option<String> {
    let breaks = |run: fn(&mut Bench<'_>)| {
        catch_unwind(AssertUnwindSafe(|| run(&mut Bench::new(subject)))).is_err()
    };
    let able = |law: &&Law| {
        law.unmet(subject.capabilities(), subject.options())
            .is_none()
    };
    let broken = |law: &&Law| able(law) && breaks(law.run);
    // Later bugs in the list break later laws, so searching from the nearer end saves time.
    let found = match late {
        true => laws().iter().rev().find(broken),
        false => laws().iter().find(broken),
    };
    found.map(ToString::to_string)
}

fn check(plants: &[Plant], late: bool) {
    let mut missed = Vec::new();
    for &plant in plants {
        let factory = RigFactory::leak(Some(plant), false);
        let subject = Subject::new(factory, EngineOptions::default());
        let law = law_that_catches(&subject, late);
        let seed = (0..SEEDS).find(|&seed| check_seed_quickly(&subject, seed).is_some());
        let by_law = law
            .clone()
            .map_or("no law".to_owned(), |law| format!("law {law}"));
        let by_model = seed.map_or("no random run".to_owned(), |seed| format!("seed {seed}"));
        println!("{plant:?}: caught by {by_law} and by {by_model}");
        if law.is_none() {
            missed.push(plant);
        }
    }
    assert!(missed.is_empty(), "no law catches {missed:?}");
}

// The bugs are divided among four tests, which run in parallel.

#[test]
fn planted_bugs_are_caught_by_laws_1_of_4() {
    check(&Plant::ALL[..11], false);
}

#[test]
fn planted_bugs_are_caught_by_laws_2_of_4() {
    check(&Plant::ALL[11..22], false);
}

#[test]
fn planted_bugs_are_caught_by_laws_3_of_4() {
    check(&Plant::ALL[22..33], true);
}

#[test]
fn planted_bugs_are_caught_by_laws_4_of_4() {
    check(&Plant::ALL[33..], true);
}

#[test]
fn a_report_accounts_for_every_law() {
    let subject = Subject::new(RigFactory::leak(None, true), EngineOptions::default());
    let report = check_laws(&subject);
    println!("{report}");
    assert!(report.failed.is_empty(), "{report}");
    assert!(
        !report.skipped.is_empty(),
        "I1: a plain engine cannot do everything"
    );
    let counted = report.passed.len() + report.skipped.len();
    assert_eq!(counted, laws().len(), "I1: no law is passed silently");
    for skipped in &report.skipped {
        let line = skipped.to_string();
        assert!(report.to_string().contains(&line), "I1: {line} is printed");
    }
}

#[test]
fn a_failing_run_shrinks_to_few_steps_and_replays() {
    // I4: the printed tape repeats the run.
    let factory = RigFactory::leak(Some(Plant::BatchReordered), false);
    let subject = Subject::new(factory, EngineOptions::default());
    let mut failures = (0..SEEDS).filter_map(|seed| check_seed(&subject, seed));
    let failure = failures.next().expect("the bug is found by some seed");
    println!("{failure}");
    assert!(failure.steps.len() <= 8, "{failure}");
    let hex = failure.tape.to_hex();
    let again = check_tape(&subject, &stdx::Tape::from_hex(&hex).unwrap());
    assert_eq!(again.map(|again| again.steps), Some(failure.steps));
}

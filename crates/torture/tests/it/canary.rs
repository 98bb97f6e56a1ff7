//! Workers that cheat: the law that each breaks must detect it, within a bounded number of lives.

use torture::oracle::Law;
use torture::protocol::Lie;
use torture::{Config, Failure, run};

use crate::engines::config;

/// The failure by which a run with a cheat is detected. A run lasts until then.
fn caught(change: impl FnOnce(&mut Config)) -> Failure {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config("lmdb", 5, directory.path());
    config.canary = true;
    change(&mut config);
    match run(&config, &mut |_| ()) {
        Ok(summary) => panic!("a cheat was not caught: {config:?}: {summary}"),
        Err(failure) => failure,
    }
}

fn law(failure: &Failure) -> Law {
    failure.violation.as_ref().expect(&failure.story).law
}

fn lie(lie: Lie) -> Failure {
    caught(|config| config.lie = Some(lie))
}

#[test]
fn an_engine_that_keeps_nothing_loses_what_it_acknowledged() {
    let failure = caught(|config| config.engine = "memory".to_owned());
    assert_eq!(law(&failure), Law::Durable, "{failure}");
    for part in [
        "engine memory",
        "seed 5",
        "--seed 5",
        "acknowledged commits are lost",
    ] {
        assert!(failure.story.contains(part), "no {part:?} in {failure}");
    }
}

#[test]
fn a_commit_that_was_never_made_is_missed() {
    let failure = lie(Lie::Skip);
    // The newest commit of a writer is found lost; another commit leaves a gap before later ones.
    let laws = [Law::Durable, Law::Atomic, Law::Order, Law::Prefix];
    assert!(laws.contains(&law(&failure)), "{failure}");
}

#[test]
fn a_commit_held_back_is_missed() {
    let failure = lie(Lie::Hold);
    assert!(
        matches!(law(&failure), Law::Durable | Law::Prefix),
        "{failure}"
    );
}

#[test]
fn half_a_commit_is_noticed() {
    let failure = lie(Lie::Tear);
    // The concurrent reader may notice the half commit first.
    let seen = failure.story.contains("in a snapshot that ends with");
    let laws = [Law::Atomic, Law::Durable, Law::Order];
    assert!(seen || laws.contains(&law(&failure)), "{failure}");
}

#[test]
fn a_rolled_back_commit_that_is_there_is_noticed() {
    let failure = lie(Lie::Leak);
    // A leaked delete leaves no value that names its author. Then no order explains the missing
    // entry; if no other commit changed the entry since the last check, it counts as lost.
    let laws = [Law::Atomic, Law::Order, Law::Durable];
    assert!(laws.contains(&law(&failure)), "{failure}");
}

#[test]
fn the_newest_commit_dropped_at_opening_is_missed() {
    let failure = lie(Lie::Drop);
    assert!(
        matches!(law(&failure), Law::Durable | Law::Atomic),
        "{failure}"
    );
}

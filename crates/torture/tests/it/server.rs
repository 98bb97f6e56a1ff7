//! The document server is killed while clients write; and clients that cheat must be detected.

use std::path::Path;
use std::time::Duration;

use stdx::ByteSize;
use torture::server::hostile::{self, Least, Plan};
use torture::server::{self, Config, Lie, append};

fn config(engine: &str, seed: u64, cycles: u32, directory: &Path) -> Config {
    Config {
        engine: engine.to_owned(),
        cycles,
        seed,
        directory: directory.join("torture"),
        program: env!("CARGO_BIN_EXE_torture").into(),
        clients: 3,
        lie: None,
    }
}

#[test]
fn acknowledged_writes_are_there_once() {
    let directory = tempfile::tempdir().unwrap();
    let config = config("betree", 11, 12, directory.path());
    let summary = server::run(&config, &mut |_| ()).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{summary}");
    // Minimum counts, so that a run without effect fails the test.
    assert!(7 <= summary.kills(), "{summary}");
    assert!(8 <= summary.checks, "{summary}");
    assert!(50 <= summary.acked, "{summary}");
    assert!(5 <= summary.transactions, "{summary}");
    assert!(3 <= summary.built, "{summary}");
}

/// The same test, shorter, on an engine with a single writer and without a log.
#[test]
fn acknowledged_writes_are_there_once_on_lmdb() {
    let directory = tempfile::tempdir().unwrap();
    let config = config("lmdb", 15, 6, directory.path());
    let summary = server::run(&config, &mut |_| ()).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{summary}");
    assert!(3 <= summary.kills(), "{summary}");
    assert!(4 <= summary.checks, "{summary}");
    assert!(20 <= summary.acked, "{summary}");
    assert!(2 <= summary.transactions, "{summary}");
}

#[test]
fn transactions_on_lists_keep_snapshot_isolation_over_kills() {
    let directory = tempfile::tempdir().unwrap();
    let config = config("betree", 12, 0, directory.path());
    let lists = append::run(&config, 600, &mut |_| ()).unwrap_or_else(|f| panic!("{f}"));
    println!("{lists}");
    assert!(
        600 <= lists.transactions && 200 <= lists.committed,
        "{lists}"
    );
    assert!(1 <= lists.kills && 200 <= lists.edges, "{lists}");
}

#[test]
fn transactions_on_lists_keep_snapshot_isolation_on_lmdb() {
    let directory = tempfile::tempdir().unwrap();
    let config = config("lmdb", 17, 0, directory.path());
    let lists = append::run(&config, 200, &mut |_| ()).unwrap_or_else(|f| panic!("{f}"));
    println!("{lists}");
    assert!(
        200 <= lists.transactions && 50 <= lists.committed,
        "{lists}"
    );
}

fn plan(directory: &Path, program: &Path) -> Plan {
    Plan {
        engine: "betree".to_owned(),
        program: program.to_owned(),
        directory: directory.join("torture"),
        seed: 15,
        time: Duration::ZERO,
        // Minimum counts, so that a run without effect fails.
        least: Least {
            sent: 4 << 20,
            probes: 100,
            queries: 100,
            limited: 50,
            operations: 200,
        },
        connections: 200,
        rate: 1 << 20,
        clients: 8,
        memory: ByteSize::mib(768),
        judge_times: false,
    }
}

#[test]
fn hostile_clients_take_neither_memory_nor_answers() {
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(directory.path(), env!("CARGO_BIN_EXE_torture").as_ref());
    let figures = hostile::run(&plan, &mut |_| ()).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{figures}");
    assert!(4 << 20 <= figures.sent, "{figures}");
    let (before, beside) = (&figures.probes_before_login, &figures.probes_beside_queries);
    assert!(100 <= before.count() && 100 <= beside.count(), "{figures}");
    let (queries, limited) = (figures.queries, figures.late.times.count());
    assert!(100 <= queries && 50 <= limited, "{figures}");
    assert!(200 <= figures.operations, "{figures}");
}

#[test]
fn a_server_that_takes_too_much_memory_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let mut plan = plan(directory.path(), env!("CARGO_BIN_EXE_torture").as_ref());
    // Less than the program itself needs.
    plan.memory = ByteSize::mib(4);
    let failure = hostile::run(&plan, &mut |_| ()).unwrap_err();
    let story = &failure.story;
    let starts = story.contains("the server ended while it started");
    assert!(starts || failure.broken && story.contains("H"), "{story}");
}

/// The failure by which a run with a cheat is detected. A run lasts until then.
fn caught(change: impl FnOnce(&mut Config)) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config("betree", 13, 400, directory.path());
    change(&mut config);
    match server::run(&config, &mut |_| ()) {
        Ok(summary) => panic!("a cheat was not caught: {config:?}: {summary}"),
        Err(failure) => {
            assert!(failure.broken, "{failure}");
            failure.story
        }
    }
}

#[test]
fn an_engine_that_keeps_nothing_loses_what_it_acknowledged() {
    // Law W1.
    let story = caught(|config| config.engine = "memory".to_owned());
    for part in ["engine memory", "seed 13", "--server"] {
        assert!(story.contains(part), "no {part:?} in {story}");
    }
}

#[test]
fn a_write_that_was_never_made_is_missed() {
    // Law W1.
    let story = caught(|config| config.lie = Some(Lie::Skip));
    let parts = ["is lost", "should", "was answered", "is unknown"];
    assert!(parts.iter().any(|part| story.contains(part)), "{story}");
}

#[test]
fn an_index_that_was_never_built_is_missed() {
    // Law W5.
    let story = caught(|config| config.lie = Some(Lie::Unbuilt));
    let parts = "acknowledged that it is built, and it is dropped";
    assert!(story.contains(parts), "{story}");
}

#[test]
fn a_write_sent_again_under_another_number_is_noticed() {
    // Law W2. A commit whose reply was lost, and which is unknown under another number, counts as
    // not done: then what it inserted should not be there, and what it deleted is lost.
    let story = caught(|config| config.lie = Some(Lie::Anew));
    let parts = [
        "was answered",
        "should",
        "is unknown",
        "otherwise",
        "is lost",
    ];
    assert!(parts.iter().any(|part| story.contains(part)), "{story}");
}

#[test]
fn a_commit_that_was_never_made_is_an_anomaly() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config("betree", 14, 0, directory.path());
    config.lie = Some(Lie::Skip);
    let failure = append::run(&config, 600, &mut |_| ()).unwrap_err();
    assert!(failure.broken, "{failure}");
}

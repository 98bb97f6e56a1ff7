//! Tests that run programs from load to check, within this process.

use std::path::Path;

use kv::{Durability, EngineOptions};
use lab_report::record::linkbench::Mix;
use lab_report::record::ycsb::{Core, KINDS, Requests};
use lab_report::record::{LoadKind, Task, Work};

use super::session::Session;
use super::step;
use crate::protocol::{Before, Finished, Open, Step};
use crate::workload::iibench::RowParams;
use crate::workload::program::Spec;
use crate::workload::{linkbench, many_tables, oltp, tpcc, ycsb};

fn open(engine: &str, directory: &Path, spec: &Spec) -> Session {
    Session::open(&Open {
        engine: engine.to_owned(),
        uri: None,
        directory: directory.to_owned(),
        options: EngineOptions::default(),
        durability: Durability::Interval,
        rows: RowParams::NONE,
        program: Some(spec.clone()),
        rows_present: 0,
        clients: 3,
        keep: false,
        found: false,
    })
    .unwrap()
}

fn run(session: &mut Session, task: Task, operations: u64, before: Before) -> Finished {
    run_at(session, task, operations, before, LoadKind::Closed)
}

fn run_at(
    session: &mut Session,
    task: Task,
    operations: u64,
    before: Before,
    load: LoadKind,
) -> Finished {
    let plan = Step {
        work: Work::Program(task),
        operations,
        seconds_max: 600.0,
        load,
        clients: 3,
        acknowledged: None,
        before,
        salt: 0,
    };
    let finished = step::run(session, &plan, &|_| {}).unwrap();
    assert_eq!(finished.wrong, Vec::<String>::new());
    let running = session.running.as_ref().unwrap();
    let integrity = running.check(session.database.as_ref());
    assert_eq!(integrity.faults, Vec::<String>::new(), "{task:?}");
    assert_eq!(integrity.rows_found, finished.live_rows);
    finished
}

fn after(finished: &Finished) -> Before {
    Before {
        rows: finished.live_rows,
        bytes: finished.live_bytes,
    }
}

/// Load, run `operations` operations of the mix, and check after both.
fn load_and_mix(spec: &Spec, operations: u64) -> Vec<Finished> {
    let each = ["memory", "betree"].map(|engine| {
        let dir = tempfile::tempdir().unwrap();
        let mut session = open(engine, dir.path(), spec);
        let load = run(&mut session, Task::Fill { tables: 0 }, 0, Before::default());
        assert!(0 < load.live_rows && load.logical_bytes == load.live_bytes);
        let mixed = run(&mut session, Task::MIX, operations, after(&load));
        assert!(operations <= mixed.queries, "{engine}");
        mixed
    });
    each.into()
}

#[test]
fn tpcc_is_consistent_after_its_transactions() {
    for payload in [tpcc::Payload::Spec, tpcc::Payload::Percona] {
        let spec = Spec::Tpcc(tpcc::Params::of(42, 600, payload));
        for mixed in load_and_mix(&spec, 300) {
            assert!(0 < mixed.rows && 0.0 < mixed.extra["new_order_count"]);
            assert!(mixed.extra.contains_key("conflicts"));
        }
    }
}

#[test]
fn linkbench_counts_every_link() {
    for mix in [Mix::Facebook, Mix::Callaghan] {
        let spec = Spec::Linkbench(linkbench::Params {
            seed: 42,
            nodes: 300,
            mix,
        });
        for mixed in load_and_mix(&spec, 2000) {
            assert!(0.0 < mixed.extra["getlinklist_count"] && 0 < mixed.query_entries);
        }
    }
}

#[test]
fn ycsb_runs_its_core_workloads_one_after_the_other() {
    for requests in [Requests::Zipfian, Requests::Latest] {
        let spec = Spec::Ycsb(ycsb::Params {
            seed: 42,
            records: 700,
            field_bytes: 20,
            requests,
        });
        for engine in ["memory", "betree"] {
            let dir = tempfile::tempdir().unwrap();
            let mut session = open(engine, dir.path(), &spec);
            let load = run(&mut session, Task::Fill { tables: 0 }, 0, Before::default());
            assert_eq!(load.live_rows, 700);
            let mut before = after(&load);
            for (mix, core) in (0..).zip(Core::ALL) {
                let done = run(&mut session, Task::Mix { mix }, 400, before);
                let kinds = KINDS.iter().zip(core.weights());
                let several = 1 < core.weights().iter().filter(|weight| 0 < **weight).count();
                for (kind, weight) in kinds.filter(|_| several) {
                    let count = done.extra[&format!("{kind}_count")];
                    assert_eq!(0.0 < count, 0 < weight, "{core:?}: {count} of {kind}");
                }
                let inserted = done.extra.get("insert_count").copied().unwrap_or(0.0);
                let more = (done.live_rows - before.rows) as f64;
                assert!(
                    (inserted - more).abs() < 0.5,
                    "{core:?}: {inserted}, {more}"
                );
                before = after(&done);
            }
            // A new worker knows the numbers of the records from their count.
            session.database.close().unwrap();
            if engine == "betree" {
                let mut session = open(engine, dir.path(), &spec);
                let mix = 5;
                let done = run(&mut session, Task::Mix { mix }, 200, before);
                assert!(before.rows < done.live_rows);
            }
        }
    }
}

/// If the requested rate cannot be reached, operations are late, and the whole delay counts as
/// latency.
#[test]
fn mixes_count_latency_from_the_intended_start() {
    let spec = Spec::Oltp(oltp::Params {
        seed: 42,
        tables: 2,
        rows: 800,
    });
    let dir = tempfile::tempdir().unwrap();
    let mut session = open("memory", dir.path(), &spec);
    let load = run(&mut session, Task::Fill { tables: 0 }, 0, Before::default());
    let closed = run(&mut session, Task::MIX, 300, after(&load));
    let open = LoadKind::Open {
        rate: 1e8,
        poisson: true,
    };
    let late = run_at(&mut session, Task::MIX, 300, after(&load), open);
    assert_eq!(closed.behind, 0);
    assert!(1000 < late.behind, "{} were due", late.behind);
    let histogram = lab_report::record::decode_histogram(&late.histogram).unwrap();
    let latency = crate::load::latency_of(&histogram);
    // The service times of a client add up to no more than its time in the step. Since all
    // operations were due at the start, each latency includes the delay, so the latencies add up to
    // a multiple of that.
    let (all, had) = (
        latency.mean / 1e3 * latency.count as f64,
        3.0 * late.seconds,
    );
    assert!(3.0 * had < all, "{all} s in {had} s");
}

#[test]
fn reading_changes_nothing() {
    let spec = Spec::Oltp(oltp::Params {
        seed: 42,
        tables: 2,
        rows: 800,
    });
    for mixed in load_and_mix(&spec, 50) {
        assert_eq!((mixed.rows, mixed.logical_bytes), (0, 0));
        assert!(50 * 14 <= mixed.query_entries);
    }
}

#[test]
fn many_tables_are_scanned_after_the_store_was_opened_again() {
    let spec = Spec::ManyTables(many_tables::Params {
        seed: 42,
        rows: 1500,
    });
    let dir = tempfile::tempdir().unwrap();
    let mut session = open("betree", dir.path(), &spec);
    let filled = run(
        &mut session,
        Task::Fill { tables: 7 },
        1500,
        Before::default(),
    );
    assert_eq!((filled.rows, filled.live_rows), (1500, 1500));
    assert!(filled.extra.contains_key("create_seconds"));
    session.database.close().unwrap();
    let mut session = open("betree", dir.path(), &spec);
    let scan = run(&mut session, Task::Scan { tables: 7 }, 0, after(&filled));
    assert_eq!(scan.query_entries, 1500);
    assert!(0.0 < scan.extra["entries_per_second"]);
}

#[test]
fn a_target_that_keeps_nothing_refuses_tables() {
    let spec = Spec::Tpcc(tpcc::Params::of(42, 600, tpcc::Payload::Spec));
    let dir = tempfile::tempdir().unwrap();
    let session = open("null", dir.path(), &spec);
    assert!(
        session.database.tables().is_err(),
        "G8: refused, not omitted"
    );
}

//! Clients of programs: workloads that declare their own tables.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use hdrhistogram::Histogram;
use lab_report::error::{Error, Result};
use lab_report::record::{Ended, Integrity, LoadKind, Task};
use stdx::sync::Mutex;
use stdx::time;

use super::counting::Counting;
use super::step::Shared;
use crate::load::{HISTOGRAM_MAX_US, Pace, latency_of, no_latencies};
use crate::protocol::{Before, Finished, Step};
use crate::targets::Database;
use crate::workload::program::{Client, ClientSlot, Program, Spec};
use crate::workload::table::Table;
use crate::workload::tables::{Refused, TableClient};

/// Maximum number of conflicts of one transaction; beyond it the transaction is considered to make
/// no progress.
const CONFLICTS_MAX: u32 = 100_000;

/// A program that runs on an open target.
pub(super) struct Running {
    pub program: Box<dyn Program>,
    /// The tables that are open in the target, and the task that they belong to.
    known: Option<(Task, Vec<Table>)>,
    /// Current number of rows and bytes.
    pub live: Before,
}

impl Running {
    pub(super) fn new(spec: &Spec) -> Running {
        Running {
            program: spec.program(),
            known: None,
            live: Before::default(),
        }
    }

    /// Create the tables that a task starts with, or open those that it needs. Returns the seconds
    /// taken to create tables.
    pub(super) fn enter(
        &mut self,
        task: Task,
        before: Before,
        database: &dyn Database,
    ) -> Result<Option<f64>> {
        let tables = self.program.tables(task);
        let target = database.tables()?;
        self.live = before;
        let mut made = None;
        if matches!(task, Task::Fill { .. }) {
            self.live = Before::default();
            let start = time::now();
            target.create(&tables)?;
            made = Some(start.elapsed().as_secs_f64());
        } else if self.known.is_none() {
            target.attach(&tables)?;
        }
        self.known = Some((task, tables));
        Ok(made)
    }

    fn tables(&self) -> &[Table] {
        self.known.as_ref().map_or(&[], |(_, tables)| tables)
    }

    /// Compare the contents of the target with the expected contents.
    pub(super) fn check(&self, database: &dyn Database) -> Integrity {
        let start = time::now();
        let expected = self.live.rows;
        let mut integrity = Integrity {
            checked: true,
            rows_expected: expected,
            ..Integrity::default()
        };
        let task = self.known.as_ref().map_or(Task::MIX, |(task, _)| *task);
        let tables = database.tables();
        let client = tables.and_then(|t| t.client()).map_err(Refused::Failed);
        match client.and_then(|mut client| self.program.check(task, client.as_mut())) {
            Ok(checked) => {
                integrity.rows_found = checked.rows;
                integrity.faults = checked.faults;
                if checked.rows != expected {
                    let found = checked.rows;
                    let fault = format!("{found} rows, and there should be {expected}");
                    integrity.faults.push(fault);
                }
            }
            Err(refused) => integrity.faults.push(sentence(refused)),
        }
        integrity.seconds = start.elapsed().as_secs_f64();
        integrity
    }
}

fn sentence(refused: Refused) -> String {
    match refused {
        Refused::Conflict => "a check was refused for a conflict".to_owned(),
        Refused::Failed(error) => error.message,
    }
}

/// Counters shared by the clients of a program's step.
#[derive(Default)]
pub(super) struct Counters {
    taken: AtomicU64,
    conflicts: AtomicU64,
    rolled_back: AtomicU64,
    deleted: AtomicU64,
    behind: AtomicU64,
    live_rows: AtomicI64,
    live_bytes: AtomicI64,
    kinds: Mutex<Vec<Histogram<u64>>>,
}

impl Counters {
    pub(super) fn deleted(&self) -> u64 {
        self.deleted.load(Ordering::Relaxed)
    }

    /// The numbers of rows and bytes after the step, from those before it.
    pub(super) fn after(&self, before: Before) -> Before {
        let add = |n: u64, more: &AtomicI64| n.saturating_add_signed(more.load(Ordering::Relaxed));
        Before {
            rows: add(before.rows, &self.live_rows),
            bytes: add(before.bytes, &self.live_bytes),
        }
    }

    /// The workload-specific numbers of the step, by name; by kind of operation if there are
    /// several.
    pub(super) fn extra(&self, program: &dyn Program) -> BTreeMap<String, f64> {
        let mut extra = BTreeMap::new();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        extra.insert("conflicts".to_owned(), load(&self.conflicts));
        extra.insert("rolled_back".to_owned(), load(&self.rolled_back));
        let kinds = self.kinds.lock();
        let done: Vec<_> = program.kinds().iter().zip(kinds.iter()).collect();
        if done.iter().filter(|(_, h)| !h.is_empty()).count() < 2 {
            return extra;
        }
        for (name, histogram) in done {
            let latency = latency_of(histogram);
            let numbers = [
                ("count", latency.count as f64),
                ("p50_ms", latency.p50),
                ("p95_ms", histogram.value_at_quantile(0.95) as f64 / 1e3),
                ("p99_ms", latency.p99),
                ("max_ms", latency.max),
            ];
            for (number, value) in numbers {
                extra.insert(format!("{name}_{number}"), value);
            }
        }
        extra
    }
}

/// The result of a step, with the workload-specific numbers added.
pub(super) fn finished(
    running: &Running,
    task: Task,
    plan: &Step,
    counters: &Counters,
    finished: Finished,
) -> Result<Finished> {
    let load = matches!(task, Task::Fill { .. });
    if load && finished.ended == Ended::Time && !running.program.partial() {
        return Err(Error::target(format!(
            "the load was not done in {:.0} s, and what follows needs all of it: choose a smaller \
             --scale",
            plan.seconds_max
        )));
    }
    let live = counters.after(running.live);
    let mut extra = counters.extra(running.program.as_ref());
    if matches!(task, Task::Scan { .. }) && 0.0 < finished.seconds {
        let rate = finished.query_entries as f64 / finished.seconds;
        let each = live.bytes as f64 / live.rows.max(1) as f64;
        extra.insert("entries_per_second".to_owned(), rate);
        extra.insert("scan_mb_per_second".to_owned(), rate * each / 1e6);
    }
    Ok(Finished {
        live_bytes: live.bytes,
        live_rows: live.rows,
        rows_deleted: counters.deleted(),
        behind: counters.behind.load(Ordering::Relaxed),
        extra,
        ..finished
    })
}

pub(super) fn client(shared: &Shared<'_>, client: u32, task: Task) {
    if let Err(error) = run(shared, client, task) {
        shared.fail(error);
    }
}

fn run(shared: &Shared<'_>, number: u32, task: Task) -> Result<()> {
    let session = shared.session;
    let running = session.running.as_ref();
    let running = running.ok_or_else(|| Error::target("there is no program"))?;
    let slot = ClientSlot {
        client: number,
        clients: shared.plan.clients,
        rows: running.live.rows,
        salt: running.live.rows
            ^ u64::from(shared.plan.clients)
            ^ (u64::from(shared.plan.salt) << 24),
        taken: &shared.counters.taken,
        operations: shared.plan.operations,
    };
    let seed = slot.seed(1);
    let mut work = running.program.client(task, slot);
    let connected = session.database.tables().and_then(|t| t.client());
    let start = shared.arrive();
    let mut link = Counting::new(connected?, running.tables());
    let mut kinds = latencies(running.program.as_ref());
    let mut pace = Pace::new(shared.plan.load, 1.0, shared.plan.clients, seed, start);
    while !shared.stopped() {
        let intended = pace.next(time::now());
        if !shared.wait_until(intended) {
            break;
        }
        let Some(kind) = shared.generate(|| work.next()) else {
            break;
        };
        let due = match shared.plan.load {
            LoadKind::Closed => time::now(),
            LoadKind::Open { .. } => intended,
        };
        shared.main.begin(number as usize, due);
        let through = attempt(shared, work.as_mut(), &mut link)?;
        let end = time::now();
        shared.main.end(number as usize, due, end);
        if !through {
            break;
        }
        if let Some(histogram) = kinds.get_mut(kind) {
            let micros = end.saturating_duration_since(due).as_micros();
            let micros = u64::try_from(micros).unwrap_or(HISTOGRAM_MAX_US);
            histogram.saturating_record(micros.max(1));
        }
        count(shared, &mut link, task);
    }
    let behind = pace.behind(time::now());
    shared.counters.behind.fetch_add(behind, Ordering::Relaxed);
    let mut all = shared.counters.kinds.lock();
    if all.is_empty() {
        *all = kinds;
    } else {
        for (sum, one) in all.iter_mut().zip(&kinds) {
            sum.add(one)
                .map_err(|e| Error::target(format!("histograms do not add: {e}")))?;
        }
    }
    Ok(())
}

/// An empty histogram for each kind of operation; no histograms if there is only one kind, which is
/// the main operation, whose latencies are recorded already.
fn latencies(program: &dyn Program) -> Vec<Histogram<u64>> {
    match program.kinds().len() {
        0 | 1 => Vec::new(),
        kinds => vec![no_latencies(); kinds],
    }
}

/// Run an operation, and retry it after each conflict. Returns false if the step ended meanwhile.
fn attempt(shared: &Shared<'_>, work: &mut dyn Client, link: &mut Counting<'_>) -> Result<bool> {
    for _ in 0..CONFLICTS_MAX {
        match work.run(link) {
            Ok(done) => {
                shared.entries.fetch_add(done.entries, Ordering::Relaxed);
                let back = u64::from(done.rolled_back);
                shared
                    .counters
                    .rolled_back
                    .fetch_add(back, Ordering::Relaxed);
                if let Some(wrong) = done.wrong {
                    shared.wrong(wrong);
                }
                return Ok(true);
            }
            Err(Refused::Conflict) => {
                link.abort();
                shared.counters.conflicts.fetch_add(1, Ordering::Relaxed);
                if shared.stopped() {
                    return Ok(false);
                }
            }
            Err(Refused::Failed(error)) => {
                link.abort();
                return Err(error);
            }
        }
    }
    Err(Error::target(format!(
        "a transaction was in conflict {CONFLICTS_MAX} times: fewer --clients may get through"
    )))
}

/// Add the writes and operations of a client to the counters of the step.
fn count(shared: &Shared<'_>, link: &mut Counting<'_>, task: Task) {
    let written = std::mem::take(&mut link.written);
    let counters = &shared.counters;
    shared
        .logical_bytes
        .fetch_add(written.bytes, Ordering::Relaxed);
    counters
        .deleted
        .fetch_add(written.deleted, Ordering::Relaxed);
    counters
        .live_rows
        .fetch_add(written.live_rows, Ordering::Relaxed);
    counters
        .live_bytes
        .fetch_add(written.live_bytes, Ordering::Relaxed);
    shared.rows.fetch_add(written.rows, Ordering::Relaxed);
    if !matches!(task, Task::Fill { .. }) {
        let done = shared.queries.fetch_add(1, Ordering::Relaxed) + 1;
        if 0 < shared.plan.operations && shared.plan.operations <= done {
            shared.stop_all();
        }
    }
}

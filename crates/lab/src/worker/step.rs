//! Runs one step: clients in threads, and a ticker that reports progress to the lab.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lab_host::sample::self_usage;
use lab_report::error::{Error, Result};
use lab_report::record::{Ended, Main, Work, encode_histogram};
use rustix::time::{ClockId, clock_gettime};
use stdx::sync::Mutex;
use stdx::time;

use super::session::Session;
use super::{build, insert, program, query, scan};
use crate::load::{Marks, Recorder, latency_of};
use crate::protocol::{Before, Event, Finished, Interval, Step, Tick};
use crate::targets::Live;

/// Polling interval of the ticker: the resolution with which the ends of tenths and intervals are
/// measured.
const LOOK: Duration = Duration::from_millis(50);

/// Interval at which a connected client checks whether all clients are connected.
const ARRIVAL: Duration = Duration::from_millis(1);

/// Maximum number of wrong results whose text is kept.
const WRONG_MAX: usize = 20;

/// State shared by the clients of a step.
pub(super) struct Shared<'a> {
    pub session: &'a Session,
    pub plan: &'a Step,
    /// Number of clients of the main operation that are not connected yet.
    absent: AtomicUsize,
    /// When the step started, which is when all clients of the main operation were connected.
    start: OnceLock<Instant>,
    /// The next row to write, and the row at which to stop.
    pub next_row: AtomicU64,
    pub end_row: u64,
    /// The next row to delete.
    pub next_delete: AtomicU64,
    pub rows: AtomicU64,
    pub queries: AtomicU64,
    pub entries: AtomicU64,
    pub logical_bytes: AtomicU64,
    client_cpu_ns: AtomicU64,
    /// CPU time of this process before the step; `None` unless all its CPU time counts as the
    /// generator's.
    process_cpu: Option<f64>,
    /// When the last client of the main operation ended, in microseconds since `start`.
    ended_us: AtomicU64,
    stop: AtomicBool,
    timed_out: AtomicBool,
    error: Mutex<Option<Error>>,
    wrong: Mutex<Vec<String>>,
    /// Latency of the step's main operation.
    pub main: Recorder,
    /// Latency of queries during a load.
    pub side: Recorder,
    /// Further counters of the clients of a program.
    pub counters: program::Counters,
}

impl Shared<'_> {
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// End the step because all its work is done.
    pub(super) fn stop_all(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn fail(&self, error: Error) {
        self.error.lock().get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn wrong(&self, message: String) {
        let mut wrong = self.wrong.lock();
        if wrong.len() < WRONG_MAX {
            wrong.push(message);
        }
    }

    /// Called by a client of the main operation when it has connected or failed to connect. Waits
    /// for the other clients, because connecting is not part of the step; returns when the step
    /// started.
    pub(super) fn arrive(&self) -> Instant {
        self.absent.fetch_sub(1, Ordering::AcqRel);
        self.begun()
    }

    /// Wait until all clients are connected; returns when the step started.
    pub(super) fn begun(&self) -> Instant {
        while 0 < self.absent.load(Ordering::Acquire) && !self.stopped() {
            time::sleep(ARRIVAL);
        }
        *self.start.get_or_init(time::now)
    }

    /// Seconds since the step started.
    fn elapsed(&self) -> f64 {
        let since = |start: &Instant| start.elapsed().as_secs_f64();
        self.start.get().map_or(0.0, since)
    }

    /// Block until `due` or the end of the step; false at the end.
    pub(super) fn wait_until(&self, due: Instant) -> bool {
        loop {
            if self.stopped() {
                return false;
            }
            let left = due.saturating_duration_since(time::now());
            if left.is_zero() {
                return true;
            }
            time::sleep(left.min(LOOK));
        }
    }

    /// Run `make` and add its CPU time to that of the load generator.
    pub(super) fn generate<T>(&self, make: impl FnOnce() -> T) -> T {
        let before = thread_cpu();
        let made = make();
        let spent = thread_cpu().saturating_sub(before).as_nanos();
        self.client_cpu_ns
            .fetch_add(u64::try_from(spent).unwrap_or(0), Ordering::Relaxed);
        made
    }

    /// Number of main operations done: rows in loads, queries in query steps.
    fn done(&self) -> u64 {
        match self.plan.work.main() {
            Main::Queries => self.queries.load(Ordering::Relaxed),
            Main::Rows => self.rows.load(Ordering::Relaxed),
        }
    }

    /// Record that a client of the main operation ended.
    fn ended(&self) {
        let since = self.start.get().map_or(Duration::ZERO, Instant::elapsed);
        let us = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        self.ended_us.fetch_max(us, Ordering::Relaxed);
    }

    fn client_cpu(&self) -> f64 {
        match (self.process_cpu, process_cpu()) {
            (Some(before), Some(now)) => now - before,
            _ => self.client_cpu_ns.load(Ordering::Relaxed) as f64 / 1e9,
        }
    }
}

fn process_cpu() -> Option<f64> {
    self_usage().map(|usage| usage.cpu_s)
}

fn thread_cpu() -> Duration {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(t.tv_sec).unwrap_or(0),
        u32::try_from(t.tv_nsec).unwrap_or(0),
    )
}

/// Run a step on an open store.
pub(super) fn run(session: &mut Session, plan: &Step, emit: &dyn Fn(Event)) -> Result<Finished> {
    // A step that builds the indexes must not find them already created.
    let builds = matches!(plan.work, Work::BuildIndexes);
    let needs_indexes = match plan.work {
        Work::Load { indexes, .. } => indexes,
        Work::BuildIndexes | Work::Query { .. } | Work::Scan => true,
        Work::Rebuild | Work::Program(_) => false,
    };
    if needs_indexes && !builds {
        session.database.create_indexes()?;
    }
    let before = session.live;
    let made = enter(session, plan)?;
    let shared = shared(session, plan);
    let mut ticker = Ticker::new(&shared, before);
    thread::scope(|scope| {
        let mut clients = Vec::new();
        for (name, body) in clients_of(&shared) {
            let builder = thread::Builder::new().name(name);
            match builder.spawn_scoped(scope, body) {
                Ok(handle) => clients.push(handle),
                Err(e) => shared.fail(Error::environment(format!(
                    "cannot start a load thread: {e}"
                ))),
            }
        }
        while clients.iter().any(|c| !c.is_finished()) {
            time::sleep(LOOK);
            ticker.look(emit);
        }
    });
    let seconds = ticker.finish(emit);
    if let Some(error) = shared.error.lock().take() {
        return Err(error);
    }
    let finished = outcome(&shared, &ticker.marks, seconds);
    if let (Work::Program(task), Some(running)) = (&plan.work, &session.running) {
        let finished = program::finished(running, *task, plan, &shared.counters, finished)?;
        if let Some(running) = &mut session.running {
            running.live = Before {
                rows: finished.live_rows,
                bytes: finished.live_bytes,
            };
        }
        return Ok(with(finished, made));
    }
    let live = Live {
        low: shared.next_delete.load(Ordering::Relaxed),
        high: shared.next_row.load(Ordering::Relaxed).min(shared.end_row),
        indexed: before.indexed || needs_indexes,
    };
    session.live = live;
    Ok(Finished {
        live_bytes: session.live_bytes(),
        live_rows: live.rows(),
        ..finished
    })
}

/// Add the seconds taken to create tables to the result.
fn with(mut finished: Finished, made: Option<f64>) -> Finished {
    let made = made.map(|seconds| ("create_seconds".to_owned(), seconds));
    finished.extra.extend(made);
    finished
}

/// Create the tables of a program, or open them.
fn enter(session: &mut Session, plan: &Step) -> Result<Option<f64>> {
    let Work::Program(task) = plan.work else {
        return Ok(None);
    };
    let running = session.running.as_mut();
    let running =
        running.ok_or_else(|| Error::target("the run has no workload with tables of its own"))?;
    running.enter(task, plan.before, session.database.as_ref())
}

fn shared<'a>(session: &'a Session, plan: &'a Step) -> Shared<'a> {
    let made = time::now();
    let live = session.live;
    let end_row = match plan.work {
        Work::Load { .. } if plan.operations > 0 => live.high + plan.operations,
        Work::BuildIndexes | Work::Rebuild => live.high,
        Work::Load { .. } | Work::Query { .. } | Work::Scan | Work::Program(_) => u64::MAX,
    };
    Shared {
        session,
        plan,
        absent: AtomicUsize::new(mains(plan)),
        start: OnceLock::new(),
        next_row: AtomicU64::new(live.high),
        end_row,
        next_delete: AtomicU64::new(live.low),
        rows: AtomicU64::new(0),
        queries: AtomicU64::new(0),
        entries: AtomicU64::new(0),
        logical_bytes: AtomicU64::new(0),
        client_cpu_ns: AtomicU64::new(0),
        process_cpu: session.database.server().and_then(|_| process_cpu()),
        ended_us: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        timed_out: AtomicBool::new(false),
        error: Mutex::new(None),
        wrong: Mutex::new(Vec::new()),
        main: Recorder::new(plan.clients, made),
        side: Recorder::new(plan.clients, made),
        counters: program::Counters::default(),
    }
}

/// The number of clients of the main operation of a step; see [`main_of`].
fn mains(plan: &Step) -> usize {
    match plan.work {
        Work::Load { .. } | Work::Program(_) | Work::Query { .. } => plan.clients as usize,
        Work::BuildIndexes | Work::Rebuild | Work::Scan => 1,
    }
}

type Body<'a> = Box<dyn FnOnce() + Send + 'a>;

fn clients_of<'a>(shared: &'a Shared<'a>) -> Vec<(String, Body<'a>)> {
    let mut clients: Vec<(String, Body<'a>)> = Vec::new();
    let mut add = |name: String, body: Body<'a>| clients.push((name, body));
    let count = shared.plan.clients;
    match shared.plan.work {
        Work::Load { queries, .. } => {
            for client in 0..count {
                let body = main_of(shared, move || insert::load(shared, client));
                add(format!("load-{client}"), body);
            }
            if let Some(queries) = queries {
                let body = move || query::beside_load(shared, queries);
                add("query".to_owned(), Box::new(body));
            }
        }
        Work::BuildIndexes => add(
            "build".to_owned(),
            main_of(shared, move || build::indexes(shared)),
        ),
        Work::Rebuild => add(
            "rebuild".to_owned(),
            main_of(shared, move || build::rows(shared)),
        ),
        Work::Program(task) => {
            for client in 0..count {
                let body = main_of(shared, move || program::client(shared, client, task));
                add(format!("load-{client}"), body);
            }
        }
        Work::Scan => add(
            "scan".to_owned(),
            main_of(shared, move || scan::all(shared)),
        ),
        Work::Query { point, .. } => {
            for client in 0..count {
                let body = main_of(shared, move || query::closed(shared, client, point));
                add(format!("query-{client}"), body);
                let body = move || insert::background(shared, client);
                add(format!("write-{client}"), Box::new(body));
            }
        }
    }
    clients
}

/// A client of the main operation: the step waits for its connection, and records its end.
fn main_of<'a>(shared: &'a Shared<'a>, body: impl FnOnce() + Send + 'a) -> Body<'a> {
    Box::new(move || {
        body();
        shared.ended();
    })
}

fn outcome(shared: &Shared<'_>, marks: &Marks, seconds: f64) -> Finished {
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let done = shared.done();
    let tenth = done / 10;
    let deleted = load(&shared.next_delete) - shared.session.live.low;
    let mean = if seconds > 0.0 {
        done as f64 / seconds
    } else {
        0.0
    };
    let side = shared.side.step();
    let timed_out = shared.timed_out.load(Ordering::Relaxed);
    let ended = if timed_out {
        Ended::Time
    } else {
        Ended::Operations
    };
    let beside = matches!(
        shared.plan.work,
        Work::Load {
            queries: Some(_),
            ..
        }
    );
    Finished {
        ended,
        rows: load(&shared.rows),
        rows_deleted: deleted,
        queries: load(&shared.queries),
        query_entries: load(&shared.entries),
        seconds,
        rate_first_tenth: marks.rate(0, tenth).unwrap_or(mean),
        rate_last_tenth: marks.rate(done - tenth, done).unwrap_or(mean),
        histogram: encode_histogram(&shared.main.step()),
        query_histogram: beside.then(|| encode_histogram(&side)),
        client_cpu_seconds: shared.client_cpu(),
        logical_bytes: load(&shared.logical_bytes),
        live_bytes: 0,
        live_rows: 0,
        wrong: shared.wrong.lock().clone(),
        behind: 0,
        extra: std::collections::BTreeMap::new(),
    }
}

/// Polls the counters every [`LOOK`], and reports each second and each interval.
struct Ticker<'a> {
    shared: &'a Shared<'a>,
    before: Live,
    marks: Marks,
    next_second: f64,
    interval: u32,
    interval_start: f64,
    interval_queries: u64,
}

impl<'a> Ticker<'a> {
    fn new(shared: &'a Shared<'a>, before: Live) -> Ticker<'a> {
        Ticker {
            shared,
            before,
            marks: Marks::default(),
            next_second: 1.0,
            interval: 0,
            interval_start: 0.0,
            interval_queries: 0,
        }
    }

    fn look(&mut self, emit: &dyn Fn(Event)) {
        let t = self.shared.elapsed();
        self.marks.push(t, self.shared.done());
        if t >= self.shared.plan.seconds_max && !self.shared.stopped() {
            self.shared.timed_out.store(true, Ordering::Relaxed);
            self.shared.stop.store(true, Ordering::Relaxed);
        }
        self.intervals(emit);
        if t >= self.next_second {
            self.next_second = t.floor() + 1.0;
            emit(Event::Tick(Box::new(self.tick(t))));
        }
    }

    /// Poll for the last time; returns the time at which the last operation ended, in seconds since
    /// the start.
    fn finish(&mut self, emit: &dyn Fn(Event)) -> f64 {
        let ended = self.shared.ended_us.load(Ordering::Relaxed) as f64 / 1e6;
        self.marks.finish(ended, self.shared.done());
        self.intervals(emit);
        emit(Event::Tick(Box::new(self.tick(self.shared.elapsed()))));
        ended
    }

    fn tick(&self, t: f64) -> Tick {
        let second = self.shared.main.take_second();
        let latency = (!second.is_empty()).then(|| latency_of(&second));
        let oldest = self
            .shared
            .main
            .oldest(time::now())
            .map(|d| d.as_secs_f64() * 1e3);
        let longest = latency
            .map(|l| l.max)
            .into_iter()
            .chain(oldest)
            .reduce(f64::max);
        let state = self.shared.session.database.state();
        Tick {
            t,
            rows: self.shared.rows.load(Ordering::Relaxed),
            queries: self.shared.queries.load(Ordering::Relaxed),
            p50_ms: latency.map(|l| l.p50),
            p99_ms: latency.map(|l| l.p99),
            max_ms: longest,
            client_cpu_seconds: self.shared.client_cpu(),
            stats: state.stats,
            file_bytes: state.file_bytes,
        }
    }

    fn intervals(&mut self, emit: &dyn Fn(Event)) {
        let Work::Load { interval_rows, .. } = self.shared.plan.work else {
            return;
        };
        if interval_rows == 0 {
            return;
        }
        loop {
            let rows = interval_rows * u64::from(self.interval + 1);
            let Some(t) = self.marks.time_of(rows) else {
                return;
            };
            emit(Event::Interval(self.end_interval(rows, interval_rows, t)));
        }
    }

    fn end_interval(&mut self, rows: u64, interval_rows: u64, t: f64) -> Interval {
        let commits = self.shared.main.take_interval();
        let queries = latency_of(&self.shared.side.take_interval());
        let all_queries = self.shared.queries.load(Ordering::Relaxed);
        let seconds = t - self.interval_start;
        let mean = if seconds > 0.0 {
            interval_rows as f64 / seconds
        } else {
            0.0
        };
        self.interval += 1;
        let interval = Interval {
            interval: self.interval,
            rows: self.before.rows() + rows,
            rows_written: interval_rows,
            t,
            seconds,
            exit_rate: self
                .marks
                .rate(rows - interval_rows / 20, rows)
                .unwrap_or(mean),
            max_stall_seconds: latency_of(&commits).max / 1e3,
            queries: all_queries - self.interval_queries,
            query_mean_ms: queries.mean,
            query_p99_ms: queries.p99,
        };
        self.interval_start = t;
        self.interval_queries = all_queries;
        interval
    }
}

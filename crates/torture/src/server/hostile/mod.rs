//! Hostile clients: a server with a memory limit still serves others, and stays within the limit.
//!
//! ```text
//!  phase 1, the server wants a login    phase 2, it does not
//!    attackers before login               clients with runaway queries, and ordinary ones
//!    a probe greets, again and again      a probe finds by `_id`, again and again
//!                                         a client that ends queries by `killOp`
//! ```
//!
//! The laws:
//!
//! - H1. The server does not end, and the kernel does not kill it for memory.
//! - H2. Its resident memory stays within the limit.
//! - H3. Every probe is answered; with [`Plan::judge_times`], 99 of 100 of each phase within
//!   [`PROBE_MAX`].
//! - H4. A query ends at its `maxTimeMS`; with [`Plan::judge_times`], 99 of 100 within [`LATE_MAX`]
//!   after it.
//! - H5. An interrupted query ends; with [`Plan::judge_times`], each within [`KILL_MAX`].

mod cap;
mod figures;
mod load;
mod probe;
mod runaway;
mod tally;

use std::path::PathBuf;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use bson::doc;
use stdx::sync::atomic::{AtomicBool, Ordering};
use stdx::{ByteSize, Rng, time};

use super::attack::{self, Counts};
use super::link::Link;
use super::process::Process;
use super::report::Failure;
use cap::Cap;
use figures::Part;
pub use figures::{Figures, Late, Times};
pub use tally::Least;
use tally::Tally;

/// Maximum duration of 99 of 100 probes.
pub const PROBE_MAX: Duration = Duration::from_millis(100);
/// Maximum time for which 99 of 100 queries may continue after their `maxTimeMS`.
pub const LATE_MAX: Duration = Duration::from_millis(100);
/// Maximum time for which a query may continue after `killOp`.
pub const KILL_MAX: Duration = Duration::from_secs(1);

/// Maximum time of a phase beyond its part of [`Plan::time`]. A phase that has not reached its
/// minimum counts by then fails.
const PATIENCE: Duration = Duration::from_secs(300);
/// Interval of checks of the server's memory.
const LOOK: Duration = Duration::from_millis(20);

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server's storage engine.
    pub engine: String,
    /// The program of the server, run with `serve`.
    pub program: PathBuf,
    /// The directory of the store; empty or missing.
    pub directory: PathBuf,
    /// The seed of attacks and queries.
    pub seed: u64,
    /// The minimum duration of both phases together.
    pub time: Duration,
    /// The minimum counts.
    pub least: Least,
    /// Connections of the attackers before login.
    pub connections: usize,
    /// Total bytes per second sent by the attackers.
    pub rate: u64,
    /// Clients that send runaway queries.
    pub clients: u32,
    /// The memory limit.
    pub memory: ByteSize,
    /// Whether durations are checked; on a machine with other load they have no meaning.
    pub judge_times: bool,
}

/// Executes a run. `note` is called for each phase.
///
/// # Errors
/// The broken law, or the reason why the run could not start.
pub fn run(plan: &Plan, note: &mut dyn FnMut(&str)) -> Result<Figures, Failure> {
    let fail = |broken: bool, story: String| Failure {
        broken,
        story: format!("{story}\n  kept in {}", plan.directory.display()),
        directory: plan.directory.clone(),
    };
    super::cycle::empty(&plan.directory).map_err(|e| fail(false, e))?;
    let mut figures = Figures::of(plan);
    for phase in [Phase::BeforeLogin, Phase::Queries] {
        let cap = Cap::new(plan.memory);
        figures.capped = cap.refusal().map_or(Ok(()), |why| Err(why.to_owned()));
        let mut process = start(plan, phase, &cap).map_err(|e| fail(false, e))?;
        let port = process.port().map_err(|e| fail(false, e))?;
        note(&format!("{phase:?} on port {port}"));
        let done = attacked(plan, phase, (&mut process, port), &cap, &mut figures);
        done.map_err(|story| fail(true, format!("{phase:?}: {story}")))?;
        process
            .stop()
            .map_err(|e| fail(true, format!("{phase:?}, at the end: {e}")))?;
    }
    figures.judge(plan).map_err(|story| fail(true, story))?;
    note(&format!(
        "the latest queries:{}",
        figures.late.latest(usize::MAX)
    ));
    Ok(figures)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    BeforeLogin,
    Queries,
}

fn start(plan: &Plan, phase: Phase, cap: &Cap) -> Result<Process, String> {
    let directory = plan.directory.join(format!("{phase:?}"));
    // Half of the limit: the server's default in a control group.
    let cache = format!(
        "{:.3}",
        plan.memory.bytes() as f64 / 2.0 / (1_u64 << 30) as f64
    );
    let mut more = vec!["--cacheSizeGB", cache.as_str()];
    if phase == Phase::BeforeLogin {
        more.push("--auth");
    }
    Process::start_in(&plan.program, &plan.engine, &directory, &more, &|process| {
        cap.admit(process)
    })
}

/// Runs one phase, and checks the memory of the server meanwhile.
fn attacked(
    plan: &Plan,
    phase: Phase,
    (process, port): (&mut Process, u16),
    cap: &Cap,
    figures: &mut Figures,
) -> Result<(), String> {
    if phase == Phase::Queries {
        runaway::fill(port)?;
    }
    // Queries without `maxTimeMS` are interrupted until the last client has its reply.
    let replied = AtomicBool::new(false);
    let (counts, tally) = (Counts::default(), Tally::default());
    let attackers = match phase {
        Phase::BeforeLogin => attack::attackers(port, plan.connections, attack::THREADS)?,
        Phase::Queries => Vec::new(),
    };
    let watched = thread::scope(|scope| {
        let mut clients = Clients {
            workers: Vec::new(),
            interrupter: None,
            probe: scope.spawn(|| probe::run(port, phase, &tally)),
        };
        for attackers in attackers {
            scope.spawn(|| attack::strike(attackers, port, Some(plan.rate), &counts));
        }
        if phase == Phase::Queries {
            for number in 0..plan.clients {
                let (rng, tally) = (rng(plan, number), &tally);
                let run = move || runaway::run(port, number, rng, tally);
                clients.workers.push(scope.spawn(run));
            }
            for number in 0..load::CLIENTS {
                let (rng, tally) = (rng(plan, number + 1_000), &tally);
                let run = move || load::run(port, number, rng, tally);
                clients.workers.push(scope.spawn(run));
            }
            clients.interrupter = Some(scope.spawn(|| runaway::interrupt(port, &replied)));
        }
        let sent = || counts.sent.load(Ordering::Relaxed);
        let enough = || tally.is_enough(phase, sent(), &plan.least);
        let mut watched = watch_until(plan, process, cap, figures, &enough);
        tally.stop();
        counts.stop();
        // The end of the server is reported before violations of clients, which it may have caused.
        let ended = watch(plan, process, cap, figures);
        for part in clients.join(&replied) {
            watched = watched.and(part.map(|part| figures.add(phase, part)));
        }
        ended.and(watched)
    });
    figures.sent += counts.sent.load(Ordering::Relaxed);
    figures.closed += counts.closed.load(Ordering::Relaxed);
    watched?;
    // After the phase, the server must still reply.
    let mut link = Link::to(port).map_err(|lost| lost.to_string())?;
    let hello = link.command("admin", &doc! {"hello": 1});
    hello.map(|_| ()).map_err(|lost| lost.to_string())
}

/// Checks the server until a phase has had its time and its minimum counts.
fn watch_until(
    plan: &Plan,
    process: &mut Process,
    cap: &Cap,
    figures: &mut Figures,
    enough: &dyn Fn() -> bool,
) -> Result<(), String> {
    let end = time::now() + plan.time / 2;
    while time::now() < end || !enough() {
        watch(plan, process, cap, figures)?;
        if end + PATIENCE < time::now() {
            let least = plan.least;
            return Err(format!("the minimum counts were not reached: {least:?}"));
        }
        time::sleep(LOOK);
    }
    Ok(())
}

/// A client that is running.
type Running<'s> = ScopedJoinHandle<'s, Result<Part, String>>;

/// The clients of a phase.
struct Clients<'s> {
    workers: Vec<Running<'s>>,
    interrupter: Option<Running<'s>>,
    probe: Running<'s>,
}

impl Clients<'_> {
    /// Waits for the clients, whose stop was requested: the one that interrupts queries ends after
    /// those that send them.
    fn join(self, replied: &AtomicBool) -> Vec<Result<Part, String>> {
        let joined = |client: Running<'_>| {
            let part = client.join().map_err(|_| "a client panicked".to_owned());
            part.and_then(|part| part)
        };
        let mut parts: Vec<_> = self.workers.into_iter().map(joined).collect();
        replied.store(true, Ordering::Relaxed);
        parts.extend(self.interrupter.map(joined));
        parts.push(joined(self.probe));
        parts
    }
}

/// Checks the laws H1 and H2.
fn watch(
    plan: &Plan,
    process: &mut Process,
    cap: &Cap,
    figures: &mut Figures,
) -> Result<(), String> {
    if let Some(status) = process.ended() {
        return Err(format!("H1: the server ended by itself: {status}"));
    }
    if let Some(killed) = cap.kills() {
        return Err(format!(
            "H1: the kernel ended {killed} processes for memory"
        ));
    }
    let resident = cap::resident(process.id());
    figures.resident_max = figures.resident_max.max(resident);
    if plan.memory.bytes() < resident {
        return Err(format!(
            "H2: the server has {} in memory, its limit is {}",
            ByteSize(resident),
            plan.memory
        ));
    }
    Ok(())
}

fn rng(plan: &Plan, number: u32) -> Rng {
    Rng::new(plan.seed ^ (u64::from(number) + 1) << 32)
}

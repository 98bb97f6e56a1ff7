//! The cycles of a run: start a server, check it, let clients write, end it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use bson::doc;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stdx::{Rng, time};

use super::builder::Builder;
use super::check;
use super::client::Client;
use super::link::Link;
use super::model::Model;
use super::process::Process;
use super::report::{Failure, Summary};

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server's storage engine.
    pub engine: String,
    /// Number of servers that are started and ended.
    pub cycles: u32,
    /// The seed of the operations and endings.
    pub seed: u64,
    /// The directory of the store; empty or missing.
    pub directory: PathBuf,
    /// The program of the server, run with `serve`.
    pub program: PathBuf,
    /// Number of concurrent clients.
    pub clients: u32,
    /// How this process cheats; used in tests of the oracle.
    pub lie: Option<Lie>,
}

/// Ways in which this process cheats; the oracle must detect each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Sometimes count a write that was not sent as acknowledged.
    Skip,
    /// Repeat a write with a new `txnNumber`, so that the server cannot recognise the repetition.
    Anew,
    /// Count an index build that was not sent as acknowledged.
    Unbuilt,
}

/// Minimum and maximum time for which clients write, in milliseconds.
const WRITES_MS: (u64, u64) = (30, 700);

/// Before a server is ended, clients must have one acknowledged operation, and the builder one
/// acknowledged build or drop, per this number of the milliseconds above. So a life is longer where
/// syncs are slow, but has as many operations.
const MS_PER_ANSWER: u64 = 40;
const MS_PER_BUILD: u64 = 200;

/// Maximum wait for these answers.
const ANSWERS_MAX: Duration = Duration::from_secs(120);

/// Interval of checks for these answers.
const LOOK: Duration = Duration::from_millis(5);

/// Maximum lifetime of a server that is killed while it starts, in milliseconds.
const START_MS: u64 = 150;

/// The clients, the server and the oracle of a run.
struct Run<'a> {
    config: &'a Config,
    rng: Rng,
    clients: Vec<Client>,
    builder: Builder,
    prepared: bool,
    summary: Summary,
}

/// Execute a run. `note` is called for every cycle.
///
/// # Errors
/// A broken law, or the reason why the run could not start.
pub fn run(config: &Config, note: &mut dyn FnMut(&str)) -> Result<Summary, Failure> {
    let fail = |broken: bool, story: String| Failure {
        broken,
        story,
        directory: config.directory.clone(),
    };
    empty(&config.directory).map_err(|e| fail(false, e))?;
    let begun = time::now();
    let clients = (0..config.clients).map(|n| Client::new(n, config.seed, config.lie));
    let mut run = Run {
        config,
        rng: Rng::new(config.seed),
        clients: clients.collect(),
        builder: Builder::new(config.seed, config.lie),
        prepared: false,
        summary: Summary {
            engine: config.engine.clone(),
            seed: config.seed,
            ..Summary::default()
        },
    };
    for cycle in 0..=config.cycles {
        let outcome = run.life(cycle == config.cycles).map_err(|what| {
            let place = config.directory.display();
            let (engine, seed) = (&config.engine, config.seed);
            let cycles = (cycle + 1) * 2;
            fail(
                true,
                format!(
                    "{what}\n  engine {engine}, seed {seed}, cycle {cycle}\n  kept in {place}: \
                     the store `store`, the server's messages `server.log` and `server.err`\n  \
                     again (the moments of kills will differ): torture --server --engine {engine} \
                     --seed {seed} --cycles {cycles}"
                ),
            )
        })?;
        note(&format!("cycle {cycle}: {outcome}"));
    }
    for client in &run.clients {
        let counts = client.counts;
        run.summary.acked += counts.acked;
        run.summary.transactions += counts.transactions;
        run.summary.rolled_back += counts.rolled_back;
        run.summary.done_again += counts.done_again;
        run.summary.never_done += counts.never_done;
    }
    run.summary.built = run.builder.built;
    run.summary.builds_cut = run.builder.cut;
    run.summary.elapsed = begun.elapsed();
    Ok(run.summary)
}

/// Create the directory; refuse one that is not empty.
pub(crate) fn empty(directory: &Path) -> Result<(), String> {
    let text = |e: std::io::Error| format!("{}: {e}", directory.display());
    fs::create_dir_all(directory).map_err(text)?;
    match fs::read_dir(directory).map_err(text)?.next() {
        None => Ok(()),
        Some(_) => Err(format!(
            "{} is not empty; name another with --dir",
            directory.display()
        )),
    }
}

impl Run<'_> {
    /// One life of the server; returns a description. If `last`, the server is checked and then
    /// stopped in order.
    fn life(&mut self, last: bool) -> Result<String, String> {
        let config = self.config;
        let mut server = Process::start(&config.program, &config.engine, &config.directory, &[])?;
        if !last && self.prepared && self.rng.chance(0.15) {
            let ms = self.rng.below(START_MS);
            time::sleep(Duration::from_millis(ms));
            server.kill();
            self.summary.killed_starting += 1;
            return Ok(format!("killed after {ms} ms, while it started"));
        }
        let port = server.port()?;
        let documents = self.check(port)?;
        if last {
            server.stop()?;
            self.summary.stopped += 1;
            return Ok(format!("{documents} documents, ended in order"));
        }
        let orderly = self.rng.chance(0.1);
        let (least, most) = WRITES_MS;
        let ms = least + self.rng.below(most - least);
        let ended = self.write(server, port, ms, orderly)?;
        Ok(format!("{documents} documents, {ended} after {ms} ms"))
    }

    /// Repeat operations of unknown outcome, then compare all data. Returns the number of
    /// documents.
    fn check(&mut self, port: u16) -> Result<u64, String> {
        let gone = |_| "the server listens and does not answer".to_owned();
        let mut link = Link::to(port).map_err(gone)?;
        if !self.prepared {
            check::prepare(&mut link, &doc! { "w": 1, "j": true })?;
            self.prepared = true;
        }
        let mut model = Model::default();
        for client in &mut self.clients {
            client.resolve(&mut link)?;
            model.add(&client.model);
        }
        self.builder.resolve(&mut link)?;
        let documents = check::whole(&mut link, &model)?;
        self.summary.checks += 1;
        self.summary.documents += documents;
        Ok(documents)
    }

    /// Let the clients write for some time, then end the server.
    fn write(
        &mut self,
        mut server: Process,
        port: u16,
        ms: u64,
        orderly: bool,
    ) -> Result<&'static str, String> {
        let stop = &AtomicBool::new(false);
        let (answers, builds) = &(AtomicU64::new(0), AtomicU64::new(0));
        let builder = &mut self.builder;
        thread::scope(|scope| {
            let building = [scope.spawn(move || builder.operate(port, stop, builds))];
            let writing: Vec<_> = self
                .clients
                .iter_mut()
                .map(|client| scope.spawn(move || client.operate(port, stop, answers)))
                .collect();
            time::sleep(Duration::from_millis(ms));
            await_answers(answers, ms / MS_PER_ANSWER, &writing);
            await_answers(builds, ms / MS_PER_BUILD, &building);
            let died = server.ended();
            let ended = if orderly {
                server.stop()
            } else {
                server.kill();
                Ok(())
            };
            stop.store(true, Ordering::Relaxed);
            for client in writing.into_iter().chain(building) {
                client
                    .join()
                    .map_err(|_| "a client panicked".to_owned())??;
            }
            ended?;
            match died {
                Some(status) => Err(format!("the server ended by itself: {status}")),
                None => Ok(()),
            }
        })?;
        Ok(if orderly {
            self.summary.stopped += 1;
            "ended in order"
        } else {
            self.summary.killed += 1;
            "killed"
        })
    }
}

/// Wait until `came` reaches `wanted`; end early when all threads in `from` have ended, or after
/// the maximum wait.
fn await_answers<T>(came: &AtomicU64, wanted: u64, from: &[ScopedJoinHandle<'_, T>]) {
    let end = time::now() + ANSWERS_MAX;
    while came.load(Ordering::Relaxed) < wanted
        && from.iter().any(|thread| !thread.is_finished())
        && time::now() < end
    {
        time::sleep(LOOK);
    }
}

//! The supervisor: starts a worker, receives its messages, ends it, and starts the next one on the
//! same store. The oracle runs in this process, the engine in the worker.
//!
//! A cycle is one life of a worker: it opens the store of the previous worker, the state is
//! checked, the worker writes and is ended. After every `STORE_CYCLES` cycles, and after the last
//! one, a worker only opens the store, and closes it after the check; the next cycle begins with a
//! new store.

mod child;
mod cycle;
mod ending;
mod report;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kv::{Durability, Factory};
use stdx::rng::mix64;
use stdx::{Rng, time};

pub use report::{Failure, Summary};

use crate::draw;
use crate::oracle::Oracle;
use crate::protocol::{Abort, Lie, Start};
use cycle::Life;
use ending::Ending;
use report::Place;

/// Maximum number of writers of a worker.
const WRITERS_MOST: u64 = 5;

/// Number of lives on one store; then a worker closes it in order, and the next worker gets a new
/// one.
const STORE_CYCLES: u32 = 25;

/// Number of the first lives on a store; half of them are ended while they open the store.
const YOUNG_CYCLES: u32 = 4;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The engine.
    pub engine: String,
    /// Number of lives of workers.
    pub cycles: u32,
    /// The seed of all random choices.
    pub seed: u64,
    /// The directory for the store, the workers' log and copies of the store. Created if missing;
    /// must be empty.
    pub directory: PathBuf,
    /// The program of the worker, executed with the argument `worker`.
    pub program: PathBuf,
    /// Copy the store before each check, so that a failure keeps the checked state.
    pub copy: bool,
    /// The weakest durability whose acknowledged commits must survive a kill. Commits at `group`
    /// must survive on every engine; those at `interval` on engines with the capability
    /// `persistent`.
    pub kept: Durability,
    /// Allow an engine that is not persistent, or a worker that cheats; used in tests of the
    /// supervisor.
    pub canary: bool,
    /// How the worker cheats.
    pub lie: Option<Lie>,
    /// The call in which workers kill themselves in every plain kill, if the engine is betree.
    pub abort: Option<Abort>,
}

/// Run the cycles on an engine. `note` is called for every cycle.
///
/// # Errors
/// A broken law, with the command to examine it, or the reason why the run could not start.
pub fn run(config: &Config, note: &mut dyn FnMut(&str)) -> Result<Summary, Failure> {
    let factory = prepare(config).map_err(|e| Failure::cannot(config, e))?;
    let mut oracle = Oracle::new(config.kept);
    let mut summary = Summary::new(config);
    let started = time::now();
    let mut before = "the store was new".to_owned();
    for cycle in 0..=config.cycles {
        let mut rng = Rng::new(mix64(config.seed ^ u64::from(cycle) << 32));
        let age = cycle % STORE_CYCLES;
        let last = cycle == config.cycles || age + 1 == STORE_CYCLES;
        let mut ending = (!last).then(|| Ending::draw(&mut rng, age < YOUNG_CYCLES));
        let mut start = start(config, factory, &mut rng, oracle.next_counter());
        start.abort = ending.and_then(|ending| choose(config, cycle, &ending));
        if start.abort.is_some() {
            ending = Some(Ending::Abort);
        }
        if config.copy {
            let copied = copy(&start.directory, &config.directory.join("before"));
            copied.map_err(|e| Failure::cannot(config, format!("cannot copy the store: {e}")))?;
        }
        let outcome = match (ending, &start.abort) {
            (Some(ending), Some(abort)) => format!("{ending}, {abort}"),
            (Some(ending), None) => ending.to_string(),
            (None, _) => "closed in order".to_owned(),
        };
        let life = Life {
            config,
            factory,
            start: &start,
            oracle: &mut oracle,
            summary: &mut summary,
        };
        let ended = life.live(ending.as_ref());
        summary.took(started.elapsed(), oracle.counts());
        let options = draw::text(&start.options);
        if let Err(violation) = ended {
            let place = Place {
                cycle,
                before: &before,
                ending: &outcome,
                options: &options,
            };
            return Err(Failure::broken(config, violation, &place));
        }
        note(&format!(
            "cycle {cycle}: {} writers, {options}; {outcome}",
            start.writers
        ));
        before = format!("{outcome} ({options})");
        if last && cycle < config.cycles {
            let removed = fs::remove_dir_all(&start.directory);
            removed
                .map_err(|e| Failure::cannot(config, format!("cannot start a new store: {e}")))?;
            oracle.forget();
            "the store was new".clone_into(&mut before);
        }
    }
    Ok(summary)
}

/// The parameters of the next worker; `first` is the counter of its first commits.
fn start(config: &Config, factory: &dyn Factory, rng: &mut Rng, first: u64) -> Start {
    Start {
        engine: config.engine.clone(),
        directory: config.directory.join("store"),
        options: draw::options(factory, rng),
        seed: rng.next_u64(),
        writers: u32::try_from(1 + rng.below(WRITERS_MOST)).unwrap_or(1),
        first,
        lie: config.lie,
        abort: None,
    }
}

/// The call in which the worker of `cycle` kills itself; `None` if `ending` applies.
fn choose(config: &Config, cycle: u32, ending: &Ending) -> Option<Abort> {
    // A generator of its own, so that this choice does not affect other random choices.
    let mut rng = Rng::new(mix64(config.seed ^ u64::from(cycle) << 32 ^ 0xAB));
    let drawn = ending::abort(&mut rng, ending)?;
    (config.engine == "betree").then(|| config.abort.clone().unwrap_or(drawn))
}

/// Check the parameters, and create the directory.
fn prepare(config: &Config) -> Result<&'static dyn Factory, String> {
    let factory = lab::targets::factory(&config.engine)?;
    if !factory.available() {
        return Err(factory.missing().to_string());
    }
    if !factory.capabilities().persistent && !config.canary {
        let names: Vec<&str> = lab::targets::defaults();
        return Err(format!(
            "{} keeps nothing when its process ends, so there is nothing to check; use one of: {}",
            config.engine,
            names.join(", ")
        ));
    }
    let text = |e: io::Error| format!("{}: {e}", config.directory.display());
    fs::create_dir_all(&config.directory).map_err(text)?;
    if fs::read_dir(&config.directory)
        .map_err(text)?
        .next()
        .is_some()
    {
        let place = config.directory.display();
        return Err(format!("{place} is not empty; name another with --dir"));
    }
    Ok(factory)
}

/// Replace `to` with a copy of `from`, which may be missing.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::remove_dir_all(to) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    if !from.exists() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

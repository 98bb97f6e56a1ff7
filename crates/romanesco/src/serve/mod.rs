//! `romanesco serve`: opens the engine that the settings name, and serves until it is shut down.

mod args;
mod background;
mod shutdown;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use kv::{EngineOptions, Factory};
use rustix::fs::Mode;
use rustix::process::{Signal, set_parent_process_death_signal, umask};
use server::failure::OTHER;
use server::{Config, Failure, Signals, Start};

pub(crate) use args::Args;

/// The engine of a server, and what it is opened with.
struct Chosen {
    factory: &'static dyn Factory,
    options: EngineOptions,
}

/// The engine that the settings name.
///
/// # Errors
/// A name that is not known; an engine that is not compiled in; each wrong option.
fn choose(config: &mut Config) -> Result<Chosen, Vec<String>> {
    let factory = lab::targets::factory(&config.engine)
        .map_err(|error| vec![format!("storage.engine: {error}")])?;
    if !factory.available() {
        let name = factory.name();
        let known = lab::targets::defaults().join(" or ");
        let feature = factory.feature().unwrap_or(name);
        return Err(vec![format!(
            "storage.engine: set it to {known}, or leave it out for betree: this program is built \
             without {name} (build with --features {feature} to have it)"
        )]);
    }
    let setup = config.engine_setup(factory)?;
    config.warnings = setup.warnings;
    config.cache_bytes = Some(setup.options.cache.bytes());
    Ok(Chosen {
        factory,
        options: setup.options,
    })
}

/// The configuration and the engine.
///
/// # Errors
/// All errors of the configuration.
fn configure(args: &Args) -> Result<(Config, Chosen), Failure> {
    let (mut config, mut errors) = args.config();
    errors.extend(server::problems(&config));
    let chosen = choose(&mut config);
    match chosen {
        Ok(chosen) if errors.is_empty() => Ok((config, chosen)),
        chosen => {
            errors.extend(chosen.err().into_iter().flatten());
            let failure = Failure::configuration(&errors);
            if config.fork {
                server::leave_in_log(&config, &failure);
            }
            Err(failure)
        }
    }
}

/// Wait for a line from the parent process, and arrange for this process to end when the parent
/// ends, even by a kill.
fn wait_for_word() -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(OTHER, error.to_string());
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| failed(&error))?;
    let mut word = String::new();
    let read = io::stdin().read_line(&mut word);
    match read.map_err(|error| failed(&error))? {
        0 => Err(failed(&"the parent process of this server has ended")),
        _ => Ok(()),
    }
}

/// Write the process id into a file that only its owner can access.
fn write_pid(path: &Path) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true);
    let file = options.mode(vfs::PRIVATE_FILE).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{}", std::process::id()));
    written.map_err(|error| Failure::new(OTHER, format!("{}: {error}", path.display())))
}

/// Serve until shut down.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    // The engines create files themselves; the umask gives files mode 0600 and directories mode
    // 0700.
    umask(Mode::from_raw_mode(0o077));
    if args.shutdown {
        let (config, errors) = args.config();
        return match errors.is_empty() {
            true => shutdown::run(&config),
            false => Err(Failure::configuration(&errors)),
        };
    }
    let (config, chosen) = configure(args)?;
    if args.supervised {
        wait_for_word()?;
    }
    let forks = config.fork;
    if forks && !background::is_here() {
        return background::start();
    }
    if forks {
        background::leave()?;
    }
    let signals = Signals::catch()
        .map_err(|error| Failure::new(OTHER, format!("cannot catch signals: {error}")))?;
    let pid_file = config.pid_file.clone();
    let mut start = Start::begin(config)?;
    start.prepare()?;
    let engine = start.open(chosen.factory, &chosen.options)?;
    if let Some(path) = &pid_file {
        start.step(write_pid(path))?;
    }
    let running = start.serve(engine)?;
    if forks {
        background::ready();
    }
    let waited = running.wait(signals);
    running.stop();
    if let Some(path) = &pid_file {
        // The process is ending; the file may already have been removed.
        let _: io::Result<()> = fs::remove_file(path);
    }
    waited.map_err(|error| Failure::new(OTHER, error.message))
}

//! `romanesco serve`: opens the engine that the settings name, and serves until it is shut down.

mod args;
mod background;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use kv::Engine;
use rustix::fs::Mode;
use rustix::process::{Signal, set_parent_process_death_signal, umask};
use server::{Config, Running, Signals};

pub(crate) use args::Args;

/// The exit code when the command line does not parse, the same as `mongod`'s.
pub(crate) const MISUSED: u8 = 2;

/// The exit code when the server cannot start, the same as `mongod`'s.
pub(crate) const FAILED: u8 = 48;

fn open(config: &mut Config) -> Result<Arc<dyn Engine>, String> {
    let factory = lab::targets::factory(&config.engine)?;
    let setup = config.engine_setup(factory)?;
    config.warnings = setup.warnings;
    config.cache_bytes = Some(setup.options.cache.bytes());
    let path = &config.db_path;
    let opened = factory.open(path, &setup.options);
    let engine = opened.map_err(|error| format!("cannot open {}: {error}", path.display()))?;
    Ok(Arc::from(engine))
}

/// Wait for a line from the parent process, and end when the parent ends, even by a kill.
fn wait_for_word() -> Result<(), String> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    let mut word = String::new();
    let read = io::stdin().read_line(&mut word);
    match read.map_err(|error| error.to_string())? {
        0 => Err("the parent process of this server has ended".to_owned()),
        _ => Ok(()),
    }
}

/// Write the process id into a file that only its owner can access.
fn write_pid(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true);
    let mut file = options.mode(vfs::PRIVATE_FILE).open(path)?;
    writeln!(file, "{}", std::process::id())
}

/// Serve until shut down.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    // Engines create files themselves: the umask gives all of them 0600 and 0700.
    umask(Mode::from_raw_mode(0o077));
    let mut config = args.config()?;
    if args.supervised {
        wait_for_word()?;
    }
    let forks = config.fork;
    if forks && !background::is_here() {
        return background::start(&config);
    }
    if forks {
        background::leave()?;
    }
    let signals = Signals::catch().map_err(|error| format!("cannot catch signals: {error}"))?;
    let engine = open(&mut config)?;
    let pid_file = config.pid_file.clone();
    if let Some(path) = &pid_file {
        write_pid(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let running = Running::start(config, engine).map_err(|error| error.message)?;
    if forks {
        background::ready();
    }
    let waited = running.wait(signals);
    running.stop();
    if let Some(path) = &pid_file {
        // The process ends; it is fine if the file has already been removed.
        let _: std::io::Result<()> = fs::remove_file(path);
    }
    waited.map_err(|error| error.message)
}

//! `torture`: repeatedly kill a process that holds a storage engine, or the document server, and
//! check the surviving data.
//!
//! Exit codes: 0 when no law was broken, 1 when a law was broken, 2 when the run could not start.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use kv::Durability;
use stdx::{ByteSize, time};
use torture::protocol::Abort;
use torture::{Config, Failure, Summary, cluster, server, worker};

#[global_allocator]
static ALLOCATOR: stdx::memory::Allocator = stdx::memory::ALLOCATOR;

/// The line of arguments.
#[derive(Parser)]
#[command(
    name = "torture",
    version,
    about = "Kills processes that hold a storage engine, and checks what survived",
    after_help = "Example: torture --engine lmdb --cycles 50 --seed 7 --dir out/torture",
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Run,
}

#[derive(Subcommand)]
enum Command {
    /// Run as a worker, with orders on standard input
    #[command(hide = true)]
    Worker,
    /// Run as the server of `--server`
    #[command(hide = true)]
    Serve(server::Host),
}

#[derive(Args)]
struct Run {
    /// Storage engine
    #[arg(long, default_value = "lmdb")]
    engine: String,
    /// Number of workers that are started and killed
    #[arg(long, default_value_t = 50)]
    cycles: u32,
    /// Random seed of options, endings and operations [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// Directory of the store, empty or missing [default: a new directory below the system's
    /// temporary one, removed when no law was broken]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Copy the store before each check
    #[arg(long)]
    copy: bool,
    /// Weakest durability whose acknowledged commits must survive a kill: none, interval, group or
    /// sync. Weaker commits may be lost, the newest first, as in an engine that keeps its log in
    /// memory until it syncs
    #[arg(long, default_value = "group")]
    kept: Durability,
    /// For betree: kill mostly in the N-th call at SITE, such as log.sync:3, or :100 for any call
    /// that changes a file [default: random]
    #[arg(long, value_name = "SITE:N")]
    abort_at: Option<Abort>,
    /// Test the document server instead of an engine: clients write to it with j:true, it is
    /// killed, and every acknowledged write must exist exactly once
    #[arg(long)]
    server: bool,
    /// With --server: execute this number of transactions on lists, with kills, and check their
    /// history
    #[arg(long, value_name = "TRANSACTIONS", requires = "server")]
    lists: Option<u64>,
    /// With --server: for this number of seconds, attack the server before login and with runaway
    /// queries, within a memory limit, and check that it still serves other clients
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "server",
        conflicts_with = "lists"
    )]
    hostile: Option<u64>,
    /// With --hostile: memory limit of the server
    #[arg(long, default_value = "512M", requires = "hostile")]
    memory: ByteSize,
    /// With --hostile: number of connections that never log in
    #[arg(long, default_value_t = 1_000, requires = "hostile")]
    connections: usize,
    /// With --hostile: total bytes per second sent by these connections
    #[arg(long, default_value = "1M", requires = "hostile")]
    rate: ByteSize,
    /// With --hostile: do not check response times, for a machine with other load
    #[arg(long, requires = "hostile")]
    untimed: bool,
    /// Test a replica set instead: for this number of seconds, members are killed, paused, cut off
    /// and emptied while clients write and read
    #[arg(long, value_name = "SECONDS", conflicts_with = "server")]
    cluster: Option<u64>,
    /// With --cluster or --failover: storage engines of the members
    #[arg(long, value_delimiter = ',', default_value = "betree,lmdb,betree")]
    members: Vec<String>,
    /// Measure a replica set instead: let its primary fail this number of times by kill -9, by a
    /// cut of its links and by a step-down, and print how long no write was acknowledged
    #[arg(long, value_name = "ROUNDS", conflicts_with_all = ["server", "cluster"])]
    failover: Option<u64>,
    /// With --cluster: rounds of faults between two comparisons of all members
    #[arg(long, default_value_t = 8, requires = "cluster")]
    rounds: u64,
    /// With --server or --cluster: number of concurrent clients that write or send runaway queries
    #[arg(long, default_value_t = 4)]
    clients: u32,
    /// With --server or --cluster: program whose `serve` is tested, such as
    /// target/release/romanesco [default: the server within this program]
    #[arg(long)]
    program: Option<PathBuf>,
    /// Print every cycle on standard error
    #[arg(long, short)]
    verbose: bool,
}

fn main() -> ExitCode {
    // As in `romanesco`, whose memory use is measured here.
    stdx::memory::keep_little();
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Worker) => return ExitCode::from(worker::serve()),
        Some(Command::Serve(line)) => return served(&line),
        None if cli.run.server => return tortured_server(&cli.run),
        None if cli.run.cluster.or(cli.run.failover).is_some() => {
            return tortured_cluster(&cli.run);
        }
        None => {}
    }
    match torture(&cli.run) {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("torture: {failure}");
            ExitCode::from(if failure.violation.is_some() { 1 } else { 2 })
        }
    }
}

fn served(line: &server::Host) -> ExitCode {
    match server::host(line) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("torture serve: {error}");
            ExitCode::from(2)
        }
    }
}

/// The directory of the store, and a random seed if none is given.
fn place(run: &Run) -> (PathBuf, u64) {
    let clock = u64::try_from(time::wall().as_nanos() & 0xFFFF_FFFF).unwrap_or(0);
    let temporary = || env::temp_dir().join(format!("torture-{}-{clock:x}", process::id()));
    let directory = run.dir.clone().unwrap_or_else(temporary);
    (directory, run.seed.unwrap_or(clock))
}

fn tidy_up(run: &Run, directory: &Path) {
    if run.dir.is_none()
        && let Err(e) = std::fs::remove_dir_all(directory)
    {
        eprintln!("torture: {} is left: {e}", directory.display());
    }
}

/// The program whose `serve` is tested.
fn program(run: &Run) -> Result<PathBuf, ExitCode> {
    let program = run.program.clone().map_or_else(env::current_exe, Ok);
    program.map_err(|e| {
        eprintln!("torture: cannot find this program: {e}");
        ExitCode::from(2)
    })
}

fn tortured_cluster(run: &Run) -> ExitCode {
    let (directory, seed) = place(run);
    let program = match program(run) {
        Ok(program) => program,
        Err(code) => return code,
    };
    let config = cluster::Config {
        members: run.members.clone(),
        time: Duration::from_secs(run.cluster.unwrap_or(0)),
        rounds: run.rounds,
        seed,
        directory,
        program,
        clients: run.clients,
        skips: false,
    };
    let mut note = |line: &str| {
        if run.verbose {
            eprintln!("torture: {line}");
        }
    };
    match run.failover {
        Some(rounds) => {
            let outages = cluster::failover(&config, rounds, &mut note);
            ended(run, &config.directory, outages)
        }
        None => ended(run, &config.directory, cluster::run(&config, &mut note)),
    }
}

fn tortured_server(run: &Run) -> ExitCode {
    let (directory, seed) = place(run);
    let program = match program(run) {
        Ok(program) => program,
        Err(code) => return code,
    };
    let config = server::Config {
        engine: run.engine.clone(),
        cycles: run.cycles,
        seed,
        directory,
        program,
        clients: run.clients,
        lie: None,
    };
    let mut note = |line: &str| {
        if run.verbose {
            eprintln!("torture: {line}");
        }
    };
    if let Some(seconds) = run.hostile {
        return attacked_server(run, config, seconds, &mut note);
    }
    let result = match run.lists {
        Some(wanted) => server::append::run(&config, wanted, &mut note).map(|l| l.to_string()),
        None => server::run(&config, &mut note).map(|s| s.to_string()),
    };
    ended(run, &config.directory, result)
}

fn attacked_server(
    run: &Run,
    config: server::Config,
    seconds: u64,
    note: &mut dyn FnMut(&str),
) -> ExitCode {
    let plan = server::hostile::Plan {
        engine: config.engine,
        program: config.program,
        directory: config.directory,
        seed: config.seed,
        time: Duration::from_secs(seconds),
        least: server::hostile::Least::default(),
        connections: run.connections,
        rate: run.rate.bytes(),
        clients: run.clients,
        memory: run.memory,
        judge_times: !run.untimed,
    };
    ended(run, &plan.directory, server::hostile::run(&plan, note))
}

/// Print the result of a run of the server; returns the exit code.
fn ended<T: std::fmt::Display>(
    run: &Run,
    directory: &Path,
    result: Result<T, server::Failure>,
) -> ExitCode {
    match result {
        Ok(summary) => {
            println!("{summary}");
            tidy_up(run, directory);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("torture: {failure}");
            ExitCode::from(if failure.broken { 1 } else { 2 })
        }
    }
}

fn torture(run: &Run) -> Result<Summary, Failure> {
    let (directory, seed) = place(run);
    let program = env::current_exe().map_err(|e| Failure {
        violation: None,
        story: format!("cannot find this program: {e}"),
        directory: directory.clone(),
    })?;
    let config = Config {
        engine: run.engine.clone(),
        cycles: run.cycles,
        seed,
        directory,
        program,
        copy: run.copy,
        kept: run.kept,
        canary: false,
        lie: None,
        abort: run.abort_at.clone(),
    };
    let summary = torture::run(&config, &mut |line| {
        if run.verbose {
            eprintln!("torture: {line}");
        }
    })?;
    tidy_up(run, &config.directory);
    Ok(summary)
}

//! The commands of `romanesco lab`, one file each.

mod calibrate;
mod check;
mod compare;
mod cost;
mod doctor;
mod export;
mod list;
mod map;
mod report;
mod resume;
mod run;
mod run_all;
mod run_sweep;
mod stop;
mod watch;

use std::env;
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use lab::display::{Style, display};
use lab::run::{Interrupt, Progress};
use lab_report::{Error, Result, analysis};
use stdx::units::count;

/// Exit codes: 0 success, 1 regression (`check`), 2 invalid or incomplete run, 3 error, 64 invalid
/// command line, 130 interrupted.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check what works on this machine, and explain what does not
    Doctor(doctor::Args),
    /// List experiments, targets, presets, volumes and prices
    List(list::Args),
    /// Measure this machine: its storage device and its noise floor
    Calibrate(calibrate::Args),
    /// Run an experiment on one or more targets
    Run(Box<run::Args>),
    /// Continue an interrupted run
    Resume(resume::Args),
    /// Follow a run from another terminal
    Watch(watch::Args),
    /// Stop a run cleanly, so that it can be resumed
    Stop(stop::Args),
    /// Compare runs, or the targets of one run
    Compare(compare::Args),
    /// Estimate the monthly cost of a run's workload
    Cost(cost::Args),
    /// Write the report of a run as one HTML file
    Report(report::Args),
    /// Compare a run with a baseline and fail on regressions (for CI)
    Check(check::Args),
    /// Export the results of a run as JSON, CSV, TSV, Markdown, hgrm or Otava data
    Export(export::Args),
    /// Draw a fragmentation map of a store's files: page fill and free space
    Map(map::Args),
    /// Serve one target (started by the lab itself)
    #[command(hide = true)]
    Worker,
}

impl Command {
    /// Run the command; returns the exit code of the program.
    pub(crate) fn run(self) -> Result<u8> {
        match self {
            Command::Doctor(args) => doctor::run(&args),
            Command::List(args) => list::run(&args),
            Command::Calibrate(args) => calibrate::run(&args),
            Command::Run(args) => run::run(*args),
            Command::Resume(args) => resume::run(&args),
            Command::Watch(args) => watch::run(&args),
            Command::Stop(args) => stop::run(&args),
            Command::Compare(args) => compare::run(&args),
            Command::Cost(args) => cost::run(&args),
            Command::Report(args) => report::run(&args),
            Command::Check(args) => check::run(&args),
            Command::Export(args) => export::run(&args),
            Command::Map(args) => map::run(&args),
            Command::Worker => Ok(lab::worker::serve()),
        }
    }
}

/// A boolean option with the values `on` and `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Yes.
    On,
    /// No.
    Off,
}

/// How the progress of a run is shown.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Show {
    /// Print one JSON object per line on standard output
    #[arg(long)]
    json: bool,
    /// Print errors only
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
}

impl Show {
    fn display(self) -> Box<dyn Progress> {
        display(match self {
            Show { json: true, .. } => Style::Json,
            Show { quiet: true, .. } => Style::Quiet,
            _ => Style::Auto,
        })
    }
}

/// This program, which also serves as the worker.
fn program() -> Result<PathBuf> {
    env::current_exe().map_err(|e| Error::environment(format!("cannot find my own program: {e}")))
}

fn listen() -> Result<Interrupt> {
    Interrupt::listen().map_err(|e| Error::environment(format!("cannot listen to signals: {e}")))
}

/// Print the rate each target sustains, and whether published results were reproduced.
fn findings(out: &Path) -> Result<()> {
    let record = lab::run::load(out)?;
    let limit = record.manifest.plan.p99_ms;
    for one in analysis::sustained(&record, limit) {
        let (target, of) = (&one.target, &one.of);
        let unit = one.unit();
        match (one.best, one.reason()) {
            (Some(rate), _) => note!("{target} sustains {} {unit} in {of}", count(rate)),
            (None, why) => note!(
                "{target} sustains none of the rates tried in {of} (p99 {limit} ms): {}",
                why.unwrap_or_default()
            ),
        }
    }
    for pair in analysis::equal_targets(&record) {
        note!("{}", pair.text());
    }
    let beside = lab_report::published::beside(&record);
    for shape in beside.iter().flat_map(|b| &b.shapes) {
        note!("{}", shape.text());
    }
    Ok(())
}

/// Write the report of a finished run and print its path. Returns the exit code: 0, or 2 when the
/// run is incomplete or has invalid results.
fn conclude(out: &Path, summary: &lab_report::record::RunSummary, show: Show) -> Result<u8> {
    let path = report::write(out, None)?;
    if show.json {
        say!("{}", serde_json::json!({ "event": "report", "path": path }));
    } else if !show.quiet {
        findings(out)?;
        note!("report: {}", path.display());
    }
    Ok(if summary.complete && summary.valid {
        0
    } else {
        2
    })
}

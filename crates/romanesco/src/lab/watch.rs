//! `romanesco lab watch`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::display;
use lab_report::record::{RunRecord, StepState};
use lab_report::{Error, Result, store};
use stdx::ByteSize;
use stdx::units::{count, seconds};

#[derive(clap::Args)]
#[command(after_help = "Example: romanesco lab watch out/first")]
pub(crate) struct Args {
    /// The results directory of a run, or of a sweep, of which the current run is shown
    run: PathBuf,
    /// Print the state once and stop
    #[arg(long)]
    once: bool,
    /// Seconds between updates
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    every: f64,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let mut shown = 0;
    let run = match store::is_sweep(&args.run) {
        true => current(&args.run)?,
        false => args.run.clone(),
    };
    loop {
        let record = store::load(&run)?;
        let in_use = store::in_use(&run);
        for step in record.steps.iter().skip(shown) {
            match (&step.summary, step.status.state) {
                (Some(summary), _) => {
                    say!("{}", display::step_line(&record.manifest.plan, summary))
                }
                (None, StepState::Failed) => {
                    let why = step
                        .status
                        .message
                        .as_deref()
                        .unwrap_or("no reason is known");
                    say!("{} failed: {why}", step.directory);
                }
                (None, _) => break,
            }
            shown += 1;
        }
        say!("{}", line(&record, in_use));
        if args.once || !in_use {
            let done = record.summary.complete && record.summary.valid;
            return Ok(if done || (args.once && in_use) { 0 } else { 2 });
        }
        stdx::time::sleep(Duration::from_secs_f64(args.every.clamp(0.1, 3600.0)));
    }
}

/// The run of a sweep that is in progress, or the last one that was started.
fn current(sweep: &Path) -> Result<PathBuf> {
    if let Some((run, _)) = store::sweep_holder(sweep)? {
        return Ok(run);
    }
    let cells = store::read_sweep(sweep)?.cells;
    let runs = cells.iter().rev().map(|cell| sweep.join(&cell.directory));
    let mut started = runs.filter(|run| run.join(store::MANIFEST).exists());
    started
        .next()
        .ok_or_else(|| Error::environment(format!("no run of {} was started", sweep.display())))
}

fn line(record: &RunRecord, in_use: bool) -> String {
    let plan = &record.manifest.plan;
    let all = plan.cells.len() * plan.steps.len();
    let done = record.steps.iter().filter(|s| s.summary.is_some()).count();
    let failed = record
        .steps
        .iter()
        .filter(|s| s.status.state == StepState::Failed)
        .count();
    let mut parts = vec![format!("{}  steps {done}/{all}", record.manifest.run)];
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    let running = record
        .steps
        .iter()
        .find(|s| s.status.state == StepState::Running);
    match running.and_then(|s| Some((s, s.series.last()?))) {
        Some((step, row)) => {
            parts.push(format!("{} at {}", step.directory, seconds(row.t)));
            parts.push(format!(
                "{} rows, {}/s",
                count(row.rows as f64),
                count(row.rate)
            ));
            parts.extend(row.cgroup_memory.map(|m| format!("mem {}", ByteSize(m))));
            parts.extend(row.file_bytes.map(|b| format!("files {}", ByteSize(b))));
        }
        None if done == all => parts.push("complete".to_owned()),
        None => {}
    }
    if !in_use && done < all {
        parts.push("not running; continue with `romanesco lab resume`".to_owned());
    }
    parts.join("  ")
}

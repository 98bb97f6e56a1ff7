//! Runs a plan: cell after cell, each in its own worker process inside its envelope.
//!
//! A *cell* is one target in one repeat: all its steps, on one data directory.
//!
//! - R1. A cell that was interrupted is repeated from its first step, because its data was deleted
//!   or is only partly written; the results of its earlier steps are then marked as discarded.
//! - R2. A cell that other programs disturbed is done again in the same way, as often as the plan
//!   permits, also across interruptions. The last attempt stays, whatever it shows: which of them
//!   counts must not depend on their results.
//! - R3. A cell with an invalid step is not done again: a wrong answer must stay visible.

pub mod caps;
mod cell;
mod child;
mod codecs;
mod drawn;
mod exchange;
mod halt;
mod host;
mod interrupt;
mod measured;
mod observe;
mod power;
mod progress;
mod restart;
mod server;
mod summary;
mod target_record;
#[cfg(test)]
mod tests;

pub use interrupt::Interrupt;
pub use power::own_mounts;
pub use progress::{Progress, Second, Silent};
pub use restart::unsupported;

use std::fs;
use std::path::{Path, PathBuf};

use lab_host::envelope::{Cgroups, remove_stale};
use lab_host::host::{HostFacts, capture_env};
use lab_report::analysis;
use lab_report::cost::{self, CostOptions};
use lab_report::error::{Error, Result};
use lab_report::record::{
    Cell, Manifest, Plan, Prices, RunRecord, RunSummary, SCHEMA, StepState, StepStatus,
    StepSummary, TargetRecord, file_name,
};
use lab_report::store::{self, RunDir};

use crate::protocol::ServerFacts;
use crate::targets::{self, Kind};

/// How the message of a step begins that was discarded because its cell was disturbed (R2).
const DISTURBED: &str = "disturbed: ";

/// A run in progress.
pub struct Runner<'a> {
    run: RunDir,
    manifest: Manifest,
    cgroups: Cgroups,
    progress: &'a mut dyn Progress,
    interrupt: &'a Interrupt,
    /// The program that is started as `lab worker`.
    program: PathBuf,
}

/// Parameters of a new run besides its plan.
pub struct Begin<'a> {
    /// The results directory.
    pub out: &'a Path,
    /// The command line.
    pub command: Vec<String>,
    /// The commit the program was built from.
    pub commit: String,
    /// The program that is started as `lab worker`.
    pub program: PathBuf,
    /// Whether to continue if the disk seems too small.
    pub force: bool,
    /// The text of a price file; `None` for the built-in prices.
    pub prices: Option<String>,
}

/// Start a new run and complete it.
///
/// # Errors
/// When the directory cannot be used, the disk is too small, or the run was interrupted. A target
/// that fails does not end the run; the summary then states that the run is not valid.
pub fn run(
    plan: Plan,
    begin: Begin<'_>,
    progress: &mut dyn Progress,
    interrupt: &Interrupt,
) -> Result<RunSummary> {
    prepare(&plan, &begin)?;
    let manifest = manifest(plan, &begin)?;
    let run = RunDir::create(begin.out, &manifest)?;
    let env = begin.out.join("env");
    capture_env(&env, &manifest.plan.data_dir).map_err(|e| Error::io("write", &env, &e))?;
    copy_calibration(&run)?;
    if let Some(prices) = &begin.prices {
        run.write_text(store::PRICES, prices)?;
    }
    run.write_json(store::TARGETS, &target_record::all(&manifest.plan)?)?;
    Runner::new(run, manifest, begin.program, progress, interrupt).go()
}

/// Continue an interrupted run.
///
/// # Errors
/// The errors of [`run`]; and when the directory contains no run, or another process works on it.
pub fn resume(
    out: &Path,
    program: PathBuf,
    progress: &mut dyn Progress,
    interrupt: &Interrupt,
) -> Result<RunSummary> {
    let (run, manifest) = RunDir::open(out)?;
    Runner::new(run, manifest, program, progress, interrupt).go()
}

/// Read a run with all its records. For runs of an earlier version, facts about targets that it did
/// not record are derived from the target specifications.
///
/// # Errors
/// The errors of [`store::load`].
pub fn load(path: &Path) -> Result<RunRecord> {
    let mut run = store::load(path)?;
    targets::complete(&mut run.manifest.plan);
    Ok(run)
}

fn manifest(plan: Plan, begin: &Begin<'_>) -> Result<Manifest> {
    vfs::ensure_dir(begin.out).map_err(|e| Error::io("create", begin.out, &e))?;
    let parent = if plan.data_dir.exists() {
        plan.data_dir.as_path()
    } else {
        begin.out
    };
    let facts = HostFacts::collect(parent);
    let mut host = serde_json::to_value(&facts).expect("facts are plain data");
    if let Some(object) = host.as_object_mut() {
        object.insert("warnings".to_owned(), facts.warnings().into());
    }
    let path = begin.out.canonicalize();
    let path = path.map_err(|e| Error::io("examine", begin.out, &e))?;
    let name = path
        .file_name()
        .map_or("run".to_owned(), |n| n.to_string_lossy().into_owned());
    Ok(Manifest {
        schema: SCHEMA,
        run: name,
        created: store::now_text(),
        lab_version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: begin.commit.clone(),
        command: begin.command.clone(),
        plan,
        host,
    })
}

/// Reject plans that cannot work, before anything is written.
fn prepare(plan: &Plan, begin: &Begin<'_>) -> Result<()> {
    store::check_new(begin.out)?;
    let mut foreign = 0;
    for target in &plan.targets {
        match targets::kind(target)? {
            Kind::Foreign(uri) => {
                targets::answers(&uri)?;
                foreign += 1;
            }
            Kind::Private(private) => {
                let missing = |e| Error::environment(format!("{}: {e}", target.name));
                private.installed().map_err(missing)?;
            }
            Kind::Embedded(_) | Kind::Managed(_) => {}
        }
    }
    // Data on servers that already run needs no space on this machine's disk.
    if foreign < plan.targets.len() {
        check_space(plan, begin.force)?;
    }
    for cell in &plan.cells {
        let dir = cell::directory(plan, *cell);
        if dir.exists() {
            return Err(Error::environment(format!(
                "{} exists, perhaps the data of another run: remove it, or name another \
                 --data-dir",
                dir.display()
            )));
        }
    }
    // The data directory is outside of the results directory: check now that it is writable.
    if !plan.data_dir.exists() && !within(&plan.data_dir, begin.out) {
        vfs::ensure_dir(&plan.data_dir).map_err(|e| Error::io("create", &plan.data_dir, &e))?;
    }
    Ok(())
}

/// Whether the data directory is below the results directory.
fn within(data: &Path, out: &Path) -> bool {
    std::path::absolute(out).is_ok_and(|out| data.starts_with(out))
}

fn check_space(plan: &Plan, force: bool) -> Result<()> {
    let dir = &plan.data_dir;
    let there = dir.ancestors().find(|d| d.exists()).unwrap_or(dir);
    let free = vfs::free_bytes(there).map_err(|e| Error::io("examine", there, &e))?;
    // Unless data is kept, only the data of one cell exists at a time.
    let cells = if plan.keep_data {
        plan.cells.len() as u64
    } else {
        1
    };
    let needed = plan.disk_bytes.saturating_mul(cells);
    if free < needed && !force {
        let (needed, free) = (stdx::ByteSize(needed), stdx::ByteSize(free));
        return Err(Error::environment(format!(
            "{} has {free} free and the run may need {needed}: name another --data-dir, choose a \
             smaller --preset or --scale, or continue regardless with --force",
            dir.display()
        )));
    }
    Ok(())
}

fn copy_calibration(run: &RunDir) -> Result<()> {
    match lab_host::calibrate::stored() {
        Some(calibration) => run.write_json("calibration.json", &calibration),
        None => Ok(()),
    }
}

impl<'a> Runner<'a> {
    fn new(
        run: RunDir,
        manifest: Manifest,
        program: PathBuf,
        progress: &'a mut dyn Progress,
        interrupt: &'a Interrupt,
    ) -> Runner<'a> {
        Runner {
            run,
            manifest,
            cgroups: Cgroups::detect(),
            progress,
            interrupt,
            program,
        }
    }
}

impl Runner<'_> {
    fn go(mut self) -> Result<RunSummary> {
        let result = self.cells();
        self.remove_data_dir();
        result
    }

    /// Remove the data directory if this run created it and it is empty. A directory that the user
    /// named is not removed.
    fn remove_data_dir(&self) {
        let dir = &self.manifest.plan.data_dir;
        if self.manifest.plan.keep_data || !within(dir, self.run.path()) {
            return;
        }
        // Removing fails if the directory is not empty or is missing, which is fine.
        let _ = fs::remove_dir(dir);
    }

    fn cells(&mut self) -> Result<RunSummary> {
        remove_stale(&self.cgroups);
        let cells = self.manifest.plan.cells.clone();
        self.progress.begin(&self.manifest);
        let mut outcome = Ok(());
        for (index, cell) in cells.iter().enumerate() {
            if self.is_done(*cell)? && self.again(*cell)?.is_none() {
                self.progress.skipped(&self.manifest.plan, *cell);
                continue;
            }
            outcome = self.attempts(*cell, index)?;
        }
        let summary = self.summarize()?;
        self.progress.end(&summary);
        // If no step was started, the error is in the request itself.
        match outcome {
            Err(e) if e.kind().exit_code() == 3 && summary.steps.is_empty() => Err(e),
            _ => Ok(summary),
        }
    }

    /// Run a cell, again if it was disturbed (R2). The inner result is that of the last attempt.
    fn attempts(&mut self, cell: Cell, index: usize) -> Result<Result<()>> {
        loop {
            self.discard(cell)?;
            self.progress.cell(&self.manifest.plan, cell, index);
            let outcome = cell::run(self, cell);
            if self.interrupt.is_set() {
                let resume = self.run.path().display();
                let message = format!("interrupted; continue with `romanesco lab resume {resume}`");
                return Err(Error::interrupted(message));
            }
            if let Err(e) = &outcome {
                self.note_failure(cell, &e.message)?;
                self.progress.warning(&e.message);
            }
            self.summarize()?;
            match self.again(cell)? {
                Some(why) if outcome.is_ok() => {
                    let text = format!("the repeat was disturbed, and is done again: {why}");
                    self.progress.warning(&text);
                }
                _ => return Ok(outcome),
            }
        }
    }

    /// Why a cell that is done was disturbed, if it is to be done again (R2, R3).
    fn again(&self, cell: Cell) -> Result<Option<String>> {
        let plan = &self.manifest.plan;
        let is_attempt = |(name, status): &&(String, StepStatus)| {
            let message = status.message.as_deref().unwrap_or_default();
            let first = plan.steps.first().map(|step| file_name(&step.name));
            first.is_some_and(|first| name.ends_with(&format!("_{first}")))
                && status.state == StepState::Discarded
                && message.starts_with(DISTURBED)
        };
        let attempts = self.all_steps_of(cell)?.iter().filter(is_attempt).count();
        if plan.redo as usize <= attempts || !self.is_done(cell)? {
            return Ok(None);
        }
        let mut found = None;
        for (name, _) in self.steps_of(cell)? {
            let summary = self.run.step_summary(&name)?;
            if !summary.valid {
                return Ok(None);
            }
            if !summary.disturbed().is_empty() {
                let why = summary.disturbed().join("; ");
                found = found.or(Some(format!("{}: {why}", summary.step)));
            }
        }
        Ok(found)
    }

    /// Store the facts that a server reported in the record of its target.
    fn learn(&self, cell: Cell, facts: &ServerFacts) -> Result<()> {
        let path = self.run.path().join(store::TARGETS);
        let mut records: Vec<TargetRecord> = store::read_json(&path)?;
        let target = self.manifest.plan.targets.get(cell.target);
        let name = target.map_or("", |t| t.name.as_str());
        if let Some(record) = records.iter_mut().find(|r| r.name == name) {
            target_record::learn(record, facts);
            self.run.write_json(store::TARGETS, &records)?;
            if !facts.settings.is_empty() {
                let file = format!("env/settings_{}.csv", file_name(name));
                let table = target_record::settings_table(&facts.settings);
                self.run.write_text(&file, &table)?;
            }
        }
        Ok(())
    }

    /// Record in the results why the cell is not complete, wherever the failure occurred.
    fn note_failure(&self, cell: Cell, message: &str) -> Result<()> {
        let steps = self.steps_of(cell)?;
        if steps.iter().any(|(_, s)| s.state == StepState::Failed) {
            return Ok(());
        }
        let plan = &self.manifest.plan;
        match (steps.last(), plan.steps.first()) {
            (Some((name, _)), _) => {
                let message = Some(message.to_owned());
                self.run.set_status(name, StepState::Failed, message)
            }
            (None, Some(first)) => {
                let target = plan.targets.get(cell.target);
                let name = target.map_or("", |t| t.name.as_str());
                let step = self.run.begin_step(name, cell.repeat, &first.name)?;
                step.fail(message)
            }
            (None, None) => Ok(()),
        }
    }

    fn prefix(&self, cell: Cell) -> String {
        let target = self.manifest.plan.targets.get(cell.target);
        let name = target.map_or("", |t| t.name.as_str());
        format!("_{}_r{}_", file_name(name), cell.repeat)
    }

    /// The step directories of a cell that were not discarded.
    fn steps_of(&self, cell: Cell) -> Result<Vec<(String, StepStatus)>> {
        let mut steps = self.all_steps_of(cell)?;
        steps.retain(|(_, status)| status.state != StepState::Discarded);
        Ok(steps)
    }

    /// The step directories of a cell.
    fn all_steps_of(&self, cell: Cell) -> Result<Vec<(String, StepStatus)>> {
        let prefix = self.prefix(cell);
        let all = self.run.steps()?;
        let mine = |name: &str| {
            name.find('_')
                .and_then(|i| name.get(i..))
                .is_some_and(|rest| rest.starts_with(&prefix))
        };
        Ok(all.into_iter().filter(|(name, _)| mine(name)).collect())
    }

    fn is_done(&self, cell: Cell) -> Result<bool> {
        let steps = self.steps_of(cell)?;
        let all = steps.len() == self.manifest.plan.steps.len();
        Ok(all && steps.iter().all(|(_, s)| s.state == StepState::Done))
    }

    fn discard(&self, cell: Cell) -> Result<()> {
        let disturbed = self.again(cell)?;
        for (name, status) in self.steps_of(cell)? {
            let why = match (&disturbed, status.state) {
                (Some(why), _) => format!("{DISTURBED}{why}; its cell was restarted"),
                (_, StepState::Failed) => "its cell failed and was restarted".to_owned(),
                _ => "its cell was interrupted and was restarted".to_owned(),
            };
            self.run
                .set_status(&name, StepState::Discarded, Some(why))?;
        }
        Ok(())
    }

    fn summarize(&self) -> Result<RunSummary> {
        let mut record = store::load(self.run.path())?;
        let plan = &self.manifest.plan;
        let complete = record.steps.len() == plan.cells.len() * plan.steps.len()
            && record.steps.iter().all(|s| s.summary.is_some());
        let steps: Vec<(StepSummary, Vec<f64>)> = record
            .steps
            .iter()
            .filter_map(|s| {
                let summary = s.summary.clone()?;
                let rates = analysis::main_rates(&s.series, summary.main);
                Some((summary, rates))
            })
            .collect();
        let summary = analysis::summarize(&self.manifest, &steps, complete);
        self.run
            .write_summary(&summary, &analysis::summary_table(&summary))?;
        record.summary = summary.clone();
        let prices = record.prices.clone().unwrap_or_else(Prices::default_prices);
        let cost = cost::estimate(&record, &prices, &CostOptions::default());
        self.run.write_json(store::COST, &cost)?;
        Ok(summary)
    }
}

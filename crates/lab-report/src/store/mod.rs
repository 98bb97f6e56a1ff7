//! The results directory: append-only, valid after a crash at any moment, resumable.
//!
//! Small files are written atomically; series grow by whole lines; a step counts only when its
//! `status.json` says `done`, which is written last. `docs/results.md` describes every file.

mod base;
mod counters;
mod histograms;
mod hold;
mod load;
mod step_dir;
mod sweep;

pub use base::{Base, load_base};
pub use counters::load_counters;
pub use hold::{holder, in_use};
pub use load::load;
pub use step_dir::{StepDir, reason_name};
pub use sweep::{SWEEP, create_sweep, is_sweep, load_sweep, load_with, read_sweep, sweep_holder};

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::record::{Manifest, RunSummary, SCHEMA, StepState, StepStatus, StepSummary, file_name};
use hold::Hold;

/// The manifest's file.
pub const MANIFEST: &str = "manifest.json";
/// The run's summary.
pub const SUMMARY: &str = "summary.json";
/// The report.
pub const REPORT: &str = "report.html";
/// The prices at the time of the run.
pub const PRICES: &str = "prices.toml";
/// The estimated cost of the run at those prices.
pub const COST: &str = "cost.json";
/// The tested targets.
pub const TARGETS: &str = "env/targets.json";

/// What to do about a damaged record.
const RESTORE: &str = "restore it from a copy, or run the experiment again";

/// A run's directory, held by this process.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    _hold: Hold,
}

impl RunDir {
    /// Make the directory of a new run.
    ///
    /// # Errors
    /// When it holds anything already, or cannot be written.
    pub fn create(path: &Path, manifest: &Manifest) -> Result<RunDir> {
        check_new(path)?;
        let steps = path.join("steps");
        vfs::ensure_dir(&steps).map_err(|e| Error::io("create", &steps, &e))?;
        let env = path.join("env");
        vfs::ensure_dir(&env).map_err(|e| Error::io("create", &env, &e))?;
        let run = RunDir {
            path: path.to_owned(),
            _hold: Hold::take(path)?,
        };
        run.write_json(MANIFEST, manifest)?;
        Ok(run)
    }

    /// Take over the directory of a run that was interrupted.
    ///
    /// # Errors
    /// When it is no run, of another schema, or another process works on it.
    pub fn open(path: &Path) -> Result<(RunDir, Manifest)> {
        let manifest = read_manifest(path)?;
        Ok((
            RunDir {
                path: path.to_owned(),
                _hold: Hold::take(path)?,
            },
            manifest,
        ))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Write a record atomically under `name`.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write_json(&self, name: &str, record: &impl Serialize) -> Result<()> {
        write_json(&self.path.join(name), record)
    }

    /// Write text atomically under `name`.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write_text(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path.join(name);
        vfs::write_atomic(&path, text.as_bytes()).map_err(|e| Error::io("write", &path, &e))
    }

    /// Write the run's summary, as JSON and as a table.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write_summary(&self, summary: &RunSummary, table: &str) -> Result<()> {
        self.write_json(SUMMARY, summary)?;
        self.write_text("summary.csv", table)
    }

    /// Make the directory of the next step.
    ///
    /// # Errors
    /// The operating system's.
    pub fn begin_step(&self, target: &str, repeat: u32, step: &str) -> Result<StepDir> {
        let number = step_names(&self.path)?
            .iter()
            .filter_map(|name| name.split('_').next()?.parse::<u32>().ok())
            .max()
            .map_or(1, |last| last.saturating_add(1));
        let name = format!(
            "{number:03}_{}_r{repeat}_{}",
            file_name(target),
            file_name(step)
        );
        StepDir::create(&self.path.join("steps").join(name))
    }

    /// The directories of all steps with their states, in order.
    ///
    /// # Errors
    /// A status that cannot be read.
    pub fn steps(&self) -> Result<Vec<(String, StepStatus)>> {
        statuses(&self.path)
    }

    /// The summary of a step that is done.
    ///
    /// # Errors
    /// A summary that is missing or cannot be read.
    pub fn step_summary(&self, step: &str) -> Result<StepSummary> {
        read_json(&self.path.join("steps").join(step).join(step_dir::SUMMARY))
    }

    /// Set a step's status.
    ///
    /// # Errors
    /// The operating system's.
    pub fn set_status(&self, step: &str, state: StepState, message: Option<String>) -> Result<()> {
        let path = self.path.join("steps").join(step).join(step_dir::STATUS);
        write_json(&path, &status(state, message))
    }
}

/// Refuse a directory that is not empty.
///
/// # Errors
/// A sentence that says what is there.
pub fn check_new(path: &Path) -> Result<()> {
    let cannot = |next| {
        Err(Error::environment(format!(
            "cannot use {}: {next}",
            path.display()
        )))
    };
    if path.is_file() {
        return cannot("it is a file: name another --out");
    }
    if path.join(MANIFEST).exists() {
        return cannot(
            "it holds a run: continue it by `romanesco lab resume`, or name another --out",
        );
    }
    if is_sweep(path) {
        return cannot(
            "it holds a sweep: continue it by `romanesco lab resume`, or name another --out",
        );
    }
    match vfs::is_empty(path) {
        Ok(true) => Ok(()),
        Ok(false) => cannot("it is not empty and holds no run: name another --out"),
        Err(e) => Err(Error::io("create", path, &e)),
    }
}

/// The manifest of a run.
///
/// # Errors
/// When the directory is no run, or one of another schema (both versions are named).
pub fn read_manifest(path: &Path) -> Result<Manifest> {
    let file = path.join(MANIFEST);
    let value: serde_json::Value = read_json(&file).map_err(|e| {
        if file.exists() {
            return e;
        }
        if is_sweep(path) {
            let run = sweep::some_run(path).map_or(String::new(), |run| format!(", such as {run}"));
            return Error::environment(format!(
                "{} holds a sweep, whose runs are in its directories: name one of them{run}",
                path.display()
            ));
        }
        Error::environment(format!(
            "{} holds no run (no {MANIFEST}); name a directory made by `romanesco lab run`",
            path.display()
        ))
    })?;
    let schema = value.get("schema").and_then(serde_json::Value::as_u64);
    let schema = schema.ok_or_else(|| {
        let file = file.display();
        Error::environment(format!(
            "{file} is no manifest: it has no schema; {RESTORE}"
        ))
    })?;
    if schema != u64::from(SCHEMA) {
        let by = value
            .get("lab_version")
            .and_then(|v| v.as_str())
            .unwrap_or("unknown");
        return Err(Error::environment(format!(
            "{} was written by another version (schema {schema}, romanesco {by}); this program \
             reads schema {SCHEMA}: use that version, or run the experiment again",
            path.display()
        )));
    }
    serde_json::from_value(value).map_err(|e| {
        Error::environment(format!("{} is no manifest: {e}; {RESTORE}", file.display()))
    })
}

/// Write a record as one file, replaced whole.
///
/// # Errors
/// The file cannot be written.
pub fn write_json(path: &Path, record: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(record).expect("records are plain data");
    text.push('\n');
    vfs::write_atomic(path, text.as_bytes()).map_err(|e| Error::io("write", path, &e))
}

/// Read a record.
///
/// # Errors
/// The file cannot be read, or holds another record.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = fs::read(path).map_err(|e| Error::io("read", path, &e))?;
    serde_json::from_slice(&bytes)
        .map_err(|e| Error::environment(format!("{} is damaged: {e}; {RESTORE}", path.display())))
}

/// The number before the first `_` of a step directory's name.
fn step_number(name: &str) -> u64 {
    name.split('_')
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(u64::MAX)
}

fn step_names(path: &Path) -> Result<Vec<String>> {
    let steps = path.join("steps");
    let entries = fs::read_dir(&steps).map_err(|e| Error::io("read", &steps, &e))?;
    let mut names: Vec<String> = entries
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    names.sort_by_key(|name| (step_number(name), name.clone()));
    Ok(names)
}

pub(crate) fn statuses(path: &Path) -> Result<Vec<(String, StepStatus)>> {
    let mut all = Vec::new();
    for name in step_names(path)? {
        let file = path.join("steps").join(&name).join(step_dir::STATUS);
        // A directory without a status was made a moment before a crash.
        let found = if file.exists() {
            read_json(&file)?
        } else {
            status(StepState::Running, None)
        };
        all.push((name, found));
    }
    Ok(all)
}

pub(crate) fn status(state: StepState, message: Option<String>) -> StepStatus {
    StepStatus {
        schema: SCHEMA,
        state,
        at: now_text(),
        message,
    }
}

/// The wall clock as RFC 3339 in UTC, to the second.
#[must_use]
pub fn now_text() -> String {
    let seconds = i64::try_from(stdx::time::wall().as_secs()).unwrap_or(0);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "unknown".to_owned(), |t| t.to_string())
}

/// A record as indented JSON, for people.
#[must_use]
pub fn pretty(record: &impl Serialize) -> String {
    serde_json::to_string_pretty(record).expect("records are plain data")
}

//! The directory of one step while it is written.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use kv::EngineStats;

use super::{histograms, status, write_json};
use crate::error::{Error, Result};
use crate::record::map::Map;
use crate::record::{EngineCounter, EnvelopeRecord, SeriesRow, Stall, StepState, StepSummary};

pub(super) const STATUS: &str = "status.json";
pub(super) const SUMMARY: &str = "summary.json";
pub(super) const ENVELOPE: &str = "envelope.json";
pub(super) const SERIES: &str = "series.csv";
pub(super) const ENGINE: &str = "engine.csv";
pub(super) const STALLS: &str = "stalls.json";
pub(super) const HISTOGRAMS: &str = "hist.hlog";
pub(super) const MAP: &str = "map.json";
const LOG: &str = "log.txt";

/// A step in progress: its series grow, its records are written at the end.
pub struct StepDir {
    path: PathBuf,
    series: csv::Writer<File>,
    engine: csv::Writer<File>,
    log: File,
}

impl StepDir {
    pub(super) fn create(path: &Path) -> Result<StepDir> {
        vfs::ensure_dir(path).map_err(|e| Error::io("create", path, &e))?;
        write_json(&path.join(STATUS), &status(StepState::Running, None))?;
        Ok(StepDir {
            path: path.to_owned(),
            series: table(&path.join(SERIES))?,
            engine: table(&path.join(ENGINE))?,
            log: append(&path.join(LOG))?,
        })
    }

    /// The name of the directory.
    #[must_use]
    pub fn name(&self) -> String {
        self.path
            .file_name()
            .map_or(String::new(), |n| n.to_string_lossy().into_owned())
    }

    /// Add a second.
    ///
    /// # Errors
    /// The operating system's.
    pub fn push(&mut self, row: &SeriesRow) -> Result<()> {
        self.series
            .serialize(row)
            .map_err(|e| self.failed(SERIES, &e))?;
        self.series
            .flush()
            .map_err(|e| Error::io("write", &self.path.join(SERIES), &e))
    }

    /// Add the engine's counters at `t` seconds.
    ///
    /// # Errors
    /// The operating system's.
    pub fn push_engine(&mut self, t: f64, stats: &EngineStats) -> Result<()> {
        for counter in counters(t, stats) {
            self.engine
                .serialize(counter)
                .map_err(|e| self.failed(ENGINE, &e))?;
        }
        self.engine
            .flush()
            .map_err(|e| Error::io("write", &self.path.join(ENGINE), &e))
    }

    /// Add a line to the log.
    ///
    /// # Errors
    /// The operating system's.
    pub fn log(&mut self, line: &str) -> Result<()> {
        let path = self.path.join(LOG);
        let now = super::now_text();
        writeln!(self.log, "{now} {line}").map_err(|e| Error::io("write", &path, &e))
    }

    /// Write the limits in force.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write_envelope(&self, envelope: &EnvelopeRecord) -> Result<()> {
        write_json(&self.path.join(ENVELOPE), envelope)
    }

    /// Write the map of the files.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write_map(&self, map: &Map) -> Result<()> {
        write_json(&self.path.join(MAP), map)
    }

    /// Write the records and mark the step done.
    ///
    /// # Errors
    /// The operating system's.
    pub fn finish(
        self,
        summary: &StepSummary,
        stalls: &[Stall],
        commits: Option<&Histogram<u64>>,
        queries: Option<&Histogram<u64>>,
    ) -> Result<()> {
        write_json(&self.path.join(STALLS), &stalls)?;
        let path = self.path.join(HISTOGRAMS);
        let text = histograms::write(summary.seconds, commits, queries);
        vfs::write_atomic(&path, &text).map_err(|e| Error::io("write", &path, &e))?;
        write_json(&self.path.join(SUMMARY), summary)?;
        write_json(&self.path.join(STATUS), &status(StepState::Done, None))
    }

    /// Mark the step failed.
    ///
    /// # Errors
    /// The operating system's.
    pub fn fail(self, message: &str) -> Result<()> {
        let status = status(StepState::Failed, Some(message.to_owned()));
        write_json(&self.path.join(STATUS), &status)
    }

    fn failed(&self, file: &str, error: &csv::Error) -> Error {
        Error::environment(format!(
            "cannot write {}: {error}",
            self.path.join(file).display()
        ))
    }
}

fn append(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|e| Error::io("create", path, &e))
}

fn table(path: &Path) -> Result<csv::Writer<File>> {
    Ok(csv::Writer::from_writer(append(path)?))
}

fn counters(t: f64, stats: &EngineStats) -> Vec<EngineCounter> {
    let mut all = Vec::new();
    let mut push = |counter: String, value: u64| all.push(EngineCounter { t, counter, value });
    for (name, counts) in [("written", &stats.written), ("read", &stats.read)] {
        for count in counts {
            push(format!("{name}.{}", reason_name(count.reason)), count.bytes);
        }
    }
    if let Some(cache) = stats.cache {
        push("cache.capacity_bytes".to_owned(), cache.capacity_bytes);
        push("cache.used_bytes".to_owned(), cache.used_bytes);
        push("cache.dirty_bytes".to_owned(), cache.dirty_bytes);
        push("cache.hits".to_owned(), cache.hits);
        push("cache.misses".to_owned(), cache.misses);
    }
    for stall in &stats.stalls {
        push(format!("stall.{}.count", stall.reason), stall.count);
        if let Some(micros) = stall.micros {
            push(format!("stall.{}.micros", stall.reason), micros);
        }
    }
    for (name, value) in &stats.counters {
        push(name.clone(), *value);
    }
    all
}

/// A reason as it is written in records: `log`, `page_write`.
#[must_use]
pub fn reason_name(reason: kv::IoReason) -> String {
    match serde_json::to_value(reason) {
        Ok(serde_json::Value::String(name)) => name,
        _ => format!("{reason:?}"),
    }
}

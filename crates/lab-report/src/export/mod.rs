//! A run for other tools: tables, latency percentiles, change detection.
//!
//! Everything is text made from records; nothing is computed that is not in `docs/results.md`.

mod otava;
mod percentiles;
mod sweep;
mod table;

pub use sweep::export_sweep;

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use crate::analysis::{main_rates, separated, summarize};
use crate::error::{Error, Result, unknown};
use crate::record::{RunRecord, RunSummary, SCHEMA, StepRecord};

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object: manifest, targets, summary, and per step its state, limits and stalls.
    Json,
    /// The table of `summary.csv`: a line for each target and step, a column for each metric.
    Csv,
    /// The same with tabs.
    Tsv,
    /// The same as a Markdown table, turned: a line for each metric.
    Markdown,
    /// Latency percentiles of each step, as HdrHistogram's tools write and plot them; microseconds.
    Hgrm,
    /// For Apache Otava: `time`, `commit` and a column for each target, step and metric; a row for
    /// each repeat.
    Otava,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 6] = [
        Format::Json,
        Format::Csv,
        Format::Tsv,
        Format::Markdown,
        Format::Hgrm,
        Format::Otava,
    ];

    /// Its name, as on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Markdown => "md",
            Format::Hgrm => "hgrm",
            Format::Otava => "otava",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        let found = Format::ALL.into_iter().find(|f| f.name() == text);
        found.ok_or_else(|| unknown("format", text, &Format::ALL.map(Format::name)))
    }
}

/// The text of a run in a format, ending in a newline.
///
/// # Errors
/// When the run has nothing of the kind: no latency histogram for `hgrm`, no finished step for
/// `otava`.
pub fn export(run: &RunRecord, format: Format) -> Result<String> {
    let mut text = match format {
        Format::Json => serde_json::to_string_pretty(&object(run))
            .map_err(|e| Error::environment(format!("cannot export {}: {e}", run.manifest.run)))?,
        Format::Csv => separated(&summary(run), b','),
        Format::Tsv => separated(&summary(run), b'\t'),
        Format::Markdown => table::markdown(&run.manifest.plan, &summary(run)),
        Format::Hgrm => percentiles::text(run)?,
        Format::Otava => otava::text(run)?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// The summary; computed from the steps if the run was interrupted before it had one.
fn summary(run: &RunRecord) -> RunSummary {
    if !run.summary.results.is_empty() {
        return run.summary.clone();
    }
    let done = run.steps.iter().filter_map(|s| {
        let summary = s.summary.clone()?;
        let rates = main_rates(&s.series, summary.main);
        Some((summary, rates))
    });
    summarize(
        &run.manifest,
        &done.collect::<Vec<_>>(),
        run.summary.complete,
    )
}

fn object(run: &RunRecord) -> Value {
    let steps: Vec<Value> = run.steps.iter().map(step).collect();
    let discarded = run.discarded.iter();
    let discarded = discarded.map(|(step, why)| json!({ "directory": step, "reason": why }));
    let noise: serde_json::Map<String, Value> = run
        .noise
        .iter()
        .map(|(name, floor)| (name.clone(), json!(floor)))
        .collect();
    json!({
        "schema": SCHEMA,
        "manifest": run.manifest,
        "targets": run.targets,
        "summary": summary(run),
        "steps": steps,
        "discarded": discarded.collect::<Vec<Value>>(),
        "noise": noise,
        "host_warnings": run.host_warnings,
    })
}

/// The parts of a step that the summary does not contain.
fn step(step: &StepRecord) -> Value {
    json!({
        "directory": step.directory,
        "status": step.status,
        "envelope": step.envelope,
        "stalls": step.stalls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{run, step};

    #[test]
    fn formats_are_named() {
        for format in Format::ALL {
            assert_eq!(format.name().parse::<Format>(), Ok(format));
        }
        let error = "mdd".parse::<Format>().unwrap_err();
        assert!(
            error.contains("did you mean \"md\"?") && error.contains("otava"),
            "{error}"
        );
    }

    #[test]
    fn json_holds_the_records() {
        let run = run("r", &["lmdb"], 1, vec![step("lmdb", 1, 100.0)]);
        let value: Value = serde_json::from_str(&export(&run, Format::Json).unwrap()).unwrap();
        assert_eq!(value["schema"], 1);
        assert_eq!(value["manifest"]["plan"]["seed"], 42);
        assert_eq!(value["summary"]["results"][0]["rate_mean"], 100.0);
        assert_eq!(value["steps"][0]["directory"], "001_lmdb_r1_load");
        assert_eq!(value["steps"][0]["status"]["state"], "done");
    }

    #[test]
    fn a_run_without_a_summary_gets_one() {
        let mut run = run("r", &["lmdb"], 1, vec![step("lmdb", 1, 100.0)]);
        let whole = export(&run, Format::Csv).unwrap();
        run.summary.results.clear();
        assert_eq!(export(&run, Format::Csv).unwrap(), whole);
    }
}

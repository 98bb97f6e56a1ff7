//! Reading a run from its directory.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::step_dir::{ENVELOPE, HISTOGRAMS, MAP, SERIES, STALLS, SUMMARY};
use super::{TARGETS, histograms, read_json, read_manifest, statuses};
use crate::error::{Error, Result};
use crate::record::{Prices, RunRecord, RunSummary, SCHEMA, StepRecord, StepState, StepStatus};

/// Read a run with all its records. Steps that are not done come without a summary.
///
/// # Errors
/// When the directory is no run or of another schema, or a record that should be there is not
/// whole.
pub fn load(path: &Path) -> Result<RunRecord> {
    let manifest = read_manifest(path)?;
    let mut steps = Vec::new();
    let mut discarded = Vec::new();
    for (name, status) in statuses(path)? {
        if status.state == StepState::Discarded {
            discarded.push((name, status.message.unwrap_or_default()));
        } else {
            steps.push(load_step(path, name, status)?);
        }
    }
    let file = path.join(super::SUMMARY);
    let summary = if file.exists() {
        read_json(&file).map_err(|e| {
            let next = "or remove it: `romanesco lab resume` writes it again from the steps";
            Error::environment(format!("{}, {next}", e.message))
        })?
    } else {
        RunSummary {
            schema: SCHEMA,
            run: manifest.run.clone(),
            experiment: manifest.plan.experiment.clone(),
            complete: false,
            valid: true,
            results: Vec::new(),
            steps: steps.iter().filter_map(|s| s.summary.clone()).collect(),
        }
    };
    let targets = path.join(TARGETS);
    let targets = if targets.exists() {
        read_json(&targets)?
    } else {
        Vec::new()
    };
    let host_warnings = warnings(&manifest.host);
    let noise = noise(path)?;
    let prices = prices(path)?;
    Ok(RunRecord {
        manifest,
        targets,
        summary,
        steps,
        discarded,
        noise,
        prices,
        host_warnings,
    })
}

fn load_step(path: &Path, name: String, status: StepStatus) -> Result<StepRecord> {
    let dir = path.join("steps").join(&name);
    let done = status.state == StepState::Done;
    let (histogram, query_histogram) = match fs::read(dir.join(HISTOGRAMS)) {
        Ok(bytes) => histograms::read(&bytes),
        Err(_) => (None, None),
    };
    Ok(StepRecord {
        summary: if done {
            Some(read_json(&dir.join(SUMMARY))?)
        } else {
            None
        },
        series: table(&dir.join(SERIES)),
        stalls: if done {
            read_json(&dir.join(STALLS))?
        } else {
            Vec::new()
        },
        histogram,
        query_histogram,
        envelope: read_json(&dir.join(ENVELOPE)).unwrap_or_default(),
        map: read_json(&dir.join(MAP)).ok(),
        counters: Vec::new(),
        status,
        directory: name,
    })
}

/// The complete lines of a table; a line cut off by a crash is skipped.
fn table<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    match csv::Reader::from_path(path) {
        Ok(mut reader) => reader
            .deserialize()
            .filter_map(std::result::Result::ok)
            .collect(),
        Err(_) => Vec::new(),
    }
}

fn warnings(host: &serde_json::Value) -> Vec<String> {
    let list = host.get("warnings").and_then(|w| w.as_array());
    list.into_iter()
        .flatten()
        .filter_map(|w| w.as_str())
        .map(str::to_owned)
        .collect()
}

/// The prices kept with the run.
fn prices(path: &Path) -> Result<Option<Prices>> {
    let file = path.join(super::PRICES);
    if !file.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&file).map_err(|e| Error::io("read", &file, &e))?;
    Prices::parse(&text).map(Some)
}

fn noise(path: &Path) -> Result<Vec<(String, f64)>> {
    let file = path.join("calibration.json");
    if !file.exists() {
        return Ok(Vec::new());
    }
    let value: serde_json::Value = read_json(&file)?;
    let floors = value.get("noise").and_then(|n| n.as_object());
    let floors = floors.into_iter().flatten();
    Ok(floors
        .filter_map(|(name, v)| Some((name.clone(), v.as_f64()?)))
        .collect())
}

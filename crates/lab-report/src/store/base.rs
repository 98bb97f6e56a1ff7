//! The base of a check: the directory of another run, or a single file from one.
//!
//! An export in JSON has the plan and the state of every step, so that it serves as the directory
//! does, but for the series: a single repeat has no interval within the run. A `summary.json` that
//! stands beside its manifest is its directory; one that stands alone has no plan: its
//! settings are then assumed to be those of the run, and the check says so.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{MANIFEST, SUMMARY, load};
use crate::error::{Error, Result};
use crate::record::{
    Manifest, RunRecord, RunSummary, SCHEMA, StepRecord, StepState, StepStatus, StepSummary,
    file_name,
};

/// The inputs that are accepted.
const WANTED: &str = "name a directory made by `romanesco lab run`, its summary.json, or what \
                      `romanesco lab export --format json` wrote";

/// A base, with notes for the reader.
#[derive(Debug)]
pub struct Base {
    /// Its records.
    pub record: RunRecord,
    /// Assumptions about it.
    pub notes: Vec<String>,
}

/// The parts of an export that are read; the rest is also in the summary.
#[derive(Deserialize)]
struct Export {
    manifest: Manifest,
    summary: RunSummary,
    steps: Vec<ExportedStep>,
    #[serde(default)]
    noise: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct ExportedStep {
    directory: String,
    status: StepStatus,
}

/// Read the base of a check: a directory, or a file.
///
/// # Errors
/// When there is nothing, when it is no run (what it is instead is named as far as that is seen),
/// when it is of another schema or experiment, or damaged.
pub fn load_base(path: &Path, run: &RunRecord) -> Result<Base> {
    let whole = |record| Base {
        record,
        notes: Vec::new(),
    };
    if path.is_dir() {
        return load(path).map(whole);
    }
    let bytes = fs::read(path).map_err(|e| {
        let e = Error::io("read the base", path, &e);
        Error::environment(format!("{}; {WANTED}", e.message))
    })?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|e| wrong(path, &e.to_string()))?;
    let has = |name: &str| value.get(name).is_some();
    if has("manifest") && has("summary") {
        check_schema(path, &value)?;
        return Ok(whole(exported(parse(path, value)?)));
    }
    if has("results") && has("steps") {
        check_schema(path, &value)?;
        let summary: RunSummary = parse(path, value)?;
        let directory = path.parent().unwrap_or(Path::new("."));
        if path.ends_with(SUMMARY) && directory.join(MANIFEST).exists() {
            return load(directory).map(whole);
        }
        return alone(path, summary, run);
    }
    Err(wrong(path, what(&value)))
}

/// What an unsuitable file contains instead.
fn what(value: &Value) -> &'static str {
    let has = |name: &str| value.get(name).is_some();
    if has("plan") {
        "it is the manifest of a run, without results"
    } else if has("lines") && has("rules") {
        "it is the result of a check"
    } else if has("prices") {
        "it is the cost of a run"
    } else if has("rate_mean") {
        "it is the summary of one step"
    } else {
        "it has no results"
    }
}

fn wrong(path: &Path, why: &str) -> Error {
    let path = path.display();
    Error::environment(format!("{path} is no base: {why}; {WANTED}"))
}

fn parse<T: DeserializeOwned>(path: &Path, value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(|e| wrong(path, &e.to_string()))
}

fn check_schema(path: &Path, value: &Value) -> Result<()> {
    match value.get("schema").and_then(Value::as_u64) {
        Some(schema) if schema == u64::from(SCHEMA) => Ok(()),
        Some(schema) => Err(wrong(
            path,
            &format!("it is of schema {schema}, and this program reads schema {SCHEMA}"),
        )),
        None => Err(wrong(path, "it has no schema")),
    }
}

/// The records of an export.
fn exported(export: Export) -> RunRecord {
    let Export {
        manifest,
        summary,
        steps,
        noise,
    } = export;
    let step = |step: ExportedStep| {
        let done = step.status.state == StepState::Done;
        let found = summary.steps.iter().find(|s| is_of(&step.directory, s));
        StepRecord {
            summary: found.filter(|_| done).cloned(),
            ..record(step.directory, step.status)
        }
    };
    let noise = noise.into_iter();
    RunRecord {
        steps: steps.into_iter().map(step).collect(),
        noise: noise
            .filter_map(|(name, floor)| Some((name, floor.as_f64()?)))
            .collect(),
        ..bare(manifest, summary)
    }
}

/// The records of a summary alone, with the plan of the run that is compared with it.
fn alone(path: &Path, summary: RunSummary, run: &RunRecord) -> Result<Base> {
    let (own, other) = (&run.manifest.plan.experiment, &summary.experiment);
    if own != other {
        return Err(wrong(path, &format!("it is of {other}, not of {own}")));
    }
    let mut manifest = run.manifest.clone();
    manifest.run.clone_from(&summary.run);
    let known = |name: &str| summary.steps.iter().any(|s| s.target == name);
    manifest.plan.targets.retain(|t| known(&t.name));
    let steps = summary.steps.iter().enumerate().map(|(place, step)| {
        let status = StepStatus {
            schema: SCHEMA,
            state: StepState::Done,
            at: String::new(),
            message: None,
        };
        StepRecord {
            summary: Some(step.clone()),
            ..record(format!("{:03}_{}", place + 1, tail(step)), status)
        }
    });
    let steps: Vec<StepRecord> = steps.collect();
    Ok(Base {
        record: RunRecord {
            steps,
            ..bare(manifest, summary)
        },
        notes: vec![format!(
            "{} has no plan: that its settings were those of the run is assumed (an export in JSON \
             has it)",
            path.display()
        )],
    })
}

fn bare(manifest: Manifest, summary: RunSummary) -> RunRecord {
    RunRecord {
        manifest,
        targets: Vec::new(),
        summary,
        steps: Vec::new(),
        discarded: Vec::new(),
        noise: Vec::new(),
        prices: None,
        host_warnings: Vec::new(),
    }
}

fn record(directory: String, status: StepStatus) -> StepRecord {
    StepRecord {
        directory,
        status,
        summary: None,
        series: Vec::new(),
        stalls: Vec::new(),
        histogram: None,
        query_histogram: None,
        envelope: crate::record::EnvelopeRecord::default(),
        map: None,
        counters: Vec::new(),
    }
}

/// The name of a step's directory, after its number.
fn tail(step: &StepSummary) -> String {
    let (target, name) = (file_name(&step.target), file_name(&step.step));
    format!("{target}_r{}_{name}", step.repeat)
}

fn is_of(directory: &str, step: &StepSummary) -> bool {
    let rest = directory.split_once('_').map(|(_, rest)| rest);
    rest.is_some_and(|rest| rest == tail(step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Outcome, check};
    use crate::export::{Format, export};
    use crate::fixture::{failed_step, run, step};

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("base.json");
        fs::write(&path, text).unwrap();
        (dir, path)
    }

    fn of(rate: f64) -> RunRecord {
        run("r", &["lmdb"], 1, vec![step("lmdb", 1, rate)])
    }

    fn outcome(now: &RunRecord, base: &Base) -> Outcome {
        let rules = ["rate_mean<-5%".parse().unwrap()];
        check(now, &base.record, &rules, true).unwrap().outcome()
    }

    #[test]
    fn an_export_serves_as_the_directory_does() {
        let before = of(100.0);
        let (_dir, path) = file(&export(&before, Format::Json).unwrap());
        for (rate, expected) in [(99.0, Outcome::Ok), (80.0, Outcome::Regression)] {
            let now = of(rate);
            let base = load_base(&path, &now).unwrap();
            assert!(base.notes.is_empty());
            let plan = |r: &RunRecord| serde_json::to_value(&r.manifest.plan).unwrap();
            assert_eq!(plan(&base.record), plan(&before));
            assert_eq!(outcome(&now, &base), expected);
        }
    }

    #[test]
    fn a_step_that_failed_is_in_an_export_as_well() {
        let mut before = of(100.0);
        before.steps = vec![failed_step("001_lmdb_r1_load", "no room left")];
        before.summary.steps.clear();
        let (_dir, path) = file(&export(&before, Format::Json).unwrap());
        let base = load_base(&path, &of(100.0)).unwrap();
        assert_eq!(base.record.steps[0].status.state, StepState::Failed);
        assert_eq!(outcome(&of(100.0), &base), Outcome::Invalid);
    }

    #[test]
    fn a_summary_alone_has_the_plan_of_the_run() {
        let before = of(100.0);
        let (_dir, path) = file(&serde_json::to_string(&before.summary).unwrap());
        let base = load_base(&path, &of(80.0)).unwrap();
        assert!(base.notes[0].contains("has no plan"), "{:?}", base.notes);
        assert_eq!(outcome(&of(80.0), &base), Outcome::Regression);
        assert_eq!(outcome(&of(99.0), &base), Outcome::Ok);
        let mut other = of(100.0);
        other.manifest.plan.experiment = "tpcc".to_owned();
        let error = load_base(&path, &other).unwrap_err().message;
        assert!(error.contains("not of tpcc"), "{error}");
    }

    #[test]
    fn files_of_another_kind_are_named() {
        let manifest = serde_json::to_string(&of(1.0).manifest).unwrap();
        for (text, needle) in [
            ("ips 100", "is no base"),
            ("{}", "it has no results"),
            (manifest.as_str(), "it is the manifest of a run"),
            (r#"{"schema": 99, "results": [], "steps": []}"#, "schema 99"),
            (r#"{"results": [], "steps": []}"#, "no schema"),
            (r#"{"schema": 1, "results": [], "steps": 7}"#, "is no base"),
        ] {
            let (_dir, path) = file(text);
            let error = load_base(&path, &of(1.0)).unwrap_err().message;
            assert!(error.contains(needle), "{text}: {error}");
            assert!(
                error.contains("base.json") && error.contains("lab export"),
                "{error}"
            );
        }
        let gone = load_base(Path::new("nothing/here.json"), &of(1.0)).unwrap_err();
        assert!(gone.message.contains("nothing/here.json"), "{gone}");
    }
}

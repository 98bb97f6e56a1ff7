//! `summary.json` of the run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::step::StepSummary;

/// A number with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median over the repeats.
    pub median: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// The number of repeats. With 1, the interval is a block bootstrap within the run.
    pub repeats: u32,
}

/// One target and step over all repeats. The plain numbers are medians over the valid repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetStepSummary {
    /// The target.
    pub target: String,
    /// The step.
    pub step: String,
    /// Valid repeats.
    pub repeats_valid: u32,
    /// All repeats done.
    pub repeats: u32,
    /// Whether every repeat is valid.
    pub valid: bool,
    /// Metrics by name (`rows`, `rate_mean`, `latency_p99_ms`, ...: listed in `docs/results.md`),
    /// written as fields of this object. `None`: not measured, or no valid repeat.
    #[serde(flatten)]
    pub metrics: BTreeMap<String, Option<f64>>,
    /// Why the target cannot do this step at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// The experiment's own numbers: medians over the valid repeats.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
    /// 95 % intervals of the metrics that have one.
    pub estimates: BTreeMap<String, Estimate>,
}

/// The whole of the run's `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The run.
    pub run: String,
    /// The experiment.
    pub experiment: String,
    /// Whether every step of the plan is done.
    pub complete: bool,
    /// Whether every step done is valid.
    pub valid: bool,
    /// Per target and step.
    pub results: Vec<TargetStepSummary>,
    /// Every step of every repeat.
    pub steps: Vec<StepSummary>,
}

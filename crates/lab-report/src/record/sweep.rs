//! `sweep.json`: runs of one experiment that differ in the values of one or more settings.
//!
//! A sweep is a directory of ordinary runs, one for each combination of values (a *cell*). The plan
//! of each is stored before the first one starts, so that an interrupted sweep can be resumed.

use serde::{Deserialize, Serialize};

use super::manifest::{Plan, StepPlan};
use super::run::RunRecord;
use super::volume::NamedVolume;

/// The whole of `sweep.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sweep {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// When it was planned, RFC 3339 in UTC.
    pub created: String,
    /// The version of this program.
    pub lab_version: String,
    /// The commit it was built from.
    pub commit: String,
    /// The command line that made it.
    pub command: Vec<String>,
    /// The experiment.
    pub experiment: String,
    /// The names of the targets without their swept options, in the order of each plan.
    pub targets: Vec<String>,
    /// The swept settings.
    pub axes: Vec<SweepAxis>,
    /// The runs, in the order in which they are done.
    pub cells: Vec<SweepCell>,
    /// The text of the price file; `None` for the built-in prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<String>,
}

/// A swept setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepAxis {
    /// Its name: `cache`, `volume`, `betree:page`.
    pub name: String,
    /// The unit of the values' numbers; empty for plain numbers.
    pub unit: String,
    /// The values; in ascending order if they are [`SweepAxis::ordered`].
    pub values: Vec<SweepValue>,
}

/// A value of a swept setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepValue {
    /// As written.
    pub text: String,
    /// As a number; `None` for values that have no order.
    pub number: Option<f64>,
    /// Its limits, if it is the name of volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<NamedVolume>,
}

/// A run of a sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SweepCell {
    /// The name of its directory.
    pub directory: String,
    /// Its value of each axis, as an index.
    pub values: Vec<usize>,
    /// Its plan.
    pub plan: Plan,
}

/// A sweep with its runs.
#[derive(Clone, Debug)]
pub struct SweepRecord {
    /// The plan.
    pub sweep: Sweep,
    /// The run of each cell, or why there is none.
    pub runs: Vec<Result<RunRecord, String>>,
}

impl SweepAxis {
    /// Whether its values are numbers.
    #[must_use]
    pub fn ordered(&self) -> bool {
        self.values.iter().all(|value| value.number.is_some())
    }
}

impl Sweep {
    /// The values of a cell as text, in the order of the axes.
    #[must_use]
    pub fn texts<'a>(&'a self, cell: &SweepCell) -> Vec<&'a str> {
        let each = self.axes.iter().zip(&cell.values);
        each.map(|(axis, value)| axis.values.get(*value).map_or("", |v| v.text.as_str()))
            .collect()
    }

    /// The name of a step that is the same in every run. Where a swept setting is a part of the
    /// step's name, `N` takes its place: `iops-5000` and `iops-10000` are the step `iops-N`.
    #[must_use]
    pub fn step_name(&self, step: &StepPlan) -> String {
        let swept = |names: &[&str]| self.axes.iter().any(|a| names.contains(&a.name.as_str()));
        let iops = step.setting.iops.map(|n| ("iops-", n));
        let iops = iops.filter(|_| swept(&["iops", "volume"]));
        let clients = step.setting.clients.map(|n| ("clients-", u64::from(n)));
        let clients = clients.filter(|_| swept(&["clients"]));
        for (prefix, number) in iops.into_iter().chain(clients) {
            if let Some(rest) = step.name.strip_prefix(&format!("{prefix}{number}")) {
                return format!("{prefix}N{rest}");
            }
        }
        step.name.clone()
    }
}

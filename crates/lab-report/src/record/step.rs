//! `summary.json` of one step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::interval::IntervalRow;
use super::latency::{Latency, QuerySummary};
use super::others::Others;

/// Why a step ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// All its operations were done.
    #[default]
    Operations,
    /// Its time was up first.
    Time,
}

/// What a step measures: the rates, stalls and latency of its summary are those of this operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Main {
    /// Rows written; the latency is that of a transaction.
    #[default]
    Rows,
    /// Queries; rows are written in the background.
    Queries,
}

/// Whether the store held what the workload's model says, checked after the step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Integrity {
    /// False if the target cannot be read back (the `null` target).
    pub checked: bool,
    /// Expected number of rows.
    pub rows_expected: u64,
    /// Rows found in the primary tree.
    pub rows_found: u64,
    /// The errors found; empty if there are none.
    pub faults: Vec<String>,
    /// Seconds the check took.
    pub seconds: f64,
}

/// One step of one target in one repeat. Rates are main operations per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepSummary {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The target's name.
    pub target: String,
    /// The repeat, from 1.
    pub repeat: u32,
    /// The step's name.
    pub step: String,
    /// What it measures.
    pub main: Main,
    /// Why it ended.
    pub ended: Ended,
    /// Rows written in this step.
    pub rows: u64,
    /// Rows deleted in this step.
    pub rows_deleted: u64,
    /// Seconds from the first operation to the end of the last, without settling.
    pub seconds: f64,
    /// Main operations per second over the step.
    pub rate_mean: f64,
    /// Rate over the first tenth of the main operations.
    pub rate_first_tenth: f64,
    /// Rate over the last tenth of the main operations.
    pub rate_last_tenth: f64,
    /// Rate in the worst whole second.
    pub worst_second: f64,
    /// Median of the rates of whole seconds.
    pub median_second: f64,
    /// Seconds that were stalls ([`super::StallRule`]).
    pub stall_seconds: u64,
    /// Rows per second asked for, in open-loop loads and in the background of query steps, or
    /// operations per second of open-loop mixes; below 95 % of it the step missed its target.
    pub rate_target: Option<f64>,
    /// The share of `rate_target` that was reached, where it was missed (below 95 %, rows of
    /// transactions that were not yet due counted as written; of mixes, the share of the operations
    /// that were due): the target did not keep up.
    pub rate_missed: Option<f64>,
    /// Latency of the main operation, from its intended start.
    pub latency_ms: Latency,
    /// Queries: the main operation of a query step, or those that ran beside a load.
    pub queries: Option<QuerySummary>,
    /// Bytes written to the device during the step and its settling.
    pub device_write_bytes: Option<u64>,
    /// Bytes read from the device during the step and its settling.
    pub device_read_bytes: Option<u64>,
    /// Device writes.
    pub device_write_ios: Option<u64>,
    /// Device reads.
    pub device_read_ios: Option<u64>,
    /// Where the device numbers come from: `cgroup`, `device` (the whole device, others included)
    /// or `none`.
    pub device_source: String,
    /// Bytes the process wrote (`/proc/PID/io`: buffered writes count when dirtied).
    pub process_write_bytes: Option<u64>,
    /// Bytes written by reason as the engine counts them: `log`, `flush`, `merge`, ...
    pub written_by_reason: BTreeMap<String, u64>,
    /// Bytes of keys and values written in this step: rows and their index entries.
    pub logical_bytes: u64,
    /// Bytes of live keys and values in the store at the end.
    pub live_bytes: u64,
    /// Size of the files after settling (allocated).
    pub file_bytes: u64,
    /// The largest observed size of the files.
    pub file_bytes_max: u64,
    /// CPU of the worker during the step and its settling, user and system; that of the server
    /// where the target is one, if its process could be seen.
    pub cpu_seconds: Option<f64>,
    /// The kernel's part of `cpu_seconds`.
    pub cpu_system_seconds: f64,
    /// CPU of the load generator: spent making rows, within `cpu_seconds`; or, where the target is
    /// a server, all of the worker's, the driver included, beside `cpu_seconds`.
    pub client_cpu_seconds: f64,
    /// CPU of the lab's own process (sampling, display) during the step.
    pub lab_cpu_seconds: f64,
    /// Peak resident memory of the lab's own process, in bytes.
    pub lab_rss_bytes: u64,
    /// Context switches of the worker.
    pub switches: Option<u64>,
    /// Peak resident memory of the worker.
    pub rss_max: Option<u64>,
    /// Peak memory charged to the cgroup.
    pub cgroup_memory_max: Option<u64>,
    /// Durability debt when the load ended, before settling.
    pub debt_bytes: Option<u64>,
    /// Seconds the settle phase took (0 when the step has none).
    pub settle_seconds: f64,
    /// Whether settling was cut off by its limit.
    pub settle_cut: bool,
    /// Whether the target does not report its pending work, so that there was nothing to wait for.
    #[serde(default)]
    pub settle_unknown: bool,
    /// Bytes written to the device while settling (within `device_write_bytes`).
    pub settle_write_bytes: Option<u64>,
    /// The interval table, for load steps.
    pub intervals: Vec<IntervalRow>,
    /// The integrity check.
    pub integrity: Integrity,
    /// Whether the numbers may be used.
    pub valid: bool,
    /// The reason, if they are not valid.
    pub invalid_reason: Option<String>,
    /// Why the target does not support this step: it was skipped and has no numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// The experiment's own numbers by name, as `docs/results.md` lists them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
    /// What other programs did meanwhile; `None`: not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<Others>,
    /// Warnings for experts: cut settling, missed rate, uncapped writes, ...
    pub warnings: Vec<String>,
}

impl StepSummary {
    /// Why other programs disturbed the step; empty if they did not, or if it was not recorded.
    #[must_use]
    pub fn disturbed(&self) -> &[String] {
        self.others.as_ref().map_or(&[], |o| o.disturbed.as_slice())
    }
}

//! `series.csv` and `engine.csv`: one row a second.

use serde::{Deserialize, Serialize};

/// One second of a step. Rates and counts (of operations, bytes, switches) are scaled to one
/// second, because a row may cover more or less time; `rows` is a sum since the start of the step;
/// memory, size and debt are those at the end of the row. Empty cells could not be measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesRow {
    /// Seconds since the step began, at the end of this row.
    pub t: f64,
    /// `load` or `settle`.
    pub phase: String,
    /// Rows written since the step began.
    pub rows: u64,
    /// Rows per second in this second.
    pub rate: f64,
    /// Queries per second in this second.
    pub query_rate: f64,
    /// Errors in this second.
    pub errors: u64,
    /// Median commit latency of this second in milliseconds.
    pub p50_ms: Option<f64>,
    /// 99th percentile of commit latency in milliseconds.
    pub p99_ms: Option<f64>,
    /// Longest commit latency in milliseconds; a commit still waiting counts with its age.
    pub max_ms: Option<f64>,
    /// Device reads.
    pub read_ios: Option<u64>,
    /// Device writes.
    pub write_ios: Option<u64>,
    /// Bytes read from the device.
    pub read_bytes: Option<u64>,
    /// Bytes written to the device.
    pub write_bytes: Option<u64>,
    /// CPU of the worker, in cores (1.0 = one core busy).
    pub cpu: Option<f64>,
    /// The load generator's part of `cpu`, in cores.
    pub cpu_client: Option<f64>,
    /// Context switches.
    pub switches: Option<u64>,
    /// Resident memory of the worker in bytes.
    pub rss: Option<u64>,
    /// Memory charged to the cgroup in bytes (page cache included).
    pub cgroup_memory: Option<u64>,
    /// The page cache's part of `cgroup_memory`.
    pub page_cache: Option<u64>,
    /// Share of the machine's processor time that the hypervisor gave to others, 0 to 1.
    #[serde(default)]
    pub steal: Option<f64>,
    /// Share of the machine's processor time that other programs used, 0 to 1.
    #[serde(default)]
    pub cpu_others: Option<f64>,
    /// Bytes that other programs read from disks or wrote to them.
    #[serde(default)]
    pub others_bytes: Option<u64>,
    /// Share of the second in which some task waited for a processor (PSI), 0 to 1.
    #[serde(default)]
    pub psi_cpu: Option<f64>,
    /// Share of the second in which some task waited for I/O (PSI), 0 to 1.
    pub psi_io: Option<f64>,
    /// Share of the second in which some task waited for memory (PSI), 0 to 1.
    pub psi_memory: Option<f64>,
    /// Size of the files in bytes (allocated).
    pub file_bytes: Option<u64>,
    /// Durability debt in bytes.
    pub debt_bytes: Option<u64>,
    /// The engine's background work, words joined by `+`.
    pub activity: String,
}

/// One counter of the engine at one moment: a row of `engine.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineCounter {
    /// Seconds since the step began.
    pub t: f64,
    /// The counter's name: `written.log`, `cache.dirty_bytes`, or the engine's own.
    pub counter: String,
    /// Its value (cumulative since the engine was opened unless it is a gauge).
    pub value: u64,
}

/// One counter of the engine over a step, thinned for drawing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CounterSeries {
    /// The counter's name.
    pub counter: String,
    /// Seconds since the step began, and the value; in order.
    pub points: Vec<(f64, u64)>,
}

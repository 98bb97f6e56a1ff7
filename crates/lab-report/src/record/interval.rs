//! Rows of the published-style interval table.

use serde::{Deserialize, Serialize};

/// One interval of a load step: an equal share of the rows. Bytes are those of this interval unless
/// they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalRow {
    /// From 1.
    pub interval: u32,
    /// Rows in the store at its end.
    pub rows: u64,
    /// Seconds it took.
    pub seconds: f64,
    /// Rows per second over the interval.
    pub rate: f64,
    /// Rows per second over its last 5 %.
    pub exit_rate: f64,
    /// Size of the files at its end, in bytes.
    pub file_bytes: u64,
    /// `file_bytes` per row in the store.
    pub bytes_per_row: f64,
    /// Bytes written to the device (source as in the step's `device_source`).
    pub device_write_bytes: u64,
    /// Bytes written to the device since the step began.
    pub device_write_bytes_total: u64,
    /// Bytes read from the device.
    pub device_read_bytes: u64,
    /// CPU time of the worker in seconds.
    pub cpu_seconds: f64,
    /// The longest commit, in seconds.
    pub max_stall_seconds: f64,
    /// Queries per second, 0 when none ran.
    pub query_rate: f64,
    /// Mean and 99th percentile of their latency in milliseconds.
    pub query_mean_ms: f64,
    /// 99th percentile of their latency in milliseconds.
    pub query_p99_ms: f64,
}

//! Latency numbers, always from a merged histogram, never averages of percentiles.

use serde::{Deserialize, Serialize};

/// Percentiles of a latency in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90 % are at most this.
    pub p90: f64,
    /// 99 % are at most this.
    pub p99: f64,
    /// 99.9 % are at most this.
    pub p999: f64,
    /// The largest.
    pub max: f64,
}

/// The queries that ran during a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QuerySummary {
    /// Queries done.
    pub queries: u64,
    /// Queries per second over the step.
    pub rate_mean: f64,
    /// Entries they returned.
    pub entries: u64,
    /// Their latency, from the intended start where the queries were open-loop.
    pub latency_ms: Latency,
}

//! Progress of long operations, and how the caller cancels them.

use serde::{Deserialize, Serialize};

/// Progress of a compaction or a backup. `total_bytes` is an estimate and may grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Bytes processed.
    pub done_bytes: u64,
    /// Total bytes to process, as far as known.
    pub total_bytes: u64,
}

/// The caller's answer to reported progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Continue.
    Continue,
    /// Stop as soon as possible; completed work is kept.
    Cancel,
}

/// How a compaction or a settle ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compaction {
    /// All the work is done.
    Complete,
    /// Stopped early, by the caller or by its time limit.
    Cancelled,
}

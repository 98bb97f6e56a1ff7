//! Progress of long work, and the word that stops it.

use serde::{Deserialize, Serialize};

/// How far long work has come. `total` is an estimate and may grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Bytes worked through.
    pub done_bytes: u64,
    /// Bytes to work through in all, as far as known.
    pub total_bytes: u64,
}

/// What long work should do after it reported progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Stop as soon as may be; what is done stays done.
    Cancel,
}

/// How a compaction or a settling ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compaction {
    /// All the work is done.
    Complete,
    /// Stopped early, by the caller or by its time limit.
    Cancelled,
}

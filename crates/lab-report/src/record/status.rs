//! `status.json`: how far a step has come; it drives `lab resume`.

use serde::{Deserialize, Serialize};

/// The life of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepState {
    /// Not begun.
    Pending,
    /// Under way, or interrupted there.
    Running,
    /// Done; its records are whole.
    Done,
    /// Ended with an error; the error is in the status.
    Failed,
    /// Was done or under way when its cell was interrupted; done again in another directory.
    Discarded,
}

/// The whole of `status.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStatus {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The state.
    pub state: StepState,
    /// When it was reached, RFC 3339 in UTC.
    pub at: String,
    /// The error, for `failed`; the reason, for `discarded`.
    pub message: Option<String>,
}

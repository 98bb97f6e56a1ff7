//! Stalls, by the frozen definition.

use serde::{Deserialize, Serialize};

/// The definition: a stall second is one whose rate is below `fraction` of the median of the
/// trailing `window` seconds (or zero); a stall is a run of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StallRule {
    /// 0.1.
    pub fraction: f64,
    /// 30 seconds.
    pub window: usize,
}

impl StallRule {
    /// The definition all reports use.
    pub const FROZEN: StallRule = StallRule {
        fraction: 0.1,
        window: 30,
    };
}

/// One stall: a row of `stalls.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// The second it began, from the beginning of the step.
    pub start: f64,
    /// How long it lasted, in seconds.
    pub seconds: f64,
    /// The lowest rate in it.
    pub rate_min: f64,
    /// The likely causes, most likely first: the engine's activity and stall reasons, throttling,
    /// memory or I/O pressure; empty if none was observed.
    pub causes: Vec<String>,
}

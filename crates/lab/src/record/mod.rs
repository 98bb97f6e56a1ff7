//! What a run leaves behind: the records of the results directory, as data.
//!
//! `docs/results.md` documents every file and field. All records carry [`SCHEMA`]; a reader refuses
//! a directory of another schema and names both versions.

mod interval;
mod latency;
mod manifest;
mod run;
mod series;
mod stall;
mod status;
mod step;
mod summary;

pub use interval::IntervalRow;
pub use latency::{Latency, QuerySummary};
pub use manifest::{Cell, LoadKind, Manifest, Plan, Preset, Setting, Share, StepPlan, TargetSpec};
pub use run::{EnvelopeLine, EnvelopeRecord, RunRecord, StepRecord, TargetRecord};
pub use series::{EngineCounter, SeriesRow};
pub use stall::{Stall, StallRule};
pub use status::{StepState, StepStatus};
pub use step::{Ended, Integrity, Main, StepSummary};
pub use summary::{Estimate, RunSummary, TargetStepSummary};

/// The version of the results directory's layout and records.
pub const SCHEMA: u32 = 1;

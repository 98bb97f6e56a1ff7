//! The records of the results directory as data, and the names that runs and their reports share.
//!
//! `docs/results.md` documents every file and field. All records carry [`SCHEMA`]; a reader refuses
//! a directory of another schema and names both versions.

pub mod experiment;
mod histogram;
mod interval;
mod latency;
mod limits;
pub mod linkbench;
mod manifest;
pub mod map;
mod name;
mod operation;
mod others;
mod prices;
mod run;
mod series;
mod stall;
mod status;
mod step;
mod summary;
mod sweep;
mod target;
mod volume;
mod work;
pub mod ycsb;

pub use histogram::{decode_histogram, encode_histogram};
pub use interval::IntervalRow;
pub use latency::{Latency, QuerySummary};
pub use limits::{BUFFERED_WRITES, IOPS_MAX, LimitKind, Limits, MEMORY_MIN};
pub use manifest::{
    Cell, LoadKind, Manifest, P99_LIMIT_MS, Plan, Preset, Setting, Share, StepPlan,
};
pub use name::file_name;
pub use operation::Operation;
pub use others::{BYTES_LEAST, Busiest, CPU_SHARE, JUDGED_SECONDS, Others, STEAL_SHARE};
pub use prices::{DEFAULT_PRICES, Instance, Prices, Tier, Volume, built_in_prices};
pub use run::{EnvelopeLine, EnvelopeRecord, RunRecord, StepRecord, TargetRecord};
pub use series::{CounterSeries, EngineCounter, SeriesRow};
pub use stall::{Stall, StallRule};
pub use status::{StepState, StepStatus};
pub use step::{Ended, Integrity, Main, StepSummary};
pub use summary::{Estimate, RunSummary, TargetStepSummary};
pub use sweep::{Sweep, SweepAxis, SweepCell, SweepRecord, SweepValue};
pub use target::{Runs, TargetFacts, TargetSpec, switch};
pub use volume::{NamedVolume, STRIPE_MAX};
pub use work::{SideQueries, Task, Work};

/// The version of the results directory's layout and records.
pub const SCHEMA: u32 = 1;

//! `manifest.json`: the plan, the program and the machine of a run.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use kv::{Codec, Durability};
use serde::{Deserialize, Serialize};
use stdx::ByteSize;

use super::limits::Limits;
use super::target::TargetSpec;
use super::volume::NamedVolume;

/// The default limit on the p99 of a sustained rate, in milliseconds.
pub const P99_LIMIT_MS: f64 = 100.0;

/// The whole of `manifest.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The run's name: `2026-11-21T190500_iibench-classic_ab12`.
    pub run: String,
    /// When it was planned, RFC 3339 in UTC.
    pub created: String,
    /// The version of this program.
    pub lab_version: String,
    /// The commit it was built from (`unknown` outside a checkout), with `-dirty` after it when the
    /// checkout had changes.
    pub commit: String,
    /// The command line that made the run.
    pub command: Vec<String>,
    /// The plan.
    pub plan: Plan,
    /// Facts of the machine, as `doctor` shows them.
    pub host: serde_json::Value,
}

/// The size of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// About 20 seconds: does everything work?
    Smoke,
    /// 2 to 5 minutes: the shape.
    Quick,
    /// About an hour: numbers to compare.
    Standard,
    /// The published size: days on the hardware of the time.
    Published,
}

impl Preset {
    /// All presets, smallest first.
    pub const ALL: [Preset; 4] = [
        Preset::Smoke,
        Preset::Quick,
        Preset::Standard,
        Preset::Published,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Preset::Smoke => "smoke",
            Preset::Quick => "quick",
            Preset::Standard => "standard",
            Preset::Published => "published",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Preset, String> {
        Preset::ALL
            .into_iter()
            .find(|p| p.name() == text)
            .ok_or_else(|| format!("no preset {text:?}; use smoke, quick, standard or published"))
    }
}

/// Closed or open loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    /// The next operation begins when the last one ended.
    Closed,
    /// Operations begin at this rate per second whether or not the last one ended; latency counts
    /// from the intended start.
    Open {
        /// Rows per second, operations of mixes, over all clients; 0 where it is a share of another
        /// step's rate.
        rate: f64,
        /// Gaps are exponentially distributed (a Poisson process), not equal.
        poisson: bool,
    },
}

/// A fraction of the rate of another step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The other step, which comes before.
    pub of: String,
    /// Per cent of its mean rate.
    pub percent: u8,
}

/// Special settings of a step; the default is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Setting {
    /// It begins on a fresh store.
    #[serde(skip_serializing_if = "is_false")]
    pub fresh: bool,
    /// It begins cold: the store is closed, its files are dropped from the page cache, and it is
    /// opened again.
    #[serde(skip_serializing_if = "is_false")]
    pub cold: bool,
    /// It ends with a kill of the process that holds the store, once its time is up; then the store
    /// is opened again and compared with what was acknowledged.
    #[serde(skip_serializing_if = "is_false")]
    pub kill: bool,
    /// The kill cuts the power: writes that were not synced are lost as well.
    #[serde(skip_serializing_if = "is_false")]
    pub power: bool,
    /// Durability of each commit, if it differs from the plan's; requires a fresh store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// The rate of its open loop, as a fraction of the rate of another step of the same cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// Number of load threads, if it differs from the plan's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Caps on reads and on writes per second, if they differ from the plan's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    /// Caps on bytes read and on bytes written per second, if they differ from the plan's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<u64>,
    /// Compression class, if it differs from the plan's; requires a fresh store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codec: Option<Codec>,
    /// Compression by the engine's own name, if it differs from the plan's; requires a fresh store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compressor: Option<String>,
    /// Fill factor of pages in per cent, if the target supports it; requires a fresh store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<u8>,
    /// Whether a map of the files is drawn after it.
    #[serde(skip_serializing_if = "is_false")]
    pub map: bool,
    /// Seconds for which each codec is tried on the files after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codecs: Option<f64>,
    /// The experiment's parameters, if they differ from the plan's; requires a fresh store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<serde_json::Value>,
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// One step of an experiment, in the order of execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepPlan {
    /// Its name: `load`, `l.i1`, `qr100`.
    pub name: String,
    /// One line for people.
    pub about: String,
    /// The experiment's own description of the work, understood by its workload.
    pub work: serde_json::Value,
    /// Operations (rows for loads, queries for query steps) it should do; 0 when bounded by time
    /// only.
    pub operations: u64,
    /// Maximum duration, in seconds.
    pub seconds_max: f64,
    /// Closed or open loop.
    pub load: LoadKind,
    /// Whether it is followed by a settle phase.
    pub settle: bool,
    /// Special settings of the step.
    #[serde(default)]
    pub setting: Setting,
}

impl StepPlan {
    /// Whether the rate of clients is limited, for another reason than to find a sustained rate.
    #[must_use]
    pub fn held(&self) -> bool {
        self.setting.share.is_none() && matches!(self.load, LoadKind::Open { .. })
    }
}

/// All steps of one target in one repeat, done in one worker process on one data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Index into [`Plan::targets`].
    pub target: usize,
    /// The repeat, from 1.
    pub repeat: u32,
}

/// The default of runs that were planned before this could be chosen.
fn p99_limit() -> f64 {
    P99_LIMIT_MS
}

/// The resolved plan: everything that decides what the run does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The experiment's name.
    pub experiment: String,
    /// The preset the sizes come from.
    pub preset: Preset,
    /// The targets.
    pub targets: Vec<TargetSpec>,
    /// The steps each target goes through.
    pub steps: Vec<StepPlan>,
    /// The cells in the order they are done (interleaved: ABBA).
    pub cells: Vec<Cell>,
    /// The seed of all data.
    pub seed: u64,
    /// Repeats.
    pub repeats: u32,
    /// Clients (load threads).
    pub clients: u32,
    /// The limits around each worker.
    pub limits: Limits,
    /// The volumes that the limits on operations and bytes were named after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<NamedVolume>,
    /// Memory given to the engine's cache and write buffers.
    pub cache: ByteSize,
    /// Durability of each commit.
    pub durability: Durability,
    /// Interval of log syncs at durability `interval`, in milliseconds.
    pub interval_ms: u64,
    /// Compression class asked of the engines.
    pub codec: Codec,
    /// Direct I/O asked of the engines.
    pub direct_io: bool,
    /// Background threads given to the engines.
    pub threads: u32,
    /// Maximum seconds of a settle phase.
    pub settle_max: f64,
    /// Maximum p99 in milliseconds for a rate to count as sustained.
    #[serde(default = "p99_limit")]
    pub p99_ms: f64,
    /// The experiment's parameters, as it documents them.
    pub params: serde_json::Value,
    /// Logical bytes of live data at the end of the largest step, estimated.
    pub data_bytes: u64,
    /// Disk space needed at once, estimated.
    pub disk_bytes: u64,
    /// Seconds the run should take, estimated.
    pub seconds_estimate: f64,
    /// The directory for the engines' data.
    pub data_dir: PathBuf,
    /// Whether the engines' data are kept after the run.
    pub keep_data: bool,
    /// How often a repeat that other programs disturbed is done again.
    #[serde(default)]
    pub redo: u32,
}

impl Plan {
    /// Whether the rate of clients is limited in any step: their possible rate is then unknown.
    #[must_use]
    pub fn held(&self) -> bool {
        self.steps.iter().any(StepPlan::held)
    }
}

//! What the lab and its worker say to each other: JSON, one message a line, requests on the
//! worker's standard input and events on its standard output.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kv::{Durability, EngineOptions, EngineStats};
use lab_host::probe::CapCheck;
use lab_map::codec::Tried;
use lab_report::record::{Ended, Integrity, Limits, LoadKind, Work};
use serde::{Deserialize, Serialize};

use crate::workload::iibench::RowParams;
use crate::workload::program::Spec;

/// What the worker is asked to do. One at a time; each ends with one closing event.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Open the store (first of all). Ends with `opened`.
    Open(Open),
    /// Do a step. Ends with `finished`.
    Step(Step),
    /// Let background work catch up. Ends with `settled`.
    Settle {
        /// The most seconds it may take.
        seconds_max: f64,
    },
    /// Compare the store with the workload's model. Ends with `verified`.
    Verify,
    /// Measure every I/O cap of `limits` from within the envelope; no store is needed. Ends with
    /// `caps`.
    Caps {
        /// Where to put the file that is read and written.
        directory: PathBuf,
        /// The caps.
        limits: Limits,
        /// Seconds for each cap.
        seconds: f64,
    },
    /// Compare the store with what clients of a killed process were told. Ends with `audited`.
    Audit {
        /// Where the clients wrote it down.
        acknowledged: PathBuf,
        /// The sizes, by name, that its files had when the power was about to be cut.
        before_cut: Option<BTreeMap<String, u64>>,
    },
    /// Try codecs on what the files below a directory hold. Ends with `codecs`.
    Codecs {
        /// The directory.
        directory: PathBuf,
        /// Seconds for each codec and size of block, each way.
        seconds: f64,
    },
    /// Close the store and end. Ends with `closed`.
    Close,
}

/// How the store is opened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Open {
    /// The engine's name; that of the kind of server where there is a `uri`.
    pub engine: String,
    /// The server to connect to; none for an engine in the worker itself.
    #[serde(default)]
    pub uri: Option<String>,
    /// The engine's directory.
    pub directory: PathBuf,
    /// Its options.
    pub options: EngineOptions,
    /// Durability of every commit.
    pub durability: Durability,
    /// The rows.
    pub rows: RowParams,
    /// The workload with tables of its own, where the run has one.
    #[serde(default)]
    pub program: Option<Spec>,
    /// Rows, from the first on, that the store holds already: it was closed and is opened again.
    #[serde(default)]
    pub there: u64,
    /// The most connections of the load at once.
    pub clients: u32,
    /// Whether rows stay in a server when it is closed.
    pub keep: bool,
    /// Whether what a server holds is to be looked at, not made anew.
    #[serde(default)]
    pub found: bool,
}

/// One step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// What to do.
    pub work: Work,
    /// Operations to do; 0: until the time is up.
    pub operations: u64,
    /// The most seconds.
    pub seconds_max: f64,
    /// Closed or open loop.
    pub load: LoadKind,
    /// Load threads.
    pub clients: u32,
    /// Where clients write down what was acknowledged to them, for a step that ends with a kill.
    #[serde(default)]
    pub acknowledged: Option<PathBuf>,
    /// What a workload with tables of its own left before this step.
    #[serde(default)]
    pub before: Before,
    /// Other in steps that begin with the same rows and clients, so that their clients do not draw
    /// the same numbers.
    #[serde(default)]
    pub salt: u8,
}

/// What a workload with tables of its own has in the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// Rows.
    pub rows: u64,
    /// Bytes of their values and index entries.
    pub bytes: u64,
}

/// What one client was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The rows acknowledged to it, in the order of its commits.
    pub rows: Vec<u64>,
    /// So many of the first must be there. Those behind were acknowledged while the power was being
    /// cut.
    pub due: usize,
}

#[cfg(test)]
impl Told {
    /// A client that was told these rows.
    pub(crate) fn of(rows: &[u64], due: usize) -> Told {
        let rows = rows.to_vec();
        Told { rows, due }
    }
}

/// What a killed store holds, against what was acknowledged before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// Rows whose commit had returned, before the power began to be cut if it was.
    pub acknowledged: u64,
    /// Rows in the store.
    pub found: u64,
    /// Rows acknowledged that are not in the store.
    pub lost: u64,
    /// Rows in the store that were not acknowledged: their commit was under way.
    pub unacknowledged: u64,
    /// Of the lost, those that a later commit of the same client outlived.
    pub gaps: u64,
    /// What is wrong whatever was lost: damaged rows, indexes that do not fit, rows nobody wrote.
    pub faults: Vec<String>,
    /// Seconds it took.
    pub seconds: f64,
}

/// What the worker tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The target is open.
    Opened {
        /// Seconds it took, recovery included.
        #[serde(default)]
        seconds: f64,
        /// What a server said of itself.
        #[serde(default)]
        server: Option<Box<ServerFacts>>,
    },
    /// A second went by.
    Tick(Box<Tick>),
    /// An interval of a load ended.
    Interval(Interval),
    /// The step ended.
    Finished(Box<Finished>),
    /// Settling ended.
    Settled {
        /// Seconds it took.
        seconds: f64,
        /// Whether it was cut off by its limit.
        cut: bool,
        /// Whether the target does not say what it owes: nothing was waited for.
        #[serde(default)]
        unknown: bool,
    },
    /// The check ended.
    Verified(Integrity),
    /// What the device did under each cap.
    Caps {
        /// One check per cap.
        checks: Vec<CapCheck>,
    },
    /// The audit ended.
    Audited(Audit),
    /// The codecs were tried.
    Codecs {
        /// One for each codec and size of block.
        tried: Vec<Tried>,
    },
    /// The store is closed.
    Closed,
    /// The request failed; the worker ends.
    Failed {
        /// What happened and what to do next.
        message: String,
    },
}

/// The state at the end of a second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tick {
    /// Seconds since the step (or the settling) began.
    pub t: f64,
    /// Rows written since the step began.
    pub rows: u64,
    /// Queries done since the step began.
    pub queries: u64,
    /// Median latency of the step's main operation in the last second, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Longest, those under way counted with their age.
    pub max_ms: Option<f64>,
    /// CPU of the load generator since the step began, in seconds: spent making rows, or all of the
    /// worker's where the target is a server.
    pub client_cpu_seconds: f64,
    /// What the engine says of itself.
    pub stats: EngineStats,
    /// The size of a server's data, in bytes, where the lab cannot see its files.
    pub file_bytes: Option<u64>,
}

/// The end of an interval.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// From 1.
    pub interval: u32,
    /// Rows in the store.
    pub rows: u64,
    /// Rows written in the interval.
    pub rows_written: u64,
    /// When it ended, in seconds since the step began.
    pub t: f64,
    /// Seconds it took.
    pub seconds: f64,
    /// Rows per second in its last 5 %.
    pub exit_rate: f64,
    /// The longest commit, in seconds.
    pub max_stall_seconds: f64,
    /// Queries done in it.
    pub queries: u64,
    /// Their mean latency in milliseconds.
    pub query_mean_ms: f64,
    /// 99th percentile of their latency in milliseconds.
    pub query_p99_ms: f64,
}

/// The result of a step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Finished {
    /// Why it ended.
    pub ended: Ended,
    /// Rows written.
    pub rows: u64,
    /// Rows deleted.
    pub rows_deleted: u64,
    /// Queries done.
    pub queries: u64,
    /// Entries they returned.
    pub query_entries: u64,
    /// Seconds from the first operation to the end of the last.
    pub seconds: f64,
    /// Main operations per second over the first tenth of them.
    pub rate_first_tenth: f64,
    /// Over the last tenth.
    pub rate_last_tenth: f64,
    /// Latency of the main operation in microseconds, as text.
    pub histogram: String,
    /// Latency of queries beside a load, as text.
    pub query_histogram: Option<String>,
    /// CPU of the load generator, in seconds: as in [`Tick`].
    pub client_cpu_seconds: f64,
    /// Bytes of keys and values written.
    pub logical_bytes: u64,
    /// Bytes of live keys and values in the store.
    pub live_bytes: u64,
    /// Rows in the store.
    pub live_rows: u64,
    /// Wrong answers the clients got; the first few.
    pub wrong: Vec<String>,
    /// Operations of an open loop that were due when its time was up and had not begun; counted
    /// for mixes.
    #[serde(default)]
    pub behind: u64,
    /// The workload's own numbers.
    #[serde(default)]
    pub extra: BTreeMap<String, f64>,
}

/// A server that answered, as a worker tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// Its version, with the product's name where it says one.
    pub version: String,
    /// Its process, if it runs on this machine and that was verified.
    pub pid: Option<u32>,
    /// Where its data are, if it runs on this machine and says so.
    pub data_dir: Option<PathBuf>,
    /// Its settings, by name.
    pub options: Vec<(String, String)>,
    /// All of its settings with their defaults, from a server that tells both.
    #[serde(default)]
    pub settings: Vec<Configured>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// A setting of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// What it is unless it is set; `None` where the server does not say.
    pub default: Option<String>,
}

impl Configured {
    /// Whether it is known to differ from its default.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.default.as_ref().is_some_and(|d| *d != self.value)
    }
}

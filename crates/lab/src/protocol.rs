//! The protocol between the lab and its worker: JSON, one message per line, requests on the
//! worker's standard input and events on its standard output.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kv::{Durability, EngineOptions, EngineStats};
use lab_host::probe::CapCheck;
use lab_map::codec::Tried;
use lab_report::ErrorKind;
use lab_report::record::{Ended, Integrity, Limits, LoadKind, Work};
use serde::{Deserialize, Serialize};

use crate::workload::iibench::RowParams;
use crate::workload::program::Spec;

/// A request to the worker. One at a time; each ends with one final event.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Open the store (the first request). Ends with `opened`.
    Open(Open),
    /// Run a step. Ends with `finished`.
    Step(Step),
    /// Let background work catch up. Ends with `settled`.
    Settle {
        /// Maximum seconds.
        seconds_max: f64,
    },
    /// Compare the store with the workload's model. Ends with `verified`.
    Verify,
    /// Measure every I/O cap of `limits` from within the envelope; no store is needed. Ends with
    /// `caps`.
    Caps {
        /// Directory of the file that is read and written.
        directory: PathBuf,
        /// The caps.
        limits: Limits,
        /// Seconds for each cap.
        seconds: f64,
    },
    /// Compare the store with the commits acknowledged to clients of a killed process. Ends with
    /// `audited`.
    Audit {
        /// Directory in which the clients logged acknowledgements.
        acknowledged: PathBuf,
        /// The sizes of its files, by name, right before the power cut.
        before_cut: Option<BTreeMap<String, u64>>,
    },
    /// Try codecs on the contents of the files below a directory. Ends with `codecs`.
    Codecs {
        /// The directory.
        directory: PathBuf,
        /// Seconds for each codec and block size, each way.
        seconds: f64,
    },
    /// Close the store and end. Ends with `closed`.
    Close,
}

/// Parameters of opening a store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Open {
    /// The engine's name; that of the kind of server if there is a `uri`.
    pub engine: String,
    /// The server to connect to; `None` for an engine in the worker itself.
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
    /// The workload that declares its own tables, if the run has one.
    #[serde(default)]
    pub program: Option<Spec>,
    /// Number of first rows that the store already contains: it was closed and is opened again.
    #[serde(default)]
    pub rows_present: u64,
    /// Maximum number of concurrent connections of the load.
    pub clients: u32,
    /// Whether rows stay on a server when it is closed.
    pub keep: bool,
    /// Whether to open the existing contents of a server instead of recreating them.
    #[serde(default)]
    pub found: bool,
}

/// One step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The work of the step.
    pub work: Work,
    /// Number of operations; 0: until the time is up.
    pub operations: u64,
    /// Maximum seconds.
    pub seconds_max: f64,
    /// Closed or open loop.
    pub load: LoadKind,
    /// Load threads.
    pub clients: u32,
    /// Directory in which clients log acknowledgements, for a step that ends with a kill.
    #[serde(default)]
    pub acknowledged: Option<PathBuf>,
    /// The data of a workload with its own tables before this step.
    #[serde(default)]
    pub before: Before,
    /// Differs between steps that start with the same rows and clients, so that their clients do
    /// not draw the same random numbers.
    #[serde(default)]
    pub salt: u8,
}

/// The data of a workload with its own tables in the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// Rows.
    pub rows: u64,
    /// Bytes of their values and index entries.
    pub bytes: u64,
}

/// The commits acknowledged to one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// The acknowledged rows, in the order of the client's commits.
    pub rows: Vec<u64>,
    /// Number of first rows that must be present. The rows after them were acknowledged during the
    /// power cut.
    pub due: usize,
}

#[cfg(test)]
impl Acknowledged {
    /// A client to which these rows were acknowledged.
    pub(crate) fn of(rows: &[u64], due: usize) -> Acknowledged {
        let rows = rows.to_vec();
        Acknowledged { rows, due }
    }
}

/// Comparison of a killed store with the rows acknowledged before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// Rows whose commit had returned, before the start of the power cut if there was one.
    pub acknowledged: u64,
    /// Rows in the store.
    pub found: u64,
    /// Acknowledged rows that are not in the store.
    pub lost: u64,
    /// Rows in the store that were not acknowledged: their commit was in progress.
    pub unacknowledged: u64,
    /// Lost rows for which a later commit of the same client survived.
    pub gaps: u64,
    /// Faults independent of losses: damaged rows, inconsistent indexes, rows that no client wrote.
    pub faults: Vec<String>,
    /// Seconds it took.
    pub seconds: f64,
}

/// An event of the worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The target is open.
    Opened {
        /// Elapsed seconds, recovery included.
        #[serde(default)]
        seconds: f64,
        /// Facts that a server reported about itself.
        #[serde(default)]
        server: Option<Box<ServerFacts>>,
    },
    /// One second passed.
    Tick(Box<Tick>),
    /// An interval of a load ended.
    Interval(Interval),
    /// The step ended.
    Finished(Box<Finished>),
    /// Settling ended.
    Settled {
        /// Elapsed seconds.
        seconds: f64,
        /// Whether the time limit ended it.
        cut: bool,
        /// Whether the target does not report its pending work: there was no wait.
        #[serde(default)]
        unknown: bool,
    },
    /// The check ended.
    Verified(Integrity),
    /// The measured rate of the device under each cap.
    Caps {
        /// One check per cap.
        checks: Vec<CapCheck>,
    },
    /// The audit ended.
    Audited(Audit),
    /// The codecs were tried.
    Codecs {
        /// One result for each codec and block size.
        tried: Vec<Tried>,
    },
    /// The store is closed.
    Closed,
    /// The request failed; the worker ends.
    Failed {
        /// What the caller can do about it.
        kind: ErrorKind,
        /// The error, and what to do next.
        message: String,
    },
}

/// The state at the end of a second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tick {
    /// Seconds since the step (or the settling) started.
    pub t: f64,
    /// Rows written since the step started.
    pub rows: u64,
    /// Queries completed since the step started.
    pub queries: u64,
    /// Median latency of the step's main operation in the last second, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Maximum latency; an operation in progress counts with its age.
    pub max_ms: Option<f64>,
    /// CPU seconds of the load generator since the step started: for generating rows, or all of the
    /// worker's if the target is a server.
    pub client_cpu_seconds: f64,
    /// The engine's reported statistics.
    pub stats: EngineStats,
    /// The size of a server's data, in bytes, if the lab cannot see its files.
    pub file_bytes: Option<u64>,
}

/// The end of an interval.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// The number of the interval, from 1.
    pub interval: u32,
    /// Rows in the store.
    pub rows: u64,
    /// Rows written in the interval.
    pub rows_written: u64,
    /// End of the interval, in seconds since the step started.
    pub t: f64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Rows per second in its last 5 %.
    pub exit_rate: f64,
    /// The longest commit, in seconds.
    pub max_stall_seconds: f64,
    /// Queries completed in it.
    pub queries: u64,
    /// Mean latency of the queries in milliseconds.
    pub query_mean_ms: f64,
    /// 99th percentile of the latency of the queries in milliseconds.
    pub query_p99_ms: f64,
}

/// The result of a step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Finished {
    /// The reason for its end.
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
    /// The same over the last tenth.
    pub rate_last_tenth: f64,
    /// Latency of the main operation in microseconds, as text.
    pub histogram: String,
    /// Latency of queries during a load, as text.
    pub query_histogram: Option<String>,
    /// CPU seconds of the load generator: as in [`Tick`].
    pub client_cpu_seconds: f64,
    /// Bytes of keys and values written.
    pub logical_bytes: u64,
    /// Bytes of live keys and values in the store.
    pub live_bytes: u64,
    /// Rows in the store.
    pub live_rows: u64,
    /// The first few wrong results that clients received.
    pub wrong: Vec<String>,
    /// Operations of an open loop that were due when its time was up and had not started; counted
    /// for mixes.
    #[serde(default)]
    pub behind: u64,
    /// Numbers specific to the workload.
    #[serde(default)]
    pub extra: BTreeMap<String, f64>,
}

/// A connected server, as a worker reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// Its version, with the product's name if it reports one.
    pub version: String,
    /// Its process id, if it runs on this machine and that was verified.
    pub pid: Option<u32>,
    /// Its data directory, if it runs on this machine and reports it.
    pub data_dir: Option<PathBuf>,
    /// Its settings, by name.
    pub options: Vec<(String, String)>,
    /// All of its settings with their defaults, if the server reports both.
    #[serde(default)]
    pub settings: Vec<Configured>,
    /// Notes for the reader of a report.
    pub notes: Vec<String>,
}

/// A setting of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Its default; `None` if the server does not report it.
    pub default: Option<String>,
}

impl Configured {
    /// Whether it is known to differ from its default.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.default.as_ref().is_some_and(|d| *d != self.value)
    }
}

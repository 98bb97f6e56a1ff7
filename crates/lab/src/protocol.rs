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

/// A request to the worker. The lab sends one request at a time; each ends with one final event.
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
    /// Compare the contents of the store with the workload's model. Ends with `verified`.
    Verify,
    /// Measure every I/O cap of `limits` from within the envelope; no store is needed. Ends with
    /// `caps`.
    Caps {
        /// Directory of the file that is read and written.
        directory: PathBuf,
        /// The caps.
        limits: Limits,
        /// Seconds to measure each cap.
        seconds: f64,
    },
    /// Compare the store with the commits acknowledged to clients of a killed process. Ends with
    /// `audited`.
    Audit {
        /// Directory in which the clients logged acknowledgements.
        acknowledged: PathBuf,
        /// The sizes of the files in that directory, by name, right before the power cut.
        before_cut: Option<BTreeMap<String, u64>>,
    },
    /// Compress the contents of the files below a directory with several codecs. Ends with
    /// `codecs`.
    Codecs {
        /// The directory.
        directory: PathBuf,
        /// Seconds to compress, and to decompress, with each codec and block size.
        seconds: f64,
    },
    /// Close the store and end the worker. Ends with `closed`.
    Close,
}

/// Parameters for opening a target.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Open {
    /// Name of the engine or, with a `uri`, of the kind of server.
    pub engine: String,
    /// Address of the server to connect to; `None` for an engine in the worker itself.
    #[serde(default)]
    pub uri: Option<String>,
    /// The engine's directory.
    pub directory: PathBuf,
    /// Options of the engine.
    pub options: EngineOptions,
    /// Durability of every commit.
    pub durability: Durability,
    /// Parameters of the rows.
    pub rows: RowParams,
    /// The workload that declares its own tables; `None` for the insert benchmark.
    #[serde(default)]
    pub program: Option<Spec>,
    /// The store already contains this number of rows, from row 0 on: it was closed and is opened
    /// again.
    #[serde(default)]
    pub rows_present: u64,
    /// Maximum number of concurrent connections of the load.
    pub clients: u32,
    /// Whether the rows stay on a server when the target is closed.
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
    /// Number of operations; 0 for no limit but the time.
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
    /// Rows and bytes in the target before this step, for a workload with its own tables.
    #[serde(default)]
    pub before: Before,
    /// Differs between steps that start with the same rows and clients, so that their clients do
    /// not draw the same random numbers.
    #[serde(default)]
    pub salt: u8,
}

/// The rows and bytes that a workload with its own tables has in the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// Number of rows.
    pub rows: u64,
    /// Bytes of the rows' values and index entries.
    pub bytes: u64,
}

/// The commits acknowledged to one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// The acknowledged rows, in the order of the client's commits.
    pub rows: Vec<u64>,
    /// This number of rows, from the first, must be present. The later ones were acknowledged
    /// during the power cut.
    pub due: usize,
}

#[cfg(test)]
impl Acknowledged {
    /// A client to which `rows` were acknowledged.
    pub(crate) fn of(rows: &[u64], due: usize) -> Acknowledged {
        let rows = rows.to_vec();
        Acknowledged { rows, due }
    }
}

/// Comparison of a killed store with the rows that were acknowledged before the kill.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// Number of rows whose commit had returned, before the start of the power cut if there was
    /// one.
    pub acknowledged: u64,
    /// Number of rows in the store.
    pub found: u64,
    /// Number of acknowledged rows that are missing from the store.
    pub lost: u64,
    /// Number of rows in the store that were not acknowledged: their commit was in progress.
    pub unacknowledged: u64,
    /// Number of lost rows for which a later commit of the same client survived.
    pub gaps: u64,
    /// Faults independent of losses: damaged rows, inconsistent indexes, rows that no client wrote.
    pub faults: Vec<String>,
    /// Duration of the audit, in seconds.
    pub seconds: f64,
}

/// An event of the worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The target is open.
    Opened {
        /// Seconds taken to open the target, recovery included.
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
        /// Whether the time limit ended the settling.
        cut: bool,
        /// Whether the target does not report its pending work, so that the worker did not wait.
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
    /// The request failed, and the worker ends.
    Failed {
        /// What the caller can do about it.
        kind: ErrorKind,
        /// The error, and what to do next.
        message: String,
    },
}

/// The state of a step at the end of a second.
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
    /// 99th percentile of this latency, in milliseconds.
    pub p99_ms: Option<f64>,
    /// Maximum of this latency, in milliseconds; an operation in progress counts with its age.
    pub max_ms: Option<f64>,
    /// CPU seconds of the load generator since the step started: those spent generating rows or, if
    /// the target is a server, all CPU time of the worker.
    pub client_cpu_seconds: f64,
    /// Statistics that the engine reports.
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
    /// Rows per second in the last 5 % of the interval.
    pub exit_rate: f64,
    /// Duration of the longest commit, in seconds.
    pub max_stall_seconds: f64,
    /// Queries completed in the interval.
    pub queries: u64,
    /// Mean latency of the queries in milliseconds.
    pub query_mean_ms: f64,
    /// 99th percentile of the latency of the queries in milliseconds.
    pub query_p99_ms: f64,
}

/// The result of a step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Finished {
    /// The reason why the step ended.
    pub ended: Ended,
    /// Rows written.
    pub rows: u64,
    /// Rows deleted.
    pub rows_deleted: u64,
    /// Queries done.
    pub queries: u64,
    /// Number of entries that the queries returned.
    pub query_entries: u64,
    /// Seconds from the first operation to the end of the last.
    pub seconds: f64,
    /// Main operations per second over the first tenth of the operations.
    pub rate_first_tenth: f64,
    /// Main operations per second over the last tenth of the operations.
    pub rate_last_tenth: f64,
    /// Histogram of the latency of the main operation in microseconds, encoded as text.
    pub histogram: String,
    /// Histogram of the latency of queries during a load, encoded as text.
    pub query_histogram: Option<String>,
    /// CPU seconds of the load generator, as in [`Tick`].
    pub client_cpu_seconds: f64,
    /// Bytes of keys and values written.
    pub logical_bytes: u64,
    /// Bytes of live keys and values in the store.
    pub live_bytes: u64,
    /// Rows in the store.
    pub live_rows: u64,
    /// The first few wrong results that clients received.
    pub wrong: Vec<String>,
    /// Number of operations of an open loop that were due when its time was up and had not started;
    /// reported for mixes only.
    #[serde(default)]
    pub behind: u64,
    /// Numbers specific to the workload.
    #[serde(default)]
    pub extra: BTreeMap<String, f64>,
}

/// Facts about a connected server, as a worker reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// The server's version, with the product's name if the server reports one.
    pub version: String,
    /// The server's process id, if it was verified that the server runs on this machine.
    pub pid: Option<u32>,
    /// The server's data directory, if the server runs on this machine and reports it.
    pub data_dir: Option<PathBuf>,
    /// The server's settings, by name.
    pub options: Vec<(String, String)>,
    /// All settings with their defaults, if the server reports both.
    #[serde(default)]
    pub settings: Vec<Configured>,
    /// How pages are protected from torn writes, by the settings in force; `None` if unknown.
    #[serde(default)]
    pub torn_pages: Option<String>,
    /// Notes for the reader of a report.
    pub notes: Vec<String>,
}

/// A setting of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured {
    /// Name of the setting.
    pub name: String,
    /// Value of the setting.
    pub value: String,
    /// Default of the setting; `None` if the server does not report it.
    pub default: Option<String>,
}

impl Configured {
    /// Whether the value is known to differ from the default.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.default.as_ref().is_some_and(|d| *d != self.value)
    }
}

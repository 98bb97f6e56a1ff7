//! A whole run, read from its directory.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::manifest::Manifest;
use super::map::Map;
use super::prices::Prices;
use super::series::{CounterSeries, SeriesRow};
use super::stall::Stall;
use super::status::StepStatus;
use super::step::StepSummary;
use super::summary::RunSummary;

/// One limit of the workers: the requested value, and the value read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvelopeLine {
    /// `memory`, `read IOPS`, `write IOPS`, `read bytes/s`, `write bytes/s`.
    pub limit: String,
    /// The value that the plan requests; `None` for no limit.
    pub requested: Option<u64>,
    /// The value read back from the kernel's file; `None`: not capped.
    pub effective: Option<u64>,
    /// Why it is not capped, or what the cap does not cover.
    pub note: String,
}

/// The limits around a worker, as enforced: `envelope.json` of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnvelopeRecord {
    /// `cgroup v1`, `cgroup v2`, or `none`.
    pub mode: String,
    /// Whether every requested limit is in force.
    pub enforced: bool,
    /// Each limit.
    pub lines: Vec<EnvelopeLine>,
    /// Warnings that every page of the report must show: uncapped, buffered writes escape, ...
    pub warnings: Vec<String>,
}

/// A tested target, for the fairness table: an entry of `env/targets.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// The target's name.
    pub name: String,
    /// The engine.
    pub engine: String,
    /// The version of its library.
    pub version: String,
    /// Its licence.
    pub license: String,
    /// True for our own engines: reports disclose it.
    pub ours: bool,
    /// Every option in force, by name.
    pub options: Vec<(String, String)>,
    /// The names of the options that differ from the engine's default in this lab.
    pub changed: Vec<String>,
    /// Memory given to it: cache and write buffers, in bytes.
    pub cache_bytes: u64,
    /// What a commit does at the run's durability, in words.
    pub durability: String,
    /// The compression in force: `none`, `fast`.
    pub compression: String,
    /// Whether it bypasses the page cache.
    pub direct_io: bool,
    /// How pages are protected from torn writes in this run: the kind of protection, `:`, and a
    /// clause. Empty: not recorded.
    #[serde(default)]
    pub torn_pages: String,
    /// Differences from other targets that a fair comparison must consider.
    pub notes: Vec<String>,
}

impl TargetRecord {
    /// The kind of protection from torn pages, and the clause about it.
    #[must_use]
    pub fn torn_pages(&self) -> (&str, &str) {
        match self.torn_pages.split_once(':') {
            _ if self.torn_pages.is_empty() => ("not recorded", ""),
            Some((kind, clause)) => (kind, clause.trim_start()),
            None => (&self.torn_pages, ""),
        }
    }
}

/// One step with its records.
#[derive(Clone, Debug)]
pub struct StepRecord {
    /// The name of its directory: `003_lmdb_r1_load`.
    pub directory: String,
    /// Its state.
    pub status: StepStatus,
    /// Present if the step is done.
    pub summary: Option<StepSummary>,
    /// One row a second.
    pub series: Vec<SeriesRow>,
    /// The stalls.
    pub stalls: Vec<Stall>,
    /// Commit latency in microseconds.
    pub histogram: Option<Histogram<u64>>,
    /// Query latency in microseconds.
    pub query_histogram: Option<Histogram<u64>>,
    /// The limits in force.
    pub envelope: EnvelopeRecord,
    /// The map of its files, where one was drawn.
    pub map: Option<Map>,
    /// The engine's counters, if they were read ([`crate::store::load_counters`]).
    pub counters: Vec<CounterSeries>,
}

/// A run with its records.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// The plan, the program and the machine.
    pub manifest: Manifest,
    /// The tested targets.
    pub targets: Vec<TargetRecord>,
    /// The results so far.
    pub summary: RunSummary,
    /// The steps in the order they were done, without discarded ones.
    pub steps: Vec<StepRecord>,
    /// Steps that were discarded, with the reason.
    pub discarded: Vec<(String, String)>,
    /// Noise floors by metric name (relative, 0.03 = 3 %), when the host was calibrated.
    pub noise: Vec<(String, f64)>,
    /// The prices that the run was given; `None` for the default ones.
    pub prices: Option<Prices>,
    /// Warnings about the machine, from `doctor`.
    pub host_warnings: Vec<String>,
}

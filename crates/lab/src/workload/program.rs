//! Programs: workloads that declare their own tables. Each program implements the operations of its
//! clients once, against the general layer of targets ([`super::tables`]), and chooses them by pure
//! functions of a seed.

use std::sync::atomic::{AtomicU64, Ordering};

use lab_report::record::Task;
use serde::{Deserialize, Serialize};
use stdx::rng::mix64;

use super::table::Table;
use super::{linkbench, many_tables, oltp, tpcc, ycsb};
use crate::workload::tables::{Answer, TableClient};

/// A program with its parameters, as `params` of a plan stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "workload", rename_all = "kebab-case")]
pub enum Spec {
    /// Rows spread over many tables.
    ManyTables(many_tables::Params),
    /// TPC-C.
    Tpcc(tpcc::Params),
    /// LinkBench.
    Linkbench(linkbench::Params),
    /// The read-only transactions of sysbench.
    Oltp(oltp::Params),
    /// YCSB's core workloads.
    Ycsb(ycsb::Params),
}

impl Spec {
    /// The program that a plan's parameters describe; `None` if they are those of the insert
    /// benchmark.
    ///
    /// # Errors
    /// If the parameters are invalid, with the reason.
    pub fn of(params: &serde_json::Value) -> Result<Option<Spec>, String> {
        if params.get("workload").is_none() {
            return Ok(None);
        }
        let spec = serde_json::from_value(params.clone());
        spec.map(Some)
            .map_err(|e| format!("the plan's parameters: {e}"))
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> Box<dyn Program> {
        match self.clone() {
            Spec::ManyTables(params) => Box::new(many_tables::ManyTables::new(params)),
            Spec::Tpcc(params) => Box::new(tpcc::Tpcc::new(params)),
            Spec::Linkbench(params) => Box::new(linkbench::Linkbench::new(params)),
            Spec::Oltp(params) => Box::new(oltp::Oltp::new(params)),
            Spec::Ycsb(params) => Box::new(ycsb::Ycsb::new(params)),
        }
    }

    /// Whether the program's operations are transactions of several reads and writes.
    #[must_use]
    pub fn transactions(&self) -> bool {
        !matches!(self, Spec::ManyTables(_) | Spec::Ycsb(_))
    }

    /// Approximate logical bytes after the load.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        match self {
            Spec::ManyTables(params) => params.data_bytes(),
            Spec::Tpcc(params) => params.data_bytes(),
            Spec::Linkbench(params) => params.data_bytes(),
            Spec::Oltp(params) => params.data_bytes(),
            Spec::Ycsb(params) => params.data_bytes(),
        }
    }
}

/// The position of a client among the clients of a step.
#[derive(Clone, Copy, Debug)]
pub struct ClientSlot<'a> {
    /// The number of this client, from 0.
    pub client: u32,
    /// The number of clients.
    pub clients: u32,
    /// Number of rows when the step begins.
    pub rows: u64,
    /// Differs between the steps of a run, so that they do not draw the same random numbers.
    pub salt: u64,
    /// Number of units of the step's work that clients have taken.
    pub taken: &'a AtomicU64,
    /// Number of operations that the step should do; 0 for no such limit.
    pub operations: u64,
}

impl ClientSlot<'_> {
    /// A seed for the random numbers of this client in this step.
    #[must_use]
    pub fn seed(&self, seed: u64) -> u64 {
        mix64(mix64(seed ^ self.salt.rotate_left(32)) ^ u64::from(self.client))
    }

    /// Take the next of `units` units of work; `None` if all are taken.
    #[must_use]
    pub fn take(&self, units: u64) -> Option<u64> {
        let unit = self.taken.fetch_add(1, Ordering::Relaxed);
        (unit < units).then_some(unit)
    }
}

/// The result of an operation, apart from the rows it wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Number of entries read.
    pub entries: u64,
    /// Whether the operation was rolled back because its inputs require that.
    pub rolled_back: bool,
    /// A description of a result that cannot be correct.
    pub wrong: Option<String>,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Number of rows found.
    pub rows: u64,
    /// The faults found.
    pub faults: Vec<String>,
}

impl Checked {
    /// Record a fault; the first few are kept.
    pub fn fault(&mut self, message: String) {
        if self.faults.len() < 10 {
            self.faults.push(message);
        }
    }
}

/// A workload that declares its own tables. Shared by all clients.
pub trait Program: Send + Sync {
    /// The tables that exist during a task.
    fn tables(&self, task: Task) -> Vec<Table>;

    /// Names of the kinds of operations in the program's mix.
    fn kinds(&self) -> &'static [&'static str];

    /// Whether the rows of an incomplete load are useful.
    fn partial(&self) -> bool {
        false
    }

    /// A client that runs a task.
    fn client<'a>(&'a self, task: Task, slot: ClientSlot<'a>) -> Box<dyn Client + 'a>;

    /// Compare all rows with those that the program expects.
    ///
    /// # Errors
    /// An error of the client.
    fn check(&self, task: Task, client: &mut dyn TableClient) -> Answer<Checked>;
}

/// One client of a task.
pub trait Client {
    /// Choose the next operation and generate its inputs; the time counts as the generator's.
    /// Returns the operation's kind, as a position in [`Program::kinds`]; `None` if there is no
    /// more work.
    fn next(&mut self) -> Option<usize>;

    /// Run the operation, from begin to commit. After [`super::tables::Refused::Conflict`] the
    /// caller retries it with the same inputs.
    ///
    /// # Errors
    /// An error of the target.
    fn run(&mut self, client: &mut dyn TableClient) -> Answer<Done>;
}

//! The insert benchmark's rows (iiBench; Tokutek 2008-2014, Callaghan's ibench since).
//!
//! A row is a sale: date, cash register, customer, product, price and a payload, under an ascending
//! primary key, with three secondary indexes. Row `i` is a pure function of the seed and `i`, so
//! the rows that should be in a store need not be remembered: a check makes them again.
//!
//! On an embedded engine a row is one entry in the primary tree and one in each index tree.
//! Integers are big-endian and prices are non-negative, so that byte order is value order.

mod payload;
mod row;
mod scatter;
mod shape;

pub use payload::Payload;
pub use row::{Generator, Row, Sale};
pub use shape::Shape;

use serde::{Deserialize, Serialize};

use super::program::Task;
use crate::record::Main;

/// The names of the trees: the rows, and the three indexes.
pub const TREES: [&str; 4] = ["rows", "index1", "index2", "index3"];

/// Entries a range query returns at most.
pub const QUERY_LIMIT: usize = 10;

/// Entries that count as one query of a scan.
pub const SCAN_PIECE: u64 = 1000;

/// What the rows look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowParams {
    /// The seed of all rows.
    pub seed: u64,
    /// The keys of the indexes.
    pub shape: Shape,
    /// The payload.
    pub payload: Payload,
    /// How many of the three indexes have entries, from the first.
    #[serde(default = "all_indexes")]
    pub indexes: u8,
}

impl RowParams {
    /// For a run whose workload has tables of its own, and no row of the insert benchmark.
    pub const NONE: RowParams = RowParams {
        seed: 0,
        shape: Shape::Classic,
        payload: Payload::CLASSIC,
        indexes: 0,
    };
}

/// The insert benchmark has three indexes.
fn all_indexes() -> u8 {
    3
}

/// What one step does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
pub enum Work {
    /// Insert rows in ascending order of the primary key.
    Load {
        /// Rows in one transaction.
        batch: u32,
        /// Whether the index trees are maintained.
        indexes: bool,
        /// Delete as many of the oldest rows after each transaction, in one of its own.
        deletes: bool,
        /// Rows in one interval of the published-style table.
        interval_rows: u64,
        /// Range queries beside the load: how many per second, from which interval on.
        queries: Option<SideQueries>,
    },
    /// Build the three index trees from the rows.
    BuildIndexes,
    /// Write the rows anew into their best form, as `OPTIMIZE TABLE` does.
    Rebuild,
    /// Query as fast as possible while rows are inserted and deleted at a given rate.
    Query {
        /// Point queries by primary key, or range queries on the indexes.
        point: bool,
        /// Rows inserted (and deleted) per second in the background, over all clients.
        write_rate: f64,
        /// Rows in one background transaction.
        batch: u32,
    },
    /// Read the rows and the three indexes once from end to end, in key order; nothing is written.
    Scan,
    /// A task of a workload with tables of its own.
    Program(Task),
}

impl Work {
    /// What its main operations are: rows written, or queries.
    pub(crate) fn main(&self) -> Main {
        match self {
            Work::Query { .. } | Work::Scan | Work::Program(Task::Scan { .. } | Task::Mix) => {
                Main::Queries
            }
            Work::Load { .. }
            | Work::BuildIndexes
            | Work::Rebuild
            | Work::Program(Task::Fill { .. }) => Main::Rows,
        }
    }
}

/// Queries that run beside a load, open-loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideQueries {
    /// Queries per second.
    pub rate: f64,
    /// The first interval (from 1) in which they run.
    pub from_interval: u32,
}

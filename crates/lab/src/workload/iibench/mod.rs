//! The insert benchmark's rows (iiBench; Tokutek 2008-2014, since then Callaghan's ibench).
//!
//! A row is a sale: date, cash register, customer, product, price and a payload, with an ascending
//! primary key and three secondary indexes. Row `i` is a pure function of the seed and `i`, so the
//! expected rows of a store need not be stored: a check generates them again.
//!
//! On an embedded engine a row is one entry in the primary tree and one in each index tree.
//! Integers are big-endian and prices are non-negative, so that byte order is value order.

mod payload;
mod row;
mod shape;

pub use payload::Payload;
pub use row::{Generator, Row, Sale};
pub use shape::Shape;

use serde::{Deserialize, Serialize};

/// Names of the trees: that of the rows, and those of the three indexes.
pub const TREES: [&str; 4] = ["rows", "index1", "index2", "index3"];

/// Maximum number of entries that a range query returns.
pub const QUERY_LIMIT: usize = 10;

/// Number of entries that count as one query of a scan.
pub const SCAN_PIECE: u64 = 1000;

/// Parameters of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowParams {
    /// The seed of all rows.
    pub seed: u64,
    /// The shape of the index keys.
    pub shape: Shape,
    /// The payload of a row.
    pub payload: Payload,
    /// Number of indexes, of the three, that have entries, from the first.
    #[serde(default = "all_indexes")]
    pub indexes: u8,
}

impl RowParams {
    /// Placeholder for a run whose workload declares its own tables and so has no rows of the
    /// insert benchmark.
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

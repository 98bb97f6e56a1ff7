//! TPC-C (Standard Specification, revision 5.11), as run without waits by sysbench-tpcc: nine
//! tables, five transactions in the shares 10, 10, 1, 1, 1 of 23, a random warehouse each time.
//!
//! Differences from the specification, which are those of the published runs: there are no keying
//! and think times, and no terminals bound to a warehouse; one percent of payments and of ordered
//! items involve another warehouse; one transaction does all deliveries at once. Amounts are whole
//! cents and rates are ten-thousandths, so that checked sums are exact. The specification defines
//! no key for history rows; here it is the customer's key and the number of the customer's
//! payments.

mod check;
mod input;
mod load;
mod population;
mod schema;
mod transactions;

use lab_report::record::Task;
use serde::{Deserialize, Serialize};

use super::program::{Checked, Client, ClientSlot, Program};
use super::table::Table;
use crate::workload::tables::{Answer, TableClient};

/// Number of districts of a warehouse.
const DISTRICTS: i64 = 10;

/// Contents of the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// One random character, repeated, as in the program of the articles: this favors engines that
    /// compress.
    Percona,
    /// Random letters and digits, as the specification requires (4.3.2.2).
    Spec,
}

/// Parameters of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// The seed.
    pub seed: u64,
    /// Number of warehouses.
    pub warehouses: i64,
    /// Number of customers of a district, and of its first orders; 3000 in the specification.
    pub customers: i64,
    /// Number of items, and of stock rows of each warehouse; 100 000 in the specification.
    pub items: i64,
    /// Contents of the texts.
    pub payload: Payload,
}

impl Params {
    /// Number of customers of a district in the specification.
    pub const CUSTOMERS: i64 = 3000;

    /// Number of items in the specification.
    pub const ITEMS: i64 = 100_000;

    /// Parameters for `customers` customers in total: whole warehouses of the specification's size,
    /// or a single smaller one.
    #[must_use]
    pub fn of(seed: u64, customers: u64, payload: Payload) -> Params {
        let all = i64::try_from(customers).unwrap_or(i64::MAX);
        let warehouse = DISTRICTS * Params::CUSTOMERS;
        let customers = (all / DISTRICTS).clamp(30, Params::CUSTOMERS);
        Params {
            seed,
            warehouses: (all / warehouse).max(1),
            customers,
            items: (Params::ITEMS * customers / Params::CUSTOMERS).max(1000),
            payload,
        }
    }

    /// Logical bytes of all rows after the load, index entries included.
    #[must_use]
    pub fn data_bytes(self) -> u64 {
        let customers = self.warehouses * DISTRICTS * self.customers;
        // Bytes of a customer with its history row, its order with ten lines, and their index
        // entries.
        let bytes =
            customers * (620 + 90 + 110 + 10 * 88) + (self.warehouses + 1) * self.items * 400;
        bytes.unsigned_abs()
    }
}

/// The workload.
#[derive(Debug)]
pub struct Tpcc {
    params: Params,
}

impl Tpcc {
    /// The workload with these parameters.
    #[must_use]
    pub fn new(params: Params) -> Tpcc {
        Tpcc { params }
    }
}

impl Program for Tpcc {
    fn tables(&self, _task: Task) -> Vec<Table> {
        schema::tables()
    }

    fn kinds(&self) -> &'static [&'static str] {
        &input::KINDS
    }

    fn client<'a>(&'a self, task: Task, slot: ClientSlot<'a>) -> Box<dyn Client + 'a> {
        match task {
            Task::Fill { .. } | Task::Scan { .. } => Box::new(load::Loader::new(self.params, slot)),
            Task::Mix { .. } => Box::new(transactions::Terminal::new(self.params, slot)),
        }
    }

    fn check(&self, _task: Task, client: &mut dyn TableClient) -> Answer<Checked> {
        check::check(self.params, client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warehouses_have_the_specified_size_or_there_is_one_smaller() {
        let whole = Params::of(1, 180_000, Payload::Spec);
        assert_eq!(
            (whole.warehouses, whole.customers, whole.items),
            (6, 3000, 100_000)
        );
        let small = Params::of(1, 3000, Payload::Spec);
        assert_eq!(
            (small.warehouses, small.customers, small.items),
            (1, 300, 10_000)
        );
        assert!(small.data_bytes() * 30 < whole.data_bytes());
    }
}

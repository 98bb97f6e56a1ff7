//! The operation that a step counts, in the words of its experiment, used wherever its rates,
//! latencies and costs are shown.

use super::experiment::Known;
use super::manifest::StepPlan;
use super::step::Main;
use super::work::Work;

/// The main operation of a step by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Singular.
    pub one: &'static str,
    /// Plural.
    pub many: &'static str,
    /// The unit of a rate.
    pub per_second: &'static str,
    /// The name of its latency: for rows it is that of their commit.
    pub latency: &'static str,
}

impl Operation {
    /// Rows written.
    pub const ROW: Operation = Operation {
        one: "row",
        many: "rows",
        per_second: "rows/s",
        latency: "Commit",
    };
    /// Queries.
    pub const QUERY: Operation = Operation {
        one: "query",
        many: "queries",
        per_second: "queries/s",
        latency: "Query",
    };
    /// Transactions of a mix.
    pub const TRANSACTION: Operation = Operation {
        one: "transaction",
        many: "transactions",
        per_second: "transactions/s",
        latency: "Transaction",
    };
    /// Requests of a mix.
    pub const REQUEST: Operation = Operation {
        one: "request",
        many: "requests",
        per_second: "requests/s",
        latency: "Request",
    };

    /// The operation that a step of an experiment counts.
    #[must_use]
    pub fn of(name: &str, step: &StepPlan, main: Main) -> Operation {
        match main {
            Main::Rows => Operation::ROW,
            Main::Queries => Operation::of_mix(name, step).unwrap_or(Operation::QUERY),
        }
    }

    /// The operation that a mix counts; `None` for every other step.
    #[must_use]
    pub fn of_mix(name: &str, step: &StepPlan) -> Option<Operation> {
        let operation = Known::named(name)?.mix?;
        matches!(Work::of(step), Some(Work::Program(task)) if task.is_mix()).then_some(operation)
    }
}

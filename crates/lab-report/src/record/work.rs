//! The work of a step, as recorded in `work` of its plan.

use serde::{Deserialize, Serialize};

use super::manifest::StepPlan;
use super::step::Main;

/// The work of one step.
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
    /// Rewrite the rows into their best form, as `OPTIMIZE TABLE` does.
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
    /// The work of a planned step; `None` if another version wrote its `work`.
    #[must_use]
    pub fn of(step: &StepPlan) -> Option<Work> {
        serde_json::from_value(step.work.clone()).ok()
    }

    /// The step's main operations: rows written, or queries.
    #[must_use]
    pub fn main(&self) -> Main {
        match self {
            Work::Query { .. }
            | Work::Scan
            | Work::Program(Task::Scan { .. } | Task::Mix { .. }) => Main::Queries,
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

/// The task of a step that runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "snake_case")]
pub enum Task {
    /// Make the tables and fill them: rows are the main operation.
    Fill {
        /// How many tables, for programs that can have more or fewer; else 0.
        tables: u64,
    },
    /// Read every row once, a thousand entries a query.
    Scan {
        /// The same number of tables as when they were filled.
        tables: u64,
    },
    /// Operations of a mix of the program, one after the other.
    Mix {
        /// Its position among the program's mixes.
        #[serde(default, skip_serializing_if = "is_first")]
        mix: u8,
    },
}

impl Task {
    /// The only mix of a program, or the first.
    pub const MIX: Task = Task::Mix { mix: 0 };

    /// How many tables.
    #[must_use]
    pub fn tables(self) -> u64 {
        match self {
            Task::Fill { tables } | Task::Scan { tables } => tables,
            Task::Mix { .. } => 0,
        }
    }

    /// Whether its operations are drawn from a mix.
    #[must_use]
    pub fn is_mix(self) -> bool {
        matches!(self, Task::Mix { .. })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_first(mix: &u8) -> bool {
    *mix == 0
}

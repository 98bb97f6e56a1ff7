//! The list-append checker: do transactions on lists keep their isolation level?
//!
//! Every key holds a list; transactions append values, each used once for its key, and read whole
//! lists. So a read shows all earlier appends to the list, and their order. From this follow the
//! dependencies between transactions (Adya, Weak Consistency, 1999; Kingsbury and Alvaro, Elle,
//! 2020):
//!
//! - *ww*: the next value of a list was appended by another transaction;
//! - *wr*: a transaction read a list whose last value another transaction appended;
//! - *rw*: a transaction read a list to which another transaction appended the next value;
//! - *session*: transactions of one client follow each other;
//! - *real time*: one transaction ended before the other began. These edges are needed to find
//!   stale reads.
//!
//! A cycle of dependencies is an anomaly; its edges determine its [`Kind`].
//!
//! - I1. Only real anomalies are reported: the graph has an edge only if every order of the appends
//!   that agrees with all reads has it.
//! - I2. An acknowledged transaction happened. A transaction of unknown outcome
//!   ([`Outcome::Unknown`]) may have happened at any time since it began, or never: it counts as
//!   happened if one of its values was read, and it has no real-time edge to later transactions.
//!
//! The cost is linear in the size of the lists read, except for histories with anomalies: real time
//! is one chain of points in time, not an edge for each pair.

mod classify;
mod direct;
mod graph;
mod history;
mod infer;
#[cfg(test)]
mod tests;
mod verdict;

pub use graph::Edge;
pub use history::{Key, Op, Outcome, Txn, Value};
pub use verdict::{Anomaly, Kind, Level, Verdict};

/// Check a history.
#[must_use]
pub fn check(history: &[Txn]) -> Verdict {
    let mut anomalies = Vec::new();
    let lists = direct::lists(history, &mut anomalies);
    let graph = infer::graph(history, &lists);
    let edges = graph.edges();
    classify::cycles(&graph, &mut anomalies);
    Verdict {
        anomalies,
        transactions: history.len(),
        edges,
    }
}

//! The list-append checker: do transactions on lists keep their isolation level?
//!
//! Every key holds a list; transactions append values, each used once for its key, and read whole
//! lists. So a list shows its own history: the appends before the read, and their order. The
//! dependencies between transactions follow from that (Adya, Weak Consistency, 1999; Kingsbury and
//! Alvaro, Elle, 2020):
//!
//! - *ww*: the next value of a list was appended by another transaction;
//! - *wr*: a transaction read a list whose last value another one appended;
//! - *rw*: a transaction read a list to which another one appended the next value;
//! - *session*: transactions of one client follow each other;
//! - *real time*: one ended before the other began. Without these a stale read passes.
//!
//! A cycle of dependencies is an anomaly; its edges determine its [`Kind`].
//!
//! - I1. Only real anomalies are reported: the graph has an edge only if every order of the appends
//!   that agrees with all reads has it.
//! - I2. An acknowledged transaction happened. A transaction of unknown end ([`Outcome::Unknown`])
//!   may have happened at any time since it began, or never: it counts if one of its values was
//!   read, and no transaction follows it in real time.
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

/// Judge a history.
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

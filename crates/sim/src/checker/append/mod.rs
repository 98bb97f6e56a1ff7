//! The list-append checker: do transactions on lists keep the isolation they promise?
//!
//! Every key holds a list; transactions append values, each used once for its key, and read whole
//! lists. So a list read tells its own history: which appends came before, and in what order. From
//! that follow the dependencies between transactions (Adya, Weak Consistency, 1999; Kingsbury and
//! Alvaro, Elle, 2020):
//!
//! - *ww*: the next value of a list was appended by another transaction;
//! - *wr*: a transaction read a list whose last value another one appended;
//! - *rw*: a transaction read a list to which another one appended the next value;
//! - *session*: transactions of one client follow each other;
//! - *real time*: one ended before the other began. Without these a stale read passes.
//!
//! A cycle among them is an anomaly; which edges it needs says which ([`Kind`]).
//!
//! - I1. Nothing is reported that could be explained: an edge is drawn only if every order of the
//!   appends that agrees with all reads has it.
//! - I2. What was acknowledged happened. A transaction of unknown end ([`Outcome::Unknown`]) may
//!   have happened at any time since it began, or never: it counts from when something of it was
//!   read, and nothing follows it in time.
//!
//! The cost is linear in what is read, but for histories that are wrong: real time is one chain of
//! moments, not an edge for each pair.

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

//! The results of the checker.

use std::fmt;

use super::graph::Edge;

/// The kinds of anomalies. Cycles are ordered: the first are forbidden by every isolation level,
/// the last only by serializability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The history cannot be checked: two transactions appended the same value to one key.
    Ambiguous,
    /// A list holds a value twice: an append was executed twice.
    Duplicate,
    /// A list holds a value that no transaction appended.
    Unwritten,
    /// Two lists of one key, neither of which is a prefix of the other.
    Incompatible,
    /// A transaction does not see its own appends, or reads the same key with different results.
    Internal,
    /// G1a, aborted read: a value of a transaction that was rolled back was read.
    AbortedRead,
    /// G1b, intermediate read: a list was read between two appends of another transaction.
    IntermediateRead,
    /// Two transactions read the same list, appended to it, and both committed.
    LostUpdate,
    /// G0, write cycle: a cycle of ww edges.
    G0,
    /// G1c, circular information flow: a cycle of ww and wr edges.
    G1c,
    /// A cycle with one rw edge: read skew; if it has real-time edges, a stale read.
    GSingle,
    /// A cycle with several rw edges, no two of them adjacent.
    GNonadjacent,
    /// A cycle with adjacent rw edges: write skew. Snapshot isolation allows it.
    G2Item,
}

/// The promised isolation level. Both levels include real-time order: a transaction sees all
/// transactions that were acknowledged before it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Snapshot isolation: forbids all anomalies except [`Kind::G2Item`].
    SnapshotIsolation,
    /// Serializability; for transactions with one operation this is linearizability.
    Serializable,
}

/// An anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Its kind.
    pub kind: Kind,
    /// The transactions of the anomaly, by index in the history; of a cycle, in order.
    pub transactions: Vec<usize>,
    /// The edge from each transaction to the next, and from the last to the first.
    pub edges: Vec<Edge>,
    /// A description of anomalies that are not cycles.
    pub seen: String,
}

/// The verdict on a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// All anomalies found; of cycles, the worst one in each strongly connected component.
    pub anomalies: Vec<Anomaly>,
    /// Number of transactions in the history.
    pub transactions: usize,
    /// Number of dependencies between transactions.
    pub edges: usize,
}

impl Kind {
    /// Whether `level` allows the anomaly.
    #[must_use]
    pub fn is_allowed_at(self, level: Level) -> bool {
        self == Kind::G2Item && level == Level::SnapshotIsolation
    }
}

impl Verdict {
    /// The anomalies that `level` forbids.
    pub fn violations(&self, level: Level) -> impl Iterator<Item = &Anomaly> {
        let forbidden = move |anomaly: &&Anomaly| !anomaly.kind.is_allowed_at(level);
        self.anomalies.iter().filter(forbidden)
    }

    /// Whether `level` allows the whole history.
    #[must_use]
    pub fn holds(&self, level: Level) -> bool {
        self.violations(level).next().is_none()
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: ", self.kind)?;
        if self.edges.is_empty() {
            return write!(f, "{} (transactions {:?})", self.seen, self.transactions);
        }
        for (txn, edge) in self.transactions.iter().zip(&self.edges) {
            write!(f, "T{txn} -{edge}-> ")?;
        }
        write!(f, "T{}", self.transactions.first().copied().unwrap_or(0))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (transactions, edges) = (self.transactions, self.edges);
        write!(f, "{transactions} transactions, {edges} dependencies")?;
        self.anomalies
            .iter()
            .try_for_each(|it| write!(f, "\n  {it}"))
    }
}

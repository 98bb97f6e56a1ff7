//! The result of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::faults::Kind;

/// A run without violations.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The seed.
    pub seed: u64,
    /// The engines of the members.
    pub members: String,
    /// Comparisons of all members.
    pub laps: u64,
    /// Faults, by kind.
    pub faults: BTreeMap<Kind, u64>,
    /// Terms in which a client saw a primary.
    pub terms: usize,
    /// Operations with numbers that a majority acknowledged.
    pub acked: u64,
    /// Transactions among them.
    pub transactions: u64,
    /// Transactions that were rolled back.
    pub rolled_back: u64,
    /// Operations that were sent again.
    pub again: u64,
    /// Inserts without numbers that were acknowledged, with `w: 1` or `majority`.
    pub loose: u64,
    /// Causal reads of documents that a majority has acknowledged.
    pub causal: u64,
    /// Reads with `majority`.
    pub majority: u64,
    /// Reads with `linearizable`.
    pub linearizable: u64,
    /// Events of the change stream.
    pub events: u64,
    /// How often the change stream continued at another member.
    pub resumed: u64,
    /// Documents read in the comparisons.
    pub documents: u64,
    /// Time taken.
    pub elapsed: Duration,
}

impl Summary {
    pub(super) fn new(seed: u64, members: String) -> Summary {
        Summary {
            seed,
            members,
            ..Summary::default()
        }
    }

    /// Number of all faults.
    #[must_use]
    pub fn suffered(&self) -> u64 {
        self.faults.values().sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        let faults = self
            .faults
            .iter()
            .map(|(kind, count)| format!("{kind:?} {count}"));
        let faults: Vec<String> = faults.collect();
        write!(
            f,
            "torture cluster of {}: seed {}, {} faults ({}), {} terms; {} operations acknowledged \
             by a majority, {} of them transactions, {} sent again, lost or doubled: 0; {} \
             transactions rolled back; {} inserts without numbers; reads: {} causal, {} majority, \
             {} linearizable; {} events, stream resumed {} times; {} comparisons of all members, \
             {} documents, validate clean; {seconds:.1} s",
            self.members,
            self.seed,
            self.suffered(),
            faults.join(", "),
            self.terms,
            self.acked,
            self.transactions,
            self.again,
            self.rolled_back,
            self.loose,
            self.causal,
            self.majority,
            self.linearizable,
            self.events,
            self.resumed,
            self.laps,
            self.documents,
        )
    }
}

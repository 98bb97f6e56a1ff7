//! The prefix checker: is the state found after a crash one that the promises allow?
//!
//! A [`History`] is told each commit when it starts, in commit order, and what came of it. The
//! state found after reopening must be what the commits up to some point make of the initial state
//! (each whole: law L3, none that was rolled back: law L6), that point lying between the last
//! commit acknowledged as durable (law L1) and the last one started (law L2).
//!
//! A commit that failed without saying whether it happened ([`History::unknown`]) may be part of
//! that prefix or be missing from it, whole. Each doubles the states to consider, so there may be
//! at most [`UNKNOWN_LIMIT`] of them: a workload should reopen after such an error anyway.
//!
//! The cost is one step per change and candidate: the number of keys that differ from the state
//! found is carried along, not recomputed.

pub mod append;
mod history;
mod search;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::BTreeMap;
use std::ops::Bound;

pub use history::{CommitId, History};
pub use verdict::{Counterexample, Difference, Law, Match};

/// The keys and values of one tree.
pub type TreeState = BTreeMap<Vec<u8>, Vec<u8>>;

/// All trees by name.
pub type State = BTreeMap<String, TreeState>;

/// How many commits of one history may have an unknown end.
pub const UNKNOWN_LIMIT: usize = 8;

/// One change of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A tree that is empty; nothing happens when it exists.
    CreateTree(String),
    /// The tree and all in it.
    DropTree(String),
    /// A value for a key. The tree exists.
    Put(String, Vec<u8>, Vec<u8>),
    /// No value for a key. The tree exists.
    Delete(String, Vec<u8>),
    /// No value for the keys from the first bound to the second. The tree exists.
    DeleteRange(String, Bound<Vec<u8>>, Bound<Vec<u8>>),
}

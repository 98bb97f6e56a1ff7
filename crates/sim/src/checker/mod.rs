//! The prefix checker: may the store have the state found after a crash?
//!
//! A [`History`] records each commit when it starts, in commit order, and its outcome. The state
//! found after reopening must be the initial state with the commits up to some point applied (each
//! of them whole: law L3, none that was rolled back: law L6). That point must be between the last
//! commit acknowledged as durable (law L1) and the last one started (law L2).
//!
//! A failed commit of unknown outcome ([`History::unknown`]) may be part of the state or missing
//! from it, as a whole. Each such commit doubles the number of possible states, so a history may
//! have at most [`UNKNOWN_LIMIT`] of them: a workload should reopen the store after such an error
//! anyway.
//!
//! The cost is one step per change and candidate state: the number of keys in which a candidate
//! differs from the state found is updated, not recomputed.

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

/// Maximum number of commits of unknown outcome in one history.
pub const UNKNOWN_LIMIT: usize = 8;

/// One change of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Create an empty tree; no effect when it exists.
    CreateTree(String),
    /// Drop the tree and its content.
    DropTree(String),
    /// Set the value of a key. The tree must exist.
    Put(String, Vec<u8>, Vec<u8>),
    /// Delete a key. The tree must exist.
    Delete(String, Vec<u8>),
    /// Delete the keys between two bounds. The tree must exist.
    DeleteRange(String, Bound<Vec<u8>>, Bound<Vec<u8>>),
}

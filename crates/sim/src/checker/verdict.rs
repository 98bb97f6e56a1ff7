//! The results of the checker.

use std::collections::BTreeSet;
use std::error;
use std::fmt;

use super::history::{CommitId, End, History};
use super::search::writes;
use super::{Change, State};

/// Maximum number of differences that are printed.
const SHOWN: usize = 8;

/// The state found is that of an allowed prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Number of commits of the shortest prefix with this state.
    pub first: usize,
    /// Number of commits of the longest prefix with this state.
    pub last: usize,
    /// Commits of unknown outcome that are missing from the shortest prefix.
    pub skipped: Vec<CommitId>,
}

/// The broken law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// L1: a commit acknowledged as durable is missing.
    Durable,
    /// L2: the state is not that of any prefix of the commits.
    Prefix,
    /// L3: a commit exists in part.
    Atomic,
    /// L6: a change of an aborted commit exists.
    Aborted,
}

/// A key that differs from the nearest allowed state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The tree.
    pub tree: String,
    /// The key; `None` if the tree itself is missing or should not exist.
    pub key: Option<Vec<u8>>,
    /// The expected value.
    pub expected: Option<Vec<u8>>,
    /// The value found.
    pub found: Option<Vec<u8>>,
    /// The last commit that wrote the value found.
    pub author: Option<CommitId>,
}

/// The state found is not that of any allowed prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The broken law, as far as it can be determined.
    pub law: Law,
    /// The number of the last commit acknowledged as durable.
    pub durable: usize,
    /// The number of the last commit that started.
    pub started: usize,
    /// The number of commits of the nearest allowed prefix.
    pub nearest: usize,
    /// The number of commits of a prefix that has the state found, but is too short to be allowed.
    pub explained_by: Option<usize>,
    /// The differences from the nearest prefix.
    pub differences: Vec<Difference>,
}

/// All trees and keys in which two states differ.
pub(super) fn differences(expected: &State, found: &State) -> Vec<Difference> {
    let mut all = Vec::new();
    let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    for name in names {
        let (mine, theirs) = (expected.get(name), found.get(name));
        if mine.is_some() != theirs.is_some() {
            all.push(Difference {
                tree: name.clone(),
                key: None,
                expected: mine.map(|_| Vec::new()),
                found: theirs.map(|_| Vec::new()),
                author: None,
            });
        }
        let keys = mine.into_iter().chain(theirs).flat_map(|tree| tree.keys());
        let keys: BTreeSet<&Vec<u8>> = keys.collect();
        for key in keys {
            let expected = mine.and_then(|tree| tree.get(key));
            let found = theirs.and_then(|tree| tree.get(key));
            if expected != found {
                all.push(Difference {
                    tree: name.clone(),
                    key: Some(key.clone()),
                    expected: expected.cloned(),
                    found: found.cloned(),
                    author: None,
                });
            }
        }
    }
    all
}

impl Difference {
    /// Find the last commit that wrote the value found.
    pub(super) fn blame(&mut self, history: &History) {
        let wrote = |change: &Change| match (&self.key, &self.found, change) {
            (Some(key), Some(value), Change::Put(tree, k, v)) => {
                (tree, k, v) == (&self.tree, key, value)
            }
            (Some(key), None, change) => {
                !matches!(change, Change::Put(..) | Change::CreateTree(_))
                    && writes(change, &self.tree, key)
            }
            (None, Some(_), Change::CreateTree(tree)) => *tree == self.tree,
            (None, None, Change::DropTree(tree)) => *tree == self.tree,
            _ => false,
        };
        let author = history
            .commits
            .iter()
            .rposition(|c| c.changes.iter().any(wrote));
        self.author = author.map(|i| CommitId(i + 1));
    }

    pub(super) fn was_aborted(&self, history: &History) -> bool {
        let author = self.author.and_then(|id| history.commits.get(id.0 - 1));
        author.is_some_and(|commit| commit.end == End::Aborted)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tree {}", self.tree)?;
        if let Some(key) = &self.key {
            write!(f, ", key {}", key.escape_ascii())?;
        }
        write!(f, ": expected ")?;
        show(f, self.key.is_some(), self.expected.as_deref())?;
        f.write_str(", found ")?;
        show(f, self.key.is_some(), self.found.as_deref())?;
        match self.author {
            Some(id) => write!(f, " (of commit {})", id.0),
            None => f.write_str(" (of no commit)"),
        }
    }
}

fn show(f: &mut fmt::Formatter<'_>, is_key: bool, value: Option<&[u8]>) -> fmt::Result {
    match value {
        None => f.write_str("nothing"),
        Some(_) if !is_key => f.write_str("the tree"),
        Some(value) => {
            let shown = value.get(..32).unwrap_or(value);
            write!(f, "{}", shown.escape_ascii())?;
            if shown.len() < value.len() {
                write!(f, "... ({} bytes)", value.len())?;
            }
            Ok(())
        }
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let law = match self.law {
            Law::Durable => "L1: commits acknowledged as durable are lost",
            Law::Prefix => "L2: the state is not what a prefix of the commits makes",
            Law::Atomic => "L3: a part of a commit is there",
            Law::Aborted => "L6: an aborted commit is there",
        };
        writeln!(f, "{law}")?;
        let (low, high) = (self.durable, self.started);
        writeln!(
            f,
            "  allowed: the first {low} (durable) to {high} (started) commits"
        )?;
        if let Some(prefix) = self.explained_by {
            writeln!(f, "  the state found is that after {prefix} commits")?;
        }
        let n = self.differences.len();
        writeln!(
            f,
            "  from the state after {} commits, {n} things differ:",
            self.nearest
        )?;
        for difference in self.differences.iter().take(SHOWN) {
            writeln!(f, "    {difference}")?;
        }
        if SHOWN < n {
            writeln!(f, "    and {} more", n - SHOWN)?;
        }
        Ok(())
    }
}

impl error::Error for Counterexample {}

//! The history of a workload: its commits in order, with their outcomes.

use std::collections::BTreeMap;

use super::search::search;
use super::verdict::{Counterexample, Match};
use super::{Change, State, UNKNOWN_LIMIT};

/// A commit, by its number in the history; numbers start at 1, in the order in which commits start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub usize);

/// The outcome of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The commit is in progress.
    Started,
    /// The commit happened; a crash may lose it, together with all later ones.
    Visible,
    /// The commit happened and survives a crash.
    Durable,
    /// The commit did not happen.
    Aborted,
    /// The commit failed; it may have happened.
    Unknown,
}

pub(super) struct Commit {
    pub(super) changes: Vec<Change>,
    pub(super) end: End,
}

/// An initial state, and the commits since then.
pub struct History {
    pub(super) initial: State,
    pub(super) commits: Vec<Commit>,
}

impl Default for History {
    fn default() -> History {
        History::new(State::new())
    }
}

impl History {
    /// A history without commits. `initial` is the state of the store: empty, or as found after the
    /// last crash.
    #[must_use]
    pub fn new(initial: State) -> History {
        History {
            initial,
            commits: Vec::new(),
        }
    }

    /// Record the start of a commit. Must be called in the order of the commits.
    pub fn begin(&mut self, changes: Vec<Change>) -> CommitId {
        let end = End::Started;
        self.commits.push(Commit { changes, end });
        CommitId(self.commits.len())
    }

    /// Record that a commit was acknowledged; if `durable`, it must survive every crash.
    pub fn acknowledge(&mut self, id: CommitId, durable: bool) {
        self.finish(id, if durable { End::Durable } else { End::Visible });
    }

    /// Record that a commit was rolled back or refused: it must never be visible.
    pub fn abort(&mut self, id: CommitId) {
        self.finish(id, End::Aborted);
    }

    /// Record that a commit failed with an error that leaves its outcome unknown.
    ///
    /// # Panics
    /// If the history has more than [`UNKNOWN_LIMIT`] such commits.
    pub fn unknown(&mut self, id: CommitId) {
        self.finish(id, End::Unknown);
        let unknown = self.commits.iter().filter(|c| c.end == End::Unknown);
        assert!(
            unknown.count() <= UNKNOWN_LIMIT,
            "reopen and check after {UNKNOWN_LIMIT} commits of unknown end"
        );
    }

    /// Record that a sync of the log or a checkpoint returned: all acknowledged commits are
    /// durable.
    pub fn synced(&mut self) {
        for commit in &mut self.commits {
            if commit.end == End::Visible {
                commit.end = End::Durable;
            }
        }
    }

    fn finish(&mut self, id: CommitId, end: End) {
        let commit = id.0.checked_sub(1).and_then(|i| self.commits.get_mut(i));
        let commit = commit.expect("an id that begin() gave");
        assert_eq!(commit.end, End::Started, "commit {} ends once", id.0);
        commit.end = end;
    }

    /// Number of commits that have started.
    #[must_use]
    pub fn started(&self) -> usize {
        self.commits.len()
    }

    /// The last commit acknowledged as durable; 0 when there is none.
    #[must_use]
    pub fn durable(&self) -> usize {
        let last = self.commits.iter().rposition(|c| c.end == End::Durable);
        last.map_or(0, |i| i + 1)
    }

    /// The state if no crash happens: with all commits except the aborted and unknown ones.
    #[must_use]
    pub fn expected(&self) -> State {
        let mut state = self.initial.clone();
        let happened = |c: &&Commit| !matches!(c.end, End::Aborted | End::Unknown);
        for commit in self.commits.iter().filter(happened) {
            for change in &commit.changes {
                apply(&mut state, change);
            }
        }
        state
    }

    /// Check the state found after reopening.
    ///
    /// # Errors
    /// The broken law, and the differences from the nearest allowed state.
    pub fn check(&self, found: &State) -> Result<Match, Box<Counterexample>> {
        search(self, found)
    }
}

pub(super) fn apply(state: &mut State, change: &Change) {
    match change {
        Change::CreateTree(tree) => {
            state.entry(tree.clone()).or_default();
        }
        Change::DropTree(tree) => {
            state.remove(tree);
        }
        Change::Put(tree, key, value) => {
            tree_of(state, tree).insert(key.clone(), value.clone());
        }
        Change::Delete(tree, key) => {
            tree_of(state, tree).remove(key);
        }
        Change::DeleteRange(tree, start, end) => {
            let range = (start.as_ref(), end.as_ref());
            tree_of(state, tree).retain(|key, _| !std::ops::RangeBounds::contains(&range, key));
        }
    }
}

fn tree_of<'a>(state: &'a mut State, tree: &str) -> &'a mut BTreeMap<Vec<u8>, Vec<u8>> {
    let found = state.get_mut(tree);
    found.unwrap_or_else(|| panic!("the history writes to tree {tree}, which does not exist"))
}

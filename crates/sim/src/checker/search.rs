//! The search for the prefix that explains a state.
//!
//! - I1: a candidate's `wrong` is the number of trees and keys in which it differs from the state
//!   found. It is updated per change: only the trees and keys of the change are compared again.

use std::ops::RangeBounds;

use super::history::{Commit, CommitId, End, History, apply};
use super::verdict::{Counterexample, Law, Match, differences};
use super::{Change, State};

/// One possible state after the commits so far.
#[derive(Clone)]
struct Candidate {
    state: State,
    wrong: usize,
    /// Commits of unknown outcome that are assumed not to have happened.
    skipped: Vec<CommitId>,
}

/// The candidate that differs least from the state found, over all prefixes.
struct Nearest {
    wrong: usize,
    prefix: usize,
    state: State,
}

impl Candidate {
    fn new(state: State, found: &State) -> Candidate {
        Candidate {
            wrong: count(&state, found),
            state,
            skipped: Vec::new(),
        }
    }

    fn commit(&mut self, commit: &Commit, found: &State) {
        for change in &commit.changes {
            self.wrong -= self.touched(change, found);
            apply(&mut self.state, change);
            self.wrong += self.touched(change, found);
        }
    }

    /// Number of trees and keys changed by `change` in which the candidate differs from `found`.
    fn touched(&self, change: &Change, found: &State) -> usize {
        let (name, mine, theirs) = match change {
            Change::CreateTree(tree)
            | Change::DropTree(tree)
            | Change::Put(tree, ..)
            | Change::Delete(tree, ..)
            | Change::DeleteRange(tree, ..) => (tree, self.state.get(tree), found.get(tree)),
        };
        match change {
            Change::CreateTree(_) | Change::DropTree(_) => {
                let only = |state: &State| match state.get_key_value(name) {
                    Some((name, tree)) => State::from([(name.clone(), tree.clone())]),
                    None => State::new(),
                };
                count(&only(&self.state), &only(found))
            }
            Change::Put(_, key, _) | Change::Delete(_, key) => {
                let value =
                    |tree: Option<&super::TreeState>| tree.and_then(|t| t.get(key).cloned());
                usize::from(value(mine) != value(theirs))
            }
            Change::DeleteRange(_, start, end) => {
                let range = (start.as_ref(), end.as_ref());
                let all = differences(&self.state, found);
                let inside = all.into_iter().filter(|d| {
                    d.tree == *name && d.key.as_ref().is_some_and(|key| range.contains(key))
                });
                inside.count()
            }
        }
    }
}

fn count(state: &State, found: &State) -> usize {
    differences(state, found).len()
}

/// Implements [`History::check`].
pub(super) fn search(history: &History, found: &State) -> Result<Match, Box<Counterexample>> {
    let lowest = history.durable();
    let mut candidates = vec![Candidate::new(history.initial.clone(), found)];
    let mut nearest: Option<Nearest> = None;
    let mut too_old = None;
    let mut matched = None;
    for prefix in 0..=history.commits.len() {
        if let Some(commit) = prefix.checked_sub(1).and_then(|i| history.commits.get(i)) {
            step(&mut candidates, commit, CommitId(prefix), found);
        }
        for candidate in &candidates {
            if candidate.wrong == 0 && prefix < lowest {
                too_old = Some(prefix);
            }
            if prefix < lowest {
                continue;
            }
            if candidate.wrong == 0 && matched.is_none() {
                debug_assert_eq!(&candidate.state, found, "I1: nothing differs");
                matched = Some(Match {
                    first: prefix,
                    last: prefix,
                    skipped: candidate.skipped.clone(),
                });
            } else if candidate.wrong == 0
                && let Some(matched) = &mut matched
            {
                matched.last = prefix;
            }
            if nearest.as_ref().is_none_or(|n| candidate.wrong < n.wrong) {
                nearest = Some(Nearest {
                    wrong: candidate.wrong,
                    prefix,
                    state: candidate.state.clone(),
                });
            }
        }
    }
    if let Some(matched) = matched {
        return Ok(matched);
    }
    let nearest = nearest.expect("the last prefix is not below the lowest allowed");
    Err(Box::new(explain(history, found, &nearest, too_old)))
}

/// Replaces the candidates by those after one more commit.
fn step(candidates: &mut Vec<Candidate>, commit: &Commit, id: CommitId, found: &State) {
    match commit.end {
        End::Aborted => {}
        End::Started | End::Visible | End::Durable => {
            candidates.iter_mut().for_each(|c| c.commit(commit, found));
        }
        End::Unknown => {
            let mut without = candidates.clone();
            without.iter_mut().for_each(|c| c.skipped.push(id));
            candidates.iter_mut().for_each(|c| c.commit(commit, found));
            candidates.append(&mut without);
        }
    }
}

fn explain(
    history: &History,
    found: &State,
    nearest: &Nearest,
    too_old: Option<usize>,
) -> Counterexample {
    let mut differences = differences(&nearest.state, found);
    let mut law = Law::Prefix;
    for difference in &mut differences {
        difference.blame(history);
        if difference.was_aborted(history) {
            law = Law::Aborted;
        }
    }
    if law == Law::Prefix && torn(history, nearest, found) {
        law = Law::Atomic;
    }
    if too_old.is_some() {
        law = Law::Durable;
    }
    Counterexample {
        law,
        durable: history.durable(),
        started: history.started(),
        nearest: nearest.prefix,
        explained_by: too_old,
        differences,
    }
}

/// Whether the state found is between the nearest prefix and the next one: it has a part of the
/// next commit, or lacks a part of the last one.
fn torn(history: &History, nearest: &Nearest, found: &State) -> bool {
    let next = history.commits.get(nearest.prefix);
    let last = nearest.prefix.checked_sub(1);
    let last = last.and_then(|i| history.commits.get(i));
    let all = differences(&nearest.state, found);
    [next, last].into_iter().flatten().any(|commit| {
        1 < commit.changes.len()
            && all.iter().all(|d| {
                let mut changes = commit.changes.iter();
                changes.any(|change| d.key.as_ref().is_some_and(|k| writes(change, &d.tree, k)))
            })
    })
}

/// Whether `change` writes this key.
pub(super) fn writes(change: &Change, tree: &str, key: &Vec<u8>) -> bool {
    match change {
        Change::Put(name, k, _) | Change::Delete(name, k) => name == tree && k == key,
        Change::DeleteRange(name, start, end) => {
            name == tree && (start.as_ref(), end.as_ref()).contains(key)
        }
        Change::CreateTree(name) | Change::DropTree(name) => name == tree,
    }
}

//! Finds one order of the commits that explains the values of all keys.
//!
//! In a graph, each surviving commit is a node, and so is each time at which a commit began or
//! ended. Time gives edges (from each time to the next, intent to commit, commit to outcome); each
//! key gives an edge from every commit that wrote it to the commit whose value was found. An order
//! exists exactly when there is no cycle (Kahn's algorithm, linear in nodes and edges). If a key
//! was not found and several overlapping commits deleted it, the last of these is unknown, so the
//! key gives no edges.
//!
//! I1: an edge holds in every order that explains the state, so a cycle is a proof of a violation.

use std::collections::BTreeMap;

use crate::key::Key;

use super::check::Left;
use super::history::{Commit, State};
use super::violation::{Law, Violation};

/// Maximum number of commits in a description of a violation.
const STORY_COMMITS: usize = 10;

struct Graph<'a> {
    commits: &'a [&'a Commit],
    /// The edges that leave each node; the nodes are first the commits, then the times.
    next: Vec<Vec<usize>>,
    /// Number of edges that enter each node.
    before: Vec<usize>,
    /// The key that gives an edge from one commit to another: it has the value of the latter.
    keys: BTreeMap<(usize, usize), Key>,
}

/// Find an order of `survived`, which is sorted by intent, after which the store has the state
/// `found`.
pub(super) fn explain(
    survived: &[&Commit],
    left: &BTreeMap<Key, Vec<Left<'_>>>,
    found: &State,
) -> Result<(), Violation> {
    let mut graph = Graph::of_time(survived);
    let place: BTreeMap<u64, usize> = (0..).zip(survived).map(|(i, c)| (c.begun, i)).collect();
    for (&key, writes) in left {
        let shown = found.get(&key).copied();
        let last_begun = writes.iter().map(|w| w.commit.begun).max().unwrap_or(0);
        let mut last = writes
            .iter()
            .filter(|w| w.stamp == shown && last_begun < w.commit.ended);
        let (Some(shown), None) = (last.next(), last.next()) else {
            continue;
        };
        for write in writes
            .iter()
            .filter(|w| w.commit.begun != shown.commit.begun)
        {
            let ends = (
                place.get(&write.commit.begun),
                place.get(&shown.commit.begun),
            );
            if let (Some(&from), Some(&to)) = ends {
                graph.edge(from, to);
                graph.keys.entry((from, to)).or_insert(key);
            }
        }
    }
    graph.check()
}

impl<'a> Graph<'a> {
    fn of_time(commits: &'a [&'a Commit]) -> Graph<'a> {
        let ends = commits.iter().flat_map(|c| [c.begun, c.ended]);
        let mut moments: Vec<u64> = ends.filter(|&m| m != u64::MAX).collect();
        moments.sort_unstable();
        moments.dedup();
        let nodes = commits.len() + moments.len();
        let mut graph = Graph {
            commits,
            next: vec![Vec::new(); nodes],
            before: vec![0; nodes],
            keys: BTreeMap::new(),
        };
        let first = commits.len();
        for node in first + 1..nodes {
            graph.edge(node - 1, node);
        }
        for (node, commit) in commits.iter().enumerate() {
            if let Ok(begun) = moments.binary_search(&commit.begun) {
                graph.edge(first + begun, node);
            }
            if let Ok(ended) = moments.binary_search(&commit.ended) {
                graph.edge(node, first + ended);
            }
        }
        graph
    }

    fn edge(&mut self, from: usize, to: usize) {
        if let (Some(next), Some(before)) = (self.next.get_mut(from), self.before.get_mut(to)) {
            next.push(to);
            *before += 1;
        }
    }

    /// Remove nodes without predecessors until none is left. If nodes remain, they contain a cycle.
    fn check(mut self) -> Result<(), Violation> {
        let free = self.before.iter().enumerate().filter(|(_, n)| **n == 0);
        let mut free: Vec<usize> = free.map(|(node, _)| node).collect();
        let mut taken = 0;
        while let Some(node) = free.pop() {
            taken += 1;
            for &next in self.next.get(node).into_iter().flatten() {
                if let Some(before) = self.before.get_mut(next) {
                    *before -= 1;
                    if *before == 0 {
                        free.push(next);
                    }
                }
            }
        }
        if taken == self.next.len() {
            return Ok(());
        }
        Err(Violation::new(Law::Order, self.story()))
    }

    /// Describe the commits of the cycle.
    fn story(&self) -> String {
        let stuck = |node: usize| self.before.get(node).is_some_and(|n| 0 < *n);
        let mut story = "no order of the commits gives this state; among these:".to_owned();
        let mut listed = 0;
        for (&(from, to), key) in &self.keys {
            let ends = (self.commits.get(from), self.commits.get(to));
            if let (Some(from_commit), Some(to_commit)) = ends
                && stuck(from)
                && stuck(to)
            {
                story.push_str(&format!(
                    "\n    {key} shows {} over {}",
                    to_commit.name(),
                    from_commit.name()
                ));
                listed += 1;
                if listed == STORY_COMMITS {
                    break;
                }
            }
        }
        story
    }
}

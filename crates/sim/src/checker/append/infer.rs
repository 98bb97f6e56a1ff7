//! Infers the dependencies that follow from the lists (I1 of the checker).

use std::collections::{HashMap, HashSet};

use super::direct::{self, Lists};
use super::graph::{Edge, Graph};
use super::history::{Key, Op, Outcome, Txn, Value};

type Edges = Vec<(usize, usize, Edge)>;

/// The graph of all dependencies. The nodes after the transactions are points in time, in order.
pub(super) fn graph(history: &[Txn], lists: &Lists) -> Graph {
    let mut edges = Edges::new();
    let unseen = unseen(history, lists);
    writes(lists, &unseen, &mut edges);
    for (index, txn) in history.iter().enumerate() {
        if lists.happened.get(index) == Some(&true) {
            reads(index, txn, lists, &unseen, &mut edges);
        }
    }
    sessions(history, &mut edges);
    let moments = time(history, lists, &mut edges);
    Graph::new(history.len(), history.len() + moments, &edges)
}

fn add(edges: &mut Edges, from: usize, to: usize, edge: Edge) {
    if from != to {
        edges.push((from, to, edge));
    }
}

/// For each key, the transactions that happened and appended a value that no read shows: their
/// appends come after the longest list.
fn unseen(history: &[Txn], lists: &Lists) -> HashMap<Key, Vec<usize>> {
    let mut unseen: HashMap<Key, Vec<usize>> = HashMap::new();
    let all = lists.longest.iter();
    let seen: HashSet<(Key, Value)> = all
        .flat_map(|(key, list)| list.iter().map(|value| (*key, *value)))
        .collect();
    for (index, txn) in history.iter().enumerate() {
        if lists.happened.get(index) != Some(&true) {
            continue;
        }
        for op in &txn.ops {
            let Op::Append(key, value) = op else { continue };
            if !seen.contains(&(*key, *value)) {
                let of_key = unseen.entry(*key).or_default();
                if of_key.last() != Some(&index) {
                    of_key.push(index);
                }
            }
        }
    }
    unseen
}

/// Adds the ww edges.
fn writes(lists: &Lists, unseen: &HashMap<Key, Vec<usize>>, edges: &mut Edges) {
    for (key, list) in &lists.longest {
        let author = |value: &u64| lists.authors.get(&(*key, *value)).map(|author| author.txn);
        let mut before = None;
        for next in list.iter().filter_map(author) {
            if let Some(before) = before {
                add(edges, before, next, Edge::Ww(*key));
            }
            before = Some(next);
        }
        let (Some(last), Some(unseen)) = (before, unseen.get(key)) else {
            continue;
        };
        for next in unseen {
            add(edges, last, *next, Edge::Ww(*key));
        }
    }
}

/// Adds the wr and rw edges for the reads of one transaction.
fn reads(
    reader: usize,
    txn: &Txn,
    lists: &Lists,
    unseen: &HashMap<Key, Vec<usize>>,
    edges: &mut Edges,
) {
    for read in direct::external(txn, &mut |_| {}) {
        let key = read.key;
        let author = |value: &u64| lists.authors.get(&(key, *value)).map(|author| author.txn);
        if let Some(before) = read.list.last().and_then(author) {
            add(edges, before, reader, Edge::Wr(key));
        }
        let longest = lists.longest.get(&key).map_or(&[][..], Vec::as_slice);
        if !longest.starts_with(read.list) {
            // These reads are reported as incompatible; the order of the appends is unknown.
            continue;
        }
        // The reader's own appends are skipped, to find the next append of another transaction.
        let rest = longest.get(read.list.len()..).unwrap_or_default();
        match rest.iter().filter_map(author).find(|next| *next != reader) {
            Some(next) => add(edges, reader, next, Edge::Rw(key)),
            None => {
                for next in unseen.get(&key).into_iter().flatten() {
                    add(edges, reader, *next, Edge::Rw(key));
                }
            }
        }
    }
}

/// Adds the session edges.
fn sessions(history: &[Txn], edges: &mut Edges) {
    let mut last: HashMap<u64, usize> = HashMap::new();
    for (index, txn) in history.iter().enumerate() {
        if txn.outcome == Outcome::Committed
            && let Some(before) = last.insert(txn.session, index)
        {
            add(edges, before, index, Edge::Session);
        }
    }
}

/// Adds the real-time edges. Each end of a transaction is a point in time; edges lead from a
/// transaction to the point of its end, from each point to the next one, and from the last point
/// before a transaction began to the transaction. Returns the number of points.
fn time(history: &[Txn], lists: &Lists, edges: &mut Edges) -> usize {
    let counts = |index: &usize| lists.happened.get(*index) == Some(&true);
    let of = |index: &usize| history.get(*index).expect("an index of the history");
    let mut ends: Vec<usize> = (0..history.len())
        .filter(counts)
        .filter(|index| of(index).outcome == Outcome::Committed)
        .collect();
    ends.sort_by_key(|index| of(index).end);
    let first = history.len();
    for (moment, index) in ends.iter().enumerate() {
        edges.push((*index, first + moment, Edge::RealTime));
        if 0 < moment {
            edges.push((first + moment - 1, first + moment, Edge::RealTime));
        }
    }
    for index in (0..history.len()).filter(counts) {
        let start = of(&index).start;
        let before = ends.partition_point(|end| of(end).end < start);
        if 0 < before {
            edges.push((first + before - 1, index, Edge::RealTime));
        }
    }
    ends.len()
}

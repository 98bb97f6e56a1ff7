//! A graph of dependencies, its strongly connected components, and shortest paths.

use std::collections::VecDeque;
use std::fmt;

use super::history::Key;

/// Why one transaction comes before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edge {
    /// Write-write: the transaction appended the value directly before the other transaction's
    /// value.
    Ww(Key),
    /// Write-read: the other transaction read the value that the transaction appended.
    Wr(Key),
    /// Read-write: the other transaction appended the next value, which the transaction did not
    /// read.
    Rw(Key),
    /// The same client executed the transaction before the other one.
    Session,
    /// The transaction ended before the other one began.
    RealTime,
}

impl Edge {
    pub(super) fn is_rw(self) -> bool {
        matches!(self, Edge::Rw(_))
    }

    pub(super) fn is_ww(self) -> bool {
        matches!(self, Edge::Ww(_))
    }

    pub(super) fn is_wr(self) -> bool {
        matches!(self, Edge::Wr(_))
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Edge::Ww(key) => write!(f, "ww {key}"),
            Edge::Wr(key) => write!(f, "wr {key}"),
            Edge::Rw(key) => write!(f, "rw {key}"),
            Edge::Session => f.write_str("session"),
            Edge::RealTime => f.write_str("real time"),
        }
    }
}

/// A graph. Its nodes are numbered: first the transactions, then points in time.
pub(super) struct Graph {
    pub(super) transactions: usize,
    /// The edges from node `n` are `edges[starts[n]..starts[n + 1]]`.
    starts: Vec<usize>,
    edges: Vec<(usize, Edge)>,
}

impl Graph {
    /// A graph of `nodes` nodes; the first `transactions` nodes are transactions.
    pub(super) fn new(transactions: usize, nodes: usize, all: &[(usize, usize, Edge)]) -> Graph {
        assert!(transactions <= nodes, "transactions are nodes");
        let mut starts = vec![0; nodes + 1];
        for (from, _, _) in all {
            *starts.get_mut(from + 1).expect("edges are between nodes") += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut edges = vec![(0, Edge::RealTime); all.len()];
        for (from, to, edge) in all {
            let at = next.get_mut(*from).expect("edges are between nodes");
            *edges.get_mut(*at).expect("as many as were counted") = (*to, *edge);
            *at += 1;
        }
        Graph {
            transactions,
            starts,
            edges,
        }
    }

    pub(super) fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of edges.
    pub(super) fn edges(&self) -> usize {
        self.edges.len()
    }

    /// The edges from `node`.
    pub(super) fn from(&self, node: usize) -> &[(usize, Edge)] {
        let ends = self.starts.get(node).zip(self.starts.get(node + 1));
        let (start, end) = ends.expect("a node of the graph");
        self.edges.get(*start..*end).expect("starts ascend")
    }

    /// All edges.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, usize, Edge)> {
        let of = |node| {
            self.from(node)
                .iter()
                .map(move |(to, edge)| (node, *to, *edge))
        };
        (0..self.nodes()).flat_map(of)
    }

    /// For each node, the number of its strongly connected component (Tarjan, Depth-First Search
    /// and Linear Graph Algorithms, 1972), without recursion.
    pub(super) fn components(&self) -> Vec<usize> {
        const NEW: usize = usize::MAX;
        let nodes = self.nodes();
        let (mut index, mut low) = (vec![NEW; nodes], vec![NEW; nodes]);
        let mut component = vec![NEW; nodes];
        let (mut stack, mut path) = (Vec::new(), Vec::new());
        let (mut next, mut count) = (0, 0);
        let get = |list: &[usize], node: usize| *list.get(node).expect("a node of the graph");
        for root in 0..nodes {
            if get(&index, root) != NEW {
                continue;
            }
            path.push((root, 0));
            while let Some((node, edge)) = path.last_mut() {
                let node = *node;
                if *edge == 0 {
                    set(&mut index, node, next);
                    set(&mut low, node, next);
                    next += 1;
                    stack.push(node);
                }
                if let Some((to, _)) = self.from(node).get(*edge) {
                    *edge += 1;
                    if get(&index, *to) == NEW {
                        path.push((*to, 0));
                    } else if get(&component, *to) == NEW {
                        let least = get(&low, node).min(get(&index, *to));
                        set(&mut low, node, least);
                    }
                    // All edges of the node were visited.
                    continue;
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    let least = get(&low, *parent).min(get(&low, node));
                    set(&mut low, *parent, least);
                }
                if get(&low, node) == get(&index, node) {
                    while let Some(member) = stack.pop() {
                        set(&mut component, member, count);
                        if member == node {
                            break;
                        }
                    }
                    count += 1;
                }
            }
        }
        component
    }

    /// A shortest path from `from` to `to`: its edges, each with the node it leads to.
    pub(super) fn way(&self, from: usize, to: usize) -> Option<Vec<(usize, Edge)>> {
        let mut before: Vec<Option<(usize, Edge)>> = vec![None; self.nodes()];
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            if node == to {
                break;
            }
            for (next, edge) in self.from(node) {
                let seen = before.get_mut(*next).expect("a node of the graph");
                if seen.is_none() && *next != from {
                    *seen = Some((node, *edge));
                    queue.push_back(*next);
                }
            }
        }
        let mut way = Vec::new();
        let mut at = to;
        while at != from {
            let (node, edge) = (*before.get(at)?)?;
            way.push((at, edge));
            at = node;
        }
        way.reverse();
        Some(way)
    }
}

fn set(list: &mut [usize], node: usize, value: usize) {
    *list.get_mut(node).expect("a node of the graph") = value;
}

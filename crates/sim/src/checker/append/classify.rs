//! Finds cycles of dependencies, and reports the worst anomaly of each strongly connected
//! component.
//!
//! Transactions outside of cycles are removed first; each strongly connected component of the
//! others is judged separately. Whether it contains a cycle without adjacent rw edges is decided in
//! a graph with two nodes per transaction: one that is entered by rw edges and left by no rw edge,
//! and one that is entered by other edges.

use std::collections::BTreeMap;

use super::graph::{Edge, Graph};
use super::verdict::{Anomaly, Kind};

/// Number of edges that are tried as the closing edge of a cycle; the shortest cycle is reported.
const TRIES: usize = 32;
/// Number of rw edges for which a path back without a second rw edge is searched.
const SINGLE_TRIES: usize = 256;

/// Report the worst cycle of each component.
pub(super) fn cycles(graph: &Graph, anomalies: &mut Vec<Anomaly>) {
    let component = graph.components();
    let of = |node: usize| component.get(node).copied();
    // The edges inside each component.
    let mut inner: BTreeMap<usize, Vec<(usize, usize, Edge)>> = BTreeMap::new();
    for (from, to, edge) in graph.all() {
        if let Some(here) = of(from)
            && of(to) == Some(here)
        {
            inner.entry(here).or_default().push((from, to, edge));
        }
    }
    for edges in inner.into_values() {
        anomalies.extend(worst(graph.transactions, &edges));
    }
}

/// The subgraph of some edges; its nodes are renumbered.
struct Part {
    /// The original number of each node; numbers from `transactions` on are points in time.
    names: Vec<usize>,
    transactions: usize,
    edges: Vec<(usize, usize, Edge)>,
}

fn worst(transactions: usize, edges: &[(usize, usize, Edge)]) -> Option<Anomaly> {
    let mut names: Vec<usize> = edges.iter().map(|(from, _, _)| *from).collect();
    names.sort_unstable();
    names.dedup();
    let number = |node: &usize| names.binary_search(node).ok();
    let renamed =
        |(from, to, edge): &(usize, usize, Edge)| Some((number(from)?, number(to)?, *edge));
    let edges = edges.iter().filter_map(renamed).collect();
    let part = Part {
        names,
        transactions,
        edges,
    };
    let cycle = |kind, closes: fn(Edge) -> bool, allowed: fn(Edge) -> bool| {
        let way = part.cycle(closes, allowed)?;
        Some(part.anomaly(kind, &way))
    };
    cycle(Kind::G0, Edge::is_ww, |edge| !edge.is_rw() && !edge.is_wr())
        .or_else(|| cycle(Kind::G1c, Edge::is_wr, |edge| !edge.is_rw()))
        .or_else(|| part.spread())
        .or_else(|| cycle(Kind::G2Item, Edge::is_rw, |_| true))
}

/// A cycle: its edges, each with the node it starts from.
type Cycle = Vec<(usize, Edge)>;

impl Part {
    /// A short cycle of `allowed` edges and one edge for which `closes` is true.
    fn cycle(&self, closes: fn(Edge) -> bool, allowed: fn(Edge) -> bool) -> Option<Cycle> {
        let edges: Vec<_> = self
            .edges
            .iter()
            .copied()
            .filter(|e| allowed(e.2))
            .collect();
        let graph = Graph::new(self.names.len(), self.names.len(), &edges);
        let component = graph.components();
        let closing = |(from, to, edge): &&(usize, usize, Edge)| {
            closes(*edge) && component.get(*from) == component.get(*to)
        };
        let tried = self.edges.iter().filter(closing).take(TRIES);
        let found = tried
            .filter_map(|(from, to, edge)| Some(close(*from, *edge, *to, &graph.way(*to, *from)?)));
        found.min_by_key(Vec::len)
    }

    /// A short cycle with rw edges of which no two are adjacent; preferably with a single rw edge.
    fn spread(&self) -> Option<Anomaly> {
        // Node 2n is node n entered by an rw edge; node 2n + 1 is node n entered by another edge.
        let mut edges = Vec::with_capacity(2 * self.edges.len());
        for &(from, to, edge) in &self.edges {
            if edge.is_rw() {
                edges.push((2 * from + 1, 2 * to, edge));
            } else {
                edges.push((2 * from, 2 * to + 1, edge));
                edges.push((2 * from + 1, 2 * to + 1, edge));
            }
        }
        let nodes = 2 * self.names.len();
        let graph = Graph::new(nodes, nodes, &edges);
        let component = graph.components();
        let closing = |(from, to, edge): &&(usize, usize, Edge)| {
            edge.is_rw() && component.get(*from) == component.get(*to)
        };
        let closing: Vec<_> = edges.iter().filter(closing).collect();
        let others: Vec<_> = self
            .edges
            .iter()
            .copied()
            .filter(|e| !e.2.is_rw())
            .collect();
        let others = Graph::new(self.names.len(), self.names.len(), &others);
        let single = closing
            .iter()
            .take(SINGLE_TRIES)
            .filter_map(|(from, to, edge)| {
                let (from, to) = (from / 2, to / 2);
                Some(close(from, *edge, to, &others.way(to, from)?))
            });
        if let Some(cycle) = single.min_by_key(Cycle::len) {
            return Some(self.anomaly(Kind::GSingle, &cycle));
        }
        let several = closing.iter().take(TRIES).filter_map(|(from, to, edge)| {
            let cycle = close(*from, *edge, *to, &graph.way(*to, *from)?);
            Some(
                cycle
                    .into_iter()
                    .map(|(node, edge)| (node / 2, edge))
                    .collect(),
            )
        });
        let cycle = several.min_by_key(Cycle::len)?;
        Some(self.anomaly(Kind::GNonadjacent, &cycle))
    }

    /// The anomaly of a cycle, with transactions only: the points in time between two transactions
    /// become one edge.
    fn anomaly(&self, kind: Kind, cycle: &Cycle) -> Anomaly {
        let name = |node: usize| self.names.get(node).copied().unwrap_or(usize::MAX);
        let txns = cycle
            .iter()
            .filter(|(node, _)| name(*node) < self.transactions);
        Anomaly {
            kind,
            transactions: txns.clone().map(|(node, _)| name(*node)).collect(),
            edges: txns.map(|(_, edge)| *edge).collect(),
            seen: String::new(),
        }
    }
}

/// The cycle that consists of `edge` and the path `back`.
fn close(from: usize, edge: Edge, to: usize, back: &[(usize, Edge)]) -> Cycle {
    let mut cycle = vec![(from, edge)];
    let mut at = to;
    for (next, edge) in back {
        cycle.push((at, *edge));
        at = *next;
    }
    cycle
}

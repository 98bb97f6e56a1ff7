//! Which cycles there are, and what the worst of them is called.
//!
//! Transactions that are in no cycle are left out first; of the others, each strongly connected
//! component is judged by itself. Whether it holds a cycle without adjacent rw edges is asked of a
//! graph with two nodes for each: one entered by an rw edge, which no rw edge leaves, and one
//! entered by any other.

use std::collections::BTreeMap;

use super::graph::{Edge, Graph};
use super::verdict::{Anomaly, Kind};

/// Of so many edges that may close a cycle the one with the shortest is shown.
const TRIES: usize = 32;
/// So many rw edges are looked at for a way back without another.
const SINGLE_TRIES: usize = 256;

/// Report the worst cycle of each component.
pub(super) fn cycles(graph: &Graph, anomalies: &mut Vec<Anomaly>) {
    let component = graph.components();
    let of = |node: usize| component.get(node).copied();
    // By component: the edges within it.
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

/// The nodes of some edges, numbered anew.
struct Part {
    /// What a node was; beyond the transactions are moments.
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

/// A cycle: where each edge begins, and the edge.
type Cycle = Vec<(usize, Edge)>;

impl Part {
    /// A short cycle that an edge of the one kind closes, over edges of the other.
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

    /// A short cycle with rw edges, no two of them adjacent: with one of them, if that is found.
    fn spread(&self) -> Option<Anomaly> {
        // Node 2n was entered by an rw edge, 2n + 1 by another.
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

    /// The anomaly of a cycle, in terms of transactions: moments in a row are one edge.
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

/// The cycle of an edge and the way back.
fn close(from: usize, edge: Edge, to: usize, back: &[(usize, Edge)]) -> Cycle {
    let mut cycle = vec![(from, edge)];
    let mut at = to;
    for (next, edge) in back {
        cycle.push((at, *edge));
        at = *next;
    }
    cycle
}

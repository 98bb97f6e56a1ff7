//! Loads the graph: nodes, then the links and counts of each, in units of several nodes.

use super::{COUNT, LINK, Linkbench, NODE, TYPES, count, target};
use crate::workload::program::{Client, ClientSlot, Done};
use crate::workload::table::Row;
use crate::workload::tables::{Answer, TableClient};

/// Number of nodes in one unit of the load.
const NODES: u64 = 50;

/// Number of rows in one insert.
const ROWS: usize = 500;

pub(super) struct Loader<'a> {
    program: &'a Linkbench,
    slot: ClientSlot<'a>,
    rows: [Vec<Row>; 3],
}

impl<'a> Loader<'a> {
    pub(super) fn new(program: &'a Linkbench, slot: ClientSlot<'a>) -> Loader<'a> {
        Loader {
            program,
            slot,
            rows: Default::default(),
        }
    }

    fn fill(&mut self, id: u64) {
        let [nodes, links, counts] = &mut self.rows;
        nodes.push(self.program.node(id, 1));
        let mut of_type = TYPES.map(|kind| (kind, 0));
        for place in 0..self.program.degree(id) {
            let kind = self.program.type_of(id, place);
            let id2 = target(id, place, self.program.params.nodes);
            links.push(self.program.link(id, kind, id2, place.cast_signed()));
            for (one, links) in &mut of_type {
                *links += i64::from(*one == kind);
            }
        }
        let some = of_type.into_iter().filter(|(_, links)| 0 < *links);
        counts.extend(some.map(|(kind, links)| count(id, kind, links, 0)));
    }
}

impl Client for Loader<'_> {
    fn next(&mut self) -> Option<usize> {
        let nodes = self.program.params.nodes;
        let unit = self.slot.take(nodes.div_ceil(NODES))?;
        self.rows = Default::default();
        for id in unit * NODES + 1..=nodes.min((unit + 1) * NODES) {
            self.fill(id);
        }
        Some(0)
    }

    fn run(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        for (table, rows) in [NODE, LINK, COUNT].into_iter().zip(&self.rows) {
            for rows in rows.chunks(ROWS) {
                client.insert(table, rows)?;
            }
        }
        Ok(Done::default())
    }
}

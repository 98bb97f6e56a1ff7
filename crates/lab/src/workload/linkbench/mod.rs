//! LinkBench: a social graph (Armstrong et al., "LinkBench: a database benchmark based on the
//! Facebook social graph", SIGMOD 2013): nodes, links between them, and a count of each node's
//! visible links, kept in the same transaction.
//!
//! A loaded link is a pure function of its source node and its position among that node's links.
//! Out-degrees follow a Pareto distribution with a mean of about nine, the mean of the original
//! program's table of degrees. [`Mix`] determines which operations run; their nodes follow Zipf's
//! law with the original's exponents.

mod check;
mod load;
mod requests;

use std::sync::atomic::AtomicU64;

use lab_report::record::Task;
use lab_report::record::linkbench::{KINDS, Mix};
use serde::{Deserialize, Serialize};
use stdx::rng::mix64;

use super::program::{Checked, Client, ClientSlot, Program};
use super::table::{Column, Row, Table, Value};
use super::zipf::Zipf;
use crate::workload::tables::{Answer, TableClient};

/// The positions of the tables.
const NODE: usize = 0;
const LINK: usize = 1;
const COUNT: usize = 2;

/// The types of links.
const TYPES: [i64; 2] = [123_456_789, 123_456_790];

/// Values of a link's visibility.
const HIDDEN: i64 = 0;
const VISIBLE: i64 = 1;

/// Maximum number of links of a loaded node.
const DEGREE_MAX: u64 = 10_000;

/// Parameters of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// The seed.
    pub seed: u64,
    /// Number of nodes loaded.
    pub nodes: u64,
    /// The mix of requests.
    pub mix: Mix,
}

impl Params {
    /// Logical bytes of the graph, index entries included.
    #[must_use]
    pub fn data_bytes(self) -> u64 {
        let (node, link) = self.mix.bytes();
        self.nodes * (32 + node as u64 + 9 * (104 + 2 * link as u64) + 2 * 40)
    }
}

/// The workload.
#[derive(Debug)]
pub struct Linkbench {
    params: Params,
    reads: Zipf,
    writes: Zipf,
    node_reads: Zipf,
    node_updates: Zipf,
    /// The number of the last added node.
    last_node: AtomicU64,
}

impl Linkbench {
    /// The workload with these parameters.
    #[must_use]
    pub fn new(params: Params) -> Linkbench {
        let zipf = |theta| Zipf::new(params.nodes, theta);
        Linkbench {
            params,
            reads: zipf(0.8),
            writes: zipf(0.741),
            node_reads: zipf(0.625),
            node_updates: zipf(0.606),
            last_node: AtomicU64::new(params.nodes),
        }
    }

    /// Number of links from node `id` after the load.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and cut off"
    )]
    pub fn degree(&self, id: u64) -> u64 {
        let u = (mix64(self.params.seed ^ mix64(id)) >> 11) as f64 / (1u64 << 53) as f64;
        // The mean of scale * ((1 - u)^-0.6 - 1) is scale * 1.5.
        let degree = 6.3 * ((1.0 - u).powf(-0.6) - 1.0);
        (degree as u64).min(DEGREE_MAX).min(self.params.nodes - 1)
    }

    /// The type of the link at a position among a node's links.
    #[must_use]
    pub fn type_of(&self, id: u64, place: u64) -> i64 {
        if mix64(self.params.seed ^ id.rotate_left(20) ^ place) & 1 == 0 {
            TYPES[0]
        } else {
            TYPES[1]
        }
    }

    fn node(&self, id: u64, version: i64) -> Row {
        let (bytes, _) = self.params.mix.bytes();
        vec![
            number(id),
            Value::Int(2048),
            Value::Int(version),
            Value::Int(version),
            self.data(id ^ version.cast_unsigned() << 40, bytes),
        ]
    }

    fn link(&self, id1: u64, kind: i64, id2: u64, time: i64) -> Row {
        let (_, bytes) = self.params.mix.bytes();
        vec![
            number(id1),
            Value::Int(kind),
            number(id2),
            Value::Int(VISIBLE),
            self.data(id1 << 20 ^ id2, bytes),
            Value::Int(time),
            Value::Int(0),
        ]
    }

    /// Data of `bytes` bytes, of which half repeat.
    fn data(&self, of: u64, bytes: usize) -> Value {
        let mut state = mix64(self.params.seed.rotate_left(9) ^ of);
        let mut data = Vec::with_capacity(bytes);
        while data.len() < bytes {
            state = mix64(state.wrapping_add(0x9E37_79B9_7F4A_7C15));
            let [a, b, c, d, ..] = state.to_le_bytes();
            let eight = [a, b, c, d, b'l', b'i', b'n', b'k'];
            data.extend(eight.into_iter().take(bytes - data.len()));
        }
        Value::Bytes(data)
    }
}

/// The target of a link: the node at position `place`, from 0, among the targets of node `id1`.
fn target(id1: u64, place: u64, nodes: u64) -> u64 {
    (id1 + place) % nodes + 1
}

fn number(id: u64) -> Value {
    Value::Int(id.cast_signed())
}

/// A row of the table `count`.
fn count(id: u64, kind: i64, links: i64, version: i64) -> Row {
    vec![
        number(id),
        Value::Int(kind),
        Value::Int(links),
        Value::Int(0),
        Value::Int(version),
    ]
}

impl Program for Linkbench {
    fn tables(&self, _task: Task) -> Vec<Table> {
        let node = [
            Column::int("id"),
            Column::int("type"),
            Column::int("version"),
            Column::int("time"),
            Column::bytes("data", 255),
        ];
        let link = [
            Column::int("id1"),
            Column::int("link_type"),
            Column::int("id2"),
            Column::int("visibility"),
            Column::bytes("data", 255),
            Column::int("time"),
            Column::int("version"),
        ];
        let count = [
            Column::int("id"),
            Column::int("link_type"),
            Column::int("links"),
            Column::int("time"),
            Column::int("version"),
        ];
        vec![
            Table::new("nodetable", &node, 1),
            // A query for the newest visible links of a node reads only the end of the node's range
            // of this index.
            Table::new("linktable", &link, 3).index("id1_type", &[0, 1, 3, 5], &[4, 6]),
            Table::new("counttable", &count, 2),
        ]
    }

    fn kinds(&self) -> &'static [&'static str] {
        &KINDS
    }

    fn client<'a>(&'a self, task: Task, slot: ClientSlot<'a>) -> Box<dyn Client + 'a> {
        match task {
            Task::Fill { .. } | Task::Scan { .. } => Box::new(load::Loader::new(self, slot)),
            Task::Mix { .. } => Box::new(requests::Requester::new(self, slot)),
        }
    }

    fn check(&self, _task: Task, client: &mut dyn TableClient) -> Answer<Checked> {
        check::check(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_mixes_are_whole_and_degrees_have_their_mean() {
        for mix in [Mix::Facebook, Mix::Callaghan] {
            let sum: f64 = mix.weights().iter().sum();
            assert!((sum - 100.0).abs() < 0.01, "{mix:?}: {sum}");
        }
        let program = Linkbench::new(Params {
            seed: 42,
            nodes: 100_000,
            mix: Mix::Facebook,
        });
        let links: u64 = (1..=100_000).map(|id| program.degree(id)).sum();
        assert!((700_000..1_100_000).contains(&links), "{links}");
        assert!((1..=1000).any(|id| program.degree(id) == 0));
        assert!((1..=100_000).any(|id| program.degree(id) > 500));
        assert_eq!(program.node(5, 1), program.node(5, 1));
    }
}

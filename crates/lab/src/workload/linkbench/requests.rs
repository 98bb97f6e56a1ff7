//! The ten requests, implemented as in the original's store for MySQL.

use std::sync::atomic::Ordering;

use lab_report::record::linkbench::KINDS;
use stdx::Rng;

use super::{COUNT, HIDDEN, LINK, Linkbench, NODE, VISIBLE, count, number, target};
use crate::workload::program::{Client, ClientSlot, Done};
use crate::workload::table::{Row, Value, at};
use crate::workload::tables::{Answer, Lock, Mode, Range, TableClient};

/// Maximum number of links that a list request returns.
const LIST_MAX: u64 = 10_000;

/// Share of the list requests that read links older than the newest.
const HISTORY: f64 = 0.003;

/// Number of links in one getlink request: a geometric distribution with this probability to stop
/// at each link, limited to a maximum.
const MULTIGET_STOP: f64 = 0.382;
const MULTIGET_MAX: usize = 128;

/// Inputs of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Input {
    kind: usize,
    id1: u64,
    link_type: i64,
    id2: u64,
    /// Number of links in a getlink request.
    more: u64,
    history: bool,
}

pub(super) struct Requester<'a> {
    program: &'a Linkbench,
    rng: Rng,
    input: Input,
    time: i64,
    old: Row,
    counted: Row,
}

impl<'a> Requester<'a> {
    pub(super) fn new(program: &'a Linkbench, slot: ClientSlot<'a>) -> Requester<'a> {
        Requester {
            program,
            rng: Rng::new(slot.seed(program.params.seed)),
            input: Input::default(),
            time: DAWN,
            old: Row::new(),
            counted: Row::new(),
        }
    }

    fn kind(&mut self) -> usize {
        let mut left = self.rng.unit() * 100.0;
        for (kind, weight) in self.program.params.mix.weights().into_iter().enumerate() {
            if left < weight {
                return kind;
            }
            left -= weight;
        }
        0
    }

    fn choose(&mut self) -> Input {
        let kind = self.kind();
        let (program, rng) = (self.program, &mut self.rng);
        let nodes = program.params.nodes;
        let id1 = 1 + match KINDS.get(kind).copied().unwrap_or_default() {
            "getnode" => program.node_reads.scattered(rng),
            "updatenode" => program.node_updates.scattered(rng),
            "deletenode" => rng.below(nodes),
            "addlink" | "updatelink" | "deletelink" => program.writes.scattered(rng),
            _ => program.reads.scattered(rng),
        };
        // Most links in requests exist; most added links do not.
        let degree = program.degree(id1);
        let place = match KINDS.get(kind).copied() {
            Some("addlink") => degree + rng.below(nodes),
            _ => rng.below(degree.max(1)),
        };
        let mut more = 1;
        while more < MULTIGET_MAX && !rng.chance(MULTIGET_STOP) {
            more += 1;
        }
        Input {
            kind,
            id1,
            link_type: program.type_of(id1, place),
            id2: target(id1, place, nodes),
            more: more as u64,
            history: rng.chance(HISTORY),
        }
    }

    fn key(&self) -> [Value; 3] {
        let Input {
            id1,
            link_type,
            id2,
            ..
        } = self.input;
        [number(id1), Value::Int(link_type), number(id2)]
    }

    /// Add `more` to the count of visible links.
    fn recount(&mut self, client: &mut dyn TableClient, more: i64) -> Answer<()> {
        let Input { id1, link_type, .. } = self.input;
        let key = [number(id1), Value::Int(link_type)];
        if !client.get(COUNT, &key, Lock::Update, &mut self.counted)? {
            let row = count(id1, link_type, more, 0);
            return client.insert(COUNT, &[row]);
        }
        let (links, version) = (at(&self.counted, 2).int(), at(&self.counted, 4).int());
        let new = count(id1, link_type, links + more, version + 1);
        client.update(COUNT, &self.counted, &new)
    }

    /// Add a link, or update an existing one.
    fn add_link(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        let Input {
            id1,
            link_type,
            id2,
            ..
        } = self.input;
        let mut new = self.program.link(id1, link_type, id2, self.time);
        client.begin(Mode::Write)?;
        let key = self.key();
        let there = client.get(LINK, &key, Lock::Update, &mut self.old)?;
        if there {
            let version = at(&self.old, 6).int();
            if let Some(place) = new.get_mut(6) {
                *place = Value::Int(version + 1);
            }
            client.update(LINK, &self.old, &new)?;
        } else {
            client.insert(LINK, &[new])?;
        }
        if !there || at(&self.old, 3).int() == HIDDEN {
            self.recount(client, 1)?;
        }
        client.commit()?;
        Ok(Done::default())
    }

    /// Hide a link.
    fn delete_link(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        client.begin(Mode::Write)?;
        let key = self.key();
        let there = client.get(LINK, &key, Lock::Update, &mut self.old)?;
        if there && at(&self.old, 3).int() == VISIBLE {
            let mut new = self.old.clone();
            if let Some(place) = new.get_mut(3) {
                *place = Value::Int(HIDDEN);
            }
            client.update(LINK, &self.old, &new)?;
            self.recount(client, -1)?;
        }
        client.commit()?;
        Ok(Done::default())
    }

    fn list(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        let Input {
            id1,
            link_type,
            history,
            ..
        } = self.input;
        let equal = [number(id1), Value::Int(link_type), Value::Int(VISIBLE)];
        let mut range = Range::by_index(LINK, 0, &equal)
            .covered()
            .backward()
            .limit(LIST_MAX);
        let half = Value::Int(self.program.degree(id1).cast_signed() / 2);
        if history {
            range.to = Some(&half);
        }
        let (mut last, mut wrong) = (i64::MAX, None);
        let entries = client.range(&range, &mut |row| {
            let time = at(row, 5).int();
            if last < time || at(row, 0).int() != id1.cast_signed() {
                wrong = Some(format!("the links of node {id1} are out of order"));
            }
            last = time;
            true
        })?;
        Ok(Done {
            entries,
            wrong,
            ..Done::default()
        })
    }

    fn links(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        let Input { id1, id2, more, .. } = self.input;
        let nodes = self.program.params.nodes;
        let mut entries = 0;
        client.begin(Mode::Read)?;
        for place in 0..more {
            let [one, kind, _] = self.key();
            let two = (id2 + place - 1) % nodes + 1;
            let key = [one, kind, number(two)];
            let found = client.get(LINK, &key, Lock::None, &mut self.old)?;
            entries += u64::from(found && at(&self.old, 0).int() == id1.cast_signed());
        }
        client.commit()?;
        Ok(Done {
            entries,
            ..Done::default()
        })
    }

    fn change_node(&mut self, client: &mut dyn TableClient, delete: bool) -> Answer<Done> {
        client.begin(Mode::Write)?;
        let key = [number(self.input.id1)];
        if client.get(NODE, &key, Lock::Update, &mut self.old)? {
            if delete {
                client.delete(NODE, &self.old)?;
            } else {
                let new = self
                    .program
                    .node(self.input.id1, at(&self.old, 2).int() + 1);
                client.update(NODE, &self.old, &new)?;
            }
        }
        client.commit()?;
        Ok(Done::default())
    }

    fn get(&mut self, client: &mut dyn TableClient, table: usize, key: &[Value]) -> Answer<Done> {
        let found = client.get(table, key, Lock::None, &mut self.old)?;
        Ok(Done {
            entries: u64::from(found),
            ..Done::default()
        })
    }
}

/// Times of added links start here, after those of all loaded links.
const DAWN: i64 = 1_000_000_000;

impl Client for Requester<'_> {
    fn next(&mut self) -> Option<usize> {
        self.time += 1;
        self.input = self.choose();
        if KINDS.get(self.input.kind) == Some(&"addnode") {
            self.input.id1 = self.program.last_node.fetch_add(1, Ordering::Relaxed) + 1;
        }
        Some(self.input.kind)
    }

    fn run(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        let Input {
            kind,
            id1,
            link_type,
            ..
        } = self.input;
        match KINDS.get(kind).copied().unwrap_or_default() {
            "getnode" => self.get(client, NODE, &[number(id1)]),
            "countlink" => self.get(client, COUNT, &[number(id1), Value::Int(link_type)]),
            "getlink" => self.links(client),
            "addlink" | "updatelink" => self.add_link(client),
            "deletelink" => self.delete_link(client),
            "updatenode" => self.change_node(client, false),
            "deletenode" => self.change_node(client, true),
            "addnode" => {
                let row = self.program.node(id1, 1);
                client.insert(NODE, &[row])?;
                Ok(Done::default())
            }
            _ => self.list(client),
        }
    }
}

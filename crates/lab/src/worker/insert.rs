//! Clients that insert rows, and delete the oldest ones behind them.

use std::sync::atomic::Ordering;

use kv::{Batch, Direction, KeyRange, TreeId};
use stdx::time;

use super::acknowledged::Acknowledged;
use super::session::text;
use super::step::Shared;
use crate::load::Pace;
use crate::record::LoadKind;
use crate::workload::iibench::{Row, Work};

/// A client of a load step.
pub(super) fn load(shared: &Shared<'_>, client: u32) {
    let Work::Load {
        batch,
        indexes,
        deletes,
        ..
    } = shared.plan.work
    else {
        return;
    };
    let kind = shared.plan.load;
    Inserter::new(shared, client, batch, indexes, deletes).run(kind, true);
}

/// A client that inserts and deletes in the background of queries.
pub(super) fn background(shared: &Shared<'_>, client: u32) {
    let Work::Query {
        write_rate, batch, ..
    } = shared.plan.work
    else {
        return;
    };
    if write_rate > 0.0 {
        let kind = LoadKind::Open {
            rate: write_rate,
            poisson: false,
        };
        Inserter::new(shared, client, batch, true, true).run(kind, false);
    }
}

struct Inserter<'a> {
    shared: &'a Shared<'a>,
    client: u32,
    rows: u64,
    indexes: Option<[TreeId; 3]>,
    deletes: bool,
    batch: Batch,
    row: Row,
}

impl<'a> Inserter<'a> {
    fn new(
        shared: &'a Shared<'a>,
        client: u32,
        rows: u32,
        indexes: bool,
        deletes: bool,
    ) -> Inserter<'a> {
        Inserter {
            shared,
            client,
            rows: u64::from(rows.max(1)),
            indexes: shared.session.indexes.filter(|_| indexes),
            deletes,
            batch: Batch::new(),
            row: Row::default(),
        }
    }

    /// Insert until the rows or the time are used up. `main`: the commits are what the step
    /// measures.
    fn run(&mut self, kind: LoadKind, main: bool) {
        let shared = self.shared;
        let clients = shared.plan.clients;
        let seed = shared.session.generator.params().seed ^ u64::from(self.client);
        let mut told = match (&shared.plan.acknowledged, main) {
            (Some(directory), true) => match Acknowledged::create(directory, self.client) {
                Ok(file) => Some(file),
                Err(message) => return shared.fail(message),
            },
            _ => None,
        };
        let mut pace = Pace::new(kind, self.rows as f64, clients, seed, shared.start);
        while !shared.stopped() {
            let intended = pace.next(time::now());
            if !shared.wait_until(intended) {
                return;
            }
            let first = shared.next_row.fetch_add(self.rows, Ordering::Relaxed);
            if first >= shared.end_row {
                return;
            }
            let last = (first + self.rows).min(shared.end_row);
            shared.generate(|| self.fill(first, last));
            // Making rows is not the target's time, except where it makes the schedule late.
            let due = if kind == LoadKind::Closed {
                time::now()
            } else {
                intended
            };
            if main {
                shared.main.begin(self.client as usize, due);
            }
            if let Err(e) = shared
                .session
                .engine
                .write(&self.batch, shared.session.durability)
            {
                return shared.fail(text(e));
            }
            if main {
                shared.main.end(self.client as usize, due, time::now());
            }
            if let Some(told) = &mut told
                && let Err(message) = told.note(first..last)
            {
                return shared.fail(message);
            }
            let bytes = self.batch.byte_len() as u64;
            shared.logical_bytes.fetch_add(bytes, Ordering::Relaxed);
            shared.rows.fetch_add(last - first, Ordering::Relaxed);
            if self.deletes
                && let Err(message) = self.delete_oldest(last - first)
            {
                return shared.fail(message);
            }
        }
    }

    fn fill(&mut self, first: u64, last: u64) {
        self.batch.clear();
        let session = self.shared.session;
        for id in first..last {
            session.generator.row(id, &mut self.row);
            self.batch.put(session.rows, &self.row.key, &self.row.value);
            if let Some(trees) = self.indexes {
                for (tree, key) in trees.into_iter().zip(self.row.index_keys()) {
                    self.batch.put(tree, key, b"");
                }
            }
        }
    }

    /// Delete the oldest `count` rows as a database would: read them by primary key, then delete
    /// them and their index entries in one transaction.
    fn delete_oldest(&mut self, count: u64) -> Result<(), String> {
        let shared = self.shared;
        let session = shared.session;
        let low = shared.next_delete.fetch_add(count, Ordering::Relaxed);
        let (start, end) = (low.to_be_bytes(), (low + count).to_be_bytes());
        self.batch.clear();
        if session.keeps {
            let snapshot = session.engine.begin_read().map_err(text)?;
            let range = KeyRange::half_open(&start, &end);
            let mut cursor = snapshot
                .cursor(session.rows, range, Direction::Forward)
                .map_err(text)?;
            let mut expected = low;
            while cursor.advance().map_err(text)? {
                if cursor.key() != expected.to_be_bytes() {
                    shared.wrong(format!("row {expected} was to be deleted and is not there"));
                }
                expected += 1;
            }
            if expected != low + count {
                shared.wrong(format!("{} of {count} old rows found", expected - low));
            }
        }
        for id in low..low + count {
            session.generator.row(id, &mut self.row);
            self.batch.delete(session.rows, &self.row.key);
            if let Some(trees) = self.indexes {
                for (tree, key) in trees.into_iter().zip(self.row.index_keys()) {
                    self.batch.delete(tree, key);
                }
            }
        }
        let bytes = self.batch.byte_len() as u64;
        shared.logical_bytes.fetch_add(bytes, Ordering::Relaxed);
        session
            .engine
            .write(&self.batch, session.durability)
            .map_err(text)
    }
}

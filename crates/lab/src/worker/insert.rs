//! Clients that insert rows and delete the oldest rows.

use std::sync::atomic::Ordering;
use std::time::Instant;

use lab_report::error::Result;
use lab_report::record::{LoadKind, Work};
use stdx::time;

use super::acknowledged::AckLog;
use super::step::Shared;
use crate::load::Pace;
use crate::targets::Connection;

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
    run(shared, client, (batch, indexes, deletes), kind, true);
}

/// A client that inserts and deletes in the background of a query step.
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
        run(shared, client, (batch, true, true), kind, false);
    }
}

/// Insert until the rows or the time are used up. With `main`, these commits are the main operation
/// that the step measures.
fn run(
    shared: &Shared<'_>,
    client: u32,
    (rows, indexes, deletes): (u32, bool, bool),
    kind: LoadKind,
    main: bool,
) {
    let connected = shared.session.database.connect();
    let start = if main {
        shared.arrive()
    } else {
        shared.begun()
    };
    let result = connected.and_then(|connection| {
        let mut inserter = Inserter {
            shared,
            connection,
            start,
            client,
            rows: u64::from(rows.max(1)),
            indexes,
            deletes,
        };
        inserter.run(kind, main)
    });
    if let Err(error) = result {
        shared.fail(error);
    }
}

struct Inserter<'a> {
    shared: &'a Shared<'a>,
    connection: Box<dyn Connection + 'a>,
    start: Instant,
    client: u32,
    /// Number of rows in one transaction.
    rows: u64,
    indexes: bool,
    deletes: bool,
}

impl Inserter<'_> {
    fn run(&mut self, kind: LoadKind, main: bool) -> Result<()> {
        let shared = self.shared;
        let clients = shared.plan.clients;
        let seed = shared.session.generator.params().seed ^ u64::from(self.client);
        let mut log = match (&shared.plan.acknowledged, main) {
            (Some(directory), true) => Some(AckLog::create(directory, self.client)?),
            _ => None,
        };
        let mut pace = Pace::new(kind, self.rows as f64, clients, seed, self.start);
        while !shared.stopped() {
            let intended = pace.next(time::now());
            if !shared.wait_until(intended) {
                break;
            }
            let first = shared.next_row.fetch_add(self.rows, Ordering::Relaxed);
            if first >= shared.end_row {
                break;
            }
            let last = (first + self.rows).min(shared.end_row);
            let (connection, indexes) = (&mut self.connection, self.indexes);
            shared.generate(|| connection.fill(first..last, indexes));
            // The time for generating rows does not count as the target's, except where it delays
            // the schedule.
            let due = if kind == LoadKind::Closed {
                time::now()
            } else {
                intended
            };
            let bytes = match &mut log {
                Some(log) => log.commit(first..last, || self.commit(main, due))?,
                None => self.commit(main, due)?,
            };
            shared.logical_bytes.fetch_add(bytes, Ordering::Relaxed);
            shared.rows.fetch_add(last - first, Ordering::Relaxed);
            if self.deletes {
                self.delete_oldest(last - first)?;
            }
        }
        Ok(())
    }

    /// Insert the generated rows; returns the bytes written.
    fn commit(&mut self, main: bool, due: Instant) -> Result<u64> {
        let (shared, client) = (self.shared, self.client as usize);
        if main {
            shared.main.begin(client, due);
        }
        let bytes = self.connection.insert()?;
        if main {
            shared.main.end(client, due, time::now());
        }
        Ok(bytes)
    }

    fn delete_oldest(&mut self, count: u64) -> Result<()> {
        let shared = self.shared;
        let low = shared.next_delete.fetch_add(count, Ordering::Relaxed);
        let deleted = self.connection.delete(low..low + count, self.indexes)?;
        if deleted.found != count {
            let found = deleted.found;
            shared.wrong(format!(
                "{found} of {count} old rows found, from row {low} on"
            ));
        }
        shared
            .logical_bytes
            .fetch_add(deleted.bytes, Ordering::Relaxed);
        Ok(())
    }
}

//! Clients that run queries.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lab_report::error::Result;
use lab_report::record::{LoadKind, SideQueries, Work};
use stdx::{Rng, time};

use super::step::Shared;
use crate::load::Pace;
use crate::targets::Connection;
use crate::workload::iibench::QUERY_LIMIT;

/// Interval at which a query client that must wait checks whether its queries may start.
const SIDE_LOOK: Duration = Duration::from_millis(20);

/// Run range queries during a load, open-loop at their own rate.
pub(super) fn beside_load(shared: &Shared<'_>, queries: SideQueries) {
    let Work::Load { interval_rows, .. } = shared.plan.work else {
        return;
    };
    let first = interval_rows * u64::from(queries.from_interval.saturating_sub(1));
    while shared.rows.load(Ordering::Relaxed) < first {
        if finished(shared) || !shared.wait_until(time::now() + SIDE_LOOK) {
            return;
        }
    }
    let mut client = match Client::new(shared, 0) {
        Ok(client) => client,
        Err(error) => return shared.fail(error),
    };
    let kind = LoadKind::Open {
        rate: queries.rate,
        poisson: false,
    };
    let mut pace = Pace::new(kind, 1.0, 1, client.rng.next_u64(), time::now());
    while !finished(shared) {
        let due = pace.next(time::now());
        if !shared.wait_until(due) {
            return;
        }
        shared.side.begin(0, due);
        if let Err(error) = client.range() {
            return shared.fail(error);
        }
        shared.side.end(0, due, time::now());
        shared.queries.fetch_add(1, Ordering::Relaxed);
    }
}

fn finished(shared: &Shared<'_>) -> bool {
    shared.stopped() || shared.next_row.load(Ordering::Relaxed) >= shared.end_row
}

/// Run queries one after the other until the step ends: the step's main operation.
pub(super) fn closed(shared: &Shared<'_>, client: u32, point: bool) {
    let slot = client as usize;
    let connected = Client::new(shared, client);
    shared.arrive();
    let mut client = match connected {
        Ok(client) => client,
        Err(error) => return shared.fail(error),
    };
    while !shared.stopped() {
        let operations = shared.plan.operations;
        if operations > 0 && shared.queries.load(Ordering::Relaxed) >= operations {
            // All queries are done, so the background writers of the step must end too.
            return shared.stop_all();
        }
        let due = time::now();
        shared.main.begin(slot, due);
        let result = if point {
            client.point()
        } else {
            client.range()
        };
        shared.main.end(slot, due, time::now());
        if let Err(error) = result {
            return shared.fail(error);
        }
        shared.queries.fetch_add(1, Ordering::Relaxed);
    }
}

struct Client<'a> {
    shared: &'a Shared<'a>,
    connection: Box<dyn Connection + 'a>,
    rng: Rng,
    /// The rows that were in the store when the step started: `low..high`.
    low: u64,
    high: u64,
}

impl<'a> Client<'a> {
    fn new(shared: &'a Shared<'a>, client: u32) -> Result<Client<'a>> {
        let seed = shared.session.generator.params().seed;
        let live = shared.session.live;
        Ok(Client {
            shared,
            connection: shared.session.database.connect()?,
            rng: Rng::new(seed ^ (u64::from(client) + 1) << 32 ^ live.high),
            low: live.low,
            high: live.high.max(live.low + 1),
        })
    }

    /// Choose a row that will not be deleted soon: one of the newer half of the initial rows.
    fn old_row(&mut self) -> u64 {
        let low = self.low + (self.high - self.low) / 2;
        low + self.rng.below(self.high - low)
    }

    /// Run a covered range query from a random place on one of the three indexes.
    fn range(&mut self) -> Result<()> {
        let index = self.rng.index(3);
        let (random, id) = (self.rng.next_u64(), self.old_row());
        let ranged = self.connection.range(index, random, id, QUERY_LIMIT)?;
        if !ranged.in_order {
            let message = format!("a range query on index {index} was out of order");
            self.shared.wrong(message);
        }
        let entries = &self.shared.entries;
        entries.fetch_add(ranged.entries, Ordering::Relaxed);
        Ok(())
    }

    /// Run a point query by primary key, and compare the result with the expected row.
    fn point(&mut self) -> Result<()> {
        let id = self.old_row();
        if self.connection.get(id)? {
            let connection = &mut self.connection;
            if !self.shared.generate(|| connection.matches(id)) {
                self.shared.wrong(format!("row {id} has a wrong value"));
            }
            if self.shared.session.keeps {
                self.shared.entries.fetch_add(1, Ordering::Relaxed);
            }
        } else if id >= self.shared.next_delete.load(Ordering::Relaxed) {
            self.shared.wrong(format!("row {id} is missing"));
        }
        Ok(())
    }
}

//! Counts the long operations that the connection of one client reports during a step.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Instant;

use stdx::time;

use super::step::Shared;
use crate::targets::Meter;

/// The meter of one client.
pub(super) struct ClientMeter<'a> {
    shared: &'a Shared<'a>,
    client: usize,
    due: Cell<Instant>,
}

impl<'a> ClientMeter<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, client: usize) -> ClientMeter<'a> {
        ClientMeter {
            shared,
            client,
            due: Cell::new(time::now()),
        }
    }
}

impl Meter for ClientMeter<'_> {
    fn stopped(&self) -> bool {
        self.shared.stopped()
    }

    fn generate(&self, make: &mut dyn FnMut()) {
        self.shared.generate(make);
    }

    fn begin(&self) {
        let now = time::now();
        self.due.set(now);
        self.shared.main.begin(self.client, now);
    }

    fn end(&self) {
        self.shared
            .main
            .end(self.client, self.due.get(), time::now());
    }

    fn wrote(&self, rows: u64, bytes: u64) {
        self.shared
            .logical_bytes
            .fetch_add(bytes, Ordering::Relaxed);
        self.shared.rows.fetch_add(rows, Ordering::Relaxed);
    }

    fn met(&self, entries: u64) {
        self.shared.entries.fetch_add(entries, Ordering::Relaxed);
        if 0 < entries {
            self.shared.queries.fetch_add(1, Ordering::Relaxed);
        }
    }
}

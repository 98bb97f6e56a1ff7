//! Snapshots held open for reads at a past time (`readConcern` with the level `snapshot`).
//!
//! An engine snapshot belongs to the thread that opened it, so each held snapshot has its own
//! thread. Reads at its time are sent to that thread, which runs them one after another.
//!
//! - M1. A snapshot contains every write whose operation time is at most the snapshot's time: it is
//!   opened after those writes finished. With an oplog it contains exactly those: it is opened
//!   between two commits (`oplog::slots`: S5). All reads at one time return the same data.
//! - M2. A snapshot is held, from its opening, for as long as a transaction may last. At most
//!   [`HELD_MAX`] are held: the oldest is released first. Reads at a time that is no longer held
//!   fail with `SnapshotTooOld`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use bson::Timestamp;
use query::meter::Watch as _;
use query::{Code, Error, Result};
use stdx::sync::Mutex;

use crate::oplog::entry::OpTime;
use crate::store::Store;
use crate::txn::{Ends, Held, Op};

/// Maximum number of held snapshots: each takes a thread and a reader of the engine, and keeps data
/// deleted since its opening from being reclaimed.
const HELD_MAX: usize = 32;

type Task = Box<dyn FnOnce(&Held<'_>) + Send>;

#[derive(Default)]
pub(crate) struct Moments(Mutex<BTreeMap<Timestamp, Moment>>);

struct Moment {
    sender: Sender<Task>,
    until: Instant,
}

impl Store {
    /// Run `body` on the snapshot of `time`, or on a new snapshot if `time` is `None`. `now` is the
    /// time of the last write acknowledged to a client. `body` runs in the snapshot's thread, with
    /// an operation that has [`Op::held`] set; the snapshot's time is returned with the result of
    /// `body`.
    ///
    /// # Errors
    /// `SnapshotTooOld` if the snapshot of `time` is not held and writes came after it; the
    /// operation must end while it waits for commits; errors of `body`.
    pub fn at_moment<R: Send + 'static>(
        self: &Arc<Store>,
        op: Op<'static>,
        time: Option<Timestamp>,
        now: Timestamp,
        body: impl FnOnce(&Op<'_>) -> Result<R> + Send + 'static,
    ) -> Result<(R, Timestamp)> {
        op.check()?;
        let (sender, time) = self.moment(&op, time, now)?;
        let (reply, result) = channel();
        let parts = op.into_parts();
        let task: Task = Box::new(move |held| {
            let op = parts.within(None, Some(held));
            // The caller waits for this reply, so the send cannot fail.
            drop(reply.send(op.check().and_then(|()| body(&op))));
        });
        sender.send(task).map_err(|_| too_old(time))?;
        let done = result.recv().map_err(|_| too_old(time))??;
        Ok((done, time))
    }

    /// The snapshot of `time`, or of now, and its time; opens it if possible.
    fn moment(
        self: &Arc<Store>,
        op: &Op<'_>,
        asked: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(Sender<Task>, Timestamp)> {
        let time = asked.unwrap_or(now);
        let mut all = self.part::<Moments>().0.lock();
        let clock = stdx::time::now();
        // A caller that waits for a reply holds a sender of its own.
        all.retain(|_, moment| clock < moment.until);
        if let Some(moment) = all.get(&time) {
            return Ok((moment.sender.clone(), time));
        }
        if time < now {
            return Err(too_old(time));
        }
        if HELD_MAX <= all.len() {
            all.pop_first();
        }
        let until = clock + self.options().transaction_lifetime;
        let (sender, tasks) = channel();
        let (opened, ready) = channel();
        let (store, ends) = (Arc::clone(self), op.ends());
        let body = move || hold(&store, (time, &ends), &tasks, until, &opened);
        stdx::sync::spawn("snapshot", body).map_err(|e| {
            let message = format!("no thread can be had: {e}");
            Error::new(Code::TEMPORARILY_UNAVAILABLE, message)
        })?;
        // M1: the snapshot is open before a client receives its time.
        let opened = ready.recv().map_err(|_| too_old(time))??;
        if asked.is_some_and(|asked| asked < opened) {
            // Others wrote meanwhile; the thread ends.
            return Err(too_old(time));
        }
        let moment = Moment {
            sender: sender.clone(),
            until,
        };
        all.insert(opened, moment);
        assert!(all.len() <= HELD_MAX, "M2: few snapshots are held");
        Ok((sender, opened))
    }

    /// Run `body` on a snapshot of now that has exactly the changes up to its time, which is that
    /// of [`Op::held`]. Without an oplog, and in a transaction, `body` runs with `op` itself.
    ///
    /// # Errors
    /// The operation must end while it waits for commits; errors of the engine and of `body`.
    pub fn at_present<R>(&self, op: &Op<'_>, body: impl FnOnce(&Op<'_>) -> Result<R>) -> Result<R> {
        if op.transaction.is_some() || op.held.is_some() {
            return body(op);
        }
        loop {
            let catalog = self.catalog();
            let check = || self.check_open(op);
            let (snapshot, Some(time)) = self.see_exactly(OpTime::NONE.ts, &check)? else {
                return body(op);
            };
            if self.is_current(&catalog) {
                let held = Held {
                    snapshot,
                    catalog,
                    time,
                };
                let held = Some(&held);
                return body(&Op { held, ..op.clone() });
            }
        }
    }
}

/// Main loop of a snapshot's thread.
fn hold(
    store: &Store,
    (least, ends): (Timestamp, &Ends),
    tasks: &Receiver<Task>,
    until: Instant,
    opened: &Sender<Result<Timestamp>>,
) {
    let catalog = store.catalog();
    let check = || store.check_not_closed().and_then(|()| ends.check());
    let (snapshot, time) = match store.see_exactly(least, &check) {
        Ok((snapshot, time)) => (snapshot, time.unwrap_or(least)),
        Err(e) => {
            drop(opened.send(Err(e)));
            return;
        }
    };
    let held = Held {
        snapshot,
        catalog,
        time,
    };
    drop(opened.send(Ok(time)));
    loop {
        let rest = until.saturating_duration_since(stdx::time::now());
        // The snapshot is too old, or no sender is left.
        let Ok(task) = tasks.recv_timeout(rest) else {
            return;
        };
        task(&held);
    }
}

fn too_old(time: Timestamp) -> Error {
    Error::new(
        Code::SNAPSHOT_TOO_OLD,
        format!(
            "Read timestamp Timestamp({}, {}) is older than the oldest available timestamp.",
            time.time, time.increment
        ),
    )
}

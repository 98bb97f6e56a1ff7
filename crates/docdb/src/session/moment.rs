//! Snapshots that are held for reads at a time (`readConcern` with the level `snapshot`).
//!
//! An engine's snapshot belongs to the thread that opened it, so every held one has a thread of its
//! own: reads at its time are sent there, one after another.
//!
//! - M1. All writes whose operation time is at most the snapshot's time are in it: it is opened
//!   after they were done. Reads at one time see the same, however often.
//! - M2. A snapshot is held for as long as a transaction may take, from its opening on, and there
//!   are at most [`HELD_MAX`]: the oldest goes first. Reads at a time that is not held any more are
//!   `SnapshotTooOld`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use bson::Timestamp;
use query::{Code, Error, Result};
use stdx::sync::Mutex;

use crate::error;
use crate::store::Store;
use crate::txn::{Held, Op};

/// Snapshots that are held at once: each has a thread, a reader of the engine, and keeps what was
/// deleted since.
const HELD_MAX: usize = 32;

type Task = Box<dyn FnOnce(&Held<'_>) + Send>;

/// All snapshots that are held.
#[derive(Default)]
pub(crate) struct Moments(Mutex<BTreeMap<Timestamp, Moment>>);

struct Moment {
    sender: Sender<Task>,
    until: Instant,
}

impl Store {
    /// Read a moment: that of `time`, or, where there is none, now. `now` is the time of the last
    /// write that was acknowledged to a client. `body` runs in the snapshot's thread, with an
    /// operation of which [`Op::held`] is set; the time is given with what it says.
    ///
    /// # Errors
    /// `SnapshotTooOld` when a time is not held and written after; what `body` says.
    pub fn at_moment<R: Send + 'static>(
        self: &Arc<Store>,
        op: Op<'static>,
        time: Option<Timestamp>,
        now: Timestamp,
        body: impl FnOnce(&Op<'_>) -> Result<R> + Send + 'static,
    ) -> Result<(R, Timestamp)> {
        op.check()?;
        let time = time.unwrap_or(now);
        let sender = self.moment(time, now)?;
        let (reply, result) = channel();
        let parts = op.into_parts();
        let task: Task = Box::new(move |held| {
            let op = parts.within(None, Some(held));
            // Who waits for it is there.
            drop(reply.send(op.check().and_then(|()| body(&op))));
        });
        sender.send(task).map_err(|_| too_old(time))?;
        let done = result.recv().map_err(|_| too_old(time))??;
        Ok((done, time))
    }

    /// The snapshot of a time, opened if it can be.
    fn moment(self: &Arc<Store>, time: Timestamp, now: Timestamp) -> Result<Sender<Task>> {
        let mut all = self.part::<Moments>().0.lock();
        let clock = stdx::time::now();
        // Who waits for an answer has a sender of its own.
        all.retain(|_, moment| clock < moment.until);
        if let Some(moment) = all.get(&time) {
            return Ok(moment.sender.clone());
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
        let store = Arc::clone(self);
        let body = move || hold(&store, time, &tasks, until, &opened);
        stdx::sync::spawn("snapshot", body).map_err(|e| {
            let message = format!("no thread can be had: {e}");
            Error::new(Code::TEMPORARILY_UNAVAILABLE, message)
        })?;
        // M1: opened before a client gets its time.
        ready.recv().map_err(|_| too_old(time))??;
        let moment = Moment {
            sender: sender.clone(),
            until,
        };
        all.insert(time, moment);
        assert!(all.len() <= HELD_MAX, "M2: few snapshots are held");
        Ok(sender)
    }
}

/// The life of a snapshot's thread.
fn hold(
    store: &Store,
    time: Timestamp,
    tasks: &Receiver<Task>,
    until: Instant,
    opened: &Sender<Result<()>>,
) {
    let catalog = store.catalog();
    let snapshot = match store.engine().begin_read() {
        Ok(snapshot) => snapshot,
        Err(e) => {
            drop(opened.send(Err(error::engine(e))));
            return;
        }
    };
    let held = Held {
        snapshot,
        catalog,
        time,
    };
    drop(opened.send(Ok(())));
    loop {
        let rest = until.saturating_duration_since(stdx::time::now());
        // Too old, or no sender is left.
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

//! The thread that syncs the log for `Durability::Interval`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use kv::{Error, Result};
use stdx::sync::{Condvar, Mutex};

use super::shared::Shared;
use crate::support::NAME;

#[derive(Default)]
struct Signal {
    stop: Mutex<bool>,
    wake: Condvar,
}

/// A running thread that syncs. [`Flusher::stop`] ends it.
pub(super) struct Flusher {
    signal: Arc<Signal>,
    thread: JoinHandle<()>,
}

impl Flusher {
    /// Start the thread that syncs.
    pub(super) fn start(shared: &Arc<Shared>) -> Result<Flusher> {
        let signal = Arc::new(Signal::default());
        let home = &shared.home;
        let (theirs, shared) = (Arc::clone(&signal), Arc::clone(shared));
        let spawned = stdx::sync::spawn("wt-log-sync", move || run(&theirs, &shared));
        let thread = spawned.map_err(|e| Error::io("open", home, e).with_engine(NAME))?;
        Ok(Flusher { signal, thread })
    }

    /// End the thread and wait for it.
    pub(super) fn stop(self) {
        *self.signal.stop.lock() = true;
        self.signal.wake.notify_all();
        self.thread.join().expect("the thread does not panic");
    }
}

fn run(signal: &Signal, shared: &Shared) {
    let mut stop = signal.stop.lock();
    while !*stop {
        signal.wake.wait_for(&mut stop, shared.config.interval);
        if *stop || !shared.unsynced.load(Ordering::Acquire) {
            continue;
        }
        // The sync may take long, and `stop` must not wait for this lock meanwhile.
        drop(stop);
        // A failure closes the store for writes (`Shared::failed_write`), so later writers get an
        // error.
        let _ = shared.sync();
        stop = signal.stop.lock();
    }
}

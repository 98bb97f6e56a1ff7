//! The thread that syncs the log for commits at `Durability::Interval`.
//!
//! The thread sleeps until a commit needs a sync, waits one interval so that more commits share the
//! sync, and syncs. A failed sync is not repeated: the store accepts no more writes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use stdx::sync::{Condvar, Mutex};

use super::raw::Status;

#[derive(Default)]
struct Shared {
    dirty: AtomicBool,
    /// Set once, when the thread must end. Its lock also guards changes of `dirty`.
    stop: Mutex<bool>,
    wake: Condvar,
    has_failed: AtomicBool,
    failure: Mutex<Option<Status>>,
}

/// The thread, and its shared state. Dropping it ends the thread.
pub(super) struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    /// Start the thread, which calls `sync` at most every `interval`.
    ///
    /// # Errors
    /// The operating system's error when it cannot start a thread.
    pub(super) fn start(
        interval: Duration,
        sync: impl Fn() -> Result<(), Status> + Send + 'static,
    ) -> io::Result<Syncer> {
        let shared = Arc::new(Shared::default());
        let body = {
            let shared = Arc::clone(&shared);
            move || run(&shared, interval, sync)
        };
        Ok(Syncer {
            shared,
            thread: Some(stdx::sync::spawn("rocksdb-sync", body)?),
        })
    }

    /// Record that a write needs a sync.
    pub(super) fn wrote(&self) {
        if !self.shared.dirty.swap(true, Ordering::AcqRel) {
            let _held = self.shared.stop.lock();
            self.shared.wake.notify_one();
        }
    }

    /// The error of a failed sync, if any.
    pub(super) fn failure(&self) -> Option<Status> {
        if !self.shared.has_failed.load(Ordering::Acquire) {
            return None;
        }
        self.shared.failure.lock().clone()
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        *self.shared.stop.lock() = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // Joining fails only when the thread panicked, and a destructor cannot return an error.
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, interval: Duration, sync: impl Fn() -> Result<(), Status>) {
    let mut stop = shared.stop.lock();
    loop {
        while !*stop && !shared.dirty.load(Ordering::Acquire) {
            shared.wake.wait(&mut stop);
        }
        let until = stdx::time::now() + interval;
        while !*stop && !shared.wake.wait_until(&mut stop, until).timed_out() {}
        if *stop {
            return;
        }
        drop(stop);
        shared.dirty.store(false, Ordering::Release);
        if let Err(status) = sync() {
            *shared.failure.lock() = Some(status);
            shared.has_failed.store(true, Ordering::Release);
            return;
        }
        stop = shared.stop.lock();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_write_is_followed_by_a_sync_and_dropping_ends_the_thread() {
        let (tell, told) = mpsc::channel();
        let syncer = Syncer::start(Duration::ZERO, move || {
            // The receiver may be gone before the last sync.
            let _ = tell.send(());
            Ok(())
        })
        .unwrap();
        for _ in 0..3 {
            syncer.wrote();
            told.recv().unwrap();
        }
        drop(syncer);
        assert!(told.recv().is_err(), "the thread and its sender are gone");
    }

    #[test]
    fn a_failed_sync_stays_failed() {
        let (tell, told) = mpsc::channel::<()>();
        let syncer = Syncer::start(Duration::ZERO, move || {
            let _sender_goes_with_the_thread = &tell;
            Err(Status("IO error: no".to_owned()))
        })
        .unwrap();
        syncer.wrote();
        assert!(told.recv().is_err(), "the thread has ended");
        assert_eq!(syncer.failure(), Some(Status("IO error: no".to_owned())));
    }
}

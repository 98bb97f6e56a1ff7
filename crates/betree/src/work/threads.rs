//! The background threads of a store: as many as the options say for flushes, merges and
//! checkpoints, and two for the log, which mostly wait for the device: one writes, the other syncs
//! and makes segments, so that commits continue to be written while a sync runs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use stdx::sync::JoinHandle;
use stdx::sync::atomic::{AtomicBool, Ordering};

use crate::db::Core;

/// Maximum wait of a thread without work before it checks again, unless it is woken.
const PAUSE: Duration = Duration::from_millis(10);
/// The same after a failure.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// The threads; dropping it stops them.
pub(crate) struct Threads {
    core: Arc<Core>,
    stop: Arc<AtomicBool>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Start the number of threads that the options specify.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn start(core: &Arc<Core>) -> io::Result<Threads> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Threads {
            core: Arc::clone(core),
            stop: Arc::clone(&stop),
            handles: Vec::new(),
        };
        for index in 0..core.options.threads() {
            let core = Arc::clone(core);
            let stop = Arc::clone(&stop);
            let name = format!("betree-{index}");
            threads
                .handles
                .push(stdx::sync::spawn(&name, move || work(&core, &stop))?);
        }
        if 0 < core.options.threads() && core.log.is_some() {
            let core = Arc::clone(core);
            let (syncer, its_stop) = (Arc::clone(&core), Arc::clone(&stop));
            let handle = stdx::sync::spawn("betree-log", move || write_log(&core, &stop))?;
            threads.handles.push(handle);
            let handle = stdx::sync::spawn("betree-sync", move || sync_log(&syncer, &its_stop))?;
            threads.handles.push(handle);
        }
        Ok(threads)
    }

    /// Stop and wait for them.
    pub(crate) fn stop(&mut self) {
        self.tell();
        for handle in self.handles.drain(..) {
            if let Err(panic) = handle.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }

    fn tell(&self) {
        self.stop.store(true, Ordering::Release);
        self.core.wake.everyone();
        if let Some(log) = &self.core.log {
            log.wake();
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.tell();
        for handle in self.handles.drain(..) {
            // A panic of the thread was already printed; another panic here would abort.
            let _ = handle.join();
        }
    }
}

fn work(core: &Core, stop: &AtomicBool) {
    while !stop.load(Ordering::Acquire) {
        match core.step() {
            Ok(true) => {}
            Ok(false) => core.wake.wait_for_work(PAUSE),
            // The error is stored where commits and statistics find it.
            Err(_) => core.wake.wait_for_work(PAUSE_AFTER_ERROR),
        }
    }
}

/// Write the log in large pieces, so that commits at `none` need not, and request writeback.
fn write_log(core: &Core, stop: &AtomicBool) {
    let Some(log) = &core.log else { return };
    while !stop.load(Ordering::Acquire) {
        if let Err(error) = log.write_ready() {
            // A failed write or sync of the log is final; commits get an error.
            core.health.poison(&error);
            return;
        }
        log.start_writeback();
        log.wait_for_write(PAUSE);
    }
}

/// Sync the log once per interval, and create its segments ahead.
fn sync_log(core: &Core, stop: &AtomicBool) {
    let Some(log) = &core.log else { return };
    let pause = PAUSE.min(core.options.interval());
    while !stop.load(Ordering::Acquire) {
        log.prepare_ahead();
        if let Err(error) = core.sync_interval() {
            core.health.poison(&error);
            return;
        }
        log.wait_for_chores(pause);
    }
}

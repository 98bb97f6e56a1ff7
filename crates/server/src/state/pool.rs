//! Threads for what may block: storage is synchronous, and of its commands only brief ones run on
//! the threads of the sockets (`dispatch::inline`).
//!
//! Threads start as they are needed and end when idle. Admission comes first: a job is handed in
//! only with a permit, and there are as many permits as threads, so that the queue is never longer
//! than the threads that are about to take from it.
//!
//! - P1. `threads` counts live threads; each takes jobs until it was idle for long or the pool
//!   closes.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use stdx::sync::{Condvar, Mutex, spawn};

use crate::limits::{RESERVED, WORKER_IDLE, WORKERS};

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

/// The threads.
#[derive(Clone, Default)]
pub(crate) struct Pool(Arc<Shared>);

impl Pool {
    /// Run a job on a thread of the pool. Returns false if the pool is closed, or if it has no
    /// thread and the system refuses to start one.
    pub(crate) fn submit(&self, job: impl FnOnce() + Send + 'static) -> bool {
        let mut state = self.0.state.lock();
        if state.closed {
            return false;
        }
        state.jobs.push_back(Box::new(job));
        if state.jobs.len() <= state.idle || state.threads >= WORKERS + RESERVED {
            drop(state);
            self.0.wake.notify_one();
            return true;
        }
        state.threads += 1;
        assert!(
            state.threads <= WORKERS + RESERVED,
            "P1: no more threads than permits"
        );
        drop(state);
        let pool = self.clone();
        if spawn("command", move || pool.work()).is_ok() {
            return true;
        }
        let mut state = self.0.state.lock();
        state.threads -= 1;
        if state.threads == 0 {
            state.jobs.pop_back();
            return false;
        }
        true
    }

    /// Accept no more jobs, and let the threads end.
    pub(crate) fn close(&self) {
        self.0.state.lock().closed = true;
        self.0.wake.notify_all();
    }

    fn work(&self) {
        let mut state = self.0.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // After a panic the receiver of the answer finds its channel closed.
                let _: Result<(), _> = catch_unwind(AssertUnwindSafe(job));
                state = self.0.state.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let waited = self.0.wake.wait_for(&mut state, WORKER_IDLE);
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        assert!(0 < state.threads, "P1: this thread is counted");
        state.threads -= 1;
    }
}

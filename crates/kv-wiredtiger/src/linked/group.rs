//! Commits that share a sync of the log.
//!
//! WiredTiger can sync the log inside a commit, but then nearly every commit does its own sync: a
//! sync covers only the log up to the end of the committer's slot. Here, as in MongoDB, a commit at
//! `Durability::Group` leaves its record in the log's buffer and then waits for a flush that begins
//! later. While one thread flushes, all committers that arrive wait for the next flush.
//!
//! - G1. A flush that begins after a commit returned covers it: it begins by closing the slot.
//! - G2. `done <= begun <= done + 1`.

use kv::{Error, Result};
use stdx::sync::{Condvar, Mutex};

#[derive(Default)]
struct State {
    /// Number of flushes begun.
    begun: u64,
    /// Number of flushes ended.
    done: u64,
    /// Number of threads that wait for a flush to end.
    waiting: usize,
}

/// The shared state of the committers.
#[derive(Default)]
pub(super) struct Group {
    state: Mutex<State>,
    ended: Condvar,
}

impl Group {
    /// Wait for a flush that begins after this call, or run it with `flush`. After a wait, `check`
    /// returns whether the flushes so far succeeded.
    pub(super) fn wait(
        &self,
        flush: impl Fn() -> Result<(), Error>,
        check: impl Fn() -> Result<(), Error>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        let mine = state.begun + 1;
        while state.done < mine {
            if state.done < state.begun {
                state.waiting += 1;
                self.ended.wait(&mut state);
                state.waiting -= 1;
                continue;
            }
            state.begun += 1;
            drop(state);
            let result = flush();
            state = self.state.lock();
            state.done += 1;
            assert!(state.done == state.begun, "G2: one flush at a time");
            self.ended.notify_all();
            // The flush that this thread ran is the one it had to wait for, or a later one.
            return result;
        }
        drop(state);
        check()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn those_who_arrive_during_a_flush_share_the_next() {
        let group = Group::default();
        let flushes = AtomicU64::new(0);
        let (entered, first_runs) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        thread::scope(|scope| {
            scope.spawn(|| {
                let flush = || {
                    flushes.fetch_add(1, Ordering::Relaxed);
                    entered.send(()).unwrap();
                    released.lock().recv().unwrap();
                    Ok(())
                };
                group.wait(flush, || Ok(())).unwrap();
            });
            first_runs.recv().unwrap();
            for _ in 0..5 {
                let (group, flushes) = (&group, &flushes);
                scope.spawn(move || {
                    let flush = || {
                        flushes.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    };
                    group.wait(flush, || Ok(())).unwrap();
                });
            }
            while group.state.lock().waiting < 5 {
                thread::yield_now();
            }
            release.send(()).unwrap();
        });
        assert_eq!(flushes.into_inner(), 2, "G1: the next flush covers them");
        let state = group.state.lock();
        assert_eq!((state.begun, state.done, state.waiting), (2, 2, 0));
    }

    #[test]
    fn a_failed_flush_fails_whoever_did_it() {
        let group = Group::default();
        let error = group
            .wait(|| Err(Error::invalid("no")), || Ok(()))
            .unwrap_err();
        assert_eq!(error.message(), "no");
        group.wait(|| Ok(()), || Ok(())).unwrap();
    }
}

//! What of the oplog the data has: all of it, for a member that writes entries with their changes;
//! the entries up to a mark, for a follower that appends the entries of another member first and
//! applies them later.
//!
//! - X1. The applied entry of a follower advances while no snapshot is opened at an exact time
//!   ([`Applied::between`]): such a snapshot has exactly the changes of the entries up to it.

use std::time::Instant;

use bson::Timestamp;
use stdx::sync::atomic::{AtomicBool, Ordering};
use stdx::sync::{Condvar, Mutex, MutexGuard};

use super::entry::OpTime;

#[derive(Debug)]
pub(crate) struct Applied {
    /// Whether the store is a follower: what every commit and every read asks.
    follows: AtomicBool,
    /// What it has applied, if it is one.
    state: Mutex<Option<OpTime>>,
    /// Held while a batch commits (X1).
    commits: Mutex<()>,
    advanced: Condvar,
}

/// The right to advance what is applied, held from before a commit until after it (X1).
#[must_use = "what is applied advances with the commit"]
pub(crate) struct Advance<'a> {
    applied: &'a Applied,
    _commits: MutexGuard<'a, ()>,
}

impl Advance<'_> {
    /// The batch up to this entry has committed.
    pub(crate) fn to(self, at: OpTime) {
        *self.applied.state.lock() = Some(at);
        self.applied.advanced.notify_all();
    }
}

impl Applied {
    /// That of a store with this mark.
    pub(super) fn new(mark: Option<OpTime>) -> Applied {
        Applied {
            follows: AtomicBool::new(mark.is_some()),
            state: Mutex::new(mark),
            commits: Mutex::new(()),
            advanced: Condvar::new(),
        }
    }

    /// The last entry that a follower has applied; `None` unless the store is a follower.
    pub(crate) fn of_follower(&self) -> Option<OpTime> {
        match self.follows.load(Ordering::Acquire) {
            true => *self.state.lock(),
            false => None,
        }
    }

    /// Make the store a follower that has applied this entry, or end that it is one.
    pub(crate) fn set(&self, applied: Option<OpTime>) {
        *self.state.lock() = applied;
        self.follows.store(applied.is_some(), Ordering::Release);
        self.advanced.notify_all();
    }

    /// Begin the commit of a batch.
    pub(crate) fn advance(&self) -> Advance<'_> {
        Advance {
            applied: self,
            _commits: self.commits.lock(),
        }
    }

    /// Call `body` with the last applied entry of a follower while no batch commits (X1); `None` if
    /// the time of that entry is before `least` at `deadline`, or the store is no follower.
    pub(super) fn between<R>(
        &self,
        deadline: Instant,
        least: Timestamp,
        body: impl FnOnce(OpTime) -> R,
    ) -> Option<R> {
        let mut state = self.state.lock();
        while state.is_some_and(|applied| applied.ts < least) {
            if self.advanced.wait_until(&mut state, deadline).timed_out() {
                return None;
            }
        }
        drop(state);
        let _commits = self.commits.lock();
        self.of_follower().map(body)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn at(increment: u32) -> OpTime {
        let ts = Timestamp { time: 1, increment };
        OpTime { ts, term: 1 }
    }

    fn soon() -> Instant {
        stdx::time::now() + Duration::from_secs(60)
    }

    #[test]
    fn only_a_follower_has_applied_less_than_all() {
        let applied = Applied::new(None);
        assert_eq!(applied.of_follower(), None);
        assert_eq!(applied.between(stdx::time::now(), at(0).ts, |at| at), None);
        applied.set(Some(at(3)));
        assert_eq!(applied.of_follower(), Some(at(3)));
        applied.advance().to(at(5));
        assert_eq!(
            applied.between(stdx::time::now(), at(5).ts, |at| at),
            Some(at(5))
        );
        assert_eq!(applied.between(stdx::time::now(), at(6).ts, |at| at), None);
        applied.set(None);
        assert_eq!(applied.of_follower(), None);
    }

    /// X1.
    #[test]
    fn an_exact_time_waits_for_the_batch_that_commits() {
        let applied = Arc::new(Applied::new(Some(at(1))));
        let advance = applied.advance();
        let reader = {
            let applied = Arc::clone(&applied);
            stdx::sync::spawn("reader", move || applied.between(soon(), at(1).ts, |at| at)).unwrap()
        };
        let later = {
            let applied = Arc::clone(&applied);
            stdx::sync::spawn("later", move || applied.between(soon(), at(4).ts, |at| at)).unwrap()
        };
        advance.to(at(4));
        assert_eq!(reader.join().unwrap(), Some(at(4)), "X1: it is under way");
        assert_eq!(later.join().unwrap(), Some(at(4)));
    }
}

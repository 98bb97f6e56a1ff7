//! The writer's turn: LMDB has one writer at a time.
//!
//! LMDB has a mutex of its own for this, but a thread that takes it twice deadlocks. The turn knows
//! which thread holds it, and refuses a second request of that thread instead.
//!
//! - I1. A thread holds the turn while it has an LMDB write transaction, and while it changes the
//!   catalog or the flags of the environment.

use std::thread::{self, ThreadId};

use kv::{Error, Result};
use stdx::sync::{Condvar, Mutex};

use crate::support::NAME;

#[derive(Default)]
pub(super) struct Turn {
    owner: Mutex<Option<ThreadId>>,
    free: Condvar,
}

impl Turn {
    /// Wait for the turn and take it; refuse if this thread already holds it.
    pub(super) fn take(&self) -> Result<TurnGuard<'_>> {
        let me = thread::current().id();
        let mut owner = self.owner.lock();
        while let Some(other) = *owner {
            if other == me {
                return Err(held());
            }
            self.free.wait(&mut owner);
        }
        *owner = Some(me);
        Ok(TurnGuard { turn: self })
    }

    /// Refuse if this thread holds the turn: for calls that would wait for LMDB's own mutex.
    pub(super) fn refuse_holder(&self) -> Result<()> {
        if *self.owner.lock() == Some(thread::current().id()) {
            return Err(held());
        }
        Ok(())
    }
}

fn held() -> Error {
    Error::invalid(
        "this thread has a write transaction open and lmdb has one writer at a time: commit it \
         or roll it back first",
    )
    .with_engine(NAME)
}

/// The turn; released when dropped.
pub(super) struct TurnGuard<'a> {
    turn: &'a Turn,
}

impl TurnGuard<'_> {
    /// Whether the calling thread is the holder.
    pub(super) fn is_mine(&self) -> bool {
        *self.turn.owner.lock() == Some(thread::current().id())
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        *self.turn.owner.lock() = None;
        self.turn.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kv::ErrorKind;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn the_holder_is_refused_and_may_ask_again_afterwards() {
        let turn = Turn::default();
        let guard = turn.take().unwrap();
        assert_eq!(turn.take().err().unwrap().kind(), ErrorKind::Invalid);
        assert!(turn.refuse_holder().is_err());
        drop(guard);
        turn.refuse_holder().unwrap();
        drop(turn.take().unwrap());
    }

    #[test]
    fn threads_take_turns() {
        let turn = Turn::default();
        let inside = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _guard = turn.take().unwrap();
                        let others = inside.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(others, 0, "I1: one thread has the turn");
                        assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                    }
                });
            }
        });
    }
}

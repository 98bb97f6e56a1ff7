//! The turn to write, for engines with one writer at a time.
//!
//! Such an engine lets whoever wants to write wait for the transaction that is open, however long
//! that is, and a multi-document transaction is open between its statements. Here the wait ends
//! with the operation, and the engine's own is over at once.
//!
//! - U1. With an engine of one writer, whoever begins a transaction that writes, or makes or drops
//!   a tree, has the turn. With others everybody has it.
//! - U2. Latches come before the turn, except in a multi-document transaction (W3 of `work`); the
//!   turn comes before the lock of the catalog's changes.

use std::sync::Arc;
use std::time::Duration;

use kv::Engine;
use query::{Code, Error, Result};
use stdx::sync::{Condvar, Mutex};

use crate::op::Op;
use crate::patience::{Check, Patience};
use crate::store::Store;

/// How long a multi-document transaction waits for what another holds.
pub(crate) const WAIT: Duration = Duration::from_millis(200);

/// Whose turn it is.
pub(crate) struct Turns(Option<Arc<One>>);

#[derive(Default)]
struct One {
    state: Mutex<State>,
    free: Condvar,
}

#[derive(Default)]
struct State {
    taken: bool,
    /// How often it was taken.
    count: u64,
}

/// The turn, until dropped.
pub(crate) struct Turn(Option<Arc<One>>);

impl Turns {
    /// The turns of an engine.
    pub(crate) fn of(engine: &dyn Engine) -> Turns {
        let one = !engine.capabilities().concurrent_writers;
        Turns(one.then(Arc::default))
    }

    /// Wait for the turn. `None` when one has it for longer than `limit`.
    ///
    /// # Errors
    /// What `check` says while others have it.
    pub(crate) fn take(&self, limit: Option<Duration>, check: Check<'_>) -> Result<Option<Turn>> {
        let Some(one) = &self.0 else {
            return Ok(Some(Turn(None)));
        };
        let mut state = one.state.lock();
        let mut patience = Patience::new(limit);
        let mut seen = state.count;
        while state.taken {
            if seen != state.count {
                seen = state.count;
                patience = Patience::new(limit);
            }
            let waited = patience.wait(&one.free, &mut state, check);
            if !matches!(waited, Ok(true)) {
                // The one word that it is free may have come to who leaves.
                one.free.notify_one();
                return waited.map(|_| None);
            }
        }
        state.taken = true;
        state.count += 1;
        Ok(Some(Turn(Some(Arc::clone(one)))))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(one) = &self.0 {
            one.state.lock().taken = false;
            one.free.notify_one();
        }
    }
}

impl Store {
    /// The turn of an operation that is in no work of its own.
    ///
    /// # Errors
    /// That the operation must end; `LockTimeout` in a multi-document transaction.
    pub(crate) fn turn(&self, op: &Op<'_>) -> Result<Turn> {
        let limit = op.transaction.is_some().then_some(WAIT);
        let taken = self.turns().take(limit, &|| self.check_open(op))?;
        taken.ok_or_else(|| busy("the engine's one writer"))
    }
}

/// The error of a multi-document transaction that has waited for others.
pub(crate) fn busy(what: &str) -> Error {
    let message = format!("Unable to acquire {what} within {}ms", WAIT.as_millis());
    Error::new(Code::LOCK_TIMEOUT, message)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn turns() -> Turns {
        Turns(Some(Arc::default()))
    }

    #[test]
    fn the_turn_is_one_persons_until_it_is_given_back() {
        let turns = turns();
        let brief = || turns.take(Some(Duration::ZERO), &|| Ok(())).unwrap();
        let first = brief();
        assert!(first.is_some());
        assert!(brief().is_none());
        drop(first);
        assert!(brief().is_some());
    }

    #[test]
    fn who_waits_leaves_when_it_must() {
        let turns = turns();
        let _first = turns.take(None, &|| Ok(())).unwrap();
        let looks = Cell::new(0);
        let check = || {
            looks.set(looks.get() + 1);
            match looks.get() {
                3 => Err(Error::new(Code::INTERRUPTED, "enough")),
                _ => Ok(()),
            }
        };
        let refused = turns.take(None, &check).err().unwrap();
        assert_eq!(refused.code, Code::INTERRUPTED);
    }

    #[test]
    fn many_take_turns() {
        let (turns, inside) = (turns(), Mutex::new(()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _turn = turns.take(None, &|| Ok(())).unwrap();
                        let _inside = inside.try_lock().expect("one at a time");
                    }
                });
            }
        });
    }
}

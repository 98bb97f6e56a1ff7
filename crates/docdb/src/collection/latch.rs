//! The latch of a collection: readers and writers of documents hold it in shared mode, changes of
//! the collection's definition hold it exclusively.
//!
//! - L1. While a thread waits for exclusive mode, new requests wait, except those with `again`:
//!   their work already holds the latch, so waiting would deadlock.
//! - L2. A waiter checks periodically whether it may continue to wait, and keeps its place.
//! - L3. Latches are taken before the lock of catalog changes and before engine transactions: a
//!   thread that holds one of those waits for a latch only with a limit, or not at all.

use std::sync::Arc;
use std::time::Duration;

use query::Result;
use stdx::sync::{Condvar, Mutex};

use crate::patience::{Check, Patience};

/// The latch.
#[derive(Default)]
pub(crate) struct Latch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    shared: usize,
    alone: bool,
    waiting: usize,
}

/// Shared mode, held until dropped.
pub(crate) struct Shared(Arc<Latch>);

/// Exclusive mode, held until dropped.
pub(crate) struct Alone(Arc<Latch>);

impl Latch {
    /// Take the latch in shared mode. `again`: this thread's work already holds it. Returns `None`
    /// after `limit`.
    ///
    /// # Errors
    /// Errors of `check` while others hold it.
    pub(crate) fn shared(
        self: &Arc<Latch>,
        again: bool,
        limit: Option<Duration>,
        check: Check<'_>,
    ) -> Result<Option<Shared>> {
        let mut state = self.state.lock();
        let mut patience = Patience::new(limit);
        while state.alone || (!again && 0 < state.waiting) {
            if !patience.wait(&self.changed, &mut state, check)? {
                return Ok(None);
            }
        }
        state.shared += 1;
        Ok(Some(Shared(Arc::clone(self))))
    }

    /// Take the latch in exclusive mode. Returns `None` after `limit`.
    ///
    /// # Errors
    /// Errors of `check` while others hold it.
    pub(crate) fn alone(
        self: &Arc<Latch>,
        limit: Option<Duration>,
        check: Check<'_>,
    ) -> Result<Option<Alone>> {
        let mut state = self.state.lock();
        let mut patience = Patience::new(limit);
        state.waiting += 1;
        let mut waited = Ok(true);
        while (state.alone || 0 < state.shared) && matches!(waited, Ok(true)) {
            waited = patience.wait(&self.changed, &mut state, check);
        }
        state.waiting -= 1;
        if let Ok(true) = waited {
            state.alone = true;
            return Ok(Some(Alone(Arc::clone(self))));
        }
        drop(state);
        self.changed.notify_all();
        waited.map(|_| None)
    }
}

impl Alone {
    /// Whether this is the exclusive mode of `latch`.
    pub(crate) fn is_of(&self, latch: &Arc<Latch>) -> bool {
        Arc::ptr_eq(&self.0, latch)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.shared -= 1;
        let last = state.shared == 0 && 0 < state.waiting;
        drop(state);
        if last {
            self.0.changed.notify_all();
        }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.state.lock().alone = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use query::Error;

    use super::*;

    fn shared(latch: &Arc<Latch>, again: bool) -> Option<Shared> {
        let limit = Some(Duration::ZERO);
        latch
            .shared(again, limit, &|| Ok(()))
            .expect("no check ends it")
    }

    fn alone(latch: &Arc<Latch>) -> Option<Alone> {
        let limit = Some(Duration::ZERO);
        latch.alone(limit, &|| Ok(())).expect("no check ends it")
    }

    #[test]
    fn who_waits_to_be_alone_goes_before_newcomers() {
        let latch = Arc::new(Latch::default());
        let first = shared(&latch, false);
        assert!(first.is_some());
        assert!(alone(&latch).is_none());
        let second = shared(&latch, false);
        assert!(second.is_some(), "no other thread waits");
        drop((first, second));
        let held = alone(&latch);
        assert!(held.is_some());
        assert!(shared(&latch, true).is_none());
        drop(held);
        assert!(shared(&latch, false).is_some());
    }

    /// L2.
    #[test]
    fn who_waits_is_ended_and_gives_its_place_up() {
        let latch = Arc::new(Latch::default());
        let first = shared(&latch, false);
        let looks = Cell::new(0);
        let check = || {
            looks.set(looks.get() + 1);
            match looks.get() {
                3 => Err(Error::bad_value("enough")),
                _ => Ok(()),
            }
        };
        assert!(latch.alone(None, &check).is_err());
        assert_eq!(looks.get(), 3);
        assert!(shared(&latch, false).is_some(), "no other thread waits");
        // As if another thread waited to hold it alone.
        latch.state.lock().waiting = 1;
        assert!(shared(&latch, false).is_none(), "L1: newcomers wait");
        assert!(shared(&latch, true).is_some(), "L1: who has it does not");
        latch.state.lock().waiting = 0;
        drop(first);
        let held = alone(&latch);
        assert!(held.is_some());
        looks.set(0);
        assert!(latch.shared(false, None, &check).is_err());
    }
}

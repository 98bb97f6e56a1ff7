//! The latch of a collection: those who read or write documents share it, those who change what the
//! collection is hold it alone.
//!
//! - L1. While somebody waits to hold it alone, newcomers wait, but not those who are let `again`:
//!   they hold it already, and waiting for themselves would never end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stdx::sync::{Condvar, Mutex};

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

/// Held together with others.
pub(crate) struct Shared(Arc<Latch>);

/// Held alone.
pub(crate) struct Alone(Arc<Latch>);

impl Latch {
    /// Hold it together with others. `again` says that this thread's work holds it already. `None`
    /// after `limit`.
    pub(crate) fn shared(
        self: &Arc<Latch>,
        again: bool,
        limit: Option<Duration>,
    ) -> Option<Shared> {
        let mut state = self.state.lock();
        let deadline = limit.map(|limit| stdx::time::now() + limit);
        while state.alone || (!again && 0 < state.waiting) {
            if !self.wait(&mut state, deadline) {
                return None;
            }
        }
        state.shared += 1;
        Some(Shared(Arc::clone(self)))
    }

    /// Hold it alone. `None` after `limit`.
    pub(crate) fn alone(self: &Arc<Latch>, limit: Option<Duration>) -> Option<Alone> {
        let mut state = self.state.lock();
        let deadline = limit.map(|limit| stdx::time::now() + limit);
        state.waiting += 1;
        let mut held = true;
        while held && (state.alone || 0 < state.shared) {
            held = self.wait(&mut state, deadline);
        }
        state.waiting -= 1;
        if !held {
            drop(state);
            self.changed.notify_all();
            return None;
        }
        state.alone = true;
        Some(Alone(Arc::clone(self)))
    }

    /// False when the deadline has passed.
    fn wait(
        &self,
        state: &mut stdx::sync::MutexGuard<'_, State>,
        deadline: Option<Instant>,
    ) -> bool {
        match deadline {
            None => {
                self.changed.wait(state);
                true
            }
            Some(deadline) => !self.changed.wait_until(state, deadline).timed_out(),
        }
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
    use super::*;

    #[test]
    fn who_waits_to_be_alone_goes_before_newcomers() {
        let latch = Arc::new(Latch::default());
        let first = latch.shared(false, None);
        assert!(latch.alone(Some(Duration::ZERO)).is_none());
        let second = latch.shared(false, Some(Duration::ZERO));
        assert!(second.is_some(), "nobody waits any more");
        drop((first, second));
        let alone = latch.alone(Some(Duration::ZERO));
        assert!(alone.is_some());
        assert!(latch.shared(true, Some(Duration::ZERO)).is_none());
        drop(alone);
        assert!(latch.shared(false, Some(Duration::ZERO)).is_some());
    }
}

//! The numbers of records that clients insert.
//!
//! - Y1. Each number is inserted by one client. A number whose insert did not succeed is given to
//!   the next insert.
//! - Y2. All numbers below [`Numbers::visible`] are inserted.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use stdx::sync::Mutex;

/// The numbers, shared by all clients.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    state: Mutex<State>,
    /// Copy of the first number that may not be inserted yet.
    visible: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Numbers below `next` that are not inserted.
    open: BTreeSet<u64>,
    /// Those that no client has.
    left: Vec<u64>,
}

impl Numbers {
    /// The numbers below `rows` exist, apart from those that are known to be missing.
    pub(super) fn begin(&self, rows: u64) {
        let mut state = self.state.lock();
        let rows = rows + state.open.len() as u64;
        state.next = state.next.max(rows);
        self.publish(&state);
    }

    /// The number of the next insert.
    pub(super) fn take(&self) -> u64 {
        let mut state = self.state.lock();
        if let Some(number) = state.left.pop() {
            return number;
        }
        let number = state.next;
        state.next += 1;
        state.open.insert(number);
        number
    }

    /// The insert of `number` succeeded.
    pub(super) fn inserted(&self, number: u64) {
        let mut state = self.state.lock();
        state.open.remove(&number);
        self.publish(&state);
    }

    /// The insert of `number` did not succeed.
    pub(super) fn give_back(&self, number: u64) {
        self.state.lock().left.push(number);
    }

    /// The first number that may not be inserted yet (Y2).
    pub(super) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// How many numbers below the highest are not inserted.
    pub(super) fn missing(&self) -> u64 {
        self.state.lock().open.len() as u64
    }

    fn publish(&self, state: &State) {
        let visible = state.open.first().copied().unwrap_or(state.next);
        self.visible.store(visible, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_inserted_is_not_visible_and_is_inserted_next() {
        let numbers = Numbers::default();
        numbers.begin(10);
        assert_eq!(
            (numbers.take(), numbers.take(), numbers.visible()),
            (10, 11, 10)
        );
        numbers.inserted(11);
        assert_eq!((numbers.visible(), numbers.missing()), (10, 1), "Y2");
        numbers.give_back(10);
        // The next step counts 11 rows: 0 to 9, and 11.
        numbers.begin(11);
        assert_eq!(
            (numbers.visible(), numbers.take(), numbers.take()),
            (10, 10, 12),
            "Y1"
        );
        numbers.inserted(10);
        numbers.inserted(12);
        assert_eq!((numbers.visible(), numbers.missing()), (13, 0));
    }
}

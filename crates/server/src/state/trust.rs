//! Whether calls on the thread of a connection are as short as they should be: brief commands, and
//! the syncs for them (J3 and J5 of `dispatch::inline`).
//!
//! - T1. A call that takes longer than [`LONG`] adds [`LOST`] lost points; every call removes one.
//!   While there are more than [`LEAST`] lost points, calls are made elsewhere, which also removes
//!   a point each. So if all calls take long, one in [`LOST`] is tried here.
//!
//! One long call in a hundred has no effect: its thread may not have been scheduled.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Many times what a brief command takes.
const LONG: Duration = Duration::from_millis(2);
const LOST: u32 = 32;
const LEAST: u32 = 256;

#[derive(Default)]
pub(crate) struct Trust {
    lost: AtomicU32,
}

impl Trust {
    /// Whether the next call may be made here.
    pub(crate) fn take(&self) -> bool {
        let lost = self.lost.load(Ordering::Relaxed);
        // Threads may undo each other's points: it is an estimate.
        if lost > 0 {
            self.lost.store(lost - 1, Ordering::Relaxed);
        }
        lost <= LEAST
    }

    /// A call has taken so long.
    pub(crate) fn note(&self, taken: Duration) {
        if LONG < taken {
            let lost = self.lost.load(Ordering::Relaxed);
            let most = LEAST + LOST;
            self.lost.store((lost + LOST).min(most), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T1, and J3 of those that run inline.
    #[test]
    fn one_in_many_is_tried_when_all_take_long() {
        let trust = Trust::default();
        let mut tried = 0;
        for _ in 0..10_000 {
            if trust.take() {
                tried += 1;
                trust.note(2 * LONG);
            }
        }
        let expected = 10_000 / (LOST as usize);
        assert!((expected / 2..2 * expected).contains(&tried), "{tried}");
    }

    /// T1.
    #[test]
    fn a_few_that_take_long_change_nothing() {
        let trust = Trust::default();
        for n in 0..10_000 {
            assert!(trust.take(), "{n}");
            trust.note(if n % 100 == 0 { 2 * LONG } else { LONG / 2 });
        }
    }
}

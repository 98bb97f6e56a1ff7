//! A limit on bytes per second: a token bucket that holds a tenth of a second.
//!
//! - T1. In any period the bytes passed exceed the rate by no more than what the bucket holds and
//!   one piece.

use std::time::{Duration, Instant};

use kv::Flow;

/// What the bucket holds, as a time at the rate.
const BUCKET: Duration = Duration::from_millis(100);

/// The longest sleep before the caller is asked whether to continue.
const NAP: Duration = Duration::from_millis(50);

/// A clock and a way to wait on it.
pub trait Clock {
    /// Time since a fixed moment.
    fn now(&self) -> Duration;

    /// Wait.
    fn sleep(&self, duration: Duration);
}

/// The monotonic clock of the machine.
pub struct Monotonic(Instant);

impl Default for Monotonic {
    fn default() -> Monotonic {
        Monotonic(stdx::time::now())
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        stdx::time::sleep(duration);
    }
}

/// A limit on bytes per second.
pub struct Throttle {
    rate: u64,
    clock: Box<dyn Clock>,
    /// When the bytes passed so far have been earned.
    earned: Duration,
}

impl Throttle {
    /// A limit of `rate` bytes per second, at least one.
    #[must_use]
    pub fn new(rate: u64, clock: Box<dyn Clock>) -> Throttle {
        Throttle {
            rate: rate.max(1),
            earned: clock.now(),
            clock,
        }
    }

    /// Pass `bytes`: wait until they are earned. `proceed` is asked during the wait whether to
    /// continue.
    pub(crate) fn pass(&mut self, bytes: usize, proceed: &mut dyn FnMut() -> Flow) -> Flow {
        let nanos = u128::try_from(bytes).unwrap_or(u128::MAX) * 1_000_000_000;
        let cost = u64::try_from(nanos / u128::from(self.rate)).unwrap_or(u64::MAX);
        // T1: time in which nothing passed fills the bucket and no more.
        let full = self.clock.now().saturating_sub(BUCKET);
        self.earned = self.earned.max(full) + Duration::from_nanos(cost);
        loop {
            let wait = self.earned.saturating_sub(self.clock.now());
            if wait.is_zero() {
                return Flow::Continue;
            }
            if proceed() == Flow::Cancel {
                return Flow::Cancel;
            }
            self.clock.sleep(wait.min(NAP));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[derive(Clone, Default)]
    struct Hand(Rc<Cell<Duration>>);

    impl Clock for Hand {
        fn now(&self) -> Duration {
            self.0.get()
        }

        fn sleep(&self, duration: Duration) {
            self.0.set(self.0.get() + duration);
        }
    }

    fn pass(throttle: &mut Throttle, bytes: usize) {
        assert_eq!(throttle.pass(bytes, &mut || Flow::Continue), Flow::Continue);
    }

    #[test]
    fn the_rate_is_kept_for_pieces_of_any_size() {
        for piece in [1, 1_000, 100_000, 10_000_000] {
            let hand = Hand::default();
            let mut throttle = Throttle::new(1_000_000, Box::new(hand.clone()));
            for _ in 0..20_000_000 / piece {
                pass(&mut throttle, piece);
            }
            let took = hand.now().as_secs_f64();
            assert!((19.0..=21.0).contains(&took), "{piece}: {took} s");
        }
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let hand = Hand::default();
        let mut throttle = Throttle::new(1_000_000, Box::new(hand.clone()));
        pass(&mut throttle, 1_000_000);
        hand.sleep(Duration::from_secs(60));
        let before = hand.now();
        for _ in 0..50 {
            pass(&mut throttle, 100_000);
        }
        let took = (hand.now() - before).as_secs_f64();
        assert!((4.8..=5.1).contains(&took), "T1: {took} s");
    }

    #[test]
    fn a_wait_can_be_ended() {
        let hand = Hand::default();
        let mut throttle = Throttle::new(1, Box::new(hand.clone()));
        let mut asked = 0;
        let ended = throttle.pass(1_000_000, &mut || {
            asked += 1;
            if asked < 3 {
                Flow::Continue
            } else {
                Flow::Cancel
            }
        });
        assert_eq!((ended, asked), (Flow::Cancel, 3));
        assert!(hand.now() <= 2 * NAP);
    }
}

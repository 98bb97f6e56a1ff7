//! The state of a server, polled: its answers may take long, and they take from what is measured.

use std::time::{Duration, Instant};

use stdx::time;

use super::database::State;

/// Maximum share of the time that polling a server's state may take: one part in this number.
const SHARE: u32 = 20;

/// The latest polled state.
pub(super) struct Polled {
    at: Instant,
    took: Duration,
    state: State,
}

impl Polled {
    pub(super) fn new() -> Polled {
        Polled {
            at: time::now(),
            took: Duration::ZERO,
            state: State::default(),
        }
    }

    /// The state from `look`, which receives the last one; the last one itself if another look
    /// would exceed its share of the time.
    pub(super) fn state(&mut self, look: impl FnOnce(&State) -> State) -> State {
        if self.took * SHARE <= self.at.elapsed() {
            let begun = time::now();
            self.state = look(&self.state);
            self.took = begun.elapsed();
            self.at = time::now();
        }
        self.state.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_server_is_not_asked_again_at_once() {
        let mut polled = Polled::new();
        let sized = |bytes| State {
            file_bytes: Some(bytes),
            ..State::default()
        };
        assert_eq!(polled.state(|_| sized(7)).file_bytes, Some(7));
        let next = polled.state(|last| sized(last.file_bytes.unwrap() + 1));
        polled.took = Duration::from_secs(1000);
        let kept = polled.state(|_| unreachable!("a look would take too much of the time"));
        assert_eq!(kept.file_bytes, next.file_bytes);
    }
}

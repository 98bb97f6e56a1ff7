//! How far members are behind: for how long a member has lacked something that another one has. The
//! times of entries do not say that: they stand still while nothing is written.
//!
//! - H1. The lag of a member that has everything is zero, and else at least the time since the
//!   first entry that it lacks was seen, and at most a tenth and [`STEP`] more.

use std::collections::VecDeque;
use std::time::Duration;

use repl::position::Position;

/// Entries that are seen within this time count as seen at the first of them.
const STEP: Duration = Duration::from_millis(200);

/// Moments that are remembered; beyond that some are joined.
const MOMENTS_MAX: usize = 1_024;

/// Moments are joined where they then last this part of their age at most: about 500 of them reach
/// back for months.
const COARSE: u32 = 32;

/// When the newest entry of the set was which.
#[derive(Debug, Default)]
pub(crate) struct History {
    moments: VecDeque<Moment>,
}

#[derive(Clone, Copy, Debug)]
struct Moment {
    at: Duration,
    newest: Position,
    /// The bytes of all entries written until then.
    bytes: u64,
}

impl History {
    /// The newest entry that is known at a time, and the bytes of all entries that were written
    /// here.
    pub(crate) fn note(&mut self, now: Duration, newest: Position, bytes: u64) {
        match self.moments.back_mut() {
            Some(last) if newest <= last.newest => return,
            Some(last) if now < last.at + STEP => {
                (last.newest, last.bytes) = (newest, bytes);
                return;
            }
            _ => {}
        }
        if MOMENTS_MAX <= self.moments.len() {
            self.join(now);
        }
        self.moments.push_back(Moment {
            at: now,
            newest,
            bytes,
        });
    }

    /// Join moments that are near to each other for their age.
    fn join(&mut self, now: Duration) {
        let mut joined: VecDeque<Moment> = VecDeque::new();
        for moment in self.moments.drain(..) {
            match joined.back_mut() {
                Some(last)
                    if moment.at.saturating_sub(last.at) * COARSE
                        <= now.saturating_sub(last.at) =>
                {
                    // What was seen later counts as seen earlier, so no lag becomes less (H1).
                    (last.newest, last.bytes) = (moment.newest, moment.bytes);
                }
                _ => joined.push_back(moment),
            }
        }
        // A clock that stands still joins nothing.
        while MOMENTS_MAX <= joined.len() {
            joined.pop_front();
        }
        self.moments = joined;
    }

    /// For how long a member whose last entry is `last` has lacked something (H1).
    pub(crate) fn lag(&self, now: Duration, last: Position) -> Duration {
        let missing = self.moments.iter().find(|moment| last < moment.newest);
        missing.map_or(Duration::ZERO, |moment| now.saturating_sub(moment.at))
    }

    /// About how many bytes of entries are after `last`, of those that were written here.
    pub(crate) fn bytes_after(&self, last: Position) -> u64 {
        let newest = self.moments.back().map_or(0, |moment| moment.bytes);
        let had = self.moments.iter().rev().find(|m| m.newest <= last);
        // Without a moment that early, all that is remembered.
        let first = self.moments.front().map_or(0, |moment| moment.bytes);
        newest.saturating_sub(had.map_or(first, |moment| moment.bytes))
    }
}

#[cfg(test)]
mod tests {
    use repl::position::Term;

    use super::*;

    fn at(ts: u64) -> Position {
        Position { term: Term(1), ts }
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn the_lag_is_the_time_since_something_is_missing() {
        let mut history = History::default();
        assert_eq!(history.lag(seconds(5), at(0)), Duration::ZERO);
        history.note(seconds(10), at(1), 100);
        history.note(seconds(20), at(2), 150);
        // Nothing is written for long: who has all does not lag.
        assert_eq!(history.lag(seconds(90), at(2)), Duration::ZERO, "H1");
        assert_eq!(history.lag(seconds(90), at(1)), seconds(70), "H1");
        assert_eq!(history.lag(seconds(90), at(0)), seconds(80), "H1");
        history.note(seconds(91), at(3), 151);
        assert_eq!(history.lag(seconds(91), at(2)), Duration::ZERO);
        assert_eq!(history.lag(seconds(92), at(2)), seconds(1), "H1");
        assert_eq!(history.bytes_after(at(3)), 0);
        assert_eq!(history.bytes_after(at(2)), 1);
        assert_eq!(history.bytes_after(at(1)), 51);
    }

    #[test]
    fn a_long_history_becomes_coarser_with_its_age() {
        let mut history = History::default();
        let count = 100 * MOMENTS_MAX as u64;
        for n in 1..=count {
            history.note(seconds(n), at(n), n * 10);
        }
        assert!(history.moments.len() <= MOMENTS_MAX);
        let now = seconds(count);
        for missing in [1, count / 3, count / 2, count - 999, count - 10, count - 1] {
            let exact = now - seconds(missing + 1);
            let lag = history.lag(now, at(missing));
            let most = exact + exact / 10 + STEP;
            assert!(
                exact <= lag && lag <= most,
                "H1: {missing}: {lag:?} for {exact:?}"
            );
        }
        assert_eq!(history.lag(now, at(count)), Duration::ZERO, "H1");
    }
}

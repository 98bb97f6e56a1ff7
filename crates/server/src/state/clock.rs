//! The logical clock of a replica set: seconds and a count, never the same twice.
//!
//! - K1. No time is issued beyond the last second that is reserved in the store, and a clock
//!   starts beyond it: times do not go back over a restart, whatever the wall clock says.
//! - K2. Seconds are reserved ahead by a thread that may block. Until that is done the clock
//!   counts within the last reserved second, and a later time of a client is kept aside. At least
//!   half of a second's counts are for that: beyond [`COUNT_MAX`] the next second is used.
//! - K3. With an oplog, this clock issues the times of its entries, and no other times: the time
//!   of a write is that of its entry.

use std::sync::Arc;

use bson::{DateTime, Timestamp};
use docdb::Store;
use docdb::oplog::slots::next;
use query::Result;
use stdx::sync::Mutex;

use crate::long::long;

/// How far ahead of our clock a time from a client may be: MongoDB's `maxAcceptableLogicalClock
/// DriftSecs`, one year. Later ones are ignored, so that one client cannot exhaust the clock.
const DRIFT: u32 = 365 * 24 * 60 * 60;

/// The same for a clock that stamps an oplog, whose times would stay that far ahead.
const DRIFT_OF_OPLOG: u32 = 60;

/// Seconds reserved ahead of the wall clock. A server that is killed and restarts at once is ahead
/// by this much; half of it is the time that the next reservation may take.
const AHEAD: u32 = 20;

/// The count after which the clock uses the next second. It is that of MongoDB, whose counts are
/// positive numbers of 32 bits with a sign; as many follow while no second is reserved.
const COUNT_MAX: u32 = i32::MAX.cast_unsigned();

pub(crate) struct Clock {
    times: Mutex<Times>,
    /// How far ahead of the wall clock a time from a client may be.
    drift: u32,
    /// The wall clock: seconds since 1970.
    wall: fn() -> u32,
}

struct Times {
    cluster: Timestamp,
    operation: Timestamp,
    /// The latest time of a client, while it is beyond the reserved second.
    aside: Option<Timestamp>,
    /// The last second that is reserved.
    reserved: u32,
    /// Whether a reservation is in progress.
    reserving: bool,
}

/// The wall clock as a date.
pub(crate) fn now() -> DateTime {
    let millis = long(stdx::time::wall().as_millis());
    DateTime::from_millis(millis)
}

fn seconds() -> u32 {
    u32::try_from(stdx::time::wall().as_secs()).unwrap_or(u32::MAX)
}

impl Clock {
    /// The clock of a server that starts, which also issues the times of the oplog (K3).
    ///
    /// # Errors
    /// As [`Clock::start`].
    pub(crate) fn of(store: &Store) -> Result<Arc<Clock>> {
        let clock = Arc::new(Clock::start(store)?);
        let issuer = Arc::clone(&clock);
        store.set_oplog_clock(Box::new(move |last| issuer.tick_after(last)));
        Ok(clock)
    }

    /// The clock of a server that starts. When no seconds can be reserved, as on a full disk, it
    /// counts within the first one until they can.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn start(store: &Store) -> Result<Clock> {
        Clock::start_at(store, seconds)
    }

    fn start_at(store: &Store, wall: fn() -> u32) -> Result<Clock> {
        let before = store.reserved_time()?;
        let beyond = before.map_or(0, |last| last.saturating_add(1));
        let mut first = begin(wall().max(beyond));
        let oplog = store.oplog_last();
        if let Some(last) = oplog.filter(|last| first <= *last) {
            // Entries were put while the store was opened.
            first = next(last);
        }
        let mut times = Times {
            cluster: first,
            operation: first,
            aside: None,
            reserved: first.time,
            reserving: false,
        };
        let until = times.wanted(wall());
        if store.reserve_time(until).is_ok() {
            times.reserved = until;
        }
        Ok(Clock {
            times: Mutex::new(times),
            drift: oplog.map_or(DRIFT, |_| DRIFT_OF_OPLOG),
            wall,
        })
    }

    /// Advance the clock for a write, and return its time.
    pub(crate) fn tick(&self) -> Timestamp {
        self.tick_after(Timestamp {
            time: 0,
            increment: 0,
        })
    }

    /// Advance the clock for an entry that follows that of the time `last`. This clock issued that
    /// time, unless the entry was put while the server started.
    fn tick_after(&self, last: Timestamp) -> Timestamp {
        let now = (self.wall)();
        let mut times = self.times.lock();
        let last = times.cluster.max(last);
        let second = match is_full(last) {
            true => last.time.saturating_add(1).max(now),
            false => now,
        };
        let second = second.min(times.reserved);
        let next = if last.time < second {
            begin(second)
        } else {
            next(last)
        };
        times.cluster = next;
        times.operation = next;
        next
    }

    /// Advance the clock to a time that a client knows, or to the next second if the time leaves
    /// few counts in its own (K2).
    pub(crate) fn advance(&self, to: Timestamp) {
        let mut times = self.times.lock();
        if to <= times.cluster {
            return;
        }
        let to = match is_full(to) {
            true => begin(to.time.saturating_add(1)),
            false => to,
        };
        if (self.wall)().saturating_add(self.drift) < to.time || to <= times.cluster {
            return;
        }
        if to.time <= times.reserved {
            times.cluster = to;
        } else {
            times.aside = times.aside.max(Some(to));
        }
    }

    /// The latest time, and the time of the last write.
    pub(crate) fn times(&self) -> (Timestamp, Timestamp) {
        let times = self.times.lock();
        (times.cluster, times.operation)
    }

    /// The second up to which the caller must reserve now, if any; it calls [`Clock::reserved`]
    /// after that.
    pub(crate) fn to_reserve(&self) -> Option<u32> {
        let now = (self.wall)();
        let mut times = self.times.lock();
        let enough = now.saturating_add(AHEAD / 2) <= times.reserved && times.aside.is_none();
        let counts = times.counted() <= times.reserved;
        if (enough && counts) || times.reserving {
            return None;
        }
        times.reserving = true;
        Some(times.wanted(now))
    }

    /// The seconds up to `until` were reserved, or could not be.
    pub(crate) fn reserved(&self, until: u32, done: bool) {
        let mut times = self.times.lock();
        times.reserving = false;
        if !done {
            return;
        }
        times.reserved = times.reserved.max(until);
        if let Some(aside) = times.aside.filter(|aside| aside.time <= times.reserved) {
            times.cluster = times.cluster.max(aside);
            times.aside = None;
        }
    }
}

impl Times {
    /// The second up to which to reserve. It is limited to a time ahead of the wall clock: beyond
    /// that the clock counts within a second, until that is full.
    fn wanted(&self, now: u32) -> u32 {
        let aside = self.aside.map_or(0, |aside| aside.time);
        let ahead = now.saturating_add(AHEAD);
        ahead.max(aside).max(self.counted()).max(self.reserved)
    }

    /// The second of the next time, if the wall clock stands still.
    fn counted(&self) -> u32 {
        let full = u32::from(is_full(self.cluster));
        self.cluster.time.saturating_add(full)
    }
}

/// Whether the clock continues in the next second.
fn is_full(time: Timestamp) -> bool {
    COUNT_MAX <= time.increment
}

/// The first time of a second.
fn begin(second: u32) -> Timestamp {
    Timestamp {
        time: second,
        increment: 1,
    }
}

#[cfg(test)]
mod tests {
    use docdb::{Op, Options};
    use kv::{Engine, EngineOptions};
    use stdx::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn engine() -> (tempfile::TempDir, Arc<dyn Engine>) {
        let directory = tempfile::tempdir().unwrap();
        let engine = kv::memory::factory().open(directory.path(), &EngineOptions::default());
        (directory, Arc::from(engine.unwrap()))
    }

    /// The store and the clock of a server that starts.
    fn start(engine: &Arc<dyn Engine>, wall: fn() -> u32) -> (Arc<Store>, Clock) {
        let options = Options {
            ttl_period: None,
            ..Options::default()
        };
        let store = Store::open(Arc::clone(engine), options).unwrap();
        let clock = Clock::start_at(&store, wall).unwrap();
        (store, clock)
    }

    fn reserve(store: &Store, clock: &Clock) {
        let until = clock.to_reserve().unwrap();
        let done = store.reserve_time(until).is_ok();
        clock.reserved(until, done);
    }

    fn at(time: u32) -> Timestamp {
        Timestamp { time, increment: 7 }
    }

    /// K1: no time is beyond the reserved second.
    #[test]
    fn times_do_not_go_back_over_a_restart() {
        static WALL: AtomicU32 = AtomicU32::new(1_000);
        let wall = || WALL.load(Ordering::Relaxed);
        let (_directory, engine) = engine();
        let mut last = Timestamp {
            time: 0,
            increment: 0,
        };
        // Forward, unchanged, back, far back, forward again; each server is killed.
        for now in [1_000, 1_000, 990, 10, 5_000, 4_000, 4_000] {
            WALL.store(now, Ordering::Relaxed);
            let (store, clock) = start(&engine, wall);
            assert!(last < clock.times().0, "{now}: {last:?}");
            for step in 0..60 {
                let time = clock.tick();
                assert!(last < time, "{now} + {step}: {last:?}, {time:?}");
                assert_eq!(clock.times(), (time, time));
                last = time;
                WALL.fetch_add(1, Ordering::Relaxed);
                // Some servers reserve late, and some are killed before.
                if step % 13 == 12
                    && let Some(until) = clock.to_reserve()
                {
                    store.reserve_time(until).unwrap();
                    clock.reserved(until, true);
                }
            }
        }
    }

    /// K1: the clock starts beyond the reserved second.
    #[test]
    fn a_restart_at_once_takes_the_clock_one_second_ahead() {
        static WALL: AtomicU32 = AtomicU32::new(1_000);
        let wall = || WALL.load(Ordering::Relaxed);
        let (_directory, engine) = engine();
        for restart in 0..10 {
            let (_store, clock) = start(&engine, wall);
            let ahead = if restart == 0 { 0 } else { AHEAD + restart };
            assert_eq!(clock.times().0.time, 1_000 + ahead);
        }
    }

    /// K2: a later time of a client is kept aside until then.
    #[test]
    fn a_time_of_a_client_counts_when_it_is_reserved() {
        static WALL: AtomicU32 = AtomicU32::new(1_000);
        let wall = || WALL.load(Ordering::Relaxed);
        let (_directory, engine) = engine();
        let (store, clock) = start(&engine, wall);
        clock.advance(at(1_000 + AHEAD));
        assert_eq!(clock.times().0, at(1_000 + AHEAD), "it is reserved");
        assert_eq!(clock.to_reserve(), None);
        clock.advance(at(9_000));
        clock.advance(at(8_000));
        assert_eq!(clock.times().0, at(1_000 + AHEAD));
        let until = clock.to_reserve().unwrap();
        assert_eq!(clock.to_reserve(), None, "one at a time");
        clock.reserved(until, false);
        assert_eq!(clock.times().0, at(1_000 + AHEAD), "it failed");
        reserve(&store, &clock);
        assert_eq!(clock.times().0, at(9_000));
        assert!(at(9_000) < clock.tick());
        assert_eq!(clock.to_reserve(), None);
        clock.advance(at(1_001 + DRIFT));
        assert_eq!(clock.to_reserve(), None, "too far ahead");
        drop(store);
        let (_store, clock) = start(&engine, wall);
        assert_eq!(clock.times().0.time, 9_001);
    }

    /// K1, K2: a client that brings the last count of a second does not take the clock beyond the
    /// reserved second.
    #[test]
    fn a_full_second_of_a_client_takes_the_clock_to_the_next_one() {
        static WALL: AtomicU32 = AtomicU32::new(1_000);
        let wall = || WALL.load(Ordering::Relaxed);
        let full = |time| Timestamp {
            time,
            increment: u32::MAX,
        };
        let (_directory, engine) = engine();
        let (store, clock) = start(&engine, wall);
        clock.advance(full(1_010));
        assert_eq!(clock.times().0, begin(1_011));
        let reserved = 1_000 + AHEAD;
        clock.advance(full(reserved));
        assert_eq!(clock.times().0, begin(1_011), "kept aside");
        clock.advance(Timestamp {
            time: reserved,
            increment: COUNT_MAX - 1,
        });
        let mut last = clock.times().0;
        for _ in 0..100 {
            let time = clock.tick();
            assert!(last < time, "{last:?}");
            assert!(time.time <= reserved, "K1: {time:?}");
            last = time;
        }
        reserve(&store, &clock);
        assert_eq!(clock.times().0, begin(reserved + 1));
    }

    /// K2: also without a client.
    #[test]
    fn a_full_second_is_followed_by_one_that_is_reserved_for_it() {
        static WALL: AtomicU32 = AtomicU32::new(1_000);
        let wall = || WALL.load(Ordering::Relaxed);
        let (_directory, engine) = engine();
        let (store, clock) = start(&engine, wall);
        let reserved = 1_000 + AHEAD;
        clock.advance(Timestamp {
            time: reserved,
            increment: COUNT_MAX - 1,
        });
        assert_eq!(clock.to_reserve(), None);
        assert_eq!(clock.tick().increment, COUNT_MAX);
        reserve(&store, &clock);
        assert_eq!(clock.tick(), begin(reserved + 1));
    }

    /// K3: entries may be put between the start of the clock and its first use.
    #[test]
    fn an_entry_put_while_the_server_starts_is_followed_by_later_ones() {
        let (_directory, engine) = engine();
        let options = Options {
            ttl_period: None,
            oplog: true,
            ..Options::default()
        };
        let store = Store::open(Arc::clone(&engine), options).unwrap();
        let note = || {
            let op = Op::new(kv::Durability::Group);
            let put = store.append_oplog_note(&op, &bson::rawdoc! {"msg": "test"});
            put.unwrap();
            store.oplog_last().unwrap()
        };
        let clock = Arc::new(Clock::start_at(&store, || 1_000).unwrap());
        let before = note();
        assert!(
            clock.times().0 < before,
            "the entry is later than the clock"
        );
        let issuer = Arc::clone(&clock);
        store.set_oplog_clock(Box::new(move |last| issuer.tick_after(last)));
        let after = note();
        assert!(before < after, "{before:?}, {after:?}");
        assert_eq!(clock.times(), (after, after));
        let until = clock.to_reserve().unwrap();
        assert!(after.time <= until, "K1: the entry is reserved");
    }
}

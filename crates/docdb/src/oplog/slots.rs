//! Slots: the times of oplog entries, and the time up to which the oplog has no holes.
//!
//! Writers that run side by side commit in another order than that of their times: when the entry
//! of time 5 is committed, that of time 4 may not be. A reader that continued after 5 would never
//! see 4. So a writer reserves its slot, which gives its time, immediately before it puts the
//! entry, holds the slot until the commit has returned or failed, and readers stop at
//! [`Slots::visible`].
//!
//! ```text
//! reserved   1  2  3  4  5
//! ended      x  x     x          visible = 2: the slot of time 3 is open
//! ```
//!
//! - S1. The times of slots increase in the order of the reservations.
//! - S2. No slot at or before the visible time is open, and none is reserved there later: what a
//!   reader has seen up to that time is all that will ever be there.
//! - S3. The visible time does not go back.
//! - S4. A slot ends when its guard is dropped: after a commit, a failure or a panic. A slot of a
//!   failed commit leaves a gap in the times, which is no hole.
//! - S5. [`Slots::between`] runs while no slot is open, and none is reserved meanwhile: what is
//!   committed then are exactly the entries up to the last time.
//!
//! All methods take one lock for a few instructions; `tick` runs under it and must not block. Who
//! waits for a moment between commits (S5) closes the gate: slots are reserved after it, and those
//! that are open end. A holder reserves nothing that waits, so it never waits for the gate.

use std::collections::BTreeMap;
use std::time::Instant;

use bson::Timestamp;
use stdx::sync::{Condvar, Mutex};
use stdx::time::now;

/// The slots of an oplog.
#[derive(Debug)]
pub struct Slots {
    state: Mutex<State>,
    /// Notified when the last open slot has ended, while the gate is closed.
    ended: Condvar,
    /// Notified when the gate is opened.
    opened: Condvar,
}

#[derive(Debug)]
struct State {
    /// The last time that was reserved.
    last: Timestamp,
    /// The open slots, by their first times.
    open: BTreeMap<Timestamp, Holder>,
    /// How many have closed the gate.
    closed: usize,
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    name: &'static str,
    since: Instant,
}

/// A reserved slot; it is open until it is dropped.
#[derive(Debug)]
#[must_use = "a slot ends when it is dropped"]
pub struct Slot<'s> {
    slots: &'s Slots,
    first: Timestamp,
    last: Timestamp,
}

/// An open slot, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oldest {
    /// Its first time.
    pub time: Timestamp,
    /// Whose it is.
    pub holder: &'static str,
    /// When it was reserved.
    pub since: Instant,
    /// How many slots are open.
    pub open: usize,
}

impl Slots {
    /// The slots of an oplog whose last entry has the time `last`.
    #[must_use]
    pub fn new(last: Timestamp) -> Slots {
        Slots {
            state: Mutex::new(State {
                last,
                open: BTreeMap::new(),
                closed: 0,
            }),
            ended: Condvar::new(),
            opened: Condvar::new(),
        }
    }

    /// Reserve a slot. `tick` advances the clock, and `holder` names the operation in reports.
    ///
    /// # Panics
    /// S1: `tick` must return a later time than any before.
    pub fn reserve(&self, holder: &'static str, tick: impl FnOnce() -> Timestamp) -> Slot<'_> {
        let mut state = self.state.lock();
        while 0 < state.closed {
            self.opened.wait(&mut state);
        }
        let time = state.advance(tick);
        let holder = Holder {
            name: holder,
            since: now(),
        };
        state.open.insert(time, holder);
        Slot {
            slots: self,
            first: time,
            last: time,
        }
    }

    /// The time up to which the oplog has no holes: the one before the first open slot.
    #[must_use]
    pub fn visible(&self) -> Timestamp {
        let state = self.state.lock();
        match state.open.first_key_value() {
            Some((first, _)) => before(*first),
            None => state.last,
        }
    }

    /// The last time that was reserved.
    #[must_use]
    pub fn last(&self) -> Timestamp {
        self.state.lock().last
    }

    /// Call `body` with the last time while no slot is open (S5); `None` if one is open at
    /// `deadline`. No time up to `least` is issued later: the caller makes the clock skip them.
    /// `body` must reserve no slot, and not block.
    pub fn between<R>(
        &self,
        deadline: Instant,
        least: Timestamp,
        body: impl FnOnce(Timestamp) -> R,
    ) -> Option<R> {
        let mut state = self.state.lock();
        state.closed += 1;
        let mut late = false;
        while !state.open.is_empty() && !late {
            late = self.ended.wait_until(&mut state, deadline).timed_out();
        }
        // Those who wait for the gate continue once this lock is released, also if `body` panics.
        state.closed -= 1;
        if state.closed == 0 {
            self.opened.notify_all();
        }
        state.open.is_empty().then(|| {
            state.last = state.last.max(least);
            body(state.last)
        })
    }

    /// Reserve no time up to `time` from now on, which is that of an entry of another member.
    pub fn skip(&self, time: Timestamp) {
        let mut state = self.state.lock();
        state.last = state.last.max(time);
    }

    /// The oldest open slot: all readers wait for it.
    #[must_use]
    pub fn oldest(&self) -> Option<Oldest> {
        let state = self.state.lock();
        let (time, holder) = state.open.first_key_value()?;
        Some(Oldest {
            time: *time,
            holder: holder.name,
            since: holder.since,
            open: state.open.len(),
        })
    }
}

impl State {
    fn advance(&mut self, tick: impl FnOnce() -> Timestamp) -> Timestamp {
        let time = tick();
        assert!(self.last < time, "S1: {time:?} follows {:?}", self.last);
        self.last = time;
        time
    }
}

impl Slot<'_> {
    /// The time of the last entry of the slot.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        self.last
    }

    /// Reserve a further time in the slot, for the next entry of a transaction of several.
    ///
    /// # Panics
    /// As [`Slots::reserve`].
    pub fn extend(&mut self, tick: impl FnOnce() -> Timestamp) -> Timestamp {
        self.last = self.slots.state.lock().advance(tick);
        self.last
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut state = self.slots.state.lock();
        let ended = state.open.remove(&self.first);
        if 0 < state.closed && state.open.is_empty() {
            self.slots.ended.notify_all();
        }
        debug_assert!(ended.is_some(), "S4: a slot ends once");
    }
}

/// The time before another; none is before the first.
pub(crate) fn before(time: Timestamp) -> Timestamp {
    match (time.increment.checked_sub(1), time.time.checked_sub(1)) {
        (Some(increment), _) => Timestamp { increment, ..time },
        (None, Some(second)) => Timestamp {
            time: second,
            increment: u32::MAX,
        },
        (None, None) => time,
    }
}

/// The time to issue after another; a second begins with the increment 1.
#[must_use]
pub fn next(time: Timestamp) -> Timestamp {
    match time.increment.checked_add(1) {
        Some(increment) => Timestamp { increment, ..time },
        None => Timestamp {
            time: time.time.saturating_add(1),
            increment: 1,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use stdx::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn at(increment: u32) -> Timestamp {
        Timestamp { time: 1, increment }
    }

    /// A writer of the model: it reserves, puts, and ends; entries appear with the commit.
    struct Writer<'s> {
        slot: Option<Slot<'s>>,
        steps: usize,
        commits: bool,
        /// How many entries it writes.
        entries: usize,
    }

    /// What the readers of the model use as the end of the oplog.
    type End = fn(&Slots, &BTreeSet<Timestamp>) -> Timestamp;

    const STEPS: usize = 3;

    /// Runs one schedule: `turns` names who takes each step, a writer or (beyond them) the reader.
    /// Whether all reads were final.
    fn run(turns: &[usize], outcomes: usize, end: End) -> bool {
        let slots = Slots::new(at(0));
        let clock = AtomicU32::new(0);
        let tick = || at(clock.fetch_add(1, Ordering::Relaxed) + 1);
        let mut writers: Vec<Writer<'_>> = (0..WRITERS)
            .map(|writer| Writer {
                slot: None,
                steps: 0,
                commits: outcomes >> writer & 1 == 1,
                entries: 1 + writer % 2,
            })
            .collect();
        let mut times: Vec<Vec<Timestamp>> = vec![Vec::new(); WRITERS];
        let mut stored: BTreeSet<Timestamp> = BTreeSet::new();
        let mut reads: Vec<(Timestamp, BTreeSet<Timestamp>)> = Vec::new();
        let read = |stored: &BTreeSet<Timestamp>| {
            let until = end(&slots, stored);
            (until, stored.range(..=until).copied().collect())
        };
        for turn in turns {
            let Some(writer) = writers.get_mut(*turn) else {
                reads.push(read(&stored));
                continue;
            };
            match writer.steps {
                0 => {
                    let mut slot = slots.reserve("model", tick);
                    times[*turn].push(slot.time());
                    for _ in 1..writer.entries {
                        times[*turn].push(slot.extend(tick));
                    }
                    writer.slot = Some(slot);
                }
                1 if writer.commits => stored.extend(&times[*turn]),
                1 => {}
                _ => writer.slot = None,
            }
            writer.steps += 1;
        }
        reads.push(read(&stored));
        let forward = reads.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        let last = |until| stored.range(..=until).copied().collect::<BTreeSet<_>>();
        forward && reads.iter().all(|(until, seen)| *seen == last(*until))
    }

    const WRITERS: usize = 3;
    const READS: usize = 2;

    /// All orders in which the steps can be taken.
    fn schedules() -> Vec<Vec<usize>> {
        let mut all = vec![(Vec::new(), [STEPS, STEPS, STEPS, READS])];
        for _ in 0..WRITERS * STEPS + READS {
            let mut next = Vec::new();
            for (turns, left) in all {
                for who in 0..left.len() {
                    if left[who] > 0 {
                        let mut left = left;
                        left[who] -= 1;
                        let turns: Vec<usize> = [turns.as_slice(), &[who]].concat();
                        next.push((turns, left));
                    }
                }
            }
            all = next;
        }
        all.into_iter().map(|(turns, _)| turns).collect()
    }

    /// S2 and S3, in every schedule of three writers, which commit or fail, and a reader.
    #[test]
    fn a_reader_never_misses_an_entry() {
        let schedules = schedules();
        assert_eq!(schedules.len(), 92_400);
        let visible: End = |slots, _| slots.visible();
        for turns in &schedules {
            for outcomes in [0b111, 0b101] {
                let sound = run(turns, outcomes, visible);
                assert!(sound, "S2, S3: {turns:?}, {outcomes:b}");
            }
        }
        // The model finds the mistake of reading up to the last commit.
        let committed: End = |_, stored| stored.last().copied().unwrap_or(at(0));
        assert!(schedules.iter().any(|turns| !run(turns, 0b111, committed)));
    }

    /// S4.
    #[test]
    fn a_slot_ends_however_its_guard_is_dropped() {
        let slots = Slots::new(at(0));
        let first = slots.reserve("first", || at(1));
        let mut second = slots.reserve("second", || at(2));
        assert_eq!(second.extend(|| at(3)), at(3));
        assert_eq!((first.time(), second.time()), (at(1), at(3)));
        assert_eq!(slots.visible(), at(0));
        assert_eq!(slots.last(), at(3));
        let oldest = slots.oldest().unwrap();
        let found = (oldest.time, oldest.holder, oldest.open);
        assert_eq!(found, (at(1), "first", 2));
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _slot = first;
            panic!("a commit fails");
        }));
        assert!(failed.is_err());
        assert_eq!(slots.visible(), at(1));
        drop(second);
        assert_eq!(slots.visible(), at(3));
        assert_eq!(slots.oldest(), None);
    }

    /// S1.
    #[test]
    #[should_panic(expected = "S1")]
    fn a_clock_that_stands_still_is_refused() {
        let slots = Slots::new(at(5));
        drop(slots.reserve("late", || at(5)));
    }

    #[test]
    fn the_time_before_the_first_of_a_second_is_in_the_second_before() {
        let slots = Slots::new(at(5));
        let first = Timestamp {
            time: 2,
            increment: 0,
        };
        let _slot = slots.reserve("first", || first);
        assert_eq!(slots.visible(), at(u32::MAX));
    }

    /// S5: exactly the entries up to the time are committed, and none is open.
    #[test]
    fn a_moment_between_commits_has_exactly_the_entries_up_to_it() {
        let slots = Arc::new(Slots::new(at(0)));
        let clock = Arc::new(AtomicU32::new(0));
        let committed: Arc<Mutex<BTreeSet<Timestamp>>> = Arc::default();
        let writer = |_| {
            let (slots, clock) = (Arc::clone(&slots), Arc::clone(&clock));
            let committed = Arc::clone(&committed);
            let body = move || {
                for round in 0..2_000 {
                    let tick = || at(clock.fetch_add(1, Ordering::Relaxed) + 1);
                    let mut slot = slots.reserve("thread", tick);
                    let mut times = vec![slot.time()];
                    if round % 3 == 0 {
                        times.push(slot.extend(tick));
                    }
                    committed.lock().extend(times);
                }
            };
            stdx::sync::spawn("writer", body).unwrap()
        };
        let threads: Vec<_> = (0..4).map(writer).collect();
        let mut last = at(0);
        for _ in 0..500 {
            let deadline = now() + std::time::Duration::from_secs(60);
            let look = |time| (time, committed.lock().clone());
            let (time, found) = slots.between(deadline, at(0), look).unwrap();
            assert!(last <= time, "S3");
            let expected: BTreeSet<_> = (1..=time.increment).map(at).collect();
            assert!(found == expected, "S5: at {time:?}");
            last = time;
        }
        for thread in threads {
            thread.join().unwrap();
        }
    }

    /// S5: who waits in vain leaves the gate open.
    #[test]
    fn a_slot_that_stays_open_ends_the_wait_at_its_deadline() {
        let slots = Slots::new(at(0));
        let slot = slots.reserve("slow", || at(1));
        let look = |least| slots.between(now(), at(least), |time| time);
        assert_eq!(look(0), None);
        let other = slots.reserve("other", || at(2));
        drop(slot);
        assert_eq!(look(9), None);
        drop(other);
        assert_eq!(look(1), Some(at(2)));
        assert_eq!(look(5), Some(at(5)));
        assert_eq!(slots.visible(), at(5));
    }

    /// S5: those who come after the gate is closed are waited for by none.
    #[test]
    fn writers_that_come_later_do_not_keep_the_moment_away() {
        let slots = Arc::new(Slots::new(at(0)));
        let open = slots.reserve("open", || at(1));
        let (looker, ready) = (Arc::clone(&slots), Arc::new(AtomicU32::new(0)));
        let deadline = now() + std::time::Duration::from_secs(5);
        let look = move || looker.between(deadline, at(0), |time| time);
        let look = stdx::sync::spawn("looker", look).unwrap();
        while slots.state.lock().closed == 0 {
            std::hint::spin_loop();
        }
        let (writer, reserved) = (Arc::clone(&slots), Arc::clone(&ready));
        let late = move || {
            let slot = writer.reserve("late", || at(2));
            reserved.store(1, Ordering::Release);
            // It ends after the look.
            while reserved.load(Ordering::Acquire) != 2 {
                std::hint::spin_loop();
            }
            drop(slot);
        };
        let late = stdx::sync::spawn("late", late).unwrap();
        // If the gate were open, it would have its slot by now.
        stdx::time::sleep(std::time::Duration::from_millis(50));
        drop(open);
        let found = look.join().unwrap();
        ready.store(2, Ordering::Release);
        while slots.visible() < at(2) {
            // The late one may have stored 1 after the 2.
            ready.store(2, Ordering::Release);
        }
        late.join().unwrap();
        assert_eq!(found, Some(at(1)), "S5: a later writer was waited for");
    }

    /// S1 to S3 with threads.
    #[test]
    fn threads_see_the_visible_time_advance() {
        let slots = Arc::new(Slots::new(at(0)));
        let clock = Arc::new(AtomicU32::new(0));
        let writer = |_| {
            let (slots, clock) = (Arc::clone(&slots), Arc::clone(&clock));
            let body = move || {
                let mut last = at(0);
                for _ in 0..2_000 {
                    let tick = || at(clock.fetch_add(1, Ordering::Relaxed) + 1);
                    let slot = slots.reserve("thread", tick);
                    let time = slot.time();
                    assert!(slots.visible() < time, "S2");
                    drop(slot);
                    let visible = slots.visible();
                    assert!(last <= visible, "S3");
                    last = visible;
                }
            };
            stdx::sync::spawn("writer", body).unwrap()
        };
        let threads: Vec<_> = (0..4).map(writer).collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(slots.visible(), at(8_000));
    }
}

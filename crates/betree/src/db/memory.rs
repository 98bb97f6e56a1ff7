//! The governor of memory for write buffers, and the back-pressure that follows from it.
//!
//! The memory given to the engine is divided once: a share for write buffers (active and frozen), a
//! fixed allowance for work in flight (sorting, encoding, merging), the rest for the page cache,
//! which also holds fences and filters. Each part has a hard limit of its own, so the sum has one.
//! What transactions hold before they commit counts as buffered. The more they hold together, the
//! smaller are the write sets that they spill, and beyond half of the limit they are refused
//! further writes.
//!
//! ```text
//!  buffered bytes   0 ......... 70 % ......... 85 % .................. 100 %
//!                   |  nothing   |  fullest      |  commits wait a       |  commits wait
//!                   |            |  is flushed   |  little, then more    |  for room
//! ```

use std::time::Duration;

use stdx::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Above this share of the limit the fullest buffers are frozen and flushed.
const FREEZE_PERCENT: usize = 70;
/// A young store begins to flush at this part of the limit and this part of what it stores: then
/// there is no burst while the buffers fill for the first time and no step at its end, and it costs
/// little, since rewriting is cheap while there is little to rewrite.
const START_PART: usize = 8;
const STORED_PART: usize = 4;
/// Above this percentage of the limit commits wait, longer the more memory is used.
const WAIT_PERCENT: usize = 85;
/// Shorter waits are accumulated until they are this long, because a sleep itself costs about 60
/// microseconds.
const LEAST_SLEEP: Duration = Duration::from_micros(200);
/// Maximum sleep of a commit before it checks again.
pub(crate) const MOST_SLEEP: Duration = Duration::from_millis(5);

/// A write set of less than this is not spilled while transactions hold less than three eighths of
/// the limit: its runs would be smaller than what it takes to write them.
const SPILL_LEAST: usize = 64 << 10;
/// A smaller one is never spilled: its run would hold as much memory as the set, and a unit of the
/// data file has this many bytes.
const SPILL_SMALLEST: usize = 4 << 10;
/// Transactions may always hold this much together, however small the limit.
const PRIVATE_LEAST: usize = 256 << 10;

/// The memory of write buffers, and its limit.
pub(crate) struct Memory {
    limit: usize,
    buffered: AtomicUsize,
    frozen: AtomicUsize,
    /// Bytes held by transactions before they commit.
    private: AtomicUsize,
    /// Bytes per second that flushes free, smoothed; 0 before the first flush.
    drain: AtomicU64,
    /// Nanoseconds of waiting that commits have accumulated.
    owed: AtomicU64,
    /// Bytes of commits that were admitted while memory was full.
    overdrawn: AtomicUsize,
}

impl Memory {
    /// A governor of `limit` bytes.
    pub(crate) fn new(limit: usize) -> Memory {
        assert!(0 < limit, "there is room for buffers");
        Memory {
            limit,
            buffered: AtomicUsize::new(0),
            frozen: AtomicUsize::new(0),
            private: AtomicUsize::new(0),
            drain: AtomicU64::new(0),
            owed: AtomicU64::new(0),
            overdrawn: AtomicUsize::new(0),
        }
    }

    /// The hard limit in bytes.
    #[cfg(test)]
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes held by transactions.
    pub(crate) fn held_by_transactions(&self) -> usize {
        self.private.load(Ordering::Relaxed)
    }

    /// Bytes in all write buffers.
    pub(crate) fn buffered(&self) -> usize {
        self.buffered.load(Ordering::Relaxed)
    }

    /// Bytes in frozen buffers.
    pub(crate) fn frozen(&self) -> usize {
        self.frozen.load(Ordering::Relaxed)
    }

    /// Bytes held, as the limit counts them. Transactions count for half of the limit at most, so
    /// that there are always buffers to flush when it is reached.
    fn used(&self) -> usize {
        self.buffered() + self.private()
    }

    fn private(&self) -> usize {
        self.private.load(Ordering::Relaxed).min(self.limit / 2)
    }

    /// Record that the writes of a transaction have grown by `bytes`.
    pub(crate) fn grow_private(&self, bytes: usize) {
        self.private.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Record that a transaction has released `bytes`.
    pub(crate) fn shrink_private(&self, bytes: usize) {
        let before = self.private.fetch_sub(bytes, Ordering::Relaxed);
        assert!(bytes <= before, "what is given back was held");
    }

    /// Bytes above which a transaction spills its writes; `most` while other transactions hold
    /// little.
    pub(crate) fn spills_above(&self, most: usize) -> usize {
        let (held, eighth) = (self.private.load(Ordering::Relaxed), self.limit / 8);
        if held < 2 * eighth {
            most
        } else if held < 3 * eighth {
            most.min(SPILL_LEAST)
        } else {
            most.min(SPILL_SMALLEST)
        }
    }

    /// Whether transactions hold all the memory they may: half of the limit, so that there are
    /// always buffers to flush when it is reached, and the sum of both keeps the limit.
    pub(crate) fn private_is_full(&self) -> bool {
        self.private_most() <= self.private.load(Ordering::Relaxed)
    }

    fn private_most(&self) -> usize {
        (self.limit / 2).max(PRIVATE_LEAST)
    }

    /// Record that a buffer has grown by `bytes`.
    pub(crate) fn grow(&self, bytes: usize) {
        self.buffered.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Record that a buffer of `bytes` was frozen.
    pub(crate) fn freeze(&self, bytes: usize) {
        self.frozen.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Record that a frozen buffer of `bytes` was flushed within `took`.
    pub(crate) fn flushed(&self, bytes: usize, took: Duration) {
        let before = self.frozen.fetch_sub(bytes, Ordering::Relaxed);
        assert!(bytes <= before, "what is flushed was frozen");
        let before = self.buffered.fetch_sub(bytes, Ordering::Relaxed);
        assert!(bytes <= before, "what is flushed was buffered");
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let rate = (bytes as u64).saturating_mul(1_000_000) / micros;
        let old = self.drain.load(Ordering::Relaxed);
        let new = if old == 0 { rate } else { (old * 7 + rate) / 8 };
        self.drain.store(new.max(1), Ordering::Relaxed);
    }

    /// Record that frozen buffers of `bytes` were discarded.
    pub(crate) fn forget_frozen(&self, bytes: usize) {
        let before = self.frozen.fetch_sub(bytes, Ordering::Relaxed);
        assert!(bytes <= before, "what is thrown away was frozen");
        self.forget_active(bytes);
    }

    /// Record that active buffers of `bytes` were discarded.
    pub(crate) fn forget_active(&self, bytes: usize) {
        let before = self.buffered.fetch_sub(bytes, Ordering::Relaxed);
        assert!(bytes <= before, "what is thrown away was buffered");
    }

    /// Whether the fullest buffer should be frozen: memory is filling up, and not only with buffers
    /// that wait for their flush. `stored` is the size of all runs.
    pub(crate) fn wants_freeze(&self, stored: u64) -> bool {
        let stored = usize::try_from(stored).unwrap_or(usize::MAX);
        let enough = (self.limit / START_PART).saturating_add(stored / STORED_PART);
        let most = (self.limit / 100 * FREEZE_PERCENT - self.private()).min(enough);
        most < self.buffered() && self.frozen() < self.limit / 8
    }

    /// Whether commits must wait until something is flushed.
    pub(crate) fn is_full(&self) -> bool {
        self.limit <= self.used()
    }

    /// Whether commits must wait until something is flushed. When they need not, the allowance of
    /// [`Memory::overdraw`] is whole again.
    pub(crate) fn must_wait(&self) -> bool {
        let full = self.is_full();
        if !full && self.overdrawn.load(Ordering::Relaxed) != 0 {
            self.overdrawn.store(0, Ordering::Relaxed);
        }
        full
    }

    /// Admit a commit of `bytes` although memory is full; false if such commits have used as much
    /// as the limit since there was room.
    pub(crate) fn overdraw(&self, bytes: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.overdrawn
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// How long a commit of `bytes` should sleep now, so that what comes in matches what the
    /// flushes free: zero below 85 % of the limit, twice the time to drain `bytes` near 100 %.
    pub(crate) fn delay(&self, bytes: usize) -> Duration {
        let threshold = self.limit / 100 * WAIT_PERCENT;
        debug_assert!(threshold <= self.limit, "waits begin before the limit");
        let over = self.used().saturating_sub(threshold);
        let drain = self.drain.load(Ordering::Relaxed);
        if over == 0 || drain == 0 {
            return Duration::ZERO;
        }
        let span = (self.limit - threshold).max(1) as f64;
        let pressure = (2.0 * over as f64 / span).min(2.0);
        Duration::from_secs_f64(bytes as f64 / drain as f64 * pressure)
    }

    /// Add to the accumulated waits; returns the sleep to take now, if it is as long as `least` or
    /// [`LEAST_SLEEP`]. Waits beyond one sleep stay accumulated.
    pub(crate) fn owe(&self, delay: Duration, least: Duration) -> Option<Duration> {
        if delay.is_zero() {
            return None;
        }
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let owed = self
            .owed
            .fetch_add(nanos, Ordering::Relaxed)
            .saturating_add(nanos);
        if Duration::from_nanos(owed) < LEAST_SLEEP.min(least) {
            return None;
        }
        // Another commit may take it first.
        let most = u64::try_from(MOST_SLEEP.as_nanos()).unwrap_or(u64::MAX);
        let rest = |owed: u64| Some(owed.saturating_sub(most));
        let before = self
            .owed
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        let taken = before.unwrap_or_else(|owed| owed).min(most);
        (0 < taken).then(|| Duration::from_nanos(taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_pressure_grows_without_a_step() {
        let memory = Memory::new(1000);
        memory.grow(700);
        memory.freeze(100);
        memory.flushed(100, Duration::from_secs(1));
        assert_eq!(memory.delay(100), Duration::ZERO);
        let mut last = Duration::ZERO;
        for _ in 0..5 {
            memory.grow(60);
            let delay = memory.delay(100);
            assert!(last <= delay);
            last = delay;
        }
        assert!(Duration::from_millis(500) < last && last <= Duration::from_secs(2));
        assert!(!memory.is_full());
        memory.grow(100);
        assert!(memory.is_full());
    }

    #[test]
    fn commits_let_in_beyond_the_limit_are_limited_themselves() {
        let memory = Memory::new(1000);
        memory.grow(1000);
        assert!(memory.must_wait());
        assert!(memory.overdraw(600));
        assert!(!memory.overdraw(600));
        assert!(memory.overdraw(400));
        assert!(!memory.overdraw(1));
        memory.forget_active(1);
        assert!(!memory.must_wait());
        assert!(memory.overdraw(1000));
    }

    #[test]
    fn the_more_transactions_hold_the_smaller_are_the_sets_they_spill() {
        let memory = Memory::new(8 << 20);
        let most = 1 << 20;
        let mut last = usize::MAX;
        for quarter in 0..16 {
            let least = memory.spills_above(most);
            assert!(least <= last && SPILL_SMALLEST <= least, "{quarter}");
            assert!(!memory.private_is_full());
            last = least;
            memory.grow_private(256 << 10);
        }
        assert_eq!(last, SPILL_SMALLEST);
        assert!(memory.private_is_full());
        memory.shrink_private(1);
        assert!(!memory.private_is_full());
    }

    #[test]
    fn short_waits_are_owed_until_they_add_up() {
        let memory = Memory::new(1000);
        assert_eq!(memory.owe(Duration::from_micros(150), LEAST_SLEEP), None);
        let sleep = memory.owe(Duration::from_micros(150), LEAST_SLEEP).unwrap();
        assert_eq!(sleep, Duration::from_micros(300));
        assert_eq!(memory.owe(Duration::from_micros(10), LEAST_SLEEP), None);
        let sleep = memory.owe(Duration::from_micros(10), Duration::from_micros(15));
        assert_eq!(sleep, Some(Duration::from_micros(20)));
    }

    #[test]
    fn what_is_owed_beyond_one_sleep_stays_owed() {
        let memory = Memory::new(1000);
        assert_eq!(memory.owe(3 * MOST_SLEEP, LEAST_SLEEP), Some(MOST_SLEEP));
        let little = Duration::from_micros(1);
        assert_eq!(memory.owe(little, LEAST_SLEEP), Some(MOST_SLEEP));
        assert_eq!(memory.owe(little, LEAST_SLEEP), Some(MOST_SLEEP));
        assert_eq!(memory.owe(little, LEAST_SLEEP), None);
    }
}

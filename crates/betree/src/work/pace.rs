//! What commits pay for merges, so that what merges owe and the runs a read meets stay bounded
//! whatever the size of the commits.
//!
//! A commit sleeps for a multiple of the time that one thread takes for the merges which the
//! commit causes: its bytes, the share of bytes that has become deltas so far, `rho`, and the
//! measured time per byte merged. The multiple is the sum of two pressures.
//!
//! ```text
//!  debt   merge work owed      0 ........... one span ........... 4 spans
//!                              | 0            | 1                  | 4, the most
//!  crowd  runs of the bucket   0 ... k_cap ... free ............. limit
//!         that has the most    | 0           | 0    1   3   7 ... | 63, the most
//! ```
//!
//! The debt alone is no bound on runs. When data are large compared with the buffers, keeping each
//! bucket at `k_cap` runs takes more than `rho` bytes of merging for each byte flushed; forced
//! merges then overdraw the allowance and the debt is 0 however far they lag behind. So the
//! bucket with the most runs counts as well, from a quarter above `k_cap` on, and its pressure
//! doubles six times up to the limit of twice `k_cap`.
//!
//! Short sleeps are put off until they add up, but never to more than the time that half a span
//! takes: with small buffers and a small `rho` the debt would be many spans by then.
//!
//! A commit takes its sleep in pieces of [`MOST_SLEEP`] and looks up the price again after each, so
//! a wait ends early when merges catch up. It is never longer than 67 times what its merges take
//! one thread. A bulk commit pays chunk by chunk.
//!
//! Sleeps are no bound. They suffice for one client and 63 `rho` bytes merged for each byte
//! flushed; several clients sleep at the same time, each for its own bytes, and large data in small
//! buffers need more. So a commit that finds a bucket one below the limit merges it before it
//! continues, or waits for the thread that does. Without threads that is all that is done: nothing
//! is merged while a commit sleeps.
//!
//! - I1. A commit that waits holds neither the commit lock nor the state of a bucket: merges can be
//!   published meanwhile.
//! - I2. With C commits at a time no bucket has more than [`limit`] + C - 1 runs and frozen
//!   buffers, its active buffer counted. A commit continues when every bucket has at most two less
//!   than the limit, the active buffer not counted. Between that look and its changes a background
//!   thread may freeze the active buffer; the commit adds one (its chunk, if it is a bulk commit),
//!   and so does each of the others. Replay at opening is not held back; the first commit after it
//!   is. Work that fails makes the limit give way, not the commit.

use std::sync::Arc;
use std::time::Duration;

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::step::due;
use crate::db::{Core, MOST_SLEEP};
use crate::plant::{Plant, planted};
use crate::tree::{Bucket, Tree};

/// Maximum that the debt adds to the price.
const DEBT_MAX: f64 = 4.0;
/// Number of times that the pressure of a crowded bucket doubles up to the limit.
const DOUBLINGS: f64 = 6.0;
/// Assumed time to merge a byte, in nanoseconds, before any merge was measured: 100 MB/s.
const NANOS_PER_BYTE: f64 = 10.0;
/// Interval at which commits count the runs of all buckets while a crowded bucket is not merged.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Time that a commit waits for another thread's merge of a bucket at the limit before it checks
/// again.
const LOOK: Duration = Duration::from_millis(1);

/// Runs and frozen buffers of a bucket from which commits are slowed down: above `k_cap`, because
/// a bucket that is due waits for its turn and gets further runs during its merge.
fn free(k_cap: usize) -> usize {
    k_cap + (k_cap / 4).max(2)
}

/// Runs and frozen buffers that a bucket may have (I2).
pub(crate) fn limit(k_cap: usize) -> usize {
    (2 * k_cap).max(k_cap + 8)
}

/// Runs and frozen buffers of a bucket at which commits merge it before they continue.
fn stop(k_cap: usize) -> usize {
    limit(k_cap) - 1
}

/// The pressure when the most crowded bucket has `most` runs and frozen buffers.
fn crowd_pressure(most: usize, k_cap: usize) -> f64 {
    let (free, limit) = (free(k_cap), limit(k_cap));
    assert!(free < limit, "the pressure has room to grow");
    if most <= free {
        return 0.0;
    }
    let over = (most.min(limit) - free) as f64 / (limit - free) as f64;
    (DOUBLINGS * over).exp2() - 1.0
}

/// The runs of the bucket that has the most.
///
/// Lock order: `looking`, the state of a bucket, `came`.
#[derive(Default)]
pub(crate) struct Crowd {
    /// Never too low, but too high until the next count.
    most: AtomicUsize,
    /// The maximum recorded since the last count began. `most` is changed under its lock.
    came: Mutex<usize>,
    /// Held during a count of all buckets.
    looking: Mutex<()>,
    /// Whether the bucket with the maximum was merged: the next commit then counts.
    merged: AtomicBool,
    /// Whether the store is closing: no thread merges any more, so commits must not wait for that.
    closing: AtomicBool,
}

impl Crowd {
    /// Record that a bucket has `runs` runs and frozen buffers.
    pub(crate) fn came(&self, runs: usize) {
        let mut came = self.came.lock();
        *came = runs.max(*came);
        self.most.fetch_max(runs, Ordering::Relaxed);
    }

    /// Record that a count found a maximum of `runs`, which may lack buckets that changed during
    /// it.
    fn found(&self, runs: usize) {
        let came = self.came.lock();
        self.most.store(runs.max(*came), Ordering::Relaxed);
    }

    /// Record that a bucket with `runs` runs and frozen buffers was merged.
    pub(super) fn went(&self, runs: usize) {
        if self.most() <= runs {
            self.merged.store(true, Ordering::Relaxed);
        }
    }

    /// Record that the threads have stopped.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

impl Core {
    /// How long a commit of `bytes` should sleep because merges are behind.
    pub(crate) fn merge_delay(&self, bytes: usize) -> Duration {
        let (debt, crowd) = (self.debt_pressure(), self.crowd_pressure());
        let counters = &self.counters;
        let accepted = counters.user_bytes.get() as f64;
        if debt + crowd <= 0.0 || accepted <= 0.0 {
            return Duration::ZERO;
        }
        // The fraction of the accepted bytes that became deltas, and the fraction that was flushed:
        // in a young store most bytes are still in buffers, perhaps in those of one bucket.
        let flushed = (accepted - self.memory.buffered() as f64).max(1.0);
        let deltas = counters.delta_bytes.get() as f64;
        let pressure = (deltas / accepted).min(1.0) * debt + (deltas / flushed).min(1.0) * crowd;
        // The time that one thread needs for the merges that this commit causes.
        let cost = bytes as f64 * self.options.rho() * self.nanos_per_byte() / 1e9;
        Duration::from_secs_f64(cost * pressure)
    }

    /// The time to merge a byte, in nanoseconds.
    fn nanos_per_byte(&self) -> f64 {
        // Only completed merges: one in progress has counted bytes that it has yet to write.
        let timed = self.counters.timed_bytes.get() as f64;
        if timed <= 0.0 {
            return NANOS_PER_BYTE;
        }
        self.counters.merge_nanos.get() as f64 / timed
    }

    /// Sleeps for merges are put off up to this: what half a span of debt takes.
    fn least_sleep(&self) -> Duration {
        let half = self.tuning.merge_span / 2.0;
        Duration::from_secs_f64(half * self.nanos_per_byte() / 1e9)
    }

    /// Proportional to the debt (what the pace allows, as far as there are deltas to merge), from
    /// the first byte on, so that a young store is not faster than an old one.
    fn debt_pressure(&self) -> f64 {
        let waiting = self.merges.waiting_bytes() as f64;
        let debt = self.merge_allowance().min(waiting * self.options.rho());
        (debt / self.tuning.merge_span).clamp(0.0, DEBT_MAX)
    }

    /// Whether commits wait because a bucket has too many runs.
    pub(super) fn is_crowded(&self) -> bool {
        0.0 < self.crowd_pressure()
    }

    fn crowd_pressure(&self) -> f64 {
        let k_cap = self.tuning.k_cap;
        let crowd = &self.crowd;
        if free(k_cap) < crowd.most()
            && (crowd.merged.swap(false, Ordering::Relaxed)
                || due(&self.timers.crowd, self.vfs.now(), LOOK_AGAIN))
        {
            self.most_crowded();
        }
        crowd_pressure(crowd.most(), k_cap)
    }

    /// The mergeable bucket with the most runs and frozen buffers, and their number.
    fn most_crowded(&self) -> Option<(Arc<Tree>, Arc<Bucket>, usize)> {
        let _looking = self.crowd.looking.lock();
        *self.crowd.came.lock() = 0;
        let count = |(tree, bucket): (Arc<Tree>, Arc<Bucket>)| {
            let state = bucket.state();
            let counts = !state.retired && !state.dropped && !state.broken;
            let runs = state.deltas.len() + state.frozen.len();
            drop(state);
            counts.then_some((tree, bucket, runs))
        };
        let all = self.buckets().into_iter().filter_map(count);
        let found = all.max_by_key(|(_, _, runs)| *runs);
        let most = found.as_ref().map_or(0, |(_, _, runs)| *runs);
        self.crowd.found(most);
        found
    }

    /// Slow down a commit of `bytes` before it begins, as memory, the log and merges require.
    pub(crate) fn slow_down(&self, bytes: usize) {
        if self.has_threads() {
            self.sleep(bytes);
        }
        self.merge_crowded();
    }

    fn sleep(&self, bytes: usize) {
        // Approximate bytes of the batch in a buffer, including slots and growth.
        let pressure = self.memory.delay(bytes * 2);
        let debt = self.merge_delay(bytes);
        let log = self.log.as_ref();
        let log = log.map_or(Duration::ZERO, |log| log.delay(bytes));
        // Waits for memory and the log beyond one sleep are dropped, because full buffers stop
        // commits anyway. Nothing else keeps merges from falling behind, so waits for them are
        // taken in full.
        let total = (pressure + debt + log).min(MOST_SLEEP);
        let least = if debt.is_zero() {
            MOST_SLEEP
        } else {
            self.least_sleep()
        };
        if let Some(sleep) = self.memory.owe(total, least) {
            self.vfs.sleep(sleep);
            let waits = [
                (pressure, &self.counters.pressure),
                (debt, &self.counters.merge_debt),
                (log, &self.counters.log_buffer),
            ];
            // The wait is attributed to the cause of its largest part.
            if let Some((_, wait)) = waits.iter().max_by_key(|(delay, _)| *delay) {
                wait.add(sleep);
            }
        }
        if MOST_SLEEP < debt {
            self.sleep_for_merges(bytes - paid(bytes, debt));
        }
    }

    /// Slow down a bulk commit between two chunks, as merges require for a chunk of `bytes`. A bulk
    /// commit makes its own room in the buffers, and its log is already written.
    pub(crate) fn slow_chunk(&self, bytes: usize) {
        if self.has_threads() {
            self.sleep_for_merges(bytes);
        }
        self.merge_crowded();
    }

    fn sleep_for_merges(&self, bytes: usize) {
        let mut left = bytes;
        // Each piece is counted when it ends, so that a store with a waiting commit does not look
        // idle.
        let sleep = |sleep: Duration| {
            self.vfs.sleep(sleep);
            self.counters.merge_debt.add(sleep);
        };
        // Merges that fail do not complete while a commit sleeps; the memory limit stops commits
        // then.
        let pays = || !self.crowd.is_closing() && self.health.trouble().is_none();
        while 0 < left && pays() {
            let delay = self.merge_delay(left);
            if delay <= MOST_SLEEP {
                if let Some(rest) = self.memory.owe(delay, self.least_sleep()) {
                    sleep(rest);
                }
                return;
            }
            sleep(MOST_SLEEP);
            let paid = paid(left, delay);
            assert!(0 < paid && paid <= left, "a piece pays for something");
            left -= paid;
        }
    }

    /// Merge the most crowded buckets while they leave no room for a commit (I2).
    fn merge_crowded(&self) {
        let most = stop(self.tuning.k_cap);
        assert!(free(self.tuning.k_cap) < most, "commits sleep before");
        if self.crowd.most() < most || planted(Plant::CommitsPassCrowds) {
            return;
        }
        while let Some((tree, bucket, runs)) = self.most_crowded()
            && most <= runs
            && self.thin_out(&tree, &bucket)
        {}
    }

    /// Merge `bucket` until it has room for a commit, or another thread merges it. Returns false if
    /// that is impossible now.
    pub(super) fn thin_out(&self, tree: &Arc<Tree>, bucket: &Arc<Bucket>) -> bool {
        let most = stop(self.tuning.k_cap);
        loop {
            let start = self.vfs.now();
            let offer = {
                let state = bucket.state();
                let gone = state.retired || state.dropped || state.broken;
                if gone || state.deltas.len() + state.frozen.len() < most {
                    return true;
                }
                let can = !state.merging && !state.deltas.is_empty();
                can.then(|| (Arc::clone(tree), Arc::clone(bucket)))
            };
            // Background threads retry failed work; without threads, commits do here.
            let fails = self.has_threads() && self.health.trouble().is_some();
            if fails || self.crowd.is_closing() {
                return false;
            }
            // Frozen buffers count as runs, and a bucket is not split during a flush.
            let worked = match self.flush_one() {
                Ok(false) => self.merge_slice(|| offer),
                flushed => flushed,
            };
            match worked {
                Ok(true) => {}
                // A thread or another commit is flushing, or a cut holds back its flushes.
                Ok(false) => self.wake.wait_for_room(LOOK),
                Err(error) => {
                    self.health.worry(&error);
                    return false;
                }
            }
            let took = self.vfs.now().saturating_sub(start);
            self.counters.merge_debt.add(took);
        }
    }
}

/// The number of bytes that one piece of sleep pays for, if all `bytes` require `delay`; at least
/// one.
fn paid(bytes: usize, delay: Duration) -> usize {
    debug_assert!(MOST_SLEEP < delay, "else it is paid in whole");
    let part = bytes as u128 * MOST_SLEEP.as_nanos() / delay.as_nanos().max(1);
    usize::try_from(part)
        .unwrap_or(bytes)
        .clamp(1, bytes.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowded_bucket_presses_ever_more_up_to_the_limit() {
        for k_cap in 1..=64 {
            assert_eq!(crowd_pressure(k_cap, k_cap).to_bits(), 0.0_f64.to_bits());
            let mut last = 0.0;
            for most in free(k_cap) + 1..=limit(k_cap) {
                let pressure = crowd_pressure(most, k_cap);
                assert!(last < pressure, "k_cap {k_cap}, {most} runs");
                last = pressure;
            }
            assert!((62.9..63.1).contains(&last), "k_cap {k_cap}: {last}");
            let beyond = crowd_pressure(1000, k_cap);
            assert!((beyond - last).abs() < 1e-9, "the pressure ends");
        }
        assert_eq!(limit(16), 32);
    }

    #[test]
    fn sleeps_pay_for_all_of_a_commit() {
        let mut left = 1 << 20;
        let whole = Duration::from_millis(123);
        let mut pieces = 0;
        loop {
            let share = left as f64 / f64::from(1 << 20);
            let delay = whole.mul_f64(share);
            if delay <= MOST_SLEEP {
                break;
            }
            left -= paid(left, delay);
            pieces += 1;
        }
        assert_eq!(pieces, 24);
        assert_eq!(paid(1, Duration::from_secs(1)), 1);
    }
}

//! Time slices: long operations take turns on the processors.
//!
//! Without turns every long operation is a runnable thread, and the operating system gives each an
//! equal share. With twenty of them on two processors, a cancelled operation, an operation that
//! needs only a millisecond, and the threads that send replies all wait for the long operations.
//!
//! An operation runs without a slot for one [`SLICE`]. Then it needs a slot, which it holds for one
//! slice: at the end of the slice it passes the slot to the first waiting operation and queues
//! again, or keeps the slot if no operation waits. Waiting operations use no processor, and wake at
//! their deadline.
//!
//! P1: the number of held slots never exceeds the number of slots.
//! P2: slots are granted in the order of arrival.
//! P3: an operation waits for at most [`LONGEST_WAIT`], and not beyond its deadline; then it runs
//!     for a slice without a slot. So an operation that waits for a slot while it holds a lock
//!     delays those that hold slots and want the lock, but cannot block them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stdx::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use stdx::sync::{Condvar, Mutex};

/// How long an operation runs before it needs a slot, and for how long it then holds the slot. Long
/// enough that a context switch (some microseconds) is negligible, short enough that twenty
/// operations on two slots each get their turn within 100 ms.
pub(crate) const SLICE: Duration = Duration::from_millis(10);
/// The longest wait for a slot (P3).
pub(crate) const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// The slots that the long operations of a server share.
#[derive(Debug)]
pub struct Processors {
    slots: usize,
    queue: Mutex<Queue>,
    /// The length of the queue, to be read without the lock.
    waiting: AtomicUsize,
    waits: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    held: usize,
    waiters: VecDeque<Arc<Waiter>>,
}

#[derive(Debug, Default)]
struct Waiter {
    granted: AtomicBool,
    wake: Condvar,
}

/// Usage of [`Processors`] at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slots {
    /// Number of slots.
    pub total: usize,
    /// Number of operations that hold a slot.
    pub held: usize,
    /// Number of operations that wait for a slot.
    pub waiting: usize,
    /// Number of waits since the server started.
    pub waits: u64,
}

impl Processors {
    /// Makes `slots` slots, at least one. Twice the number of processors keeps them busy even when
    /// some operations wait for a disk.
    #[must_use]
    pub fn new(slots: usize) -> Arc<Processors> {
        Arc::new(Processors {
            slots: slots.max(1),
            queue: Mutex::new(Queue::default()),
            waiting: AtomicUsize::new(0),
            waits: AtomicU64::new(0),
        })
    }

    /// The numbers of held slots and of waiting operations.
    #[must_use]
    pub fn usage(&self) -> Slots {
        let queue = self.queue.lock();
        Slots {
            total: self.slots,
            held: queue.held,
            waiting: queue.waiters.len(),
            waits: self.waits.load(Ordering::Relaxed),
        }
    }

    /// Takes a slot, after a wait of at most `limit`; returns false when it gets none.
    fn acquire(&self, limit: Duration) -> bool {
        let mut queue = self.queue.lock();
        if queue.held < self.slots && queue.waiters.is_empty() {
            queue.held += 1;
            return true;
        }
        let waiter = Arc::new(Waiter::default());
        queue.waiters.push_back(Arc::clone(&waiter));
        self.note_length(&queue);
        self.waits.fetch_add(1, Ordering::Relaxed);
        let end = stdx::time::now() + limit;
        while !waiter.granted.load(Ordering::Relaxed) {
            let left = end.saturating_duration_since(stdx::time::now());
            if left.is_zero() {
                queue.waiters.retain(|other| !Arc::ptr_eq(other, &waiter));
                self.note_length(&queue);
                return false;
            }
            waiter.wake.wait_for(&mut queue, left);
        }
        true
    }

    /// Releases a slot: the first operation in the queue gets it (P2).
    fn release(&self) {
        let mut queue = self.queue.lock();
        assert!(
            0 < queue.held && queue.held <= self.slots,
            "P1: a held slot is one of them"
        );
        match queue.waiters.pop_front() {
            Some(first) => {
                self.note_length(&queue);
                first.granted.store(true, Ordering::Relaxed);
                first.wake.notify_one();
            }
            None => queue.held -= 1,
        }
    }

    fn note_length(&self, queue: &Queue) {
        self.waiting.store(queue.waiters.len(), Ordering::Relaxed);
    }
}

/// The turn of one operation, on the thread that executes it.
#[derive(Debug, Default)]
pub(super) struct Turn {
    processors: Option<Arc<Processors>>,
    holds: bool,
    /// When the current slice started.
    since: Option<Instant>,
}

impl Turn {
    /// For an operation without time slices.
    pub(super) const fn none() -> Turn {
        Turn {
            processors: None,
            holds: false,
            since: None,
        }
    }

    /// For an operation that starts now.
    pub(super) fn of(processors: Option<Arc<Processors>>) -> Turn {
        let since = processors.is_some().then(stdx::time::now);
        Turn {
            processors,
            holds: false,
            since,
        }
    }

    /// If the slice is over, ends it and waits for the next slot, at most `left`, the time left for
    /// the operation. Returns whether it asked for a slot.
    pub(super) fn look(&mut self, left: Option<Duration>) -> bool {
        let (Some(processors), Some(since)) = (&self.processors, self.since) else {
            return false;
        };
        let now = stdx::time::now();
        if now.saturating_duration_since(since) < SLICE {
            return false;
        }
        if self.holds && processors.waiting.load(Ordering::Relaxed) == 0 {
            self.since = Some(now);
            return false;
        }
        if std::mem::take(&mut self.holds) {
            processors.release();
        }
        let limit = left.map_or(LONGEST_WAIT, |left| left.min(LONGEST_WAIT));
        self.holds = processors.acquire(limit);
        self.since = Some(stdx::time::now());
        true
    }

    /// Releases the slot before a wait for something other than a processor. The next call of
    /// [`Turn::look`] asks for a slot again.
    pub(super) fn rest(&mut self) {
        if let (Some(processors), true) = (&self.processors, std::mem::take(&mut self.holds)) {
            processors.release();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.rest();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    /// Waits until `wanted` returns true for the slots.
    fn until(processors: &Processors, wanted: impl Fn(Slots) -> bool) {
        while !wanted(processors.usage()) {
            thread::yield_now();
        }
    }

    #[test]
    fn slots_are_granted_in_the_order_of_arrival_and_never_beyond_their_number() {
        let processors = Processors::new(1);
        assert!(processors.acquire(Duration::ZERO));
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for number in 0..3 {
                let (processors, order) = (&processors, &order);
                scope.spawn(move || {
                    assert!(processors.acquire(LONG));
                    order.lock().push(number);
                    processors.release();
                });
                until(processors, |slots| slots.waiting == number + 1);
                assert_eq!(processors.usage().held, 1, "P1");
            }
            processors.release();
        });
        assert_eq!(*order.lock(), [0, 1, 2], "P2");
        let usage = processors.usage();
        assert_eq!((usage.held, usage.waiting, usage.waits), (0, 0, 3));
    }

    #[test]
    fn a_wait_ends_without_a_slot_and_leaves_the_queue() {
        let processors = Processors::new(1);
        assert!(processors.acquire(Duration::ZERO));
        assert!(!processors.acquire(Duration::ZERO), "P3");
        assert!(!processors.acquire(Duration::from_millis(1)), "P3");
        assert_eq!(processors.usage().waiting, 0);
        processors.release();
        assert!(processors.acquire(Duration::ZERO), "no slot was lost");
    }

    #[test]
    fn an_operation_that_rests_has_no_slot() {
        let processors = Processors::new(1);
        let mut turn = Turn::of(Some(Arc::clone(&processors)));
        turn.since = stdx::time::now().checked_sub(2 * SLICE);
        turn.look(None);
        assert_eq!(processors.usage().held, 1);
        turn.rest();
        assert_eq!(processors.usage().held, 0);
        turn.rest();
        assert!(processors.acquire(Duration::ZERO), "it is returned once");
        turn.since = stdx::time::now().checked_sub(2 * SLICE);
        turn.look(Some(Duration::ZERO));
        assert!(
            !turn.holds && processors.usage().waits == 1,
            "it needs one again"
        );
    }

    #[test]
    fn an_operation_keeps_its_slot_until_another_waits_and_returns_it_at_its_end() {
        let processors = Processors::new(1);
        let over = || stdx::time::now().checked_sub(2 * SLICE);
        let mut first = Turn::of(Some(Arc::clone(&processors)));
        first.look(None);
        assert!(!first.holds, "the first slice needs no slot");
        first.since = over();
        first.look(None);
        assert!(first.holds);
        first.since = over();
        first.look(None);
        assert!(first.holds && processors.usage().waits == 0);
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut second = Turn::of(Some(Arc::clone(&processors)));
                second.since = over();
                second.look(Some(LONG));
                second.holds
            });
            until(&processors, |slots| slots.waiting == 1);
            // P3 bounds the wait of `first`; whether it gets the slot again depends on timing.
            first.since = over();
            first.look(Some(Duration::ZERO));
            drop(first);
            assert!(other.join().is_ok());
        });
        assert_eq!(processors.usage().held, 0);
    }
}

//! The turn to write, for engines with one writer at a time.
//!
//! Such an engine makes every other writer wait for the open write transaction, however long that
//! is open, and a multi-document transaction that has written is open between its statements. The
//! turn is taken before the engine's transaction, so that the wait can end with the operation and
//! the engine's own lock is always free.
//!
//! - U1. On an engine with one writer, a thread holds the turn when it begins a writing
//!   transaction, or creates or drops a tree. On other engines every thread has the turn.
//! - U2. Latches come before the turn, except in a multi-document transaction (W3 of `txn::work`);
//!   the turn comes before the lock of the catalog's changes.
//! - U3. A thread that needs the turn next registers a wish for it, also while it waits for a latch
//!   that comes before. A multi-document transaction that is idle between two statements is aborted
//!   in favor of a wish after a while, and for no other reason.
//! - U4. Waiters get the turn in the order of their arrival: a newcomer takes a free turn only if
//!   no thread waits. A waiter that gives up leaves the queue, and those behind it move up.
//!   Otherwise clients that take the turn often, one after another, could starve an index build.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use kv::Engine;
use query::{Code, Error, Result};
use stdx::sync::atomic::{AtomicUsize, Ordering};
use stdx::sync::{Condvar, Mutex};

use crate::patience::{Check, Patience};

/// Maximum time that a multi-document transaction waits for a resource held by others.
pub(crate) const WAIT: Duration = Duration::from_millis(200);

/// Maximum idle time of a multi-document transaction that holds the turn while another thread
/// wishes for it: clients take less time between two statements, and wait longer for a server (10 s
/// and more).
pub(crate) const IDLE: Duration = Duration::from_secs(5);

/// The writer turn of an engine.
pub(crate) struct Turns(Option<Arc<One>>);

#[derive(Default)]
struct One {
    state: Mutex<State>,
    /// Number of threads that wish for it.
    wishes: AtomicUsize,
}

#[derive(Default)]
struct State {
    taken: bool,
    /// Number of times it was taken.
    count: u64,
    /// Waiters, the first in front (U4).
    queue: VecDeque<Arc<Waiter>>,
}

/// A waiter. It is notified when it is the first and the turn is free.
#[derive(Default)]
struct Waiter(Condvar);

impl State {
    /// Notify the first waiter if the turn is free.
    fn call(&self) {
        if !self.taken
            && let Some(first) = self.queue.front()
        {
            first.0.notify_one();
        }
    }

    fn is_first(&self, waiter: &Arc<Waiter>) -> bool {
        let mut queue = self.queue.iter();
        queue.next().is_some_and(|first| Arc::ptr_eq(first, waiter))
    }

    fn leave(&mut self, waiter: &Arc<Waiter>) {
        self.queue.retain(|other| !Arc::ptr_eq(other, waiter));
    }

    fn take(&mut self) {
        assert!(!self.taken, "U1: one has the turn at a time");
        self.taken = true;
        self.count += 1;
    }
}

/// The turn, until dropped.
pub(crate) struct Turn(Option<Arc<One>>);

/// A wish for the turn, until dropped (U3).
pub(crate) struct Wish<'t>(Option<&'t One>);

impl Drop for Wish<'_> {
    fn drop(&mut self) {
        if let Some(one) = self.0 {
            one.wishes.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Turns {
    /// The turns of an engine.
    pub(crate) fn of(engine: &dyn Engine) -> Turns {
        let one = !engine.capabilities().concurrent_writers;
        Turns(one.then(Arc::default))
    }

    /// Wish for the turn, while the caller waits for something else before it takes the turn.
    pub(crate) fn wish(&self) -> Wish<'_> {
        let one = self.0.as_deref();
        if let Some(one) = one {
            one.wishes.fetch_add(1, Ordering::Relaxed);
        }
        Wish(one)
    }

    /// Whether the engine has one writer.
    pub(crate) fn are_one(&self) -> bool {
        self.0.is_some()
    }

    /// Whether any thread wishes for the turn.
    pub(crate) fn is_wished_for(&self) -> bool {
        let one = self.0.as_deref();
        one.is_some_and(|one| 0 < one.wishes.load(Ordering::Relaxed))
    }

    /// Wait for the turn after the earlier waiters (U4). `None` if it is not free within `limit`.
    ///
    /// # Errors
    /// Errors of `check` during the wait.
    pub(crate) fn take(&self, limit: Option<Duration>, check: Check<'_>) -> Result<Option<Turn>> {
        self.wait(limit, check, true)
    }

    /// Take the turn for work that can be deferred: no transaction is aborted for it.
    ///
    /// # Errors
    /// As [`Turns::take`].
    pub(crate) fn take_soon(&self, check: Check<'_>) -> Result<Option<Turn>> {
        self.wait(Some(WAIT), check, false)
    }

    fn wait(
        &self,
        limit: Option<Duration>,
        check: Check<'_>,
        wishes: bool,
    ) -> Result<Option<Turn>> {
        let Some(one) = &self.0 else {
            return Ok(Some(Turn(None)));
        };
        let turn = || Ok(Some(Turn(Some(Arc::clone(one)))));
        let mut state = one.state.lock();
        if !state.taken && state.queue.is_empty() {
            state.take();
            return turn();
        }
        let _wish = wishes.then(|| self.wish());
        let waiter = Arc::new(Waiter::default());
        state.queue.push_back(Arc::clone(&waiter));
        let mut patience = Patience::new(limit);
        let mut seen = state.count;
        while state.taken || !state.is_first(&waiter) {
            if seen != state.count {
                seen = state.count;
                patience = Patience::new(limit);
            }
            let waited = patience.wait(&waiter.0, &mut state, check);
            if !matches!(waited, Ok(true)) {
                state.leave(&waiter);
                // This waiter may have been the first, and have been notified: pass that on.
                state.call();
                return waited.map(|_| None);
            }
        }
        state.leave(&waiter);
        state.take();
        turn()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(one) = &self.0 {
            let mut state = one.state.lock();
            state.taken = false;
            state.call();
        }
    }
}

/// The error of a multi-document transaction that waited too long for others.
pub(crate) fn busy(what: &str) -> Error {
    let message = format!("Unable to acquire {what} within {}ms", WAIT.as_millis());
    Error::new(Code::LOCK_TIMEOUT, message)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn turns() -> Turns {
        Turns(Some(Arc::default()))
    }

    /// U1.
    #[test]
    fn the_turn_is_one_persons_until_it_is_given_back() {
        let turns = turns();
        let brief = || turns.take(Some(Duration::ZERO), &|| Ok(())).unwrap();
        let first = brief();
        assert!(first.is_some());
        assert!(brief().is_none());
        drop(first);
        assert!(brief().is_some());
    }

    #[test]
    fn who_waits_leaves_when_it_must() {
        let turns = turns();
        let _first = turns.take(None, &|| Ok(())).unwrap();
        let looks = Cell::new(0);
        let check = || {
            looks.set(looks.get() + 1);
            match looks.get() {
                3 => Err(Error::new(Code::INTERRUPTED, "enough")),
                _ => Ok(()),
            }
        };
        let refused = turns.take(None, &check).err().unwrap();
        assert_eq!(refused.code, Code::INTERRUPTED);
    }

    /// U3.
    #[test]
    fn who_waits_wishes_for_the_turn_unless_it_can_be_done_later() {
        let turns = turns();
        let first = turns.take(None, &|| Ok(())).unwrap();
        let look = |expected| {
            let turns = &turns;
            move || {
                assert_eq!(turns.is_wished_for(), expected);
                Ok(())
            }
        };
        assert!(!turns.is_wished_for());
        assert!(turns.take(Some(WAIT), &look(true)).unwrap().is_none());
        assert!(turns.take_soon(&look(false)).unwrap().is_none());
        let wish = turns.wish();
        assert!(turns.is_wished_for());
        drop((wish, first));
        assert!(!turns.is_wished_for());
    }

    /// Wait until the queue has this length.
    fn await_queue(turns: &Turns, length: usize) {
        let one = turns.0.as_ref().unwrap();
        while one.state.lock().queue.len() != length {
            std::thread::yield_now();
        }
    }

    /// U4.
    #[test]
    fn newcomers_do_not_pass_those_who_wait() {
        let (turns, order) = (turns(), Mutex::new(Vec::new()));
        let first = turns.take(None, &|| Ok(())).unwrap();
        let (turns, order) = (&turns, &order);
        std::thread::scope(|scope| {
            for number in 0..4 {
                scope.spawn(move || {
                    let _turn = turns.take(None, &|| Ok(())).unwrap();
                    order.lock().push(number);
                });
                await_queue(turns, number + 1);
            }
            drop(first);
            // The turn may be free at this moment, but four wait for it.
            let newcomer = turns.take(None, &|| Ok(())).unwrap();
            assert_eq!(*order.lock(), [0, 1, 2, 3]);
            drop(newcomer);
        });
    }

    /// U4.
    #[test]
    fn those_behind_one_who_gives_up_move_up() {
        let turns = turns();
        let first = turns.take(None, &|| Ok(())).unwrap();
        let ends = AtomicUsize::new(0);
        let check = || match ends.load(Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err(Error::new(Code::INTERRUPTED, "enough")),
        };
        let turns = &turns;
        std::thread::scope(|scope| {
            let gives_up = scope.spawn(|| turns.take(None, &check).err().map(|e| e.code));
            await_queue(turns, 1);
            let stays = scope.spawn(|| turns.take(None, &|| Ok(())).unwrap().is_some());
            await_queue(turns, 2);
            ends.store(1, Ordering::Relaxed);
            assert_eq!(gives_up.join().unwrap(), Some(Code::INTERRUPTED));
            await_queue(turns, 1);
            drop(first);
            assert!(stays.join().unwrap());
        });
        assert!(
            turns
                .take(Some(Duration::ZERO), &|| Ok(()))
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn many_take_turns() {
        let (turns, inside) = (turns(), Mutex::new(()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _turn = turns.take(None, &|| Ok(())).unwrap();
                        let _inside = inside.try_lock().expect("one at a time");
                    }
                });
            }
        });
    }
}

//! Blocking calls, announced to the thread's server.
//!
//! A thread that serves many clients must not wait on behalf of one of them. It cannot know in
//! advance whether an operation waits: most find their locks free and their pages in memory. So it
//! runs the operation inside [`handled`], and whatever blocks calls [`call`]; the handler then
//! passes the thread's other duties to another thread before the call begins. Outside of
//! [`handled`] a [`call`] costs the look at a cell of the thread.
//!
//! - B1: the waits of a `Condvar` of this crate, its sleeps, and the syncs and the reads from a
//!   device of `vfs` are announced. The wait for a mutex is not: it is held for a moment, or locked
//!   by `sync::lock_announced`.
//! - B2: a handler calls the function that it gets once, on the same thread.
//! - B3: within a call no further calls are announced: the duties have been passed on.

use std::cell::Cell;

/// Runs a blocking call after it has passed the duties of the thread on (B2).
pub type Handler = fn(&mut dyn FnMut());

#[derive(Clone, Copy)]
struct State {
    handler: Option<Handler>,
    calls: u32,
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State { handler: None, calls: 0 }) };
}

/// Restores the handler of the thread when dropped, also by a panic.
struct Restore(Option<Handler>);

impl Restore {
    fn set(handler: Option<Handler>) -> Restore {
        let state = STATE.get();
        STATE.set(State { handler, ..state });
        Restore(state.handler)
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        STATE.set(State {
            handler: self.0,
            ..STATE.get()
        });
    }
}

/// Run `body` with its blocking calls announced to `handler`. Also returns how many there were.
pub fn handled<R>(handler: Handler, body: impl FnOnce() -> R) -> (R, u32) {
    let before = STATE.get().calls;
    let restore = Restore::set(Some(handler));
    let result = body();
    drop(restore);
    (result, STATE.get().calls.wrapping_sub(before))
}

/// Whether blocking calls of this thread are announced.
#[must_use]
pub fn is_handled() -> bool {
    STATE.get().handler.is_some()
}

/// Make a call that may block.
#[inline]
pub fn call<R>(body: impl FnOnce() -> R) -> R {
    match STATE.get().handler {
        None => body(),
        Some(handler) => announce(handler, body),
    }
}

#[cold]
fn announce<R>(handler: Handler, body: impl FnOnce() -> R) -> R {
    let state = STATE.get();
    STATE.set(State {
        calls: state.calls.wrapping_add(1),
        ..state
    });
    let _restore = Restore::set(None);
    let (mut body, mut result) = (Some(body), None);
    handler(&mut || result = body.take().map(|body| body()));
    result.expect("B2: the handler has made the call")
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static SEEN: Cell<u32> = const { Cell::new(0) };
    }

    fn count(call: &mut dyn FnMut()) {
        SEEN.set(SEEN.get() + 1);
        call();
    }

    #[test]
    fn calls_are_announced_inside_and_only_inside() {
        assert_eq!(call(|| 1), 1);
        assert!(!is_handled());
        let (sum, calls) = handled(count, || {
            assert!(is_handled());
            // B3: the inner one is part of the outer one.
            call(|| call(|| 2)) + call(|| 3)
        });
        assert_eq!((sum, calls, SEEN.get()), (5, 2, 2));
        assert!(!is_handled());
        call(|| ());
        assert_eq!(SEEN.get(), 2);
    }

    #[test]
    fn a_panic_leaves_no_handler() {
        let body = || handled(count, || call(|| panic!("as a test")));
        assert!(std::panic::catch_unwind(body).is_err());
        assert!(!is_handled());
    }

    /// B1.
    #[test]
    #[cfg(not(feature = "shuttle"))]
    fn waits_and_sleeps_are_announced() {
        use crate::sync::{Condvar, Mutex};
        use std::time::Duration;

        let (lock, condition) = (Mutex::new(()), Condvar::new());
        let ((), calls) = handled(count, || {
            let mut guard = lock.lock();
            let waited = condition.wait_for(&mut guard, Duration::ZERO);
            assert!(waited.timed_out());
            let now = crate::time::now();
            assert!(condition.wait_until(&mut guard, now).timed_out());
            crate::time::sleep(Duration::ZERO);
        });
        assert_eq!(calls, 3);
    }

    /// A lock that is held for long.
    #[test]
    #[cfg(not(feature = "shuttle"))]
    fn the_wait_for_a_lock_is_announced_when_it_is_long() {
        use crate::sync::{Mutex, lock_announced, spawn};
        use std::sync::Arc;
        use std::sync::mpsc::channel;

        thread_local! {
            static RELEASE: Cell<Option<std::sync::mpsc::Sender<()>>> = const { Cell::new(None) };
        }
        let lock = Arc::new(Mutex::new(7));
        let ((), free) = handled(count, || assert_eq!(*lock_announced(&lock), 7));
        assert_eq!(free, 0, "nothing to wait for");
        let (held, is_held) = channel();
        let (release, released) = channel();
        let other = Arc::clone(&lock);
        let holder = spawn("holder", move || {
            let _guard = other.lock();
            held.send(()).unwrap();
            released.recv().unwrap();
        });
        is_held.recv().unwrap();
        RELEASE.set(Some(release));
        // The lock is released by the announcement: without it this test does not end.
        let release = |call: &mut dyn FnMut()| {
            if let Some(release) = RELEASE.take() {
                release.send(()).unwrap();
            }
            call();
        };
        let ((), waits) = handled(release, || assert_eq!(*lock_announced(&lock), 7));
        assert_eq!(waits, 1);
        holder.unwrap().join().unwrap();
    }
}

//! The number of the last write of something, and who waits for the next one, without a thread.
//!
//! - W1. A wait that began before a write ends: the number changes before the waits are ended, and
//!   a wait is registered before it compares the number.
//! - W2. A wait that is given up leaves nothing behind.

mod end;
mod streams;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

pub(crate) use end::End;
pub(crate) use streams::{Streams, Touched};

/// The writes of one collection.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// The number of the store's last commit that may have written here, including failed commits.
    /// Zero when the store is opened.
    last: AtomicU64,
    waits: Mutex<Waits>,
}

#[derive(Debug, Default)]
struct Waits {
    /// The number of the last wait that was registered.
    number: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Writes {
    /// The number of the last commit.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Record commit `number`. Where writers commit in parallel, a later one may be there already.
    pub(crate) fn note(&self, number: u64) {
        self.last.fetch_max(number, Ordering::AcqRel);
    }

    /// End the waits for the next commit.
    pub(crate) fn wake(&self) {
        let wakers = std::mem::take(&mut self.waits.lock().wakers);
        wakers.into_values().for_each(Waker::wake);
    }
}

/// A wait for documents: a future that is ready once they may be there. Dropping it gives it up.
/// It ends for every write of the collection, or of what the change stream follows, so what was
/// waited for may still be missing; and when its cursor is killed.
#[derive(Debug)]
pub struct Awaiting {
    awaited: Awaited,
    /// The end of its cursor.
    end: Option<Arc<End>>,
}

#[derive(Debug)]
enum Awaited {
    Write(Next),
    Stream(streams::Wait),
}

/// A wait for the next write of a collection.
#[derive(Debug)]
struct Next {
    writes: Arc<Writes>,
    /// The last commit that was read.
    seen: u64,
    /// The number of the wait once it is registered.
    number: Option<u64>,
}

impl Awaiting {
    /// A wait for the commit after `seen`.
    pub(crate) fn new(writes: &Arc<Writes>, seen: u64) -> Awaiting {
        Awaiting::of(Awaited::Write(Next {
            writes: Arc::clone(writes),
            seen,
            number: None,
        }))
    }

    /// A wait for entries of what a change stream follows: `db.c`, `db.` or nothing. It is
    /// registered now; what is visible must be read after this call.
    pub(crate) fn stream(streams: &Arc<Streams>, followed: &str) -> Awaiting {
        Awaiting::of(Awaited::Stream(streams.register(followed)))
    }

    fn of(awaited: Awaited) -> Awaiting {
        Awaiting { awaited, end: None }
    }

    /// The same wait, which also ends with `end`.
    pub(crate) fn until(self, end: &Arc<End>) -> Awaiting {
        let mut until = self;
        until.end = Some(Arc::clone(end));
        until
    }
}

impl Future for Awaiting {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(end) = &self.end
            && end.poll(context).is_ready()
        {
            return Poll::Ready(());
        }
        match &mut self.awaited {
            Awaited::Write(next) => next.poll(context),
            Awaited::Stream(wait) => wait.poll(context),
        }
    }
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        if let Some(end) = &self.end {
            end.give_up();
        }
    }
}

impl Next {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut waits = self.writes.waits.lock();
        // Under the lock that a write takes after its number has changed.
        if self.seen != self.writes.last() {
            return Poll::Ready(());
        }
        let number = *self.number.get_or_insert_with(|| {
            waits.number += 1;
            waits.number
        });
        waits.wakers.insert(number, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.writes.waits.lock().wakers.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use stdx::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_wait_ends_with_the_next_write_and_one_given_up_leaves_nothing() {
        let writes = Arc::new(Writes::default());
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut poll = |awaiting: &mut Awaiting| Pin::new(awaiting).poll(&mut context).is_ready();
        let (mut kept, mut dropped) = (Awaiting::new(&writes, 0), Awaiting::new(&writes, 0));
        for _ in 0..2 {
            assert!(!poll(&mut kept) && !poll(&mut dropped));
        }
        assert_eq!(writes.waits.lock().wakers.len(), 2);
        drop(dropped);
        assert_eq!(writes.waits.lock().wakers.len(), 1, "W2");
        writes.note(7);
        writes.wake();
        assert_eq!(woken.0.load(Ordering::Relaxed), 1, "W1");
        assert!(poll(&mut kept));
        let mut late = Awaiting::new(&writes, 0);
        assert!(poll(&mut late), "W1: the write came before the wait");
        assert_eq!(writes.waits.lock().wakers.len(), 0, "W2");
        // A write that waits for its turn to record its number does not take it back.
        writes.note(3);
        assert_eq!(writes.last(), 7);
    }
}

//! The end of what is waited for: a cursor that is killed gets no more data.
//!
//! At most one operation waits for it.
//!
//! - E1. A wait ends with it, whether it ended before or after the wait began.
//! - E2. A wait that is given up leaves nothing behind.

use std::task::{Context, Poll, Waker};

use stdx::sync::Mutex;

/// Whether it has ended, and who waits for that.
#[derive(Debug, Default)]
pub(crate) struct End(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    ended: bool,
    waker: Option<Waker>,
}

impl End {
    /// End it, and the wait for it.
    pub(crate) fn end(&self) {
        let mut state = self.0.lock();
        state.ended = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether it has ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.0.lock().ended
    }

    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.ended {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Give the wait for it up.
    pub(super) fn give_up(&self) {
        let waker = self.0.lock().waker.take();
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::Pin;
    use std::sync::Arc;

    use super::super::{Awaiting, Writes};
    use super::*;

    #[test]
    fn a_wait_ends_with_what_it_waits_for_and_one_given_up_leaves_nothing() {
        let writes = Arc::new(Writes::default());
        let end = Arc::new(End::default());
        let wait = || Awaiting::new(&writes, 0).until(&end);
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = |awaiting: &mut Awaiting| Pin::new(awaiting).poll(&mut context).is_ready();
        let mut dropped = wait();
        assert!(!poll(&mut dropped));
        assert!(end.0.lock().waker.is_some());
        drop(dropped);
        assert!(end.0.lock().waker.is_none(), "E2");
        let (mut before, mut after) = (wait(), wait());
        assert!(!poll(&mut before) && !end.is_ended());
        end.end();
        assert!(end.is_ended() && end.0.lock().waker.is_none());
        assert!(poll(&mut before) && poll(&mut after), "E1");
    }
}

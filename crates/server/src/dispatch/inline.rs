//! Runs brief commands on the thread of their connection, without a change of threads.
//!
//! - J1. Only commands whose work is bounded (`commands::brief`) run here, with the permits of all
//!   commands of their lane.
//! - J2. Before the store or the engine waits, the runtime's duties of this thread pass to another
//!   one (`stdx::blocking`): a command that waits delays its own connection only. The sync of J5 is
//!   the exception.
//! - J3. Waits that are not announced, such as the page faults of a memory-mapped file, show as
//!   commands that take long. While there are many of them commands run on the pool.
//! - J4. The reply to a write that must be durable waits for a sync that began after its commit.
//! - J5. While syncs are short, one blocks its thread: to pass the duties of the thread on, and to
//!   take them back, costs more than the sync. At most one thread syncs, the others serve.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kv::Durability;
use query::Result;
use stdx::blocking;
use wire::Builder;

use super::run::failed_inside;
use super::transact::call;
use crate::request::Request;
use crate::state::trust::Trust;

/// Pass the duties of this thread on, then make a call that blocks.
fn pass_on(call: &mut dyn FnMut()) {
    tokio::task::block_in_place(call);
}

/// Whether a command runs here.
pub(super) fn takes(request: &Request) -> bool {
    let brief = request.brief.is_some_and(|brief| brief(request));
    brief && request.server.trust.take()
}

/// Run a command.
pub(super) async fn run(request: &Arc<Request>) -> Result<Builder> {
    let server = &request.server;
    let syncs = request.durability() == Durability::Group;
    request.synced_later.store(syncs, Ordering::Relaxed);
    let begun = stdx::time::now();
    let (done, waits) =
        blocking::handled(pass_on, || catch_unwind(AssertUnwindSafe(|| call(request))));
    server.metrics.inline.one();
    match waits {
        0 => server.trust.note(begun.elapsed()),
        _ => server.metrics.inline_waited.one(),
    }
    let reply = done.unwrap_or_else(|_| Err(failed_inside(request)))?;
    if syncs {
        let sync = || block(&server.short_syncs, || server.store.sync());
        server.syncs.wait(sync).await?;
    }
    Ok(reply)
}

/// Make a call that blocks, on this thread while such calls are short (J5).
fn block<R>(short: &Trust, call: impl FnOnce() -> R) -> R {
    if !short.take() {
        return tokio::task::block_in_place(call);
    }
    let begun = stdx::time::now();
    let result = call();
    short.note(begun.elapsed());
    result
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn a_call_that_may_be_long_passes_the_duties_of_its_thread_on() {
        let runtime = Builder::new_multi_thread().worker_threads(1).build();
        let runtime = runtime.unwrap();
        let (send, receive) = channel();
        let blocked = runtime.spawn(async move {
            let short = Trust::default();
            (0..32).for_each(|_| short.note(Duration::from_secs(1)));
            block(&short, || receive.recv_timeout(Duration::from_secs(60)))
        });
        runtime.spawn(async move { send.send(()) });
        let received = runtime.block_on(blocked).unwrap();
        assert!(received.is_ok(), "J5: another thread serves meanwhile");
    }
}

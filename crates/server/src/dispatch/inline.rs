//! Runs brief commands on the thread of their connection, without a change of threads.
//!
//! - J1. Only commands whose work is bounded (`commands::brief`) run here, with the permits of all
//!   commands of their lane.
//! - J2. Before the store or the engine waits, the runtime's duties of this thread pass to another
//!   one (`stdx::blocking`): a command that waits delays its own connection only.
//! - J3. Waits that are not announced, such as the page faults of a memory-mapped file, show as
//!   commands that take long. While there are many of them commands run on the pool.
//! - J4. The reply to a write that must be durable waits for a sync that began after its commit.

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
        let sync = || tokio::task::block_in_place(|| server.store.sync());
        server.syncs.wait(sync).await?;
    }
    Ok(reply)
}

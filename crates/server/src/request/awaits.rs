//! The wait of a `getMore` for the data of its cursor. Between two runs of the command it holds no
//! thread and no place of the pool.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use docdb::Awaiting;
use stdx::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::Request;

/// Default limit of the wait, without `maxTimeMS`.
const LIMIT: Duration = Duration::from_secs(1);

/// What a request waits for, and whether it has.
#[derive(Default)]
pub(crate) struct Awaits {
    next: Mutex<Option<Awaiting>>,
    /// The cursor that it waits for.
    cursor: AtomicI64,
    waited: AtomicBool,
    over: AtomicBool,
}

impl Awaits {
    /// Set the wait for data of a cursor after which the command runs again, if any.
    pub(crate) fn set(&self, cursor: i64, next: Option<Awaiting>) {
        self.cursor.store(cursor, Ordering::Relaxed);
        *self.next.lock() = next;
    }

    /// The wait after which the command runs again.
    pub(crate) fn take(&self) -> Option<Awaiting> {
        self.next.lock().take()
    }

    /// Whether the command has waited.
    pub(crate) fn has_waited(&self) -> bool {
        self.waited.load(Ordering::Relaxed)
    }

    /// Whether the command must answer without waiting again.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// The cursor of a request that waits. However the request ends, it is not reserved any more.
pub(crate) struct Reserved<'r>(&'r Request);

impl Reserved<'_> {
    pub(crate) fn of(request: &Request) -> Reserved<'_> {
        Reserved(request)
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let cursor = self.0.awaits.cursor.load(Ordering::Relaxed);
        self.0.server.store.release_cursor(cursor);
    }
}

/// Wait for data, for the limit of time, or until the cursor is killed, the request is interrupted,
/// or the server stops.
pub(crate) async fn wait(request: &Request, awaiting: Awaiting) {
    let begun = Instant::now();
    let limit = request.generic.max_time.unwrap_or(LIMIT);
    let deadline = begun + limit.saturating_sub(request.taken());
    let mut stopping = request.server.stopping();
    let over = tokio::select! {
        () = awaiting => false,
        () = request.interrupted.notified() => false,
        () = sleep_until(deadline) => true,
        _ = stopping.wait_for(|stopping| *stopping) => true,
    };
    request.examined.waits(begun.elapsed());
    request.awaits.waited.store(true, Ordering::Relaxed);
    request.awaits.over.store(over, Ordering::Relaxed);
}

//! Compaction on request, and waiting for pending background work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use kv::{Compaction, Error, ErrorKind, Flow, KeyRange, Progress, Result, TreeId};
use rocksdb::statistics::Ticker;

use super::bounds::Bounds;
use super::engine::Store;
use super::error::error;
use super::raw::Status;
use crate::support::NAME;

/// Interval of progress reports.
const REPORT: Duration = Duration::from_millis(50);

/// Compact `range` in `tree`. RocksDB does this in one call, which a separate thread makes. This
/// thread reports progress and, when the caller cancels, sets the flag that RocksDB checks between
/// keys.
pub(super) fn compact(
    store: &Store,
    tree: TreeId,
    range: KeyRange<'_>,
    watch: &mut dyn FnMut(Progress) -> Flow,
) -> Result<Compaction> {
    let tree = Arc::clone(store.catalog().need(tree)?);
    let total = total_bytes(&tree.family);
    let mut progress = Progress {
        done_bytes: 0,
        total_bytes: total,
    };
    if watch(progress) == Flow::Cancel {
        return Ok(Compaction::Cancelled);
    }
    let Some(bounds) = Bounds::of(range) else {
        watch(progress);
        return Ok(Compaction::Complete);
    };
    let cancelled = Arc::new(AtomicBool::new(false));
    let (tell, told) = mpsc::channel();
    let body = {
        let (db, cancelled) = (Arc::clone(&store.db), Arc::clone(&cancelled));
        move || {
            let (lower, upper) = (bounds.lower.as_deref(), bounds.upper.as_deref());
            // Sending fails only when the caller's thread has panicked.
            let _ = tell.send(db.compact(&tree.family, lower, upper, &cancelled));
        }
    };
    let thread = stdx::sync::spawn("rocksdb-compact", body)
        .map_err(|e| Error::io("compact", &store.directory, e).with_engine(NAME))?;
    let read = || store.tuning.db.get_ticker_count(Ticker::CompactReadBytes);
    let before = read();
    let result = follow(&told, &cancelled, || {
        progress.done_bytes = read().saturating_sub(before).min(total);
        watch(progress)
    });
    // The thread has either sent its result, or panicked, which `follow` has reported.
    let _ = thread.join();
    match result {
        Ok(()) => {
            progress.done_bytes = total;
            watch(progress);
            Ok(Compaction::Complete)
        }
        Err(_) if cancelled.load(Ordering::Acquire) => Ok(Compaction::Cancelled),
        Err(status) => Err(store.write_error(status, "compact")),
    }
}

/// Wait for the result and report progress meanwhile.
fn follow(
    told: &Receiver<Result<(), Status>>,
    cancelled: &AtomicBool,
    mut report: impl FnMut() -> Flow,
) -> Result<(), Status> {
    loop {
        match told.recv_timeout(REPORT) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) => {
                if report() == Flow::Cancel {
                    cancelled.store(true, Ordering::Release);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Status("Corruption: the compaction panicked".to_owned()));
            }
        }
    }
}

fn total_bytes(family: &super::raw::Family) -> u64 {
    let files = family.number(c"rocksdb.live-sst-files-size").unwrap_or(0);
    let memory = family
        .number(c"rocksdb.cur-size-all-mem-tables")
        .unwrap_or(0);
    files.saturating_add(memory)
}

/// Flush and wait until no compaction is due, for at most about `limit`.
pub(super) fn settle(store: &Store, limit: Duration) -> Result<Compaction> {
    store.check_writable("settle")?;
    // For RocksDB, a limit of 0 means no limit.
    let micros = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX).max(1);
    match store.db.wait_for_compact(micros) {
        Ok(()) => Ok(Compaction::Complete),
        Err(status) if error(status.clone(), "settle").kind() == ErrorKind::Conflict => {
            Ok(Compaction::Cancelled)
        }
        Err(status) => Err(store.write_error(status, "settle")),
    }
}

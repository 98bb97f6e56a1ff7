//! The times of an operation: that of the last oplog entry that it has committed, and that of what
//! it has read.
//!
//! An operation commits on the thread that runs it, or on that of its multi-document transaction,
//! which hands the time over. So the time is kept by the thread, and the caller of the operation
//! takes it: nothing that writes has to pass it on.
//!
//! - W1. What was read has the changes of all entries up to its time: a change stream from that
//!   time on misses none. Of several snapshots the first one counts.

use std::cell::Cell;

use bson::Timestamp;

thread_local! {
    static LAST: Cell<Option<Timestamp>> = const { Cell::new(None) };
    static READ: Cell<Option<Timestamp>> = const { Cell::new(None) };
}

/// Take the time of the last entry that was committed on this thread since the last call.
#[must_use]
pub fn take_written() -> Option<Timestamp> {
    LAST.take()
}

/// Record the time of an entry that was committed.
pub(crate) fn note_written(time: Timestamp) {
    LAST.set(Some(time));
}

/// Take the time of what was read on this thread since the last call (W1).
#[must_use]
pub fn take_read() -> Option<Timestamp> {
    READ.take()
}

/// Record the time of a snapshot: it has all entries up to this time.
pub(crate) fn note_read(time: Timestamp) {
    READ.set(Some(READ.get().map_or(time, |before| before.min(time))));
}

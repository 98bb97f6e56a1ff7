//! The time of the last oplog entry that an operation has committed.
//!
//! An operation commits on the thread that runs it, or on that of its multi-document transaction,
//! which hands the time over. So the time is kept by the thread, and the caller of the operation
//! takes it: nothing that writes has to pass it on.

use std::cell::Cell;

use bson::Timestamp;

thread_local! {
    static LAST: Cell<Option<Timestamp>> = const { Cell::new(None) };
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

//! Logical sessions: the state that a client keeps under one session id, across connections.
//!
//! - S1. At most one operation with a transaction number uses a session at a time; others wait.
//! - S2. The result of a retryable write is stored by the same engine transaction as the write. A
//!   statement thus runs at most once, also across restarts.
//! - S3. Transaction numbers only grow. A higher number discards the results recorded under lower
//!   numbers and aborts an open transaction.

mod moment;
mod registry;
mod replicated;
mod retry;
mod stored;
mod transaction;

pub(crate) use moment::Moments;
pub(crate) use registry::Sessions;
pub(crate) use replicated::{put_records, put_session_record, restore_records};
pub(crate) use retry::{Done, Retry};

/// The error for a transaction number lower than the session's current one.
pub(crate) fn too_old(what: &str, number: i64, newer: i64) -> query::Error {
    query::Error::new(
        query::Code::TRANSACTION_TOO_OLD,
        format!(
            "{what} {number} is prohibited on this session because a newer transaction or \
             retryable write with txnNumber {newer} has already started on this session."
        ),
    )
}

//! Sessions: what a client did under one id, across its connections.
//!
//! - S1. A session is used by one operation with a transaction number at a time; others wait.
//! - S2. What a retryable write has done is stored in the engine transaction that does it: a
//!   statement is done once, also across restarts.
//! - S3. Numbers of transactions only grow. A higher number forgets what was done under lower ones
//!   and aborts an open transaction.

mod moment;
mod registry;
mod retry;
mod stored;
mod transaction;

pub(crate) use moment::Moments;
pub(crate) use registry::Sessions;
pub(crate) use retry::{Done, Retry};

/// The error of a number that is too old.
pub(crate) fn too_old(what: &str, number: i64, newer: i64) -> query::Error {
    query::Error::new(
        query::Code::TRANSACTION_TOO_OLD,
        format!(
            "{what} {number} is prohibited on this session because a newer transaction or \
             retryable write with txnNumber {newer} has already started on this session."
        ),
    )
}

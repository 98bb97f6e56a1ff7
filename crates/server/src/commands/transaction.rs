//! The ends of transactions.

use query::{Code, Error, Result};
use wire::Builder;

use crate::dispatch::Call;
use crate::dispatch::row::{ADMIN, API, Lane, RETRYABLE, Row, TRANSACTION, WRITES};
use crate::state::metrics::Class;

/// They let others go on, so nothing holds them up.
pub(super) const ROWS: &[Row] = &[
    Row {
        lane: Lane::Reserved,
        class: Class::Transaction,
        flags: ADMIN | API | WRITES | TRANSACTION | RETRYABLE,
        fields: &["recoveryToken"],
        ..Row::new("commitTransaction", commit, "Commit a transaction")
    },
    Row {
        lane: Lane::Reserved,
        class: Class::Transaction,
        flags: ADMIN | API | WRITES | TRANSACTION | RETRYABLE,
        fields: &["recoveryToken"],
        ..Row::new("abortTransaction", abort, "Abort a transaction")
    },
];

fn check(request: &Call<'_>) -> Result<()> {
    if request.generic.in_transaction {
        return Ok(());
    }
    let message = format!("{} must be run within a transaction", request.row.name);
    Err(Error::new(Code::INVALID_OPTIONS, message))
}

fn commit(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    check(request)?;
    request.server.store.commit_transaction(request.op())
}

fn abort(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    check(request)?;
    request.server.store.abort_transaction(request.op())
}

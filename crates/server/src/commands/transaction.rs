//! `commitTransaction` and `abortTransaction`.

use query::{Code, Error, Result};
use wire::Builder;

use crate::command::{ADMIN, API, Class, ENDS, Lane, RETRYABLE, TRANSACTION, WRITES};
use crate::request::Call;
use crate::row::Row;

/// Other commands may wait for these, so they need no admission.
pub(super) const ROWS: &[Row] = &[
    Row::new("commitTransaction", commit, "Commit a transaction")
        .lane(Lane::Reserved)
        .class(Class::Transaction)
        .flags(ADMIN | API | WRITES | TRANSACTION | RETRYABLE | ENDS)
        .fields(&["recoveryToken"]),
    Row::new("abortTransaction", abort, "Abort a transaction")
        .lane(Lane::Reserved)
        .class(Class::Transaction)
        .flags(ADMIN | API | WRITES | TRANSACTION | RETRYABLE | ENDS)
        .fields(&["recoveryToken"]),
];

fn check(request: &Call<'_>) -> Result<()> {
    if request.generic.in_transaction {
        return Ok(());
    }
    let message = format!("{} must be run within a transaction", request.command.name);
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

//! The statements of an `update` or `delete` command, run in order.
//!
//! A statement that an earlier attempt of the command has executed is not run again. In a
//! multi-document transaction the first error is that of the command; so is an error after which
//! nothing can be written. After any other, an unordered command runs the next statement.

use query::{Code, Error, Result};

use super::insert::WriteError;
use crate::error::is_fatal;
use crate::session::{Done, Retry};
use crate::store::Store;
use crate::txn::Op;

/// How often an upsert is repeated when concurrent writers insert its document first.
const UPSERTS: u32 = 10;

/// A retryable write and the number of the statement in it.
pub(super) type Attempt<'a> = Option<(&'a Retry<'a>, i32)>;

/// What became of the statements.
#[derive(Default)]
pub(super) struct Ran {
    /// Errors of the statements that failed.
    pub(super) errors: Vec<WriteError>,
    /// Statement numbers already executed by an earlier attempt.
    pub(super) retried: Vec<i32>,
}

/// Run statements; `add` receives the index and the result of each that succeeds.
pub(super) fn run_each<S>(
    store: &Store,
    op: &Op<'_>,
    (statements, ordered): (&[S], bool),
    run: &dyn Fn(&S, Attempt<'_>) -> Result<Done>,
    add: &mut dyn FnMut(usize, Done),
) -> Result<Ran> {
    let retry = store.begin_retry(op)?;
    let mut ran = Ran::default();
    for (index, statement) in statements.iter().enumerate() {
        let stmt = op.session.as_ref().map_or(0, |session| session.stmt(index));
        if let Some(done) = retry.as_ref().and_then(|retry| retry.done(stmt)) {
            ran.retried.push(stmt);
            add(index, done);
            continue;
        }
        match run(statement, retry.as_ref().map(|retry| (retry, stmt))) {
            Ok(done) => add(index, done),
            Err(error) if is_fatal(&error) || op.transaction.is_some() => return Err(error),
            Err(error) => {
                ran.errors.push(WriteError { index, error });
                if ordered {
                    break;
                }
            }
        }
    }
    Ok(ran)
}

/// Run a write that may be an `upsert`, again while others insert the document first.
pub(super) fn attempt<T>(
    op: &Op<'_>,
    upsert: bool,
    write: &mut dyn FnMut() -> Result<T>,
) -> Result<T> {
    let again =
        |error: &Error| error.code == Code::DUPLICATE_KEY && upsert && op.transaction.is_none();
    for _ in 0..UPSERTS {
        match write() {
            Err(error) if again(&error) => {}
            done => return done,
        }
    }
    write()
}

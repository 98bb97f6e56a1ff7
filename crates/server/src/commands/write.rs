//! Shared by the write commands: statements from a document sequence or the body, and errors of
//! single statements in the reply.

use std::sync::atomic::Ordering;

use bson::{Bson, RawBsonRef, RawDocument};
use docdb::WriteError;
use query::repeated::value_tree;
use query::{Code, Error, Result};
use wire::{Builder, limits};

use crate::arguments::Arguments;
use crate::request::{Request, failure};

/// Bytes of errors in a reply, after which further errors have neither details nor a message
/// (MongoDB leaves out messages after 1 MiB).
const ERRORS: usize = 4 << 20;

/// The documents of an argument that is in a document sequence or in the body.
pub(super) fn statements<'a>(
    request: &'a Request,
    arguments: &Arguments<'a>,
    name: &str,
) -> Result<Vec<&'a RawDocument>> {
    let statements = match request.message().sequence(name) {
        Some(statements) => statements,
        None => {
            arguments.need_array(name)?;
            arguments.documents(name)?.unwrap_or_default()
        }
    };
    if statements.is_empty() || statements.len() > limits::MAX_BATCH {
        return Err(Error::new(
            Code::INVALID_LENGTH,
            format!(
                "Write batch sizes must be between 1 and {}. Got {} operations.",
                limits::MAX_BATCH,
                statements.len(),
            ),
        ));
    }
    Ok(statements)
}

/// The only statement in an argument of a write that is explained.
///
/// # Errors
/// `InvalidLength`, `TypeMismatch`.
pub(super) fn only_one<'a>(arguments: &Arguments<'a>, name: &str) -> Result<&'a RawDocument> {
    arguments.need_array(name)?;
    match arguments.documents(name)?.unwrap_or_default().as_slice() {
        [one] => Ok(one),
        _ => {
            let message = "explained write batches must be of size 1";
            Err(Error::new(Code::INVALID_LENGTH, message))
        }
    }
}

/// Append the errors of statements.
pub(super) fn errors(request: &Request, reply: &mut Builder, errors: &[WriteError]) {
    if errors.is_empty() {
        return;
    }
    request.server.metrics.user_errors.size(errors.len());
    reply.open_array("writeErrors");
    let begun = reply.size();
    for (i, failed) in errors.iter().enumerate() {
        let error = &failed.error;
        let has_room = reply.size() - begun < ERRORS;
        reply.open_document(&i.to_string());
        reply.int("index", i32::try_from(failed.index).unwrap_or(i32::MAX));
        reply.int("code", error.code.0);
        if let Some(details) = error.details.as_ref().filter(|_| has_room) {
            failure::append(reply, details);
        }
        let message = if has_room { &error.message } else { "" };
        reply.string("errmsg", message).close();
    }
    reply.close();
}

/// Return an error that concerns the whole command and not one statement as the command's error, so
/// that drivers retry: errors of the server's state, and every error in a transaction.
pub(super) fn command_error(request: &Request, errors: &[WriteError]) -> Result<()> {
    let whole = |code: Code| {
        matches!(
            code,
            Code::INTERRUPTED_AT_SHUTDOWN
                | Code::SHUTDOWN_IN_PROGRESS
                | Code::WRITE_CONFLICT
                | Code::NO_SUCH_TRANSACTION
                | Code::MAX_TIME_MS_EXPIRED
        )
    };
    match errors
        .iter()
        .find(|failed| request.generic.in_transaction && whole(failed.error.code))
    {
        Some(failed) => Err(failed.error.clone()),
        None => Ok(()),
    }
}

/// Append the numbers of statements that an earlier attempt executed.
pub(super) fn retried(request: &Request, reply: &mut Builder, statements: &[i32]) {
    if statements.is_empty() {
        return;
    }
    request.repeated.store(true, Ordering::Relaxed);
    reply.open_array("retriedStmtIds");
    for (i, statement) in statements.iter().enumerate() {
        reply.int(&i.to_string(), *statement);
    }
    reply.close();
}

/// A hint: the name of an index, or its key pattern.
pub(super) fn hint(arguments: &Arguments<'_>) -> Result<Option<Bson>> {
    match arguments.get("hint") {
        None => Ok(None),
        Some(value @ (RawBsonRef::String(_) | RawBsonRef::Document(_))) => {
            value_tree(&format!("{}.hint", arguments.name()), value).map(Some)
        }
        Some(_) => Err(Error::parse("Hint must be a string or an object")),
    }
}

//! Runs a command in its transaction, at a held snapshot, or directly.

use std::sync::Arc;

use bson::Timestamp;
use docdb::Op;
use query::meter::{Held, decoded_size};
use query::{Code, Error, Result};
use wire::Builder;

use super::check;
use crate::command::{CONTINUES, ENDS, Lane, STREAMS, WRITE_ERRORS};
use crate::request::{self, Request, failure};

/// The memory of bodies up to this size is not estimated before they are decoded.
const SMALL: usize = 64 << 10;

/// Estimated memory of the values decoded from a command's body and of the structures parsed from
/// them. Documents and statements of writes are decoded one at a time and not included.
fn tree(request: &Request) -> Result<usize> {
    let body = request.body();
    if request.command.has(STREAMS) || body.as_bytes().len() <= SMALL {
        return Ok(0);
    }
    Ok(decoded_size(body)?.saturating_mul(2))
}

/// Run a command within its limits; returns the reply, and whether its transaction must end.
fn direct(request: &Request, op: &Op<'_>) -> Result<(Builder, bool)> {
    let budget = Arc::clone(&request.server.memory);
    // Commands of the other lanes never wait: they run on a network thread, or end what others wait
    // for.
    let turns = request.command.lane == Lane::Storage;
    let processors = turns.then(|| Arc::clone(&request.server.processors));
    let _measured = op.meter(Some(budget)).with_processors(processors).enter();
    let mut decoded = Held::new();
    decoded.require("A command", tree(request)?)?;
    request::run(request, op)
}

/// Run a command in its transaction, at a held snapshot, or directly.
pub(super) fn call(request: &Arc<Request>) -> Result<Builder> {
    // What this thread wrote before was for another request.
    let _: Option<Timestamp> = docdb::oplog::take_written();
    let _: Option<Timestamp> = docdb::oplog::take_read();
    let outcome = run(request);
    // After the last read, and before the first wait.
    if request.server.member.is_some() {
        *request.seen.lock() = request.server.store.oplog_seen();
    }
    if let Some(time) = docdb::oplog::take_read() {
        // A request is run once.
        let _: Result<(), Timestamp> = request.read.set(time);
    }
    if let Some(time) = docdb::oplog::take_written() {
        // A request is run once.
        let _: Result<(), Timestamp> = request.written.set(time);
    }
    // The write was executed: a failure to read the users is not an error of the command.
    if request.writes() {
        request.server.refresh_users();
    }
    outcome
}

/// Wait until the writes are committed that a read at or after a time must include. They are about
/// to be: a write gets its time immediately before it commits.
fn settle(request: &Request) -> Result<()> {
    let concern = request.generic.read_concern.as_ref();
    let time = concern.and_then(|concern| concern.after.max(concern.at));
    match time {
        // Commands of the other lanes never wait.
        Some(time) if request.command.lane == Lane::Storage && request.server.written() < time => {
            request.server.store.settle_oplog(&request.op(), time)
        }
        _ => Ok(()),
    }
}

fn run(request: &Arc<Request>) -> Result<Builder> {
    settle(request)?;
    if let Some(time) = moment(request) {
        let inside = Arc::clone(request);
        let now = request.server.written();
        let body = move |op: &Op<'_>| direct(&inside, op);
        let done = request
            .server
            .store
            .at_moment(request.op(), time, now, body);
        return done.map(|((reply, _), time)| {
            // A request is run once.
            let _: Result<(), Timestamp> = request.read.set(time);
            reply
        });
    }
    if !request.generic.in_transaction || request.command.has(ENDS) {
        return direct(request, &request.op()).map(|(reply, _)| reply);
    }
    let inside = Arc::clone(request);
    let store = &request.server.store;
    let start = request.generic.start_transaction;
    let body = move |op: &Op<'_>| {
        let done = direct(&inside, op)?;
        if start {
            // Only now the transaction has certainly begun.
            check::is_current(&inside.server, &inside.generic)?;
        }
        Ok(done)
    };
    let done = store.in_transaction(request.op(), start, body);
    match done {
        Ok((reply, false)) => Ok(reply),
        Ok((reply, true)) => {
            store.abort_transaction(&request.op())?;
            Ok(reply)
        }
        Err(error) => refused(request, error),
    }
}

/// Whether a command reads at a past time outside of transactions, and at which, if it names one.
fn moment(request: &Request) -> Option<Option<Timestamp>> {
    if request.generic.in_transaction {
        return None;
    }
    if request.command.has(CONTINUES) {
        let id = request.target().as_i64()?;
        return request.server.store.cursor_time(id).map(Some);
    }
    let concern = request.generic.read_concern.as_ref()?;
    (concern.level == "snapshot").then_some(concern.at)
}

/// The reply to a command that failed in a transaction, which has been aborted. The error of one
/// document is still reported in `writeErrors`.
fn refused(request: &Request, error: Error) -> Result<Builder> {
    let of_document = matches!(
        error.code,
        Code::DUPLICATE_KEY | Code::DOCUMENT_VALIDATION_FAILURE | Code::IMMUTABLE_FIELD
    );
    if !request.command.has(WRITE_ERRORS) || !of_document {
        return Err(error);
    }
    let mut reply = Builder::new();
    reply
        .int("n", 0)
        .open_array("writeErrors")
        .open_document("0");
    reply.int("index", 0).int("code", error.code.0);
    if let Some(details) = &error.details {
        failure::append(&mut reply, details);
    }
    reply.string("errmsg", &error.message).close().close();
    Ok(reply)
}

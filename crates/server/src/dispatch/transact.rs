//! A command at work: the request, and what storage is told of it.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;

use bson::Timestamp;
use docdb::{Op, Store};
use query::meter::{Held, decoded_size};
use query::{Code, Error, Result};
use wire::Builder;

use super::failure;
use super::request::Request;
use super::run::writes;

/// What a command sees. Inside of a transaction it runs on the transaction's own thread.
pub(crate) struct Call<'a> {
    request: &'a Request,
    op: &'a Op<'a>,
    doomed: Cell<bool>,
}

impl Deref for Call<'_> {
    type Target = Request;

    fn deref(&self) -> &Request {
        self.request
    }
}

impl Call<'_> {
    /// The operation, with the transaction it is part of.
    pub(crate) fn op(&self) -> &Op<'_> {
        self.op
    }

    /// Run another command as part of this one.
    ///
    /// # Errors
    /// Those of the command.
    pub(crate) fn within(&self, request: &Request, reply: &mut Builder) -> Result<()> {
        let call = Call {
            request,
            op: self.op,
            doomed: Cell::new(false),
        };
        (request.row.run)(&call, reply)
    }

    /// End the transaction it is part of, although the reply is no error: one statement failed.
    pub(crate) fn doom(&self) {
        self.doomed.set(true);
    }

    /// Do something with the documents.
    ///
    /// # Errors
    /// Those of `body`.
    pub(crate) fn with_store<T>(
        &self,
        body: impl FnOnce(&Store, &Op<'_>) -> Result<T>,
    ) -> Result<T> {
        body(&self.request.server.store, self.op)
    }
}

/// Bodies up to this size, in bytes, are not measured before they are decoded.
const SMALL: usize = 64 << 10;

/// About how many bytes the trees take that are made of a command's body: the values, and what is
/// parsed from them. Documents and statements of writes are decoded one at a time.
fn tree(request: &Request) -> Result<usize> {
    let body = request.body();
    let streams = ["insert", "update", "delete", "bulkWrite"].contains(&request.row.name);
    if streams || body.as_bytes().len() <= SMALL {
        return Ok(0);
    }
    Ok(decoded_size(body)?.saturating_mul(2))
}

/// The reply, and whether the transaction is doomed.
fn direct(request: &Request, op: &Op<'_>) -> Result<(Builder, bool)> {
    let mut reply = Builder::new();
    let budget = Arc::clone(&request.server.memory);
    let _measured = op.meter(Some(budget)).enter();
    let mut decoded = Held::new();
    decoded.require("A command", tree(request)?)?;
    let call = Call {
        request,
        op,
        doomed: Cell::new(false),
    };
    (request.row.run)(&call, &mut reply)?;
    Ok((reply, call.doomed.get()))
}

/// Run a command where it belongs: in its transaction, or here.
pub(super) fn call(request: &Arc<Request>) -> Result<Builder> {
    let outcome = run(request);
    // What is done is done: that the users cannot be read is no error of the command.
    if writes(request) {
        request.server.refresh_users();
    }
    outcome
}

fn run(request: &Arc<Request>) -> Result<Builder> {
    if let Some(time) = moment(request) {
        let inside = Arc::clone(request);
        let (_, now) = request.server.clock.times();
        let body = move |op: &Op<'_>| direct(&inside, op);
        let done = request
            .server
            .store
            .at_moment(request.op(), time, now, body);
        return done.map(|((reply, _), _)| reply);
    }
    let ends = matches!(request.row.name, "commitTransaction" | "abortTransaction");
    if !request.generic.in_transaction || ends {
        return direct(request, &request.op()).map(|(reply, _)| reply);
    }
    let inside = Arc::clone(request);
    let store = &request.server.store;
    let start = request.generic.start_transaction;
    let done = store.in_transaction(request.op(), start, move |op| direct(&inside, op));
    match done {
        Ok((reply, false)) => Ok(reply),
        Ok((reply, true)) => {
            store.abort_transaction(&request.op())?;
            Ok(reply)
        }
        Err(error) => refused(request, error),
    }
}

/// Whether a command reads a moment, outside of transactions, and which, if it says so.
fn moment(request: &Request) -> Option<Option<Timestamp>> {
    if request.generic.in_transaction {
        return None;
    }
    if request.row.name == "getMore" {
        let id = request.target().ok()?.as_i64()?;
        return request.server.store.cursor_time(id).map(Some);
    }
    let concern = request.generic.read_concern.as_ref()?;
    (concern.level == "snapshot").then_some(concern.at)
}

/// The error of a single document ends the transaction, and is told where the errors of documents
/// are told.
fn refused(request: &Request, error: Error) -> Result<Builder> {
    let writes = matches!(request.row.name, "insert" | "update" | "delete");
    let of_document = matches!(
        error.code,
        Code::DUPLICATE_KEY | Code::DOCUMENT_VALIDATION_FAILURE | Code::IMMUTABLE_FIELD
    );
    if !writes || !of_document {
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

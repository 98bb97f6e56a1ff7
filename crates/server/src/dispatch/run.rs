//! Runs a request on the kind of thread that its command requires, and finishes the reply.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bson::{Bson, Document, Timestamp};
use query::{Code, Error, Result};
use tokio::sync::{OwnedRwLockReadGuard, Semaphore, oneshot};
use wire::Builder;

use super::transact::call;
use super::{acknowledge, inline, roles, slow};
use crate::command::{Class, Kind, Lane, RETRYABLE, UNFAILING, WRITES};
use crate::commands::hello;
use crate::flow;
use crate::limits::{ADMISSION, WAITING};
use crate::request::Request;
use crate::request::awaits::{self, Reserved};
use crate::request::failure::{self, Situation};
use crate::server::Server;
use crate::state::failpoint::Fault;

/// Interval at which a blocked write checks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(100);

/// The answer to a message.
pub(crate) enum Answer {
    Reply(Builder),
    /// Nothing: the connection ends.
    Close,
}

pub(crate) async fn run(request: Arc<Request>) -> Answer {
    let server = Arc::clone(&request.server);
    let fault = match server.failpoints.is_set() {
        true => ordered_fault(&request),
        false => None,
    };
    server.operations.begin(&request.operation);
    if let Some(block) = fault.as_ref().and_then(|fault| fault.block) {
        tokio::time::sleep(block).await;
    }
    let term = acknowledge::term(&request);
    let outcome = match &fault {
        Some(Fault { close: true, .. }) => {
            server.operations.end(&request.operation);
            return Answer::Close;
        }
        Some(Fault {
            code: Some(code), ..
        }) => Err(Error::new(
            Code(*code),
            format!(
                "Failing command via 'failCommand' failpoint: {}",
                request.name()
            ),
        )),
        _ => execute(&request).await,
    };
    let unsatisfied = match fault.as_ref().and_then(|fault| fault.code) {
        None => acknowledge::wait(&request, term).await,
        Some(_) => None,
    };
    server.operations.end(&request.operation);
    if outcome.is_ok() && hit_write(&request, false).is_some_and(|fault| fault.close) {
        return Answer::Close;
    }
    let (reply, noted) = finish(&request, outcome, fault, unsatisfied);
    if let Some(noted) = noted {
        // A failure to write the profile entry is not an error of the command.
        let _: Result<(), _> = noted.await;
    }
    Answer::Reply(reply)
}

/// The fault that a failpoint sets for a command before it runs.
fn ordered_fault(request: &Request) -> Option<Fault> {
    if request.command.has(UNFAILING) {
        return None;
    }
    let failpoints = &request.server.failpoints;
    let application = || hello::application_of(request);
    let failed = failpoints.hit(request.command.name, application);
    let limited = request.generic.max_time.is_some();
    let failed = failed.or_else(|| failpoints.hit_limit(limited));
    failed.or_else(|| hit_write(request, true))
}

/// The fault that a failpoint sets for a retryable write: before its execution, or after its first
/// execution.
fn hit_write(request: &Request, before: bool) -> Option<Fault> {
    let generic = &request.generic;
    let retryable = request.command.has(RETRYABLE)
        && generic.txn_number.is_some()
        && !generic.in_transaction
        && !request.repeated.load(Ordering::Relaxed);
    retryable.then(|| {
        request
            .server
            .failpoints
            .hit_write(before, || statements(request))
    })?
}

/// The number of statements of a write.
fn statements(request: &Request) -> usize {
    let count = |name: &str| {
        let sequence = request.message().sequence_len(name);
        let array = || Some(request.arguments().array(name).ok()??.into_iter().count());
        sequence.or_else(array)
    };
    let lists = ["documents", "updates", "deletes"];
    lists.into_iter().find_map(count).unwrap_or(1)
}

/// Run a request: a `getMore` that finds no data, again and again until there is some or its time
/// is over.
async fn execute(request: &Arc<Request>) -> Result<Builder> {
    if request.command.kind == Kind::GetMore {
        request.server.metrics.ops.getmore.one();
    }
    let began = roles::begin(request);
    let mut reserved = None;
    loop {
        roles::reach(request).await?;
        let mut reply = execute_once(request).await?;
        if let Some(rest) = request.later.take() {
            reply.fields(&uninterrupted(request, rest).await?);
        }
        match request.awaits.take() {
            None => {
                roles::committed(request, began).await?;
                return Ok(reply);
            }
            Some(awaiting) => {
                reserved.get_or_insert_with(|| Reserved::of(request));
                awaits::wait(request, awaiting).await;
            }
        }
    }
}

/// Wait for the rest of a command, unless it is interrupted.
async fn uninterrupted<T>(request: &Request, rest: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        done = rest => done,
        () = request.interrupted.notified() => {
            request.op().check()?;
            Err(shutting_down())
        }
    }
}

async fn execute_once(request: &Arc<Request>) -> Result<Builder> {
    let server = &request.server;
    let admission = match request.command.lane {
        Lane::Inline => return call(request),
        Lane::Storage => &server.admission,
        Lane::Reserved => &server.reserved,
    };
    let writes = request.writes();
    let _writing = match writes {
        true => Some(allowed(request).await?),
        false => None,
    };
    // The engine may block writes for long. Writes of an open transaction pass, because other
    // writers may wait for its end.
    let alone = !request.generic.in_transaction;
    if writes && alone {
        flow::wait(request).await?;
    }
    let storage = request.command.lane == Lane::Storage;
    let _writer = match writes && alone && storage {
        true => Some(admit(request, &server.writers).await?),
        false => None,
    };
    let share = request.client.share().filter(|_| storage);
    let _share = match &share {
        Some(share) => Some(admit(request, share).await?),
        None => None,
    };
    let permit = admit(request, admission).await?;
    if inline::takes(request) {
        return inline::run(request).await;
    }
    let (answer, done) = oneshot::channel();
    let job = Arc::clone(request);
    let taken = server.pool.submit(move || {
        // A client that has disconnected receives no answer.
        let _: Result<(), _> = answer.send(call(&job));
    });
    if !taken {
        return Err(shutting_down());
    }
    let outcome = done.await;
    drop(permit);
    outcome.unwrap_or_else(|_| Err(failed_inside(request)))
}

/// The error of a command that panicked.
pub(super) fn failed_inside(request: &Request) -> Error {
    let message = format!("the command {} failed inside the server", request.name());
    Error::new(Code::INTERNAL_ERROR, message)
}

/// Wait until writes are allowed (see `fsync`).
async fn allowed(request: &Request) -> Result<OwnedRwLockReadGuard<()>> {
    loop {
        let waited = tokio::time::timeout(LOOK, request.server.freeze.writing()).await;
        if let Ok(guard) = waited {
            return Ok(guard);
        }
        request.op().check()?;
    }
}

/// The error of a command that arrives during shutdown.
pub(crate) fn shutting_down() -> Error {
    let message = "The server is in quiesce mode and will shut down";
    Error::new(Code::SHUTDOWN_IN_PROGRESS, message)
}

/// Wait for a worker, for at most [`ADMISSION`]. A client that supports backoff is rejected at once
/// if many commands wait.
async fn admit<'a>(
    request: &Request,
    admission: &'a Semaphore,
) -> Result<tokio::sync::SemaphorePermit<'a>> {
    if let Ok(permit) = admission.try_acquire() {
        return Ok(permit);
    }
    let server = &request.server;
    let polite = request.client.state.lock().backpressure;
    let waiting = usize::try_from(server.metrics.waiting.get()).unwrap_or(0);
    if polite && waiting >= WAITING {
        return Err(overloaded(server));
    }
    let writes = i64::from(request.writes());
    server.metrics.waiting.one();
    server.metrics.waiting_writes.add(writes);
    let limit = request.generic.max_time.unwrap_or(ADMISSION).min(ADMISSION);
    let permit = tokio::time::timeout(limit, admission.acquire()).await;
    server.metrics.waiting.add(-1);
    server.metrics.waiting_writes.add(-writes);
    match permit {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) => Err(shutting_down()),
        Err(_) => Err(overloaded(server)),
    }
}

fn overloaded(server: &Server) -> Error {
    server.metrics.overloaded.one();
    let message = "too many commands wait for the storage; try again later";
    Error::new(Code::INGRESS_REQUEST_RATE_LIMIT_EXCEEDED, message)
}

/// Finish the reply. If the database is profiled, also return a receiver that completes when the
/// profile entry is written.
fn finish(
    request: &Arc<Request>,
    outcome: Result<Builder>,
    fault: Option<Fault>,
    unsatisfied: Option<Document>,
) -> (Builder, Option<oneshot::Receiver<()>>) {
    let server = &request.server;
    let fault = fault.unwrap_or_default();
    let situation = Situation {
        untouched: fault.code.is_some(),
        ..Situation::of(request)
    };
    let failed = outcome.as_ref().err().cloned();
    let mut reply = match outcome {
        Ok(mut reply) => {
            if let Some(error) = fault.write_concern.or(unsatisfied) {
                concern_error(&mut reply, error, situation, fault.labels.as_deref());
            }
            reply.double("ok", 1.0);
            reply
        }
        Err(error) => {
            let mut reply = Builder::new();
            failure::fill(&mut reply, &error, Some(situation), fault.labels.as_deref());
            // The write concern applies to failed writes as well, and drivers check this field
            // first.
            if let Some(error) = unsatisfied.filter(|_| fault.code.is_none()) {
                reply.value("writeConcernError", &Bson::Document(error));
            }
            reply
        }
    };
    if request.writes() && failed.is_none() {
        server.tick();
    }
    // An error that a failpoint injects implies nothing about the topology.
    let reported = failed.as_ref().filter(|_| fault.code.is_none());
    let time = request.written.get().or(request.read.get());
    times(server, &mut reply, reported, time.copied());
    let taken = request.worked();
    server
        .metrics
        .finished(request.command, taken, failed.is_some());
    note_use(request, taken);
    let noted = slow::note(request, taken, failed.as_ref(), &mut reply);
    (reply, noted)
}

/// Count the command for its collection.
fn note_use(request: &Request, taken: Duration) {
    let command = request.command;
    let counted = matches!(command.class, Class::Read | Class::Write);
    if command.kind == Kind::Command && !counted {
        return;
    }
    let named = request.collection();
    let Some(collection) = named.filter(|name| !name.starts_with("$cmd")) else {
        return;
    };
    let usages = &request.server.usages;
    let how = (command.kind, command.has(WRITES));
    usages.note((request.database(), collection), how, taken);
}

fn concern_error(
    reply: &mut Builder,
    error: Document,
    situation: Situation,
    given: Option<&[String]>,
) {
    let code = error.get_i32("code").unwrap_or_default();
    reply.value("writeConcernError", &Bson::Document(error));
    match given {
        Some([]) => {}
        Some(given) => {
            reply.strings("errorLabels", given.iter().map(String::as_str));
        }
        None => {
            // The error of a write concern does not abort a transaction.
            let outside = Situation {
                in_transaction: false,
                ..situation
            };
            let labels = outside.labels(code);
            if !labels.is_empty() {
                reply.strings("errorLabels", labels);
            }
        }
    }
}

/// Append the times of a replica set and, to errors that concern it, the topology.
/// `operation` is the time of what was written or read, if anything was; else it is the last time
/// that was issued.
pub(super) fn times(
    server: &Server,
    reply: &mut Builder,
    failed: Option<&Error>,
    operation: Option<Timestamp>,
) {
    let topology = &server.topology;
    if failed.is_some_and(|error| failure::includes_topology(error.code.0)) {
        reply.open_document("topologyVersion");
        reply.object_id("processId", topology.process);
        reply.long("counter", topology.counter()).close();
    }
    if !topology.is_replica_set() {
        return;
    }
    let (cluster, last) = server.clock.times();
    let operation = operation.unwrap_or(last);
    reply.open_document("$clusterTime");
    reply.timestamp("clusterTime", cluster);
    reply.open_document("signature");
    let hash = bson::RawBsonRef::Binary(bson::raw::RawBinaryRef {
        subtype: bson::spec::BinarySubtype::Generic,
        bytes: &[0; 20],
    });
    reply.raw("hash", hash).long("keyId", 0).close().close();
    reply.timestamp("operationTime", operation);
}

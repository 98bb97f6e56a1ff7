//! Runs a request where its row says, and finishes the reply.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bson::{Bson, Document, doc};
use query::{Code, Error, Result};
use tokio::sync::{OwnedRwLockReadGuard, Semaphore, oneshot};
use wire::Builder;

use super::call::call;
use super::failure::{self, Situation};
use super::request::Request;
use super::row::{Lane, RETRYABLE, WRITES};
use super::slow;
use crate::commands::{hello, written};
use crate::limits::{ADMISSION, WAITING};
use crate::server::Server;
use crate::state::failpoint::Fault;
use crate::state::metrics::Class;
use crate::state::usage::Kind;

/// How often a write that is held up looks whether it is interrupted.
const LOOK: Duration = Duration::from_millis(100);

/// What is sent back.
pub(crate) enum Answer {
    /// A reply.
    Reply(Builder),
    /// Nothing: the connection ends.
    Close,
}

/// Run a request.
pub(crate) async fn run(request: Arc<Request>) -> Answer {
    let server = Arc::clone(&request.server);
    let fault = match server.failpoints.is_set() {
        true => ordered_fault(&request),
        false => None,
    };
    server.operations.begin(&request);
    if let Some(block) = fault.as_ref().and_then(|fault| fault.block) {
        tokio::time::sleep(block).await;
    }
    let outcome = match &fault {
        Some(Fault { close: true, .. }) => {
            server.operations.end(&request);
            return Answer::Close;
        }
        Some(Fault {
            code: Some(code), ..
        }) => Err(Error::new(
            Code(*code),
            format!(
                "Failing command via 'failCommand' failpoint: {}",
                request.name
            ),
        )),
        _ => execute(&request).await,
    };
    server.operations.end(&request);
    if outcome.is_ok() && hit_write(&request, false).is_some_and(|fault| fault.close) {
        return Answer::Close;
    }
    let (reply, noted) = finish(&request, outcome, fault);
    if let Some(noted) = noted {
        // That the entry could not be written is no error of the command.
        let _: Result<(), _> = noted.await;
    }
    Answer::Reply(reply)
}

/// The fault that tests ordered for a command before it runs.
fn ordered_fault(request: &Request) -> Option<Fault> {
    if request.row.name == "configureFailPoint" {
        return None;
    }
    let failpoints = &request.server.failpoints;
    let application = || hello::application_of(request);
    let failed = failpoints.hit(request.row.name, application);
    let limited = request.generic.max_time.is_some();
    let failed = failed.or_else(|| failpoints.hit_limit(limited));
    failed.or_else(|| hit_write(request, true))
}

/// The fault ordered for a retryable write: before it is done, or after it was done for the first
/// time.
fn hit_write(request: &Request, before: bool) -> Option<Fault> {
    let generic = &request.generic;
    let retryable = request.row.has(RETRYABLE)
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

/// How many statements a write has.
fn statements(request: &Request) -> usize {
    let count = |name: &str| {
        let sequence = request.message.sequence_len(name);
        let array = || Some(request.body().get_array(name).ok()?.into_iter().count());
        sequence.or_else(array)
    };
    let lists = ["documents", "updates", "deletes"];
    lists.into_iter().find_map(count).unwrap_or(1)
}

async fn execute(request: &Arc<Request>) -> Result<Builder> {
    let server = &request.server;
    let admission = match request.row.lane {
        Lane::Inline => return call(request),
        Lane::Storage => &server.admission,
        Lane::Reserved => &server.reserved,
    };
    let writes = writes(request);
    let _writing = match writes {
        true => Some(allowed(request).await?),
        false => None,
    };
    // The engine may hold writes up for long. What an open transaction writes lets go on who waits
    // for it.
    let alone = !request.generic.in_transaction;
    let _writer = match writes && alone && request.row.lane == Lane::Storage {
        true => Some(admit(request, &server.writers).await?),
        false => None,
    };
    let permit = admit(request, admission).await?;
    let (answer, done) = oneshot::channel();
    let job = Arc::clone(request);
    let taken = server.pool.submit(move || {
        // A client that is gone takes no answer.
        let _: Result<(), _> = answer.send(call(&job));
    });
    if !taken {
        return Err(shutting_down());
    }
    let outcome = done.await;
    drop(permit);
    outcome.unwrap_or_else(|_| {
        let message = format!("the command {} failed inside the server", request.name);
        Err(Error::new(Code::INTERNAL_ERROR, message))
    })
}

/// Whether a command writes, or may.
pub(crate) fn writes(request: &Request) -> bool {
    request.row.has(WRITES)
        || (request.row.name == "aggregate" && written(request.body()).is_some())
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

/// The error of what comes after the end was announced.
pub(crate) fn shutting_down() -> Error {
    let message = "The server is in quiesce mode and will shut down";
    Error::new(Code::SHUTDOWN_IN_PROGRESS, message)
}

/// Wait for a worker: not at all when many wait and the client knows how to back off, and not
/// for ever in any case.
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
    let writes = i64::from(writes(request));
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

/// The reply; and, for a database that is profiled, when its entry is written.
fn finish(
    request: &Arc<Request>,
    outcome: Result<Builder>,
    fault: Option<Fault>,
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
            if let Some(error) = fault.write_concern.or_else(|| unsatisfied(request)) {
                concern_error(&mut reply, error, situation, fault.labels.as_deref());
            }
            reply.double("ok", 1.0);
            reply
        }
        Err(error) => {
            let mut reply = Builder::new();
            failure::fill(&mut reply, &error, Some(situation), fault.labels.as_deref());
            // Also a write that fails is waited for, and drivers look at this first.
            if let Some(error) = unsatisfied(request).filter(|_| fault.code.is_none()) {
                reply.value("writeConcernError", &Bson::Document(error));
            }
            reply
        }
    };
    if writes(request) && failed.is_none() {
        server.tick();
    }
    // An error that was ordered says nothing of the topology.
    let told = failed.as_ref().filter(|_| fault.code.is_none());
    times(server, &mut reply, told);
    let taken = request.taken();
    let class = request.row.class;
    server
        .metrics
        .finished(request.row.name, class, taken, failed.is_some());
    note_use(request, taken);
    let noted = slow::note(request, taken, failed.as_ref(), &mut reply);
    (reply, noted)
}

/// Count the command for its collection.
fn note_use(request: &Request, taken: Duration) {
    let kind = match request.row.name {
        "find" => Kind::Query,
        "getMore" => Kind::GetMore,
        "insert" => Kind::Insert,
        "update" => Kind::Update,
        "delete" => Kind::Remove,
        _ if matches!(request.row.class, Class::Read | Class::Write) => Kind::Command,
        _ => return,
    };
    let named = match kind {
        Kind::GetMore => request.body().get_str("collection").ok(),
        _ => request.target().ok().and_then(bson::RawBsonRef::as_str),
    };
    let Some(collection) = named.filter(|name| !name.starts_with("$cmd")) else {
        return;
    };
    let usages = &request.server.usages;
    let how = (kind, request.row.has(WRITES));
    usages.note((request.database(), collection), how, taken);
}

/// The error of a write concern that a set of one member cannot satisfy. The write is done.
fn unsatisfied(request: &Request) -> Option<Document> {
    if !writes(request) || !request.server.topology.is_replica_set() {
        return None;
    }
    let (code, message) = match request.generic.write_concern.w.as_ref()? {
        Bson::Int64(n) if *n > 1 => (
            Code::UNSATISFIABLE_WRITE_CONCERN,
            "Not enough data-bearing nodes".to_owned(),
        ),
        Bson::String(mode) if mode != "majority" => (
            Code::UNKNOWN_REPL_WRITE_CONCERN,
            format!("No write concern mode named '{mode}' found in replica set configuration"),
        ),
        _ => return None,
    };
    Some(doc! {"code": code.0, "codeName": code.name().into_owned(), "errmsg": message})
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
            // What a write concern says ends no transaction.
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

/// Append the times of a replica set, and the topology to errors about it.
pub(super) fn times(server: &Server, reply: &mut Builder, failed: Option<&Error>) {
    let topology = &server.topology;
    if failed.is_some_and(|error| failure::tells_topology(error.code.0)) {
        reply.open_document("topologyVersion");
        reply.object_id("processId", topology.process);
        reply.long("counter", topology.counter()).close();
    }
    if !topology.is_replica_set() {
        return;
    }
    let (cluster, operation) = server.clock.times();
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

impl Request {
    /// A command that answers again and again has more to say.
    pub(crate) fn has_more(&self) -> bool {
        self.more.load(Ordering::Relaxed)
    }
}

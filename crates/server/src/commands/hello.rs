//! `hello` and its old name `isMaster`: the greeting of a connection, and the wait for a change of
//! the topology.

use std::time::Duration;

use bson::oid::ObjectId;
use bson::{RawBsonRef, RawDocument, doc};
use query::{Code, Error, Result};
use tokio::sync::watch;
use wire::{Builder, Compressor, limits as wire_limits};

use super::replica_set::role;
use crate::access::{login, x509};
use crate::arguments::Arguments;
use crate::auth::scram::Mechanism;
use crate::command::{ANYWHERE, API, GREETS, LOOSE, PLAIN};
use crate::limits::{AWAIT_MAX, METADATA, SESSION_MINUTES, WAITING_GREETING};
use crate::request::{Call, Request};
use crate::row::Row;
use crate::server::Server;
use crate::state::clock;
use crate::version::WIRE;

/// Each name has its own row, because failpoints and replies distinguish them.
pub(super) const ROWS: &[Row] = &[
    Row::new(
        "hello",
        hello,
        "Return the role and capabilities of the server",
    )
    .open()
    .flags(API | LOOSE | GREETS | ANYWHERE | PLAIN),
    Row::new("isMaster", is_master, "Old name of `hello`")
        .aliases(&["ismaster"])
        .open()
        .flags(LOOSE | GREETS | ANYWHERE | PLAIN),
];

/// A greeting that waits for a change of the topology.
pub(crate) struct Awaited {
    changes: watch::Receiver<i64>,
    known: i64,
    limit: Duration,
}

impl Awaited {
    /// Wait for a change, the time limit, or the shutdown of the server.
    pub(crate) async fn wait(mut self, server: &Server) {
        let mut stopping = server.stopping();
        tokio::select! {
            _ = self.changes.wait_for(|counter| *counter != self.known) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
            () = tokio::time::sleep(self.limit) => {}
        }
    }
}

/// The change that a greeting waits for; `None` if it does not wait. `seen` is the topology counter
/// in the last reply of a stream; the first reply uses the one in the greeting.
///
/// # Errors
/// When only one of the two arguments is there, or they are no numbers; a greeting that waits and
/// is longer than [`WAITING_GREETING`].
pub(crate) fn awaited(request: &Request, seen: Option<i64>) -> Result<Option<Awaited>> {
    let arguments = request.arguments();
    let version = arguments.document("topologyVersion")?;
    let limit = arguments.count("maxAwaitTimeMS")?;
    let (version, limit) = match (version, limit) {
        (None, None) => return Ok(None),
        (Some(version), Some(limit)) => (version, limit),
        (Some(_), None) => {
            let message = "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'";
            return Err(Error::location(31_368, message));
        }
        (None, Some(_)) => {
            let message = "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'";
            return Err(Error::location(31_368, message));
        }
    };
    let size = request.message().size();
    if WAITING_GREETING < size {
        let message = format!(
            "A greeting that waits has at most {WAITING_GREETING} bytes; this one has {size}"
        );
        return Err(Error::bad_value(message));
    }
    let (process, counter) = topology_version(version)?;
    let topology = &request.server.topology;
    let ours = topology.counter();
    if process == topology.process && counter > ours {
        let message = format!(
            "Received a topology version with counter: {counter} which is \
             greater than the server topology version counter: {ours}"
        );
        return Err(Error::location(31_382, message));
    }
    // The client knows another process or an older state: return a wait that has already ended.
    let known = if process == topology.process {
        counter
    } else {
        -1
    };
    Ok(Some(Awaited {
        changes: topology.watch(),
        known: seen.unwrap_or(known),
        limit: Duration::from_millis(limit).min(AWAIT_MAX),
    }))
}

fn topology_version(version: &RawDocument) -> Result<(ObjectId, i64)> {
    let process = version.get("processId")?.and_then(RawBsonRef::as_object_id);
    let counter = version.get("counter")?.and_then(RawBsonRef::as_i64);
    match (process, counter) {
        (Some(process), Some(counter)) => Ok((process, counter)),
        _ => Err(Error::type_mismatch(
            "BSON field 'topologyVersion' needs an objectId \
             'processId' and a long 'counter'",
        )),
    }
}

fn hello(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    answer(request, "isWritablePrimary", reply)
}

fn is_master(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    answer(request, "ismaster", reply)
}

/// Answer a greeting; `primary` is the name of the field that states whether the server accepts
/// writes.
fn answer(request: &Call<'_>, primary: &str, reply: &mut Builder) -> Result<()> {
    let compressors = greet(request)?;
    let arguments = request.arguments();
    if arguments.is_on("helloOk")? {
        reply.boolean("helloOk", true);
    }
    let topology = &request.server.topology;
    reply.open_document("topologyVersion");
    reply.object_id("processId", topology.process);
    reply.long("counter", topology.counter()).close();
    match (&topology.set_name, &request.server.member) {
        (_, Some(member)) => role(member, primary, reply),
        (Some(name), None) => single(request, name, primary, reply),
        (None, None) => {
            reply.boolean(primary, true);
        }
    }
    let int = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    reply.int("maxBsonObjectSize", int(wire_limits::MAX_DOCUMENT));
    reply.int("maxMessageSizeBytes", int(wire_limits::MAX_MESSAGE));
    reply.int("maxWriteBatchSize", int(wire_limits::MAX_BATCH));
    reply.date("localTime", clock::now());
    reply.int("logicalSessionTimeoutMinutes", SESSION_MINUTES);
    reply.long("connectionId", request.client.id);
    reply.int("minWireVersion", 0);
    reply.int("maxWireVersion", WIRE);
    reply.boolean("readOnly", false);
    if let Some(name) = arguments.string("saslSupportedMechs")? {
        mechanisms(request, name, reply);
    }
    if let Some(first) = arguments.document("speculativeAuthenticate")? {
        speculate(request, first, reply);
    }
    if !compressors.is_empty() {
        reply.strings("compression", compressors.iter().map(|c| c.name()));
    }
    Ok(())
}

/// The mechanisms by which a user can authenticate. For an unknown name the answer is that for a
/// user created without naming mechanisms, so it does not reveal whether the user exists. Only a
/// user with fewer mechanisms can be recognized, because its driver would otherwise choose one that
/// the user does not have.
fn mechanisms(request: &Request, name: &str, reply: &mut Builder) {
    let Some((database, name)) = name.split_once('.') else {
        return;
    };
    let mut known: Vec<&str> = match request.server.users.get(database, name) {
        Some(user) => user
            .credentials
            .iter()
            .map(|(kind, _)| kind.name())
            .collect(),
        None if database == x509::DATABASE => Vec::new(),
        None => Mechanism::ALL.map(Mechanism::name).to_vec(),
    };
    let parameters = &request.server.parameters;
    known.retain(|name| parameters.lists("authenticationMechanisms", name));
    reply.strings("saslSupportedMechs", known);
}

/// Start an authentication within the greeting. An error is not reported: the client then starts
/// again.
fn speculate(request: &Request, first: &RawDocument, reply: &mut Builder) {
    let Ok(arguments) = Arguments::of("speculativeAuthenticate", first) else {
        return;
    };
    if arguments.get("authenticate").is_some() {
        // The default is the database of all users with certificates.
        let database = arguments.string("db").ok().flatten();
        let database = database.unwrap_or(x509::DATABASE);
        if let Ok(user) = x509::authenticate(request, &arguments, database) {
            reply.open_document("speculativeAuthenticate");
            reply.string("dbname", x509::DATABASE).string("user", &user);
            reply.close();
        }
        return;
    }
    let step = arguments.string("db").and_then(|database| {
        arguments.need("saslStart")?;
        login::start(request, &arguments, database.unwrap_or("admin"))
    });
    if let Ok(step) = step {
        reply.open_document("speculativeAuthenticate");
        super::sasl::answer(reply, step);
        reply.close();
    }
}

/// Append the fields of the only member of a replica set.
fn single(request: &Request, name: &str, primary: &str, reply: &mut Builder) {
    let server = &request.server;
    let topology = &server.topology;
    reply.strings("hosts", [topology.me.as_str()]);
    reply.string("setName", name);
    reply.int("setVersion", 1);
    reply.boolean(primary, true);
    reply.boolean("secondary", false);
    reply.string("primary", &topology.me);
    reply.string("me", &topology.me);
    reply.object_id("electionId", topology.election);
    let time = server.written();
    let written = bson::DateTime::from_millis(i64::from(time.time) * 1_000);
    reply.open_document("lastWrite");
    for (optime, date) in [
        ("opTime", "lastWriteDate"),
        ("majorityOpTime", "majorityWriteDate"),
    ] {
        reply.open_document(optime).timestamp("ts", time);
        reply.long("t", topology.term).close();
        reply.date(date, written);
    }
    reply.close();
}

/// Store the client's metadata. Returns the compressors that both sides support.
fn greet(request: &Request) -> Result<Vec<Compressor>> {
    let arguments = request.arguments();
    let mut state = request.client.state.lock();
    if let Some(metadata) = arguments.document("client")? {
        if state.metadata.is_some() {
            let message = "The client metadata document may only be sent in the first hello";
            return Err(Error::new(Code(186), message));
        }
        if metadata.as_bytes().len() > METADATA {
            let message = "The client metadata document must be less then or equal to 512 bytes";
            return Err(Error::location(210, message));
        }
        application(metadata)?.clone_into(&mut state.application);
        state.metadata = Some(metadata.to_owned());
        log(request, metadata);
    }
    if arguments.get("backpressure").is_some() {
        state.backpressure = true;
    }
    state.greeted = true;
    if let Some(names) = arguments.array("compression")? {
        let ours = &request.server.config.compressors;
        let mut both = Vec::new();
        for name in names {
            let named = name?.as_str().and_then(Compressor::of_name);
            both.extend(named.filter(|c| ours.contains(c) && !both.contains(c)));
        }
        state.compressors = both;
        return Ok(state.compressors.clone());
    }
    Ok(Vec::new())
}

/// The application name in a client's metadata; empty if there is none.
fn application(metadata: &RawDocument) -> Result<&str> {
    let application = metadata.get("application")?;
    let application = application.and_then(RawBsonRef::as_document);
    let name = application.map(|document| document.get("name"));
    let name = name.transpose()?.flatten();
    Ok(name.and_then(RawBsonRef::as_str).unwrap_or_default())
}

/// The application that sent a request, even if the request is the greeting that names it.
pub(crate) fn application_of(request: &Request) -> String {
    let known = request.client.state.lock().application.clone();
    if !known.is_empty() || !request.command.has(GREETS) {
        return known;
    }
    let metadata = request.body().get_document("client").ok();
    // The greeting itself reports malformed metadata.
    let named = metadata.and_then(|metadata| application(metadata).ok());
    named.unwrap_or_default().to_owned()
}

fn log(request: &Request, metadata: &RawDocument) {
    let document = metadata;
    let attributes = doc! {
        "remote": request.client.peer.to_string(),
        "client": request.client.name(),
        "doc": bson::Document::try_from(document).unwrap_or_default(),
    };
    let name = request.client.name();
    request
        .server
        .log
        .info("NETWORK", 51_800, &name, "client metadata", attributes);
}

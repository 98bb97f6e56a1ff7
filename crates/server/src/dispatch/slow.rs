//! Commands that took long are logged, as MongoDB logs them, and kept in `system.profile` where
//! the profiler is on.

use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf, doc};
use docdb::{CollectionOptions, InsertOptions, Op};
use kv::Durability;
use query::{Error, Namespace, Result};
use tokio::sync::oneshot;

use super::request::Request;
use super::row::Lane;
use crate::limits::SHOWN;
use crate::state::clock;

/// Bytes of the profile of a database: as MongoDB's.
const PROFILE_BYTES: i32 = 1 << 20;

/// Arguments whose values are never shown.
const SECRET: &[&str] = &[
    "pwd",
    "payload",
    "key",
    "digestPassword",
    "speculativeAuthenticate",
];

/// Commands of which nothing but the name is shown.
const SECRET_COMMANDS: &[&str] = &[
    "saslStart",
    "saslContinue",
    "createUser",
    "updateUser",
    "authenticate",
    "copydbsaslstart",
];

/// A command as it may be shown: without secrets, and not longer than a limit.
pub(crate) fn shown(request: &Request) -> Document {
    let name = request.row.name;
    if SECRET_COMMANDS.contains(&name) {
        return doc! {name: "###"};
    }
    let body = request.body();
    if body.as_bytes().len() > SHOWN {
        let first = request
            .target()
            .ok()
            .and_then(|value| Bson::try_from(value).ok());
        return doc! {
            request.name.clone(): first.unwrap_or(Bson::Null),
            "$truncated": format!("{} bytes", body.as_bytes().len()),
            "$db": request.database(),
        };
    }
    let mut shown = Document::try_from(body).unwrap_or_default();
    for secret in SECRET {
        if let Some(value) = shown.get_mut(*secret) {
            *value = "###".into();
        }
    }
    shown
}

/// The collection or database a command works on, as text.
pub(crate) fn namespace(request: &Request) -> String {
    match request.target().ok().and_then(bson::RawBsonRef::as_str) {
        Some(collection) => format!("{}.{collection}", request.database()),
        None => format!("{}.$cmd", request.database()),
    }
}

/// Log a command if it took long, and keep it if its database is profiled.
///
/// Gives when the entry of the profile is written.
pub(crate) fn note(
    request: &Arc<Request>,
    taken: Duration,
    failed: Option<&Error>,
    size: usize,
) -> Option<oneshot::Receiver<()>> {
    let profiler = &request.server.profiler;
    let waits = matches!(request.row.name, "hello" | "isMaster" | "getMore");
    if profiler.is_logged(taken) && !waits {
        log(request, taken, failed, size);
    }
    let held_up = request.server.freeze.count() > 0;
    let keeps = profiler.keeps(request.database(), taken) && request.row.lane == Lane::Storage;
    if keeps && !held_up {
        return keep(request, taken, failed, size);
    }
    None
}

fn log(request: &Request, taken: Duration, failed: Option<&Error>, size: usize) {
    let mut attributes = doc! {
        "type": "command",
        "ns": namespace(request),
        "appName": request.client.state.lock().application.clone(),
        "command": shown(request),
        "reslen": i64::try_from(size).unwrap_or(i64::MAX),
        "remote": request.client.peer.to_string(),
        "protocol": "op_msg",
        "durationMillis": millis(taken),
    };
    if let Some(error) = failed {
        attributes.insert("ok", 0);
        attributes.insert("errMsg", error.message.as_str());
        attributes.insert("errName", error.code.name().into_owned());
        attributes.insert("errCode", error.code.0);
    }
    let name = request.client.name();
    request
        .server
        .log
        .info("COMMAND", 51_803, &name, "Slow query", attributes);
}

fn millis(taken: Duration) -> i64 {
    i64::try_from(taken.as_millis()).unwrap_or(i64::MAX)
}

fn op(request: &Request) -> &'static str {
    match request.row.name {
        "find" => "query",
        "getMore" => "getmore",
        "insert" => "insert",
        "update" => "update",
        "delete" => "remove",
        _ => "command",
    }
}

/// Write an entry of the profile, on a thread that may block. That it cannot be written is no
/// error of the command.
fn keep(
    request: &Arc<Request>,
    taken: Duration,
    failed: Option<&Error>,
    size: usize,
) -> Option<oneshot::Receiver<()>> {
    let ns = namespace(request);
    if ns.ends_with(".system.profile") {
        return None;
    }
    let mut entry = doc! {
        "op": op(request),
        "ns": ns,
        "command": shown(request),
        "responseLength": i32::try_from(size).unwrap_or(i32::MAX),
        "protocol": "op_msg",
        "millis": i32::try_from(taken.as_millis()).unwrap_or(i32::MAX),
        "ts": clock::now(),
        "client": request.client.peer.ip().to_string(),
        "appName": request.client.state.lock().application.clone(),
        "user": "",
    };
    if let Some(error) = failed {
        entry.insert("errMsg", error.message.as_str());
        entry.insert("errName", error.code.name().into_owned());
        entry.insert("errCode", error.code.0);
    }
    let kept = Arc::clone(request);
    let (written, done) = oneshot::channel();
    request.server.pool.submit(move || {
        // See above.
        let _: Result<()> = write(&kept, &entry);
        let _: Result<(), _> = written.send(());
    });
    Some(done)
}

fn write(request: &Request, entry: &Document) -> Result<()> {
    let ns = Namespace::new(request.database(), "system.profile")?;
    let store = &request.server.store;
    let op = Op::new(Durability::Interval);
    if store.lookup(&ns).is_none() {
        let options = CollectionOptions::parse(&doc! {"capped": true, "size": PROFILE_BYTES})?;
        store.create(&op, &ns, options)?;
    }
    let raw = RawDocumentBuf::try_from(entry)?;
    store.insert(&op, &ns, &[&raw], InsertOptions::default())?;
    Ok(())
}

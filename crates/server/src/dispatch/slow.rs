//! Commands that took long are logged, as MongoDB logs them.

use std::time::Duration;

use bson::{Bson, Document, doc};
use query::Error;

use super::request::Request;
use crate::limits::SHOWN;

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

/// Log a command if it took long.
pub(crate) fn note(request: &Request, taken: Duration, failed: Option<&Error>, size: usize) {
    let server = &request.server;
    let limit = u128::try_from(server.slow_ms()).unwrap_or(0);
    let waits = matches!(request.row.name, "hello" | "isMaster" | "getMore");
    if taken.as_millis() < limit || waits {
        return;
    }
    let mut attributes = doc! {
        "type": "command",
        "ns": namespace(request),
        "appName": request.client.state.lock().application.clone(),
        "command": shown(request),
        "reslen": i64::try_from(size).unwrap_or(i64::MAX),
        "remote": request.client.peer.to_string(),
        "protocol": "op_msg",
        "durationMillis": i64::try_from(taken.as_millis()).unwrap_or(i64::MAX),
    };
    if let Some(error) = failed {
        attributes.insert("ok", 0);
        attributes.insert("errMsg", error.message.as_str());
        attributes.insert("errName", error.code.name().into_owned());
        attributes.insert("errCode", error.code.0);
    }
    let name = request.client.name();
    server
        .log
        .info("COMMAND", 51_803, &name, "Slow query", attributes);
}

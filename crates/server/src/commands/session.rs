//! Sessions: `startSession`, `refreshSessions`, `endSessions`.

use std::collections::HashSet;

use bson::{Binary, Bson, RawBsonRef, doc};
use docdb::SessionId;
use query::{Error, Result};
use wire::Builder;

use crate::arguments::session;
use crate::command::{API, Lane};
use crate::limits::{SESSION_MINUTES, SESSIONS};
use crate::request::Call;
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[
    Row::new("startSession", start, "Start a session").lane(Lane::Reserved),
    Row::new(
        "refreshSessions",
        refresh,
        "Extend the lifetime of sessions",
    )
    .lane(Lane::Reserved),
    Row::new("endSessions", end, "End sessions")
        .lane(Lane::Reserved)
        .open()
        .flags(API),
];

fn id_of(request: &Call<'_>, bytes: [u8; 16]) -> SessionId {
    SessionId {
        id: bytes,
        uid: request.owner(),
    }
}

/// The sessions that a command lists.
fn listed(request: &Call<'_>) -> Result<Vec<SessionId>> {
    let RawBsonRef::Array(list) = request.target() else {
        let name = request.name();
        let message =
            format!("BSON field '{name}.{name}' is the wrong type, expected type 'array'");
        return Err(Error::type_mismatch(message));
    };
    let mut ids = Vec::new();
    for session_id in list {
        let session_id = session_id?;
        if SESSIONS <= ids.len() {
            return Err(too_many(request.name()));
        }
        let document = session_id
            .as_document()
            .ok_or_else(|| Error::type_mismatch("a session is named by a document"))?;
        ids.push(id_of(request, session(document)?));
    }
    Ok(ids)
}

/// The error for a list of too many sessions.
pub(super) fn too_many(command: &str) -> Error {
    Error::bad_value(format!("{command} takes at most {SESSIONS} entries"))
}

fn start(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let uuid = bson::Uuid::new();
    request
        .server
        .store
        .refresh_sessions(&[id_of(request, uuid.bytes())])?;
    let id = Bson::Binary(Binary::from(uuid));
    reply.value("id", &Bson::Document(doc! {"id": id}));
    reply.int("timeoutMinutes", SESSION_MINUTES);
    Ok(())
}

fn refresh(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    request.server.store.refresh_sessions(&listed(request)?)
}

fn finish(request: &Call<'_>, ids: &[SessionId]) -> Result<()> {
    let store = &request.server.store;
    let keys: HashSet<Vec<u8>> = ids
        .iter()
        .map(|id| [&id.id[..], &id.uid[..]].concat())
        .collect();
    store.kill_cursors_where(&mut |_, owner| {
        owner
            .session
            .as_ref()
            .is_some_and(|session| keys.contains(session))
    });
    store.end_sessions(ids)
}

fn end(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let ids = listed(request)?;
    // Unauthenticated clients have no sessions to end, and must not cause the store to write.
    if request.server.config.authorization && !request.client.is_authenticated() {
        return Ok(());
    }
    finish(request, &ids)
}

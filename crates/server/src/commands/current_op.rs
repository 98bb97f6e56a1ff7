//! Operations in progress: `currentOp` and `$currentOp`.
//!
//! Both show commands in work; as asked also connections without one, cursors that wait for their
//! `getMore`, and transactions that wait for their next statement. A user without the
//! privilege to see all sees its own.

use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, DateTime, Document, RawBson, RawBsonRef, RawDocumentBuf, doc};
use docdb::{IdleCursor, Origin, SessionId, Stage};
use query::filter::Filter;
use query::settings::Settings;
use query::{Error, Result};
use wire::Builder;

use crate::access::{Asked, Needed};
use crate::arguments::{Arguments, GENERIC, switch};
use crate::auth::privilege::Wanted;
use crate::command::{ADMIN, LOOSE, Lane};
use crate::long::long;
use crate::request::{self, Call, Request};
use crate::row::Row;
use crate::state::{Client, Operation, clock};

pub(super) const ROWS: &[Row] =
    &[
        Row::new("currentOp", current_op, "List the operations in progress")
            .lane(Lane::Reserved)
            .flags(ADMIN | LOOSE)
            .own(needs),
    ];

/// Maximum time of the filter of `currentOp`.
const FILTER_TIME: Duration = Duration::from_secs(1);

/// Which operations to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Operations of other users.
    all_users: bool,
    /// Connections without a command.
    idle_connections: bool,
    /// Transactions between their statements.
    idle_sessions: bool,
    /// Cursors between their batches.
    idle_cursors: bool,
}

impl Shown {
    /// Whether it includes operations of other users.
    pub(crate) fn of_all_users(self) -> bool {
        self.all_users
    }

    /// Parse the options of `$currentOp`.
    ///
    /// # Errors
    /// `FailedToParse` for an option that is none or no switch.
    pub(crate) fn of(options: &Document) -> Result<Shown> {
        let mut shown = Shown {
            all_users: false,
            idle_connections: false,
            idle_sessions: true,
            idle_cursors: false,
        };
        let mut unused = false;
        for (name, value) in options {
            let place = match name.as_str() {
                "allUsers" => &mut shown.all_users,
                "idleConnections" => &mut shown.idle_connections,
                "idleSessions" => &mut shown.idle_sessions,
                "idleCursors" => &mut shown.idle_cursors,
                // These options concern other members, which do not exist, and whole commands: long
                // commands are always truncated.
                "localOps" | "truncateOps" => &mut unused,
                _ => {
                    let message = format!("Unrecognized option '{name}' in $currentOp stage.");
                    return Err(Error::parse(message));
                }
            };
            let Bson::Boolean(on) = value else {
                return Err(Error::parse(format!(
                    "The '{name}' parameter of the $currentOp stage must be a boolean value, but \
                     found: {value}"
                )));
            };
            *place = *on;
        }
        Ok(shown)
    }
}

/// Whether `currentOp` shows only the client's own commands, which requires no privilege.
///
/// # Errors
/// `TypeMismatch`.
fn is_own(arguments: &Arguments<'_>) -> Result<bool> {
    arguments.is_on("$ownOps")
}

/// The privileges of `currentOp`: none for a user's own operations.
fn needs(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    if !is_own(asked.sent.arguments)? {
        needed.push(Wanted::Cluster("inprog"));
    }
    Ok(())
}

/// The operations to show.
pub(super) fn list(request: &Request, shown: Shown) -> Vec<Document> {
    let server = &request.server;
    let all = shown.all_users || !server.config.authorization;
    let user = request.user();
    let running = server.operations.list();
    let mut listed: Vec<Document> = running
        .iter()
        .filter(|other| all || other.user() == user)
        .map(|other| describe(request, other))
        .collect();
    if shown.idle_connections {
        let busy = |client: &Client| running.iter().any(|other| other.client.id == client.id);
        let clients = server.clients.list();
        let idle = clients
            .iter()
            .filter(|client| !busy(client) && (all || client.user() == user));
        listed.extend(idle.map(|client| idle_connection(request, client)));
    }
    if shown.idle_cursors {
        let cursors = server.store.idle_cursors().into_iter();
        let cursors = cursors.filter(|cursor| all || cursor.owner.user == user);
        listed.extend(cursors.map(|cursor| idle_cursor(request, &cursor)));
    }
    if shown.idle_sessions {
        let idle = server.store.idle_transactions().into_iter();
        let idle = idle.filter(|(id, _)| all || id.uid == request.owner());
        listed.extend(idle.map(|(id, number)| idle_session(request, &id, number)));
    }
    listed
}

/// The fields that describe a connection, which come first in an entry.
fn of_client(request: &Request, client: &Client, active: bool) -> Document {
    let state = client.state.lock();
    let metadata = state.metadata.clone().unwrap_or_default();
    let mut shown = doc! {
        "type": "op",
        "host": request.server.topology.me.clone(),
        "desc": client.name(),
        "connectionId": client.id,
        "client": client.peer.to_string(),
        "appName": state.application.clone(),
        "clientMetadata": Document::try_from(metadata).unwrap_or_default(),
        "active": active,
        "currentOpTime": clock::now().try_to_rfc3339_string().unwrap_or_default(),
    };
    if let Some(user) = &state.identity {
        let user = doc! {"user": user.name.clone(), "db": user.database.clone()};
        shown.insert("effectiveUsers", vec![Bson::from(user)]);
    }
    shown
}

/// The entry of a running command.
fn describe(request: &Request, operation: &Operation) -> Document {
    let taken = operation.taken();
    let micros = long(taken.as_micros());
    let seconds = long(taken.as_secs());
    let mut shown = of_client(request, &operation.client, true);
    shown.extend(doc! {
        "opid": operation.number,
        "secs_running": seconds,
        "microsecs_running": micros,
        "op": operation.command.kind.op(),
        "ns": request::namespace(operation),
        "command": request::shown(operation),
        "numYields": 0,
        "waitingForLock": false,
        "killPending": operation.is_killed(),
    });
    if let Some(plan) = operation.examined.plans() {
        shown.insert("planSummary", plan);
    }
    if let Some(stage) = operation.examined.stage() {
        shown.extend(progress(stage));
    }
    if let Some(origin) = operation.origin.get() {
        let mut cursor = doc! {"operationUsingCursorId": i64::from(operation.number)};
        if let Some(id) = super::cursor::cursor_id(operation.target()) {
            cursor.insert("cursorId", id);
        }
        opened_by(&mut cursor, origin);
        shown.insert("cursor", cursor);
    }
    if let Some(id) = operation.generic.lsid {
        let uid = operation.owner();
        shown.insert("lsid", lsid(&SessionId { id, uid }));
    }
    shown
}

/// The progress of a command.
fn progress(stage: Stage) -> Document {
    let Stage { what, done, total } = stage;
    // Documents inserted in the meantime may increase `done` beyond `total`.
    let total = total.max(done);
    let percent = done.saturating_mul(100).checked_div(total).unwrap_or(100);
    doc! {
        "msg": format!("{what} {what}: {done}/{total} {percent}%"),
        "progress": {"done": long(done), "total": long(total)},
    }
}

fn idle_connection(request: &Request, client: &Client) -> Document {
    let mut shown = of_client(request, client, false);
    let rest =
        doc! {"op": "none", "ns": "", "command": {}, "numYields": 0, "waitingForLock": false};
    shown.extend(rest);
    shown
}

fn idle_cursor(request: &Request, cursor: &IdleCursor) -> Document {
    let unused = long(cursor.unused.as_millis());
    let last = clock::now().timestamp_millis().saturating_sub(unused);
    let mut shown = doc! {
        "type": "idleCursor",
        "host": request.server.topology.me.clone(),
        "ns": cursor.namespace.to_string(),
        "cursor": {
            "cursorId": cursor.id,
            "lastAccessDate": DateTime::from_millis(last),
            "noCursorTimeout": cursor.no_timeout,
        },
    };
    if let (Some(origin), Ok(cursor)) = (&cursor.origin, shown.get_document_mut("cursor")) {
        opened_by(cursor, origin);
    }
    let user = cursor.owner.user.as_ref();
    if let Some((database, name)) = user.and_then(|user| user.split_once('.')) {
        let user = doc! {"user": name, "db": database};
        shown.insert("effectiveUsers", vec![Bson::from(user)]);
    }
    let session = cursor.owner.session.as_deref();
    if let Some(id) = session.and_then(super::kill_sessions::session_of) {
        shown.insert("lsid", lsid(&id));
    }
    shown
}

fn opened_by(cursor: &mut Document, origin: &Origin) {
    cursor.insert("originatingCommand", origin.command.clone());
    if let Some(plan) = &origin.plan {
        cursor.insert("planSummary", plan.clone());
    }
}

fn idle_session(request: &Request, id: &SessionId, number: i64) -> Document {
    doc! {
        "type": "idleSession",
        "host": request.server.topology.me.clone(),
        "desc": "inactive transaction",
        "active": false,
        "lsid": lsid(id),
        "transaction": {"parameters": {"txnNumber": number, "autocommit": false}},
        "waitingForLock": false,
    }
}

fn lsid(session: &SessionId) -> Bson {
    let document = RawBson::Document(session.lsid());
    document.try_into().expect("BSON made here")
}

/// The filter of the list: every field that is not an option.
fn filter(request: &Request) -> Result<Filter> {
    let mut conditions = RawDocumentBuf::new();
    for element in request.body().iter().skip(1) {
        let (key, value) = element?;
        let name = key.as_str();
        if !GENERIC.contains(&name) && !matches!(name, "$all" | "$ownOps" | "$truncateOps") {
            conditions.append(key, value);
        }
    }
    Filter::parse(&conditions, &Settings::default())
}

/// The operations that the filter matches. Its expressions may take any time: few threads serve
/// this command and those that others wait for.
///
/// # Errors
/// `MaxTimeMSExpired` after [`FILTER_TIME`].
fn chosen(
    request: &Call<'_>,
    shown: Shown,
    filter: Option<&Filter>,
) -> Result<Vec<RawDocumentBuf>> {
    request.with_store(|_, op| {
        let mut timed = op.clone();
        let limit = stdx::time::now() + FILTER_TIME;
        timed.deadline = Some(op.deadline.map_or(limit, |own| own.min(limit)));
        let budget = Arc::clone(&request.server.memory);
        let _measured = timed.meter(Some(budget)).enter();
        let mut chosen = Vec::new();
        for operation in list(request, shown) {
            let operation = RawDocumentBuf::try_from(&operation)?;
            if filter.map_or(Ok(true), |filter| filter.matches(&operation))? {
                chosen.push(operation);
            }
        }
        Ok(chosen)
    })
}

fn current_op(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = request.arguments();
    let all = arguments
        .get("$all")
        .and_then(|all: RawBsonRef<'_>| switch(all))
        == Some(true);
    let shown = Shown {
        all_users: !is_own(arguments)?,
        idle_connections: all,
        idle_sessions: true,
        idle_cursors: false,
    };
    let filter = match all {
        true => None,
        false => Some(filter(request)?),
    };
    reply.open_array("inprog");
    for (at, operation) in chosen(request, shown, filter.as_ref())?.iter().enumerate() {
        reply.document(&at.to_string(), operation);
    }
    reply.close();
    if request.server.freeze.count() > 0 {
        reply.boolean("fsyncLock", true);
        reply.string(
            "info",
            "use db.fsyncUnlock() to terminate the fsync write lock",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_reported_in_numbers_and_words() {
        let stage = |done, total| {
            progress(Stage {
                what: "Index Build: scanning collection",
                done,
                total,
            })
        };
        let shown = stage(1_024, 4_096);
        assert_eq!(
            shown.get_str("msg").unwrap(),
            "Index Build: scanning collection Index Build: scanning collection: 1024/4096 25%"
        );
        assert_eq!(
            shown.get_document("progress").unwrap(),
            &doc! {"done": 1_024_i64, "total": 4_096_i64}
        );
        assert!(stage(0, 0).get_str("msg").unwrap().ends_with(": 0/0 100%"));
        assert!(stage(7, 5).get_str("msg").unwrap().ends_with(": 7/7 100%"));
    }
}

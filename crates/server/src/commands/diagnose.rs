//! Commands in work: `currentOp`, `killOp`; and the end of the server, `shutdown`.

use bson::{Bson, Document, doc};
use query::{Error, Result};
use wire::Builder;

use crate::dispatch::row::{ADMIN, LOOSE, Privilege, Row, TEST};
use crate::dispatch::slow;
use crate::dispatch::{Call, Request};

pub(super) const ROWS: &[Row] = &[
    Row {
        flags: ADMIN | LOOSE,
        privilege: Privilege::Cluster("inprog"),
        ..Row::new("currentOp", current_op, "List the commands in work")
    },
    Row {
        flags: ADMIN,
        fields: &["op"],
        privilege: Privilege::Cluster("killop"),
        ..Row::new("killOp", kill_op, "Interrupt a command")
    },
    Row {
        flags: ADMIN,
        fields: &["force", "timeoutSecs"],
        privilege: Privilege::Cluster("shutdown"),
        ..Row::new("shutdown", shutdown, "End the server")
    },
    Row {
        flags: TEST,
        ..Row::new(
            "testVersion2",
            nothing,
            "Belong to no version of the stable API, for tests",
        )
    },
];

fn nothing(_: &Call<'_>, _: &mut Builder) -> Result<()> {
    Ok(())
}

/// A command in work, as `currentOp` and `$currentOp` show it.
pub(crate) fn describe(request: &Request) -> Document {
    let taken = request.taken();
    let micros = i64::try_from(taken.as_micros()).unwrap_or(i64::MAX);
    let seconds = i64::try_from(taken.as_secs()).unwrap_or(i64::MAX);
    let state = request.client.state.lock();
    let metadata = state.metadata.clone().unwrap_or_default();
    let mut operation = doc! {
        "type": "op",
        "host": request.server.topology.me.clone(),
        "desc": request.client.name(),
        "connectionId": request.client.id,
        "client": request.client.peer.to_string(),
        "appName": state.application.clone(),
        "clientMetadata": Document::try_from(metadata).unwrap_or_default(),
        "active": true,
        "currentOpTime": crate::state::clock::now().try_to_rfc3339_string().unwrap_or_default(),
        "opid": request.operation,
        "secs_running": seconds,
        "microsecs_running": micros,
        "op": op(request.row.name),
        "ns": slow::namespace(request),
        "command": slow::shown(request),
        "numYields": 0,
        "waitingForLock": false,
        "killPending": request.killed.load(std::sync::atomic::Ordering::Relaxed),
    };
    if let Some(lsid) = request.generic.lsid {
        let id = bson::Binary {
            subtype: bson::spec::BinarySubtype::Uuid,
            bytes: lsid.to_vec(),
        };
        operation.insert("lsid", doc! {"id": id});
    }
    operation
}

fn op(command: &str) -> &'static str {
    match command {
        "insert" => "insert",
        "update" => "update",
        "delete" => "remove",
        "find" => "query",
        "getMore" => "getmore",
        _ => "command",
    }
}

fn current_op(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    reply.open_array("inprog");
    for (i, running) in request.server.operations.list().iter().enumerate() {
        reply.value(&i.to_string(), &Bson::Document(describe(running)));
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

fn kill_op(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let number = request.arguments()?.long("op")?;
    let number = number.and_then(|number| i32::try_from(number).ok());
    let number = number.ok_or_else(|| Error::location(26, "Did not provide \"op\" field"))?;
    // As MongoDB: success does not say that there was such an operation.
    request.server.operations.kill(number);
    reply.string("info", "attempting to kill op");
    Ok(())
}

fn shutdown(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    request.server.stop();
    Ok(())
}

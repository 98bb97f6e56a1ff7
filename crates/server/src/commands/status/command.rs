//! The commands that report statistics of the whole server.

use bson::{Bson, Document, doc};
use kv::EngineStats;
use query::Result;
use wire::Builder;

use super::{engine, replication, sections, system, work};
use crate::access::Privilege;
use crate::command::{ADMIN, LOOSE, Lane};
use crate::request::Call;
use crate::row::Row;
use crate::server::Server;
use crate::state::clock;

pub(in crate::commands) const ROWS: &[Row] = &[
    Row::new(
        "serverStatus",
        server_status,
        "Return metrics of the server",
    )
    .flags(LOOSE)
    .lane(Lane::Reserved)
    .privilege(Privilege::Cluster("serverStatus")),
    Row::new(
        "getDiagnosticData",
        diagnostic_data,
        "Return the data that monitoring collects, in one reply",
    )
    .flags(ADMIN | LOOSE)
    .lane(Lane::Reserved)
    .privilege(Privilege::Cluster("serverStatus")),
    Row::new(
        "connPoolStats",
        pool_stats,
        "Return connections to other servers",
    )
    .flags(ADMIN)
    .privilege(Privilege::Cluster("connPoolStats")),
    Row::new(
        "lockInfo",
        |_, reply| {
            reply.open_array("lockInfo").close();
            Ok(())
        },
        "Return lock statistics",
    )
    .flags(ADMIN)
    .privilege(Privilege::Cluster("serverStatus")),
];

/// All sections, in MongoDB's order where it has one. That of the engine is left out without its
/// statistics.
fn status(server: &Server, reply: &mut Builder, stats: Option<&EngineStats>) {
    sections::head(server, reply);
    reply.value(
        "asserts",
        &Bson::Document(doc! {
            "regular": 0, "warning": 0, "msg": 0,
            "user": i32::try_from(server.metrics.user_errors.get()).unwrap_or(i32::MAX),
            "tripwire": 0, "rollovers": 0,
        }),
    );
    sections::connections(server, reply);
    sections::extra(reply);
    sections::queues(server, reply);
    work::sessions(server, reply);
    sections::network(server, reply);
    sections::counters(server, reply);
    sections::replica_set(server, reply);
    replication::flow_control(server, reply);
    sections::security(server, reply);
    engine::storage(server, reply, stats);
    work::transactions(server, reply);
    sections::memory(reply);
    work::metrics(server, reply);
}

/// The reply of `serverStatus` as a document, without the section of the engine.
pub(crate) fn status_document(server: &Server) -> Document {
    let mut reply = Builder::new();
    status(server, &mut reply, None);
    Document::try_from(reply.into_document()).unwrap_or_default()
}

/// Processors and memory of the machine as a document.
pub(crate) fn system_document() -> Document {
    let mut reply = Builder::new();
    system::metrics(&mut reply);
    Document::try_from(reply.into_document()).unwrap_or_default()
}

fn server_status(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let stats = engine::stats(&call.server)?;
    status(&call.server, reply, Some(&stats));
    Ok(())
}

fn diagnostic_data(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let stats = engine::stats(&call.server)?;
    let begin = clock::now();
    reply.open_document("data").date("start", begin);
    reply.open_document("serverStatus").date("start", begin);
    status(&call.server, reply, Some(&stats));
    reply.date("end", clock::now()).double("ok", 1.0).close();
    let begin = clock::now();
    reply.open_document("systemMetrics").date("start", begin);
    system::metrics(reply);
    reply.date("end", clock::now()).close();
    reply.date("end", clock::now()).close();
    Ok(())
}

fn pool_stats(_: &Call<'_>, reply: &mut Builder) -> Result<()> {
    for name in ["numClientConnections", "numAScopedConnections"] {
        reply.int(name, 0);
    }
    for name in [
        "totalInUse",
        "totalAvailable",
        "totalLeased",
        "totalCreated",
        "totalRefreshing",
    ] {
        reply.int(name, 0);
    }
    reply
        .open_document("pools")
        .close()
        .open_document("hosts")
        .close();
    Ok(())
}

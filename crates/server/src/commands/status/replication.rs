//! What `serverStatus` reports of replication: what a member fetches and applies, how far members
//! are behind, and how writes are slowed down.

use bson::{Bson, Document, doc};
use wire::Builder;

use crate::cluster::traffic::Traffic;
use crate::flow;
use crate::long::long;
use crate::server::Server;

/// `metrics.repl`.
pub(super) fn metrics(server: &Server, reply: &mut Builder) {
    let none = Traffic::default();
    let member = server.member.as_ref();
    let traffic = member.map_or(&none, |member| &*member.storage.traffic);
    let (entries, bytes) = traffic.buffered();
    let mut shown = doc! {
        "apply": {
            "attemptsToBecomeSecondary": 0_i64,
            "batchSize": traffic.applied.get(),
            "batches": {"num": traffic.batches.get(), "totalMillis": traffic.apply_millis.get()},
            "ops": traffic.applied.get(),
        },
        "buffer": {
            "count": long(entries),
            "maxSizeBytes": long(flow::BYTES_MAX),
            "sizeBytes": long(bytes),
        },
        "network": {
            "bytes": traffic.fetched_bytes.get(),
            "getmores": {"num": traffic.fetches.get(), "totalMillis": traffic.fetch_millis.get()},
            "ops": traffic.fetched.get(),
            "readersCreated": 0_i64,
        },
    };
    if let Some(member) = member
        && let Some(config) = &member.view().config
    {
        let progress = member.progress.borrow();
        let lags = progress.lags.iter().map(|(id, lag)| {
            let host = config.host(*id).to_owned();
            (host, Bson::from(long(lag.as_millis())))
        });
        shown.insert("lagMillis", lags.collect::<Document>());
        let uncommitted = progress.uncommitted;
        shown.insert(
            "uncommitted",
            doc! {
                "millis": long(uncommitted.age.as_millis()),
                "bytes": long(uncommitted.bytes),
                "heldBy": uncommitted.held_by.map_or("", |id| config.host(id)),
            },
        );
    }
    reply.value("repl", &Bson::Document(shown));
}

/// `flowControl`.
pub(super) fn flow_control(server: &Server, reply: &mut Builder) {
    if !server.topology.is_replica_set() {
        return;
    }
    let load = flow::load(server);
    let delayed = &server.flow.delayed;
    reply.value(
        "flowControl",
        &Bson::Document(doc! {
            "enabled": flow::is_on(server),
            "targetRateLimit": i32::MAX,
            "timeAcquiringMicros": server.flow.micros.get(),
            "locksPerKiloOp": 0.0,
            "sustainerRate": 0,
            "isLagged": flow::SLOWS <= load,
            "isLaggedCount": delayed.get(),
            "isLaggedTimeMicros": server.flow.micros.get(),
            "load": load,
            "refused": server.flow.refused.get(),
        }),
    );
}

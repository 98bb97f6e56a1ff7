//! The sections of `serverStatus` about the process, its connections and the commands it ran.

use bson::{Bson, doc};
use wire::Builder;

use crate::commands::replica_set::role;
use crate::kernel::{self, Process, kibibytes};
use crate::long::long;
use crate::metrics::Latency;
use crate::oplog;
use crate::server::Server;
use crate::state::clock;
use crate::version::MONGODB;

fn latency(reply: &mut Builder, name: &str, latency: &Latency) {
    reply
        .open_document(name)
        .long("latency", latency.micros.get());
    reply.long("ops", latency.ops.get()).close();
}

/// The host, the process and its uptime.
pub(super) fn head(server: &Server, reply: &mut Builder) {
    let uptime = server.started.elapsed();
    let millis = long(uptime.as_millis());
    reply
        .string("host", &server.topology.me)
        .string("version", MONGODB);
    reply.string("process", "mongod");
    reply.long("pid", i64::from(std::process::id()));
    reply
        .double("uptime", uptime.as_secs_f64().floor())
        .long("uptimeMillis", millis);
    reply
        .long("uptimeEstimate", millis / 1_000)
        .date("localTime", clock::now());
}

pub(super) fn connections(server: &Server, reply: &mut Builder) {
    let connections = &server.connections;
    let current = connections.current();
    let awaiting = i32::try_from(server.metrics.awaiting.get()).unwrap_or(i32::MAX);
    let active = i32::try_from(server.operations.list().len()).unwrap_or(i32::MAX);
    reply.open_document("connections");
    reply
        .int("current", current)
        .int("available", connections.available());
    reply.int(
        "totalCreated",
        i32::try_from(connections.total()).unwrap_or(i32::MAX),
    );
    reply.int(
        "rejected",
        i32::try_from(server.metrics.rejected.get()).unwrap_or(i32::MAX),
    );
    reply.int("active", active).int("threaded", current);
    reply
        .int("exhaustIsMaster", 0)
        .int("exhaustHello", 0)
        .int("awaitingTopologyChanges", awaiting);
    let guests = &server.guests;
    reply.open_document("unauthenticated");
    reply
        .long("current", long(guests.count()))
        .long("chargedBytes", long(guests.bytes()))
        .long("closed", guests.closed.get())
        .close();
    reply.close();
}

/// Logins and the number of users.
pub(super) fn security(server: &Server, reply: &mut Builder) {
    reply.open_document("security");
    reply.open_document("authentication");
    reply
        .long("saslSupportedMechsReceived", 0)
        .long("failed", server.logins.failed.get())
        .long("delayed", server.logins.delayed.get());
    reply.open_document("mechanisms").close().close();
    reply.open_document("userCache");
    reply
        .long("reads", server.users.reads.get())
        .long("computed", server.users.computed.get())
        .close();
    reply.close();
}

/// Running commands, and commands that wait for a worker.
pub(super) fn queues(server: &Server, reply: &mut Builder) {
    let count = |n: i64| i32::try_from(n.max(0)).unwrap_or(i32::MAX);
    let waiting = count(server.metrics.waiting.get());
    let waiting_writers = count(server.metrics.waiting_writes.get()).min(waiting);
    let uptime = long(server.started.elapsed().as_micros());
    let running = server.operations.list();
    let writers = running
        .iter()
        .filter(|operation| operation.writes())
        .count();
    let writers = i32::try_from(writers).unwrap_or(i32::MAX);
    let active = i32::try_from(running.len()).unwrap_or(i32::MAX);
    reply.value(
        "globalLock",
        &Bson::Document(doc! {
            "totalTime": uptime,
            "currentQueue": {
                "total": waiting, "readers": waiting - waiting_writers, "writers": waiting_writers,
            },
            "activeClients": {"total": active, "readers": active - writers, "writers": writers},
        }),
    );
    let free = i32::try_from(server.admission.available_permits()).unwrap_or(i32::MAX);
    let total = i32::try_from(crate::limits::WORKERS).unwrap_or(i32::MAX);
    reply.value(
        "queues",
        &Bson::Document(doc! {
            "execution": {"total": {
                "out": total.saturating_sub(free), "available": free, "totalTickets": total,
                "queueLength": waiting,
            }},
            "rejected": server.metrics.overloaded.get(),
        }),
    );
}

/// Bytes and messages of the network.
pub(super) fn network(server: &Server, reply: &mut Builder) {
    let metrics = &server.metrics;
    reply.open_document("network");
    reply
        .long("bytesIn", metrics.bytes_in.get())
        .long("bytesOut", metrics.bytes_out.get());
    reply.long("physicalBytesIn", metrics.physical_in.get());
    reply.long("physicalBytesOut", metrics.physical_out.get());
    reply
        .long("numSlowDNSOperations", 0)
        .long("numSlowSSLOperations", 0);
    reply.long("numRequests", metrics.requests.get());
    reply.open_document("compression");
    for compressor in &server.config.compressors {
        let name = compressor.name();
        let Some(work) = metrics.compression.get(name) else {
            continue;
        };
        reply.open_document(name);
        for (name, passed) in [
            ("compressor", &work.compressed),
            ("decompressor", &work.expanded),
        ] {
            reply
                .open_document(name)
                .long("bytesIn", passed.bytes_in.get())
                .long("bytesOut", passed.bytes_out.get())
                .close();
        }
        reply.close();
    }
    reply
        .close()
        .open_document("serviceExecutors")
        .close()
        .close();
}

/// Number and time of commands by class.
pub(super) fn counters(server: &Server, reply: &mut Builder) {
    let metrics = &server.metrics;
    reply.open_document("opLatencies");
    latency(reply, "reads", &metrics.reads);
    latency(reply, "writes", &metrics.writes);
    latency(reply, "commands", &metrics.commands);
    latency(reply, "transactions", &metrics.transactions);
    reply.close();
    let ops = &metrics.ops;
    reply
        .open_document("opcounters")
        .long("insert", ops.insert.get());
    reply
        .long("query", ops.query.get())
        .long("update", ops.update.get());
    reply
        .long("delete", ops.delete.get())
        .long("getmore", ops.getmore.get());
    reply.long("command", ops.command.get()).close();
    reply.open_document("opcountersRepl");
    for name in ["insert", "query", "update", "delete", "getmore", "command"] {
        reply.long(name, 0);
    }
    reply.close();
}

/// This member of the replica set, and its oplog.
pub(super) fn replica_set(server: &Server, reply: &mut Builder) {
    let topology = &server.topology;
    let Some(name) = &topology.set_name else {
        return;
    };
    reply.open_document("repl");
    if let Some(member) = &server.member {
        role(member, "isWritablePrimary", reply);
        reply.close();
        return oplog_of(server, reply);
    }
    reply
        .open_document("topologyVersion")
        .object_id("processId", topology.process);
    reply.long("counter", topology.counter()).close();
    reply.strings("hosts", [topology.me.as_str()]);
    reply.string("setName", name).int("setVersion", 1);
    // Dashboards read the old name, too.
    reply
        .boolean("ismaster", true)
        .boolean("isWritablePrimary", true)
        .boolean("secondary", false);
    reply
        .string("primary", &topology.me)
        .string("me", &topology.me);
    reply.object_id("electionId", topology.election).close();
    oplog_of(server, reply);
}

fn oplog_of(server: &Server, reply: &mut Builder) {
    if let Some(status) = oplog::status(&server.store) {
        reply.value("oplog", &Bson::Document(status));
    }
}

/// What the kernel counts for the process.
pub(super) fn extra(reply: &mut Builder) {
    let faults = Process::read().column(12).map_or(0, long);
    reply
        .open_document("extra_info")
        .string("note", "fields vary by platform")
        .long("page_faults", faults)
        .close();
}

/// Memory of the process.
pub(super) fn memory(reply: &mut Builder) {
    let status = kernel::text("/proc/self/status");
    let mebibytes = |name| {
        let kibibytes = kibibytes(&status, name).unwrap_or(0);
        i32::try_from(kibibytes / 1_024).unwrap_or(i32::MAX)
    };
    reply.open_document("mem").int("bits", 64);
    reply
        .int("resident", mebibytes("VmRSS"))
        .int("virtual", mebibytes("VmSize"));
    reply.boolean("supported", true).close();
}

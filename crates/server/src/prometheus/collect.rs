//! The metrics that are exported: those of `serverStatus`, and the size of each collection and
//! index.
//!
//! - M1. The number of samples is bounded: collections beyond [`LABELLED`] are counted in one
//!   sample and not exported one by one.

use std::sync::atomic::{AtomicU64, Ordering};

use super::float::{float, size, unsigned};
use super::text::{Kind, Label, Text};
use super::{engine, exporter, machine, replication};
use crate::histogram::{BOUNDS, BUCKETS, Histogram};
use crate::limits::LABELLED;
use crate::metrics::{Counter, Latency};
use crate::server::Server;
use crate::version::{MONGODB, ROMANESCO};

fn load(counter: &AtomicU64) -> f64 {
    unsigned(counter.load(Ordering::Relaxed))
}

/// All metrics as of now. Reads statistics of the engine, so it may block.
pub(super) fn collect(server: &Server) -> String {
    let mut text = Text::default();
    process(server, &mut text);
    strangers(server, &mut text);
    commands(server, &mut text);
    work(server, &mut text);
    shared(server, &mut text);
    cursors(server, &mut text);
    // Without statistics, of an engine that is closed or broken, its families are left out.
    if let Ok(stats) = server.store.engine().stats() {
        engine::append(server.store.engine().name(), &stats, &mut text);
    }
    collections(server, &mut text);
    replication::append(server, &mut text);
    machine::append(server, &mut text);
    exporter::append(server, &mut text);
    text.finish()
}

fn process(server: &Server, text: &mut Text) {
    let engine = server.store.engine().name();
    let labels = [
        ("version", ROMANESCO),
        ("mongodb", MONGODB),
        ("engine", engine),
    ];
    let help = "The build, always 1.";
    text.family("build_info", Kind::Gauge, help)
        .sample(&labels, 1.0);
    let uptime = server.started.elapsed().as_secs_f64();
    let help = "Seconds since the server started.";
    text.one("uptime_seconds", Kind::Gauge, help, uptime);
    let connections = &server.connections;
    text.family("connections", Kind::Gauge, "Connections of clients.")
        .sample(&[("state", "current")], f64::from(connections.current()))
        .sample(
            &[("state", "available")],
            f64::from(connections.available()),
        );
    let total = float(connections.total());
    let help = "Connections accepted.";
    text.one("connections_created_total", Kind::Counter, help, total);
    let metrics = &server.metrics;
    let help = "Connections refused because of net.maxIncomingConnections.";
    let refused = float(metrics.rejected.get());
    text.one("connections_refused_total", Kind::Counter, help, refused);
    let direction = |name| [("direction", name)];
    text.family("network_bytes_total", Kind::Counter, "Bytes of messages.")
        .sample(&direction("in"), float(metrics.bytes_in.get()))
        .sample(&direction("out"), float(metrics.bytes_out.get()));
    let requests = float(metrics.requests.get());
    let help = "Messages answered.";
    text.one("network_requests_total", Kind::Counter, help, requests);
    let active = size(server.operations.list().len());
    text.one("commands_active", Kind::Gauge, "Commands in work.", active);
    let waiting = float(metrics.waiting.get());
    let help = "Commands that wait for a worker.";
    text.one("commands_waiting", Kind::Gauge, help, waiting);
    let rejected = float(metrics.overloaded.get());
    let help = "Commands rejected because too many waited for a worker.";
    text.one("commands_rejected_total", Kind::Counter, help, rejected);
}

/// Clients that have not authenticated, and those that could not.
fn strangers(server: &Server, text: &mut Text) {
    let metrics = &server.metrics;
    let guests = &server.guests;
    let help = "Connections that have not authenticated.";
    let count = size(guests.count());
    text.one("connections_unauthenticated", Kind::Gauge, help, count);
    let help = "Memory charged to connections that have not authenticated.";
    let charged = size(guests.bytes());
    text.one(
        "connections_unauthenticated_bytes",
        Kind::Gauge,
        help,
        charged,
    );
    let help = "Connections that were closed before they authenticated.";
    let closed = float(guests.closed.get());
    text.one(
        "connections_unauthenticated_closed_total",
        Kind::Counter,
        help,
        closed,
    );
    text.family(
        "logins_total",
        Kind::Counter,
        "Logins that failed or were delayed.",
    )
    .sample(&[("result", "failed")], float(server.logins.failed.get()))
    .sample(&[("result", "delayed")], float(server.logins.delayed.get()));
    let help = "Requests to this endpoint without its token.";
    let untrusted = float(metrics.untrusted.get());
    text.one("endpoint_refused_total", Kind::Counter, help, untrusted);
}

fn commands(server: &Server, text: &mut Text) {
    let metrics = &server.metrics;
    let ops = &metrics.ops;
    text.family("operations_total", Kind::Counter, "Operations by type.");
    let counted: [(&str, &Counter); 6] = [
        ("insert", &ops.insert),
        ("query", &ops.query),
        ("update", &ops.update),
        ("delete", &ops.delete),
        ("getmore", &ops.getmore),
        ("command", &ops.command),
    ];
    for (name, counter) in counted {
        text.sample(&[("type", name)], float(counter.get()));
    }
    let classes: [(&str, &Latency); 4] = [
        ("read", &metrics.reads),
        ("write", &metrics.writes),
        ("command", &metrics.commands),
        ("transaction", &metrics.transactions),
    ];
    let help = "Seconds that commands took, by class.";
    text.family("command_seconds_total", Kind::Counter, help);
    for (name, latency) in classes {
        text.sample(&[("class", name)], float(latency.micros.get()) / 1e6);
    }
    text.family(
        "commands_by_class_total",
        Kind::Counter,
        "Commands by class.",
    );
    for (name, latency) in classes {
        text.sample(&[("class", name)], float(latency.ops.get()));
    }
    let used = || metrics.calls.iter().filter(|(_, c)| c.total.get() > 0);
    text.family("commands_total", Kind::Counter, "Commands by name.");
    for (name, calls) in used() {
        text.sample(&[("command", name)], float(calls.total.get()));
    }
    let help = "Commands that ended in an error, by name.";
    text.family("commands_failed_total", Kind::Counter, help);
    for (name, calls) in used() {
        text.sample(&[("command", name)], float(calls.failed.get()));
    }
    durations(server, text);
    let documents = &metrics.documents;
    let action = |name| [("action", name)];
    text.family("documents_total", Kind::Counter, "Documents by action.")
        .sample(&action("returned"), float(documents.returned.get()))
        .sample(&action("inserted"), float(documents.inserted.get()))
        .sample(&action("updated"), float(documents.updated.get()))
        .sample(&action("deleted"), float(documents.deleted.get()));
}

fn durations(server: &Server, text: &mut Text) {
    let one = |text: &mut Text, labels: &[Label<'_>], durations: &Histogram| {
        let bounds = BOUNDS.iter().map(|micros| float(*micros) / 1e6);
        let bounds = bounds.chain([f64::INFINITY]);
        let buckets = bounds.zip(durations.counts().map(float));
        text.histogram(labels, buckets, float(durations.micros()) / 1e6);
    };
    let help = "Durations of commands without greetings, by class.";
    text.family("operation_duration_seconds", Kind::Histogram, help);
    for (class, durations) in server.metrics.durations() {
        one(text, &[("class", class)], &durations);
    }
    let help = "Durations of commands without greetings, by name.";
    text.family("command_duration_seconds", Kind::Histogram, help);
    let calls = server.metrics.calls.iter();
    for (name, calls) in calls.filter(|(_, calls)| calls.durations.counts() != [0; BUCKETS]) {
        one(text, &[("command", name)], &calls.durations);
    }
}

fn work(server: &Server, text: &mut Text) {
    let store = &server.store;
    let stats = store.figures();
    let conflicts = load(&stats.conflicts);
    let help = "Writes begun again because they conflicted.";
    text.one("write_conflicts_total", Kind::Counter, help, conflicts);
    let deleted = load(&stats.ttl_deleted);
    let help = "Documents that expired.";
    text.one("ttl_deleted_documents_total", Kind::Counter, help, deleted);
    let failed = load(&stats.ttl_failed);
    let help = "Deletes of expired documents that failed, for one index in one pass.";
    text.one("ttl_failed_deletes_total", Kind::Counter, help, failed);
    let passes = load(&stats.ttl_passes);
    let help = "Passes over what expires.";
    text.one("ttl_passes_total", Kind::Counter, help, passes);
    let started = load(&stats.transactions_started);
    let help = "Transactions begun.";
    text.one("transactions_started_total", Kind::Counter, help, started);
    let committed = load(&stats.transactions_committed);
    let help = "Transactions committed.";
    text.one(
        "transactions_committed_total",
        Kind::Counter,
        help,
        committed,
    );
    let open = size(store.open_transactions());
    text.one("transactions_open", Kind::Gauge, "Transactions open.", open);
    let oldest = store.oldest_transaction().unwrap_or_default();
    let help = "Age of the oldest open transaction in seconds, 0 without one.";
    let oldest = oldest.as_secs_f64();
    text.one("transaction_oldest_seconds", Kind::Gauge, help, oldest);
    let sessions = size(store.session_ids().len());
    text.one("sessions", Kind::Gauge, "Sessions in use.", sessions);
}

/// What queries share: memory, and turns on the processors.
fn shared(server: &Server, text: &mut Text) {
    let memory = server.memory.usage();
    text.family(
        "query_memory_bytes",
        Kind::Gauge,
        "Memory of all queries together.",
    )
    .sample(&[("state", "limit")], size(memory.limit))
    .sample(&[("state", "used")], size(memory.used))
    .sample(&[("state", "peak")], size(memory.peak));
    let help = "Requests for memory of queries that were refused.";
    let refused = unsigned(memory.refused);
    text.one("query_memory_refused_total", Kind::Counter, help, refused);
    let slots = server.processors.usage();
    text.family(
        "time_slices",
        Kind::Gauge,
        "Time slices of long operations.",
    )
    .sample(&[("state", "slots")], size(slots.total))
    .sample(&[("state", "held")], size(slots.held))
    .sample(&[("state", "waiting")], size(slots.waiting));
}

fn cursors(server: &Server, text: &mut Text) {
    let store = &server.store;
    let cursors = store.cursor_figures();
    text.family("cursors", Kind::Gauge, "Cursors open.")
        .sample(&[("state", "open")], unsigned(cursors.open))
        .sample(&[("state", "pinned")], unsigned(cursors.pinned))
        .sample(&[("state", "no_timeout")], unsigned(cursors.no_timeout));
    let opened = unsigned(cursors.opened);
    let help = "Cursors opened.";
    text.one("cursors_opened_total", Kind::Counter, help, opened);
    let timed_out = unsigned(cursors.timed_out);
    let help = "Cursors ended for lack of use.";
    text.one("cursors_timed_out_total", Kind::Counter, help, timed_out);
}

fn collections(server: &Server, text: &mut Text) {
    let store = &server.store;
    let catalog = store.catalog();
    let all: Vec<_> = catalog
        .iter()
        .filter_map(|(_, named)| named.collection())
        .collect();
    let (labelled, left) = all.split_at(all.len().min(LABELLED));
    assert!(
        labelled.len() <= LABELLED,
        "M1: the number of samples is bounded"
    );
    let help = "Collections without metrics of their own because there are too many.";
    text.one("collections_left_out", Kind::Gauge, help, size(left.len()));
    text.family("collection_documents", Kind::Gauge, "Documents.");
    for collection in labelled {
        let ns = collection.ns();
        let labels = [("database", ns.db.as_str()), ("collection", &ns.coll)];
        text.sample(&labels, float(collection.count()));
    }
    text.family("collection_bytes", Kind::Gauge, "Bytes of documents.");
    for collection in labelled {
        let ns = collection.ns();
        let labels = [("database", ns.db.as_str()), ("collection", &ns.coll)];
        text.sample(&labels, float(collection.data_size()));
    }
    let help = "Bytes that the documents of a collection take in files.";
    text.family("collection_storage_bytes", Kind::Gauge, help);
    for collection in labelled {
        let ns = collection.ns();
        let labels = [("database", ns.db.as_str()), ("collection", &ns.coll)];
        text.sample(&labels, float(store.tree_bytes(collection.records())));
    }
    let help = "Bytes that an index takes in files.";
    text.family("index_storage_bytes", Kind::Gauge, help);
    for collection in labelled {
        let ns = collection.ns();
        for index in collection.indexes() {
            let labels = [
                ("database", ns.db.as_str()),
                ("collection", &ns.coll),
                ("index", index.name()),
            ];
            text.sample(&labels, float(store.tree_bytes(index.tree())));
        }
    }
}

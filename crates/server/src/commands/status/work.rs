//! The sections of `serverStatus` about documents, cursors, sessions and transactions.

use std::sync::atomic::{AtomicU64, Ordering};

use wire::Builder;

use crate::long::long;
use crate::server::Server;

fn load(counter: &AtomicU64) -> i64 {
    long(counter.load(Ordering::Relaxed))
}

pub(super) fn sessions(server: &Server, reply: &mut Builder) {
    let count = server.store.session_ids().len();
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    reply.open_document("logicalSessionRecordCache");
    reply.int("activeSessionsCount", count);
    reply
        .int("sessionsCollectionJobCount", 0)
        .int("lastSessionsCollectionJobDurationMillis", 0);
    reply.date("lastSessionsCollectionJobTimestamp", server.started_at);
    reply
        .int("lastSessionsCollectionJobEntriesRefreshed", 0)
        .int("lastSessionsCollectionJobEntriesEnded", 0);
    reply.int("lastSessionsCollectionJobCursorsClosed", 0);
    reply.int("sessionCatalogSize", count).close();
}

/// Multi-document transactions.
pub(super) fn transactions(server: &Server, reply: &mut Builder) {
    let stats = server.store.figures();
    let open = long(server.store.open_transactions());
    let started = load(&stats.transactions_started);
    let committed = load(&stats.transactions_committed);
    let active = server.operations.list();
    let active = active.iter().filter(|op| op.generic.in_transaction).count();
    let active = long(active).min(open);
    reply.open_document("transactions");
    reply
        .long("retriedCommandsCount", 0)
        .long("retriedStatementsCount", 0)
        .long("transactionsCollectionWriteCount", 0);
    reply
        .long("currentActive", active)
        .long("currentInactive", open - active)
        .long("currentOpen", open);
    reply
        .long("totalAborted", (started - committed - open).max(0))
        .long("totalCommitted", committed)
        .long("totalStarted", started);
    reply
        .long("totalPrepared", 0)
        .long("totalPreparedThenCommitted", 0)
        .long("totalPreparedThenAborted", 0)
        .long("currentPrepared", 0)
        .close();
}

fn cursors(server: &Server, reply: &mut Builder) {
    let stats = server.store.cursor_figures();
    reply.open_document("cursor");
    reply
        .long("moreThanOneBatch", long(stats.opened))
        .long("timedOut", long(stats.timed_out))
        .long("totalOpened", long(stats.opened));
    reply.open_document("open");
    reply
        .long("noTimeout", long(stats.no_timeout))
        .long("pinned", long(stats.pinned))
        .long("multiTarget", 0)
        .long("singleTarget", 0)
        .long("total", long(stats.open));
    reply.close().close();
}

/// The time slices of long operations.
fn slices(server: &Server, reply: &mut Builder) {
    let slots = server.processors.usage();
    reply.open_document("timeSlices");
    reply
        .long("slots", long(slots.total))
        .long("held", long(slots.held))
        .long("waiting", long(slots.waiting))
        .long("waits", long(slots.waits))
        .close();
    reply.open_document("inline");
    reply
        .long("commands", server.metrics.inline.get())
        .long("waited", server.metrics.inline_waited.get())
        .close();
}

/// Counters of commands, documents, cursors and expiry.
pub(super) fn metrics(server: &Server, reply: &mut Builder) {
    let metrics = &server.metrics;
    let stats = server.store.figures();
    reply.open_document("metrics").open_document("commands");
    for (name, calls) in &metrics.calls {
        if calls.total.get() > 0 {
            reply.open_document(name).long("failed", calls.failed.get());
            reply.long("total", calls.total.get()).close();
        }
    }
    reply.close();
    cursors(server, reply);
    let documents = &metrics.documents;
    reply
        .open_document("document")
        .long("deleted", documents.deleted.get());
    reply.long("inserted", documents.inserted.get());
    reply.long("returned", documents.returned.get());
    reply.long("updated", documents.updated.get()).close();
    reply
        .open_document("operation")
        .long("scanAndOrder", 0)
        .long("writeConflicts", load(&stats.conflicts))
        .close();
    let memory = server.memory.usage();
    reply.open_document("query").open_document("memory");
    reply
        .long("limitBytes", long(memory.limit))
        .long("usedBytes", long(memory.used));
    reply
        .long("peakBytes", long(memory.peak))
        .long("refused", long(memory.refused));
    reply.close();
    slices(server, reply);
    reply.close();
    super::replication::metrics(server, reply);
    reply.open_document("ttl");
    reply
        .long("deletedDocuments", load(&stats.ttl_deleted))
        .long("failedDeletes", load(&stats.ttl_failed))
        .long("passes", load(&stats.ttl_passes))
        .close();
    reply.close();
}

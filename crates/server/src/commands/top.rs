//! `top`: usage of each collection.

use query::Result;
use wire::Builder;

use crate::access::Privilege;
use crate::command::{ADMIN, Kind};
use crate::metrics::Latency;
use crate::request::Call;
use crate::row::Row;
use crate::state::usage::Usage;

pub(super) const ROWS: &[Row] =
    &[
        Row::new("top", top, "Return usage statistics of each collection")
            .flags(ADMIN)
            .privilege(Privilege::Cluster("top")),
    ];

fn figure(reply: &mut Builder, name: &str, micros: i64, ops: i64) {
    reply
        .open_document(name)
        .long("time", micros)
        .long("count", ops)
        .close();
}

fn latency(reply: &mut Builder, name: &str, latency: &Latency) {
    figure(reply, name, latency.micros.get(), latency.ops.get());
}

fn describe(reply: &mut Builder, name: &str, usage: &Usage) {
    reply.open_document(name);
    let (reads, writes) = (&usage.reads, &usage.writes);
    figure(
        reply,
        "total",
        reads.micros.get() + writes.micros.get(),
        reads.ops.get() + writes.ops.get(),
    );
    latency(reply, "readLock", reads);
    latency(reply, "writeLock", writes);
    for (name, kind) in [
        ("queries", Kind::Query),
        ("getmore", Kind::GetMore),
        ("insert", Kind::Insert),
        ("update", Kind::Update),
        ("remove", Kind::Remove),
        ("commands", Kind::Command),
    ] {
        latency(reply, name, usage.of(kind));
    }
    reply.close();
}

fn top(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let server = &request.server;
    let catalog = server.store.catalog();
    let exists = |database: &str, collection: &str| {
        let ns = query::Namespace {
            db: database.to_owned(),
            coll: collection.to_owned(),
        };
        catalog.get(&ns).is_some()
    };
    reply
        .open_document("totals")
        .string("note", "all times in microseconds");
    for (name, usage) in server.usages.list(exists) {
        describe(reply, &name, &usage);
    }
    reply.close();
    Ok(())
}

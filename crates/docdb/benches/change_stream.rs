//! How fast does one change stream deliver events, and how fast does it pass entries of others?
//!
//! `cargo bench -p docdb --bench change_stream -- [DOCUMENTS]` (default: 200,000). The documents of
//! iibench are inserted one by one and in batches, updated and deleted; the entries are copied into
//! memory, and then read by streams. So reading the oplog from the engine is not in the times.

#[expect(dead_code, reason = "the collection of this program has no indexes")]
mod purchases;

use std::sync::Arc;

use bson::{RawDocument, RawDocumentBuf, Timestamp, Uuid, rawdoc};
use docdb::change::event::Documents;
use docdb::change::options::Options as Stage;
use docdb::change::stream::{Entries, Stream};
use docdb::oplog::entry::Entry;
use docdb::{DeleteStatement, InsertOptions, Namespace, Op, Options, Store, UpdateStatement};
use kv::{Durability, EngineOptions};
use stdx::{Rng, time};

const BATCH: usize = 500;

struct Log {
    entries: Vec<(Timestamp, RawDocumentBuf)>,
    next: usize,
}

impl Entries for Log {
    fn seek(&mut self, time: Timestamp) -> query::Result<bool> {
        self.next = self.entries.partition_point(|(at, _)| *at < time);
        Ok(true)
    }

    fn advance(&mut self) -> query::Result<Option<(Timestamp, &RawDocument)>> {
        let entry = self.entries.get(self.next);
        self.next += 1;
        Ok(entry.map(|(time, bytes)| (*time, &**bytes)))
    }

    fn entry(&mut self, time: Timestamp) -> query::Result<Option<RawDocumentBuf>> {
        let found = self.entries.binary_search_by_key(&time, |(at, _)| *at);
        let found = found.ok().and_then(|at| self.entries.get(at));
        Ok(found.map(|(_, bytes)| bytes.clone()))
    }

    fn visible(&self) -> Timestamp {
        self.entries.last().map_or(BEGIN, |(time, _)| *time)
    }
}

struct Nothing;

impl Documents for Nothing {
    fn current(&self, _: &str, _: Uuid, _: &RawDocument) -> query::Result<Option<RawDocumentBuf>> {
        Ok(None)
    }

    fn before(&self, _: Uuid, _: Timestamp, _: i64) -> query::Result<Option<RawDocumentBuf>> {
        Ok(None)
    }
}

const BEGIN: Timestamp = Timestamp {
    time: 1,
    increment: 0,
};

fn main() {
    let argument = std::env::args().skip(1).find(|a| a != "--bench");
    let documents: usize = argument.and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let factory = kv::memory::factory();
    let engine = factory.open(directory.path(), &EngineOptions::default());
    let options = Options {
        oplog: true,
        ..Options::default()
    };
    let store = Store::open(Arc::from(engine.expect("open")), options).expect("a store");
    let ns = Namespace::new("iibench", "purchases").expect("a name");
    let other = Namespace::new("iibench", "other").expect("a name");
    for (title, write) in [
        (
            "inserts, one by one",
            one_by_one as fn(&Store, &Namespace, usize),
        ),
        ("inserts, in batches", in_batches),
        ("updates of one field", updates),
        ("deletes", deletes),
    ] {
        let from = entries(&store, BEGIN).len();
        write(&store, &ns, documents);
        let mut log = Log {
            entries: entries(&store, BEGIN).split_off(from),
            next: 0,
        };
        let bytes: usize = log.entries.iter().map(|(_, e)| e.as_bytes().len()).sum();
        let count = log.entries.len();
        println!(
            "{title}: {count} entries, {} bytes each",
            bytes / count.max(1)
        );
        read(&mut log, &ns, "delivered");
        read(&mut log, &other, "passed");
    }
}

/// Reads all entries by a stream on a collection.
fn read(log: &mut Log, ns: &Namespace, what: &str) {
    let stage = rawdoc! { "startAtOperationTime": BEGIN };
    let stage = Stage::parse(&stage, ns).expect("a stage");
    let mut stream = Stream::new(stage, BEGIN, false).expect("a stream");
    let count = log.entries.len();
    let start = time::now();
    let mut reading = stream.read(log, &Nothing).expect("a position");
    let (mut events, mut bytes) = (0_usize, 0_usize);
    while let Some(event) = reading.next_event().expect("an event") {
        events += 1;
        bytes += event.document.as_bytes().len();
    }
    let micros = start.elapsed().as_secs_f64() * 1e6;
    let units = if events == 0 { count } else { events };
    println!(
        "  {what:<9} {events:>8} events of {:>4} bytes, {:>6.3} us each",
        bytes / events.max(1),
        micros / units.max(1) as f64
    );
}

fn entries(store: &Store, after: Timestamp) -> Vec<(Timestamp, RawDocumentBuf)> {
    let mut all: Vec<(Timestamp, RawDocumentBuf)> = Vec::new();
    loop {
        let last = all.last().map_or(after, |(time, _)| *time);
        let more = store.oplog_after(last, 10_000).expect("entries");
        if more.is_empty() {
            return all;
        }
        let timed = |bytes: RawDocumentBuf| {
            let time = Entry::parse(&bytes).expect("an entry").at.ts;
            (time, bytes)
        };
        all.extend(more.into_iter().map(timed));
    }
}

fn op() -> Op<'static> {
    Op::new(Durability::Interval)
}

fn insert(store: &Store, ns: &Namespace, documents: usize, batch: usize) {
    let mut rng = Rng::new(1);
    for _ in 0..documents.div_ceil(batch) {
        let owned: Vec<RawDocumentBuf> =
            (0..batch).map(|_| purchases::document(&mut rng)).collect();
        let raw: Vec<&RawDocument> = owned.iter().map(AsRef::as_ref).collect();
        let reply = store.insert(&op(), ns, &raw, InsertOptions::default());
        reply.expect("insert");
    }
}

fn one_by_one(store: &Store, ns: &Namespace, documents: usize) {
    insert(store, ns, documents, 1);
}

fn in_batches(store: &Store, ns: &Namespace, documents: usize) {
    insert(store, ns, documents, BATCH);
}

fn updates(store: &Store, ns: &Namespace, _: usize) {
    let change = rawdoc! { "$set": { "price": 1.5, "note": "changed" } };
    let mut all = UpdateStatement::new(RawDocumentBuf::new(), change);
    all.multi = true;
    store
        .update(&op(), ns, &[all], true, false)
        .expect("update");
}

fn deletes(store: &Store, ns: &Namespace, _: usize) {
    let mut all = DeleteStatement::new(RawDocumentBuf::new());
    all.multi = true;
    store.delete(&op(), ns, &[all], true).expect("delete");
}

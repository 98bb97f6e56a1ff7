//! What does a document cost on its way in, and where does the time go? The documents and the three
//! secondary indexes of iibench, in batches of 1,000, into betree.
//!
//! `cargo bench -p docdb --bench insert -- [oplog] DOCUMENTS [DIRECTORY]` (default: 500,000 in a
//! new temporary directory; with `oplog` the store keeps an oplog). The parts are measured by
//! themselves, on the same documents: checking (structure, depth, UTF-8), and making the keys of
//! all indexes; the rest of an insert is the engine's, the oplog's and the copying.

mod purchases;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use docdb::{InsertOptions, Namespace, Op, Options, Store, index::KeySet};
use kv::{Durability, EngineOptions};
use stdx::{ByteSize, Rng, time};

const BATCH: usize = 1000;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let (flags, arguments): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|a| a == "oplog");
    let documents: usize = arguments
        .first()
        .and_then(|n| n.parse().ok())
        .unwrap_or(500_000);
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let directory = arguments
        .get(1)
        .map_or_else(|| temporary.path().join("store"), PathBuf::from);
    let options = EngineOptions {
        cache: ByteSize::mib(512),
        ..EngineOptions::default()
    };
    let engine = kv_betree::factory()
        .open(&directory, &options)
        .expect("open");
    let options = Options {
        oplog: !flags.is_empty(),
        ..Options::default()
    };
    let store = Store::open(Arc::from(engine), options).expect("a store");
    let ns = Namespace::new("iibench", "purchases").expect("a name");
    let op = Op::new(Durability::Interval);
    store
        .create_indexes(&op, &ns, &purchases::indexes())
        .expect("indexes");
    let mut rng = Rng::new(1);
    let (mut inserting, mut checking, mut keying) =
        (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut bytes = 0;
    for batch in 0..documents.div_ceil(BATCH) {
        let owned: Vec<RawDocumentBuf> =
            (0..BATCH).map(|_| purchases::document(&mut rng)).collect();
        let raw: Vec<&RawDocument> = owned.iter().map(AsRef::as_ref).collect();
        bytes += raw.iter().map(|d| d.as_bytes().len()).sum::<usize>();
        let start = time::now();
        let reply = store
            .insert(&op, &ns, &raw, InsertOptions::default())
            .expect("insert");
        inserting += start.elapsed();
        assert_eq!(usize::try_from(reply.n), Ok(BATCH));
        if batch % 10 == 0 {
            checking += check(&raw) * 10;
            keying += make_keys(&store, &ns, &raw) * 10;
        }
    }
    let count = documents.div_ceil(BATCH) * BATCH;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
    println!(
        "{count} documents of {} bytes, batches of {BATCH}",
        bytes / count
    );
    println!("insert    {:8.2} us/document", each(inserting));
    println!("  check   {:8.2}", each(checking));
    println!("  keys    {:8.2}", each(keying));
    println!(
        "  engine  {:8.2}",
        each(inserting) - each(checking) - each(keying)
    );
    println!("{:.0} documents/s", count as f64 / inserting.as_secs_f64());
}

fn check(batch: &[&RawDocument]) -> Duration {
    let start = time::now();
    for document in batch {
        docdb::check_document(document).expect("a sound document");
    }
    start.elapsed()
}

fn make_keys(store: &Store, ns: &Namespace, batch: &[&RawDocument]) -> Duration {
    let collection = store.collection(ns).expect("it was made");
    let mut keys = KeySet::new();
    let start = time::now();
    for document in batch {
        for index in collection.indexes() {
            index.maker().keys(document, &mut keys).expect("keys");
        }
    }
    start.elapsed()
}

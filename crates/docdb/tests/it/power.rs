//! What followers of the oplog are shown, after a power loss.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf, Timestamp, doc};
use docdb::{Batch, FindRequest, GetMore, InsertOptions, Namespace, OplogReader, Options, Store};
use kv::EngineOptions;
use sim::{Crash, Outcome, Profile, SimOptions, SimVfs};

use crate::lab::{ns, of, op, raw};
use crate::replay;

/// A store on a simulated disk, whose log is synced only where it is asked for.
fn open(disk: &SimVfs, directory: &Path) -> Arc<Store> {
    let settings = EngineOptions {
        interval: Duration::from_secs(3_600),
        ..EngineOptions::default()
    };
    let engine = kv_betree::open_with(Arc::new(disk.clone()), directory, &settings).unwrap();
    let options = Options {
        oplog: true,
        oplog_period: None,
        ttl_period: None,
        ..Options::default()
    };
    Store::open(Arc::from(engine), options).unwrap()
}

/// The oplog of the store that a power loss would leave.
fn left(disk: &SimVfs, directory: &Path) -> Vec<RawDocumentBuf> {
    let image = disk.image(Crash {
        profile: Profile::DropsEverything,
        outcome: Outcome::None,
        seed: 1,
    });
    replay::entries(&open(&image, directory))
}

fn insert(store: &Store, id: i32) {
    let document = raw(&doc! { "_id": id });
    let documents: [&RawDocument; 1] = [&document];
    let options = InsertOptions::default();
    store.insert(&op(), &ns("c"), &documents, options).unwrap();
}

fn more(store: &Store, batch: &Batch) -> Vec<RawDocumentBuf> {
    let request = GetMore {
        id: batch.id,
        ns: batch.ns.clone(),
        batch_size: None,
        waits: false,
        waited: false,
    };
    store.get_more(&op(), &request).unwrap().documents
}

fn tailing(store: &Store, ts: Timestamp) -> Batch {
    let request = FindRequest {
        filter: raw(&doc! { "ts": { "$gt": ts } }),
        tailable: true,
        await_data: true,
        ..FindRequest::default()
    };
    let oplog = Namespace::new("local", "oplog.rs").unwrap();
    store.find(&op(), &oplog, &request).unwrap()
}

/// Reads what is new, and returns how much.
type Read = Box<dyn FnMut(&Arc<Store>) -> usize>;

/// A way to follow the oplog, which begins.
type Follow = fn(&Arc<Store>) -> Read;

fn stream(store: &Arc<Store>) -> Read {
    let stages = [doc! { "$changeStream": {} }];
    let batch = store.aggregate(&op(), &ns("c"), &of(&stages)).unwrap();
    Box::new(move |store| more(store, &batch).len())
}

fn tail(store: &Arc<Store>) -> Read {
    let before = store.oplog_visible().unwrap();
    insert(store, 100);
    let batch = tailing(store, before);
    Box::new(move |store| more(store, &batch).len())
}

fn first_batch(store: &Arc<Store>) -> Read {
    let before = store.oplog_visible().unwrap();
    Box::new(move |store| tailing(store, before).documents.len())
}

fn reader(store: &Arc<Store>) -> Read {
    let mut reader = OplogReader::after(store, store.oplog_visible().unwrap()).unwrap();
    Box::new(move |_| reader.next(9, usize::MAX).unwrap().len())
}

/// `oplog::synced`: D1; `aggregate::watch`: C2.
#[test]
fn an_entry_that_was_shown_survives_a_power_loss() {
    let ways: [(&str, Follow); 4] = [
        ("a change stream", stream),
        ("a tailable cursor", tail),
        ("its first batch", first_batch),
        ("a reader", reader),
    ];
    for (name, follow) in ways {
        let directory = tempfile::tempdir().unwrap();
        let disk = SimVfs::new(SimOptions::default());
        let store = open(&disk, directory.path());
        insert(&store, 0);
        let mut read = follow(&store);
        store.sync().unwrap();
        insert(&store, 1);
        let all = replay::entries(&store);
        let unsynced = left(&disk, directory.path());
        assert!(unsynced.len() < all.len(), "the last write is not synced");
        assert_eq!(read(&store), 1, "{name} shows it");
        assert_eq!(left(&disk, directory.path()), all, "D1: after {name}");
    }
}

/// A stream of another collection has nothing to make durable.
#[test]
fn a_batch_without_events_needs_no_sync() {
    let directory = tempfile::tempdir().unwrap();
    let disk = SimVfs::new(SimOptions::default());
    let store = open(&disk, directory.path());
    insert(&store, 0);
    let stages = [doc! { "$changeStream": {} }];
    let other = store.aggregate(&op(), &ns("other"), &of(&stages)).unwrap();
    store.sync().unwrap();
    insert(&store, 1);
    let unsynced = left(&disk, directory.path());
    assert_eq!(more(&store, &other).len(), 0);
    assert_eq!(left(&disk, directory.path()), unsynced);
}

//! The segments of the oplog: retention, reading across them, and opening a store.

use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf, Timestamp, doc};
use docdb::oplog::Limits;
use docdb::oplog::entry::{Entry, Operation};
use docdb::{InsertOptions, OplogReader, Options, Store};
use kv::{Batch, Durability, Engine, EngineOptions, Factory};

use crate::lab::{ns, op, raw};
use crate::replay::BEGIN;

/// Bytes of the documents that fill segments.
const FILL: usize = 400;

const SEGMENT: u64 = 2_000;

fn limits(bytes: u64) -> Limits {
    Limits {
        segment_bytes: SEGMENT,
        bytes,
        age: Duration::ZERO,
    }
}

fn factories() -> [&'static dyn Factory; 3] {
    [
        kv::memory::factory(),
        kv_betree::factory(),
        kv_lmdb::factory(),
    ]
}

fn open(engine: &Arc<dyn Engine>, limits: Limits) -> query::Result<Arc<Store>> {
    let options = Options {
        oplog: true,
        oplog_limits: limits,
        oplog_period: None,
        ttl_period: None,
        ..Options::default()
    };
    Store::open(Arc::clone(engine), options)
}

/// Run a test on an engine of each kind.
fn on_each(test: impl Fn(Arc<dyn Engine>)) {
    for factory in factories() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let engine = factory.open(&path, &EngineOptions::default()).unwrap();
        test(Arc::from(engine));
    }
}

/// Insert documents one by one, each larger than a fifth of a segment, and tend the oplog.
fn insert(store: &Store, ids: std::ops::Range<i32>) {
    for id in ids {
        let document = raw(&doc! { "_id": id, "fill": "x".repeat(FILL) });
        let documents: [&RawDocument; 1] = [&document];
        let options = InsertOptions::default();
        store.insert(&op(), &ns("c"), &documents, options).unwrap();
        store.tend_oplog().unwrap();
    }
}

/// The segments of an engine, by the numbers in their names.
fn segments(engine: &dyn Engine) -> Vec<u64> {
    let trees = engine.trees().unwrap();
    let numbers = trees.iter().filter_map(|t| t.strip_prefix("_oplog."));
    let mut numbers: Vec<u64> = numbers.map(|n| n.parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

fn time(entry: &RawDocument) -> Timestamp {
    Entry::parse(entry).unwrap().at.ts
}

/// The `_id`s that entries insert.
fn ids(entries: &[RawDocumentBuf]) -> Vec<i32> {
    let id = |entry: &RawDocumentBuf| match Entry::parse(entry).unwrap().operation {
        Operation::Insert { document, .. } => Some(document.get_i32("_id").unwrap()),
        _ => None,
    };
    entries.iter().filter_map(id).collect()
}

#[test]
fn a_reader_goes_across_segments_and_returns_each_entry_once() {
    on_each(|engine| {
        let store = open(&engine, limits(u64::MAX)).unwrap();
        insert(&store, 0..40);
        assert!(6 < segments(engine.as_ref()).len());
        let mut reader = OplogReader::from_start(&store).unwrap();
        let mut all = Vec::new();
        loop {
            let some = reader.next(3, usize::MAX).unwrap();
            if some.is_empty() {
                break;
            }
            assert!(some.len() <= 3);
            assert_eq!(
                time(some.last().unwrap()),
                reader.position(),
                "R1: its position"
            );
            all.extend(some);
        }
        assert_eq!(ids(&all), (0..40).collect::<Vec<i32>>());
        assert_eq!(Some(reader.position()), store.oplog_visible());
        insert(&store, 40..41);
        assert_eq!(ids(&reader.next(9, usize::MAX).unwrap()), [40]);
        // Each entry as a place to begin at, in the middle of segments and at their edges.
        for (at, entry) in all.iter().enumerate() {
            let mut reader = OplogReader::seek(&store, time(entry)).unwrap();
            assert_eq!(reader.next(1, usize::MAX).unwrap(), all[at..=at]);
            let mut reader = OplogReader::after(&store, time(entry)).unwrap();
            let next = reader.next(9, 1).unwrap();
            assert_eq!(next.len(), 1, "one entry has more bytes than wanted");
            assert_eq!(next.first(), all.get(at + 1).or(next.first()));
        }
    });
}

/// `oplog::segments`: N3, and `follow::reader`: R1, with writers in parallel and segments that are
/// made and removed meanwhile.
#[test]
fn readers_miss_nothing_while_segments_change_under_writers() {
    const WRITERS: i32 = 4;
    const EACH: i32 = 60;
    on_each(|engine| {
        let store = open(&engine, limits(3 * SEGMENT)).unwrap();
        insert(&store, -1..0);
        let mut reader = OplogReader::from_start(&store).unwrap();
        reader.keep().unwrap();
        let writer = |writer: i32| {
            let store = Arc::clone(&store);
            let body = move || insert(&store, writer * EACH..(writer + 1) * EACH);
            stdx::sync::spawn("writer", body).unwrap()
        };
        let threads: Vec<_> = (0..WRITERS).map(writer).collect();
        let mut all = Vec::new();
        let mut last = BEGIN;
        while all.len() < usize::try_from(WRITERS * EACH + 1).unwrap() {
            let entries = reader.next(7, usize::MAX).unwrap();
            for entry in &entries {
                assert!(last < time(entry), "R1: {last:?}");
                last = time(entry);
            }
            all.extend(ids(&entries));
            if entries.is_empty() {
                let soon = stdx::time::now() + Duration::from_millis(50);
                let _ = reader.wait(soon);
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
        all.sort_unstable();
        assert_eq!(all, (-1..WRITERS * EACH).collect::<Vec<i32>>());
        drop(reader);
        store.tend_oplog().unwrap();
        assert_ne!(segments(engine.as_ref()).first(), Some(&0));
    });
}

/// `oplog::segments`: N4, and `follow::reader`: R2.
#[test]
fn old_segments_are_removed_and_a_slow_reader_gets_an_error() {
    on_each(|engine| {
        let store = open(&engine, limits(2 * SEGMENT)).unwrap();
        insert(&store, 0..5);
        let mut slow = OplogReader::from_start(&store).unwrap();
        let first = slow.next(2, usize::MAX).unwrap();
        insert(&store, 5..60);
        let stored = segments(engine.as_ref());
        assert!(
            stored.len() <= 4,
            "two are kept, and one is made ahead: {stored:?}"
        );
        assert!(5 < stored[0]);
        for mut reader in [slow, OplogReader::after(&store, time(&first[0])).unwrap()] {
            for _ in 0..2 {
                let lost = reader.next(1, usize::MAX).unwrap_err();
                assert_eq!(lost.code.0, 136, "R2: {lost}");
            }
            assert_eq!(reader.keep().unwrap_err().code.0, 136);
        }
        let mut reader = OplogReader::from_start(&store).unwrap();
        let kept = ids(&reader.next(usize::MAX, usize::MAX).unwrap());
        assert_eq!(kept.last(), Some(&59));
        assert!(6 < kept.len(), "N4: {kept:?}");
    });
}

#[test]
fn what_is_pinned_or_young_is_kept() {
    on_each(|engine| {
        let store = open(&engine, limits(SEGMENT)).unwrap();
        insert(&store, 0..5);
        let mut reader = OplogReader::from_start(&store).unwrap();
        reader.keep().unwrap();
        insert(&store, 5..30);
        assert_eq!(segments(engine.as_ref())[0], 0, "N4: it is pinned");
        let read = reader.next(20, usize::MAX).unwrap();
        store.tend_oplog().unwrap();
        let oldest = segments(engine.as_ref())[0];
        assert_ne!(oldest, 0, "the pin follows the reader");
        let rest = ids(&reader.next(99, usize::MAX).unwrap());
        assert_eq!(rest.last(), Some(&29));
        assert_eq!(rest.first(), ids(&read).last().map(|id| id + 1).as_ref());
        drop(reader);
        store.set_oplog_limits(|limits| limits.age = Duration::from_secs(3600));
        insert(&store, 30..80);
        assert!(10 < segments(engine.as_ref()).len(), "they are young");
        store.set_oplog_limits(|limits| limits.age = Duration::ZERO);
        store.tend_oplog().unwrap();
        assert!(segments(engine.as_ref()).len() <= 3);
    });
}

/// The store is opened again in the same engine, as after a crash and after a clean close.
#[test]
fn segments_are_found_again_with_their_totals() {
    on_each(|engine| {
        let mut totals = None;
        let mut last = BEGIN;
        for clean in [false, true, false] {
            let store = open(&engine, limits(3 * SEGMENT)).unwrap();
            if let Some(totals) = totals {
                assert_eq!(store.oplog_totals(), totals);
            }
            assert!(last <= store.oplog_visible().unwrap(), "O3");
            let begin = store.collection(&ns("c")).map_or(0, |c| c.count());
            let begin = i32::try_from(begin).unwrap();
            insert(&store, begin..begin + 33);
            let mut reader = OplogReader::from_start(&store).unwrap();
            let all = reader.next(usize::MAX, usize::MAX).unwrap();
            let found = ids(&all);
            assert_eq!(found.last(), Some(&(begin + 32)));
            let size: usize = all.iter().map(|e| e.as_bytes().len() + 8).sum();
            let counted = (all.len() as u64, size as u64);
            assert_eq!(store.oplog_totals(), Some(counted));
            totals = Some(Some(counted));
            last = store.oplog_visible().unwrap();
            if clean {
                store.close().unwrap();
            }
        }
    });
}

/// Run `damage` on an engine with some segments; the message of the error at opening.
fn damaged(damage: impl Fn(&dyn Engine)) -> String {
    let directory = tempfile::tempdir().unwrap();
    let factory = kv::memory::factory();
    let engine = factory.open(directory.path(), &EngineOptions::default());
    let engine: Arc<dyn Engine> = Arc::from(engine.unwrap());
    let store = open(&engine, limits(u64::MAX)).unwrap();
    insert(&store, 0..20);
    drop(store);
    damage(engine.as_ref());
    match open(&engine, limits(u64::MAX)) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("the damage is not found"),
    }
}

fn write(engine: &dyn Engine, tree: &str, key: &[u8], value: Option<&[u8]>) {
    let tree = engine.open_tree(tree).unwrap();
    let mut batch = Batch::new();
    match value {
        Some(value) => batch.put(tree, key, value),
        None => batch.delete(tree, key),
    };
    engine.write(&batch, Durability::Interval).unwrap();
}

/// `oplog::segment`: N1 and N2.
#[test]
fn damaged_and_unknown_segments_are_named() {
    let named = |found: String, expected: &str| {
        assert!(found.contains(expected), "N1, N2: {found}");
    };
    let missing = damaged(|engine| engine.drop_tree("_oplog.1").unwrap());
    named(missing, "segment 1 of the oplog is missing");
    let foreign = damaged(|engine| {
        let options = kv::TreeOptions::default();
        engine.create_tree("_oplog.01", &options).unwrap();
    });
    named(foreign, "the tree '_oplog.01' is no segment of the oplog");
    let newer = damaged(|engine| write(engine, "_oplog.2", &[0], Some(&[3; 25])));
    named(newer, "segment 2 of the oplog has the form 3");
    let short = damaged(|engine| write(engine, "_oplog.2", &[0], Some(&[1, 0])));
    named(
        short,
        "segment 2 of the oplog has a header of another length",
    );
    let headless = damaged(|engine| write(engine, "_oplog.0", &[0], None));
    named(headless, "segment 0 of the oplog has entries and no header");
    let key = damaged(|engine| write(engine, "_oplog.0", b"xyz", Some(&[])));
    named(key, "segment 0 of the oplog has a key that is no time");
    let order = damaged(|engine| write(engine, "_oplog.1", &[0, 0, 0, 1, 0, 0, 0, 1], Some(&[])));
    named(order, "not later than those of the segment before it");
}

/// Trap 1 of replication: the visible time results from reservations, and a slot that is given up
/// does not stop it.
#[test]
fn a_failed_write_does_not_hold_the_visible_time() {
    on_each(|engine| {
        let store = open(&engine, limits(u64::MAX)).unwrap();
        insert(&store, 0..1);
        let before = store.oplog_visible().unwrap();
        let document = raw(&doc! { "_id": 0 });
        let reply = store.insert(&op(), &ns("c"), &[&document], InsertOptions::default());
        assert_eq!(reply.unwrap().errors.len(), 1);
        assert_eq!(store.oplog_slots(), None);
        insert(&store, 1..2);
        assert!(before < store.oplog_visible().unwrap());
        let entries = store.oplog_after(before, 9).unwrap();
        assert_eq!(ids(&entries), [1]);
        assert_eq!(store.oplog_slots(), None);
    });
}

/// `segments`: N5.
#[test]
fn a_store_opened_without_its_oplog_loses_it_and_no_reader_misses_what_is_changed_then() {
    on_each(|engine| {
        let store = open(&engine, limits(1 << 20)).unwrap();
        insert(&store, 0..3);
        let mut early = OplogReader::from_start(&store).unwrap();
        assert!(!early.next(1, usize::MAX).unwrap().is_empty());
        let position = early.position();
        drop(early);
        store.close().unwrap();
        drop(store);
        let options = Options {
            ttl_period: None,
            ..Options::default()
        };
        let without = Store::open(Arc::clone(&engine), options).unwrap();
        insert(&without, 3..4);
        without.close().unwrap();
        drop(without);
        let trees = engine.trees().unwrap();
        assert!(
            trees.iter().all(|tree| !tree.starts_with("_oplog.")),
            "{trees:?}"
        );
        for round in 0..2 {
            let store = open(&engine, limits(1 << 20)).unwrap();
            let mut late = OplogReader::after(&store, position).unwrap();
            assert_eq!(late.next(9, usize::MAX).unwrap_err().code.0, 136, "N5");
            let mut all = OplogReader::from_start(&store).unwrap();
            assert_eq!(all.next(9, usize::MAX).unwrap().len(), round, "N5");
            let id = 4 + i32::try_from(round).unwrap();
            insert(&store, id..id + 1);
            assert_eq!(all.next(9, usize::MAX).unwrap().len(), 1, "N5");
            store.close().unwrap();
        }
    });
}

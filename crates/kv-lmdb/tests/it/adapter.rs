//! Tests of opening, limits, cursors, full maps, statistics and backups.

use std::fs;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use kv::{
    Batch, Direction, Durability, EngineOptions, ErrorKind, Flow, KeyRange, RegionKind, StatScope,
    TreeId, TreeOptions,
};
use stdx::ByteSize;

use crate::support::{entries, keys, open, open_with, refused};

#[test]
fn the_factory_says_what_it_is() {
    let factory = kv_lmdb::factory();
    assert!(factory.available());
    assert_eq!(factory.name(), "lmdb");
    assert!(factory.version().unwrap().starts_with("0.9."));
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    assert_eq!(*engine.capabilities(), factory.capabilities());
}

#[test]
fn another_engines_directory_is_refused_naming_both() {
    let dir = tempfile::tempdir().unwrap();
    kv::identity::claim(dir.path(), "rocksdb", 1, "").unwrap();
    let error = refused(open_with(dir.path(), &[]));
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(text.contains("lmdb") && text.contains("rocksdb"), "{text}");
}

#[test]
fn a_store_opens_once_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let error = refused(open_with(dir.path(), &[]));
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("open already"), "{error}");
    engine.close().unwrap();
    open(dir.path());
}

#[test]
fn unknown_and_bad_options_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for own in [("page", "4096"), ("trees", "none")] {
        let error = refused(open_with(dir.path(), &[own]));
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(own.0), "{error}");
    }
    let error = refused(open_with(dir.path(), &[("page", "4096")]));
    assert!(error.to_string().contains("readahead"), "{error}");
}

#[test]
fn a_file_that_is_no_store_is_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).close().unwrap();
    fs::write(dir.path().join("data.mdb"), vec![7; 8192]).unwrap();
    let error = refused(open_with(dir.path(), &[]));
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[test]
fn the_longest_key_fits_and_one_more_byte_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let limit = engine.capabilities().limits.key_max;
    let (longest, longer) = (vec![b'k'; limit], vec![b'k'; limit + 1]);
    let mut txn = engine.begin_write().unwrap();
    for key in [&longer[..], b""] {
        assert_eq!(
            txn.put(tree, key, b"v").unwrap_err().kind(),
            ErrorKind::Invalid
        );
        assert_eq!(txn.get(tree, key).unwrap(), None);
        assert!(!txn.delete(tree, key).unwrap());
    }
    txn.put(tree, &longest, b"").unwrap();
    txn.commit(Durability::None).unwrap();
    let snapshot = engine.begin_read().unwrap();
    assert_eq!(snapshot.get(tree, &longest).unwrap(), Some(Vec::new()));
    let range = KeyRange::from(&longer);
    assert!(entries(&*snapshot, tree, range, Direction::Forward).is_empty());
    assert_eq!(
        entries(&*snapshot, tree, range, Direction::Backward).len(),
        0
    );
    let below = KeyRange {
        start: Bound::Unbounded,
        end: Bound::Included(&longer),
    };
    assert_eq!(
        entries(&*snapshot, tree, below, Direction::Backward).len(),
        1
    );
}

#[test]
fn a_value_beyond_the_limit_is_invalid_and_a_large_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let limit = engine.capabilities().limits.value_max;
    let mut txn = engine.begin_write().unwrap();
    let error = txn.put(tree, b"k", &vec![0; limit + 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let large = vec![7; 20 << 20];
    txn.put(tree, b"k", &large).unwrap();
    txn.commit(Durability::None).unwrap();
    let found = engine.begin_read().unwrap().get(tree, b"k").unwrap();
    assert!(found == Some(large));
}

#[test]
fn cursors_agree_with_a_sorted_list_for_all_bounds_and_seeks() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let list: Vec<&[u8]> = vec![b"b", b"d", b"dd", b"f"];
    let mut batch = Batch::new();
    for key in &list {
        batch.put(tree, key, key);
    }
    engine.write(&batch, Durability::None).unwrap();
    let probes: Vec<&[u8]> = vec![b"", b"a", b"b", b"c", b"d", b"dd", b"e", b"f", b"g"];
    let bounds = || {
        let of = |k: &&'static [u8]| [Bound::Included(*k), Bound::Excluded(*k)];
        let statics: [&'static [u8]; 9] = [b"", b"a", b"b", b"c", b"d", b"dd", b"e", b"f", b"g"];
        let mut all: Vec<Bound<&'static [u8]>> = statics.iter().flat_map(of).collect();
        all.push(Bound::Unbounded);
        all
    };
    let snapshot = engine.begin_read().unwrap();
    let mut checked = 0;
    for start in bounds() {
        for end in bounds() {
            let range = KeyRange { start, end };
            for direction in [Direction::Forward, Direction::Backward] {
                let mut wanted: Vec<&[u8]> = list.clone();
                wanted.retain(|key| range.contains(key));
                if direction == Direction::Backward {
                    wanted.reverse();
                }
                let found = entries(&*snapshot, tree, range, direction);
                let found: Vec<&[u8]> = found.iter().map(|(key, _)| key.as_slice()).collect();
                assert_eq!(found, wanted, "{range:?} {direction:?}");
                let mut cursor = snapshot.cursor(tree, range, direction).unwrap();
                assert!(cursor.key().is_empty());
                for probe in &probes {
                    let beyond = |key: &&&[u8]| match direction {
                        Direction::Forward => *probe <= **key,
                        Direction::Backward => **key <= *probe,
                    };
                    let at = wanted.iter().position(|key| beyond(&key));
                    let place = format!("{range:?} {direction:?} {probe:?}");
                    assert_eq!(cursor.seek(probe).unwrap(), at.is_some(), "{place}");
                    let key = at.map_or(&b""[..], |at| wanted[at]);
                    assert_eq!((cursor.key(), cursor.value()), (key, key), "{place}");
                    let next = at.and_then(|at| wanted.get(at + 1));
                    assert_eq!(cursor.advance().unwrap(), next.is_some(), "{place}");
                    checked += 1;
                }
            }
        }
    }
    assert_eq!(checked, 19 * 19 * 2 * 9);
}

#[test]
fn range_deletes_agree_with_a_sorted_list() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let key = |n: u32| n.to_be_bytes().to_vec();
    for (from, to) in [
        (0, 5000),
        (1, 4999),
        (100, 101),
        (2000, 4000),
        (7, 7),
        (9, 3),
    ] {
        let mut txn = engine.begin_write().unwrap();
        for n in 0..5000_u32 {
            txn.put(tree, &key(n), &[0; 60]).unwrap();
        }
        txn.delete_range(tree, KeyRange::half_open(&key(from), &key(to)))
            .unwrap();
        let left: Vec<Vec<u8>> = (0..5000)
            .filter(|n| !(from..to).contains(n))
            .map(key)
            .collect();
        assert_eq!(keys(&*txn, tree), left, "{from}..{to}");
        txn.delete_range(tree, KeyRange::ALL).unwrap();
        assert!(keys(&*txn, tree).is_empty());
        txn.commit(Durability::None).unwrap();
    }
}

#[test]
fn an_existing_key_is_refused_and_the_transaction_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let mut txn = engine.begin_write().unwrap();
    txn.insert(tree, b"k", b"1").unwrap();
    let error = txn.insert(tree, b"k", b"2").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert_eq!((error.tree(), error.key()), (Some("t"), Some(&b"k"[..])));
    txn.put(tree, b"l", b"3").unwrap();
    txn.commit(Durability::Sync).unwrap();
    let snapshot = engine.begin_read().unwrap();
    assert_eq!(snapshot.get(tree, b"k").unwrap(), Some(b"1".to_vec()));
    assert_eq!(keys(&*snapshot, tree).len(), 2);
}

#[test]
fn a_bad_batch_applies_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let mut batch = Batch::new();
    batch.put(tree, b"a", b"1");
    batch.put(tree, b"", b"2");
    let error = engine.write(&batch, Durability::Sync).unwrap_err();
    assert_eq!(
        (error.kind(), error.tree()),
        (ErrorKind::Invalid, Some("t"))
    );
    assert!(keys(&*engine.begin_read().unwrap(), tree).is_empty());
}

#[test]
fn a_full_map_is_full_and_reads_and_small_writes_go_on() {
    // I1 of `transaction`.
    let dir = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        size_max: ByteSize::mib(2),
        ..EngineOptions::default()
    };
    let engine = kv_lmdb::factory().open(dir.path(), &options).unwrap();
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let mut batch = Batch::new();
    batch.put(tree, b"before", b"v");
    engine.write(&batch, Durability::Sync).unwrap();
    let mut txn = engine.begin_write().unwrap();
    let error = (0..10_000_u32)
        .find_map(|n| txn.put(tree, &n.to_be_bytes(), &[0; 1000]).err())
        .expect("2 MiB hold no 10 MB");
    assert_eq!(error.kind(), ErrorKind::Full);
    assert!(error.to_string().contains("size_max"), "{error}");
    let again = txn.put(tree, b"k", b"v").unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Full);
    assert_eq!(
        txn.commit(Durability::Sync).unwrap_err().kind(),
        ErrorKind::Full
    );
    let found = engine.begin_read().unwrap().get(tree, b"before").unwrap();
    assert_eq!(found, Some(b"v".to_vec()));
    batch.put(tree, b"after", b"v");
    engine.write(&batch, Durability::Sync).unwrap();
    engine.verify().unwrap();
}

#[test]
fn a_map_larger_than_the_address_space_is_halved_until_it_fits() {
    let dir = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        size_max: ByteSize(u64::MAX),
        ..EngineOptions::default()
    };
    let engine = kv_lmdb::factory().open(dir.path(), &options).unwrap();
    let map = engine.stats().unwrap().counters["map_bytes"];
    assert!((1 << 30..1 << 62).contains(&map), "{map}");
}

#[test]
fn more_snapshots_than_slots_are_full() {
    for mode in ["metasync", "background"] {
        let dir = tempfile::tempdir().unwrap();
        let engine = open_with(dir.path(), &[("readers", "2"), ("interval", mode)]).unwrap();
        let held: Vec<_> = (0..2).map(|_| engine.begin_read().unwrap()).collect();
        // Statistics continue to work, except for those that need a snapshot.
        let counters = engine.stats().unwrap().counters;
        assert_eq!(counters["snapshots_open"], 2);
        assert!(!counters.contains_key("free_bytes"), "{counters:?}");
        let error = refused(engine.begin_read());
        assert_eq!(error.kind(), ErrorKind::Full);
        assert!(error.to_string().contains("readers"), "{error}");
        drop(held);
        engine.begin_read().unwrap();
    }
}

#[test]
fn a_snapshot_reads_every_tree_that_it_knows() {
    // snapshot: I1.
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let engine = &*engine;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..40_u32 {
                let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
                let mut batch = Batch::new();
                batch.put(tree, b"k", b"v");
                engine.write(&batch, Durability::None).unwrap();
                if n < 39 {
                    engine.drop_tree("t").unwrap();
                }
            }
            done.store(true, Ordering::Release);
        });
        let mut read = 0;
        while !done.load(Ordering::Acquire) || read == 0 {
            let snapshot = engine.begin_read().unwrap();
            for tree in (0..40).map(TreeId) {
                match snapshot.get(tree, b"k") {
                    Ok(_) => read += 1,
                    Err(e) => assert!(e.message().contains("not valid here"), "{e}"),
                }
            }
        }
    });
}

#[test]
fn statistics_count_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let empty = engine.tree_stats(tree, StatScope::Exact).unwrap();
    assert_eq!((empty.entries.value, empty.live_bytes), (0, Some(0)));
    assert_eq!(empty.mean_fill, None);
    let mut batch = Batch::new();
    for n in 0..2000_u32 {
        let value = vec![0; if n % 100 == 0 { 10_000 } else { 100 }];
        batch.put(tree, &n.to_be_bytes(), &value);
    }
    engine.write(&batch, Durability::Sync).unwrap();
    let stats = engine.tree_stats(tree, StatScope::Exact).unwrap();
    assert_eq!((stats.entries.value, stats.entries.exact), (2000, true));
    assert_eq!(stats.live_bytes, Some(2000 * 4 + 20 * 10_000 + 1980 * 100));
    let fill = stats.mean_fill.unwrap();
    assert!((0.3..=1.0).contains(&fill), "{stats:?}");
    assert_eq!(stats.allocated_bytes, stats.pages.map(|pages| pages * 4096));
    assert!(stats.live_bytes < stats.allocated_bytes, "{stats:?}");

    let snapshot = engine.begin_read().unwrap();
    let counters = engine.stats().unwrap().counters;
    assert_eq!(counters["snapshots_open"], 1);
    drop(snapshot);
    let map = engine.storage_map().unwrap();
    assert!(!map.offsets_are_real);
    let sum = |kind| -> u64 {
        let of_kind = map.regions.iter().filter(|region| region.kind == kind);
        of_kind.map(|region| region.length).sum()
    };
    // 10,004 bytes with a 16-byte header take three pages.
    assert_eq!(sum(RegionKind::Overflow), 20 * 3 * 4096);
    let whole: u64 = map.regions.iter().map(|region| region.length).sum();
    assert_eq!(whole, counters["used_bytes"]);
    assert_eq!(sum(RegionKind::Free), counters["free_bytes"]);
    let file = fs::metadata(dir.path().join("data.mdb")).unwrap().len();
    assert!(whole <= file, "{whole} {file}");
    engine.verify().unwrap();
}

#[test]
fn a_backup_opens_and_holds_what_was_there() {
    for kind in ["plain", "compact"] {
        let dir = tempfile::tempdir().unwrap();
        let engine = open_with(dir.path(), &[("backup", kind)]).unwrap();
        let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
        let mut batch = Batch::new();
        batch.put(tree, b"k", b"v");
        engine.write(&batch, Durability::Sync).unwrap();
        let outer = tempfile::tempdir().unwrap();
        let copy = outer.path().join("new/copy");
        let mut calls = 0;
        let mut watch = |_| {
            calls += 1;
            Flow::Continue
        };
        engine.backup(&copy, &mut watch).unwrap();
        assert_eq!(calls, 2);
        let error = refused(engine.backup(&copy, &mut |_| Flow::Continue));
        assert_eq!(error.kind(), ErrorKind::Exists);
        batch.put(tree, b"later", b"v");
        engine.write(&batch, Durability::Sync).unwrap();
        let copied = open(&copy);
        let tree = copied.open_tree("t").unwrap();
        assert_eq!(keys(&*copied.begin_read().unwrap(), tree), [b"k"]);
        copied.verify().unwrap();
    }
}

#[test]
fn a_cancelled_backup_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let copy = dir.path().join("copy");
    let ended = engine.backup(&copy, &mut |_| Flow::Cancel).unwrap();
    assert_eq!(ended, kv::Compaction::Cancelled);
    // backup: I1, an incomplete copy has no identity.
    assert!(!copy.exists());
}

#[test]
fn what_lmdb_cannot_do_is_unsupported() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let error = refused(engine.compact(tree, KeyRange::ALL, &mut |_| Flow::Continue));
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

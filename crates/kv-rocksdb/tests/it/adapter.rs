//! Properties of this adapter.

use std::fs;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kv::{
    Batch, Codec, Compaction, Direction, Durability, Engine, EngineOptions, Error, ErrorKind, Flow,
    IoReason, KeyRange, RegionKind, StatScope, TreeId, TreeOptions,
};

fn options(own: &[(&str, &str)]) -> EngineOptions {
    let own = own.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    EngineOptions {
        own: own.collect(),
        ..EngineOptions::default()
    }
}

fn open(directory: &Path) -> Box<dyn Engine> {
    open_with(directory, &[])
}

fn open_with(directory: &Path, own: &[(&str, &str)]) -> Box<dyn Engine> {
    kv_rocksdb::factory()
        .open(directory, &options(own))
        .unwrap()
}

fn refusal(directory: &Path, options: &EngineOptions) -> Error {
    let refused = kv_rocksdb::factory().open(directory, options).err();
    refused.expect("the open is refused")
}

fn put(engine: &dyn Engine, tree: TreeId, key: &[u8], value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(tree, key, value);
    engine.write(&batch, Durability::None).unwrap();
}

fn keys(engine: &dyn Engine, tree: TreeId) -> Vec<Vec<u8>> {
    let snapshot = engine.begin_read().unwrap();
    let mut cursor = snapshot
        .cursor(tree, KeyRange::ALL, Direction::Forward)
        .unwrap();
    let mut keys = Vec::new();
    while cursor.advance().unwrap() {
        keys.push(cursor.key().to_vec());
    }
    keys
}

fn fill(engine: &dyn Engine, tree: TreeId, count: u32) {
    let mut batch = Batch::new();
    for n in 0..count {
        batch.put(tree, &n.to_be_bytes(), &[7; 100]);
    }
    engine.write(&batch, Durability::None).unwrap();
}

#[test]
fn another_engines_directory_is_refused_naming_both() {
    let directory = tempfile::tempdir().unwrap();
    kv::identity::claim(directory.path(), "lmdb", 1, "").unwrap();
    let error = refusal(directory.path(), &EngineOptions::default());
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(text.contains("lmdb") && text.contains("rocksdb"), "{text}");
}

#[test]
fn unknown_and_bad_options_are_refused_before_anything_is_created() {
    let directory = tempfile::tempdir().unwrap();
    for (name, value) in [
        ("colour", "blue"),
        ("compaction", "fifo"),
        ("block", "1T"),
        ("codec", "lzma"),
    ] {
        let error = refusal(directory.path(), &options(&[(name, value)]));
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(name), "{error}");
    }
    assert!(vfs::is_empty(directory.path()).unwrap());
}

#[test]
fn the_compaction_is_fixed_at_creation() {
    let directory = tempfile::tempdir().unwrap();
    drop(open_with(directory.path(), &[("compaction", "universal")]));
    let error = refusal(directory.path(), &options(&[("compaction", "leveled")]));
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("universal"), "{error}");
    drop(open(directory.path()));
}

#[test]
fn an_open_store_is_locked_until_it_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let error = refusal(directory.path(), &EngineOptions::default());
    assert!(error.to_string().contains("open already"), "{error}");
    engine.close().unwrap();
    drop(open(directory.path()));
}

/// The number of threads of this process that have the name of the adapter's syncer.
fn syncers() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|name| name.trim() == "rocksdb-sync")
        .count()
}

#[test]
fn the_interval_thread_ends_on_close() {
    // Other tests of this process also start such threads, so the close is repeated until no other
    // test has started one meanwhile.
    for _ in 0..1_000 {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path());
        let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
        let mut batch = Batch::new();
        batch.put(tree, b"k", b"v");
        engine.write(&batch, Durability::Interval).unwrap();
        let open = syncers();
        assert!(1 <= open);
        engine.close().unwrap();
        if syncers() < open {
            return;
        }
    }
    panic!("the thread never ends");
}

#[test]
fn a_tree_keeps_its_options_and_data_over_a_reopen() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let with_filter = TreeOptions {
        point_lookups: true,
        ..TreeOptions::default()
    };
    let tree = engine.create_tree("a/b:c", &with_filter).unwrap();
    put(&*engine, tree, b"", b"empty key");
    engine.checkpoint().unwrap();
    engine.close().unwrap();
    let engine = open(directory.path());
    assert_eq!(engine.trees().unwrap(), ["a/b:c"]);
    let tree = engine.open_tree("a/b:c").unwrap();
    let value = engine.begin_read().unwrap().get(tree, b"").unwrap();
    assert_eq!(value.as_deref(), Some(&b"empty key"[..]));
    let error = engine
        .create_tree("a/b:c", &TreeOptions::default())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    engine.verify().unwrap();
}

#[test]
fn a_batch_makes_an_open_transaction_conflict() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let mut transaction = engine.begin_write().unwrap();
    transaction.put(tree, b"k", b"mine").unwrap();
    put(&*engine, tree, b"k", b"theirs");
    let error = transaction.commit(Durability::None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let value = engine.begin_read().unwrap().get(tree, b"k").unwrap();
    assert_eq!(value.as_deref(), Some(&b"theirs"[..]));
}

#[test]
fn flushes_do_not_make_open_transactions_conflict() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let mut first = engine.begin_write().unwrap();
    first.put(tree, b"a", b"1").unwrap();
    let mut second = engine.begin_write().unwrap();
    second.put(tree, b"b", b"1").unwrap();
    for key in [b"x", b"y", b"b"] {
        put(&*engine, tree, key, b"2");
        engine.checkpoint().unwrap();
    }
    first.commit(Durability::None).unwrap();
    let error = second.commit(Durability::None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[test]
fn concurrent_increments_are_all_counted() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 200;
    let directory = tempfile::tempdir().unwrap();
    let engine: Arc<dyn Engine> = Arc::from(open(directory.path()));
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    put(&*engine, tree, b"n", &0_u64.to_be_bytes());
    let increment = move |engine: &dyn Engine| {
        let mut transaction = engine.begin_write()?;
        let value = transaction.get(tree, b"n")?.unwrap();
        let next = u64::from_be_bytes(value.try_into().unwrap()) + 1;
        transaction.put(tree, b"n", &next.to_be_bytes())?;
        transaction.commit(Durability::None)
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let engine = Arc::clone(&engine);
            let body = move || {
                for _ in 0..ROUNDS {
                    while let Err(error) = increment(&*engine) {
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                    }
                }
            };
            stdx::sync::spawn("increment", body).unwrap()
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let value = engine
        .begin_read()
        .unwrap()
        .get(tree, b"n")
        .unwrap()
        .unwrap();
    assert_eq!(
        u64::from_be_bytes(value.try_into().unwrap()),
        THREADS * ROUNDS
    );
}

/// Batches set two keys to the same value; a transaction writes one of these keys with the value it
/// read. If its commit overwrote a batch that it had not seen, the two values would differ.
#[test]
fn a_batch_never_slips_between_the_check_and_the_write_of_a_commit() {
    let directory = tempfile::tempdir().unwrap();
    let engine: Arc<dyn Engine> = Arc::from(open(directory.path()));
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    put(&*engine, tree, b"log", b"");
    let appended = {
        let engine = Arc::clone(&engine);
        stdx::sync::spawn("batches", move || {
            for n in 0..500_u32 {
                let mut batch = Batch::new();
                batch.put(tree, b"log", &n.to_be_bytes());
                batch.put(tree, b"last", &n.to_be_bytes());
                engine.write(&batch, Durability::None).unwrap();
            }
        })
        .unwrap()
    };
    while !appended.is_finished() {
        let mut transaction = engine.begin_write().unwrap();
        let log = transaction.get(tree, b"log").unwrap().unwrap();
        transaction.put(tree, b"log", &log).unwrap();
        // A conflict is also a correct result: then the transaction wrote nothing.
        let _ = transaction.commit(Durability::None);
        let snapshot = engine.begin_read().unwrap();
        let last = snapshot.get(tree, b"last").unwrap();
        assert_eq!(
            snapshot.get(tree, b"log").unwrap(),
            last.or(Some(Vec::new()))
        );
    }
    appended.join().unwrap();
}

#[test]
fn blind_writes_see_no_conflict_but_are_read_in_the_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    put(&*engine, tree, b"gone", b"");
    let mut transaction = engine.begin_write().unwrap();
    transaction.put_blind(tree, b"k", b"mine").unwrap();
    transaction.delete_blind(tree, b"gone").unwrap();
    assert_eq!(transaction.get(tree, b"k").unwrap().unwrap(), b"mine");
    assert_eq!(transaction.get(tree, b"gone").unwrap(), None);
    put(&*engine, tree, b"k", b"theirs");
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(keys(&*engine, tree), [b"k"]);
}

#[test]
fn a_range_delete_of_stored_keys_makes_a_transaction_conflict_that_wrote_one() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    put(&*engine, tree, b"k", b"old");
    put(&*engine, tree, b"z", b"old");
    engine.checkpoint().unwrap();
    let mut inside = engine.begin_write().unwrap();
    inside.put(tree, b"k", b"new").unwrap();
    let mut outside = engine.begin_write().unwrap();
    outside.put(tree, b"z", b"new").unwrap();
    let mut batch = Batch::new();
    batch.delete_range(tree, KeyRange::half_open(b"a", b"m"));
    engine.write(&batch, Durability::None).unwrap();
    let error = inside.commit(Durability::None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    outside.commit(Durability::None).unwrap();
    assert_eq!(keys(&*engine, tree), [b"z"]);
    let mut later = engine.begin_write().unwrap();
    later.put(tree, b"k", b"newer").unwrap();
    later.commit(Durability::None).unwrap();
}

#[test]
fn an_open_ended_range_delete_takes_stored_and_batched_keys_of_any_length() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let longest = vec![0xff; 65_535];
    put(&*engine, tree, &longest, b"");
    put(&*engine, tree, b"a", b"");
    put(&*engine, tree, b"b", b"");
    let mut batch = Batch::new();
    batch.put(tree, b"c", b"");
    let after_a = KeyRange {
        start: Bound::Excluded(b"a"),
        end: Bound::Unbounded,
    };
    batch.delete_range(tree, after_a);
    batch.put(tree, b"d", b"");
    engine.write(&batch, Durability::None).unwrap();
    assert_eq!(keys(&*engine, tree), [b"a", b"d"]);

    let mut batch = Batch::new();
    batch.put(tree, b"zz", b"");
    batch.delete_range(tree, KeyRange::ALL);
    engine.write(&batch, Durability::None).unwrap();
    assert!(keys(&*engine, tree).is_empty());
    engine.write(&batch, Durability::None).unwrap();
    assert!(keys(&*engine, tree).is_empty());
}

#[test]
fn without_a_log_only_none_is_left_and_a_close_keeps_the_data() {
    let directory = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        log: false,
        ..EngineOptions::default()
    };
    let engine = kv_rocksdb::factory()
        .open(directory.path(), &options)
        .unwrap();
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let mut batch = Batch::new();
    batch.put(tree, b"k", b"v");
    for durability in [Durability::Interval, Durability::Group, Durability::Sync] {
        let error = engine.write(&batch, durability).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
    engine.write(&batch, Durability::None).unwrap();
    assert!(!engine.capabilities().interval);
    engine.close().unwrap();
    let engine = kv_rocksdb::factory()
        .open(directory.path(), &options)
        .unwrap();
    let tree = engine.open_tree("t").unwrap();
    assert_eq!(keys(&*engine, tree), [b"k"]);
}

#[test]
fn a_synced_commit_syncs_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    let syncs = || engine.stats().unwrap().counters["rocksdb.wal.synced"];
    let commit = |key: &[u8], durability| {
        let before = syncs();
        let mut transaction = engine.begin_write().unwrap();
        transaction.put(tree, key, b"v").unwrap();
        transaction.commit(durability).unwrap();
        syncs() - before
    };
    assert_eq!(commit(b"a", Durability::None), 0);
    assert_eq!(commit(b"b", Durability::Sync), 1);
    assert_eq!(commit(b"c", Durability::Group), 1);
    assert_eq!(commit(b"d", Durability::None), 0);
}

#[test]
fn a_dropped_tree_is_still_read_by_those_who_began_before() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    put(&*engine, tree, b"k", b"v");
    let snapshot = engine.begin_read().unwrap();
    engine.drop_tree("t").unwrap();
    let value = snapshot.get(tree, b"k").unwrap();
    assert_eq!(value.as_deref(), Some(&b"v"[..]), "C2: the old catalog");
    drop(snapshot);
    let error = engine.begin_read().unwrap().get(tree, b"k").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let again = engine.create_tree("t", &TreeOptions::default()).unwrap();
    assert_ne!(again, tree, "C1: a new tree has a new id");
    assert!(keys(&*engine, again).is_empty());
}

#[test]
fn work_is_counted_by_reason_and_mapped() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    fill(&*engine, tree, 10_000);
    engine.checkpoint().unwrap();
    fill(&*engine, tree, 10_000);
    let mut calls = 0;
    let result = engine.compact(tree, KeyRange::ALL, &mut |_| {
        calls += 1;
        Flow::Continue
    });
    assert_eq!(result.unwrap(), Compaction::Complete);
    assert!(2 <= calls, "at the beginning and the end");
    assert_eq!(
        engine.settle(Duration::from_secs(600)).unwrap(),
        Compaction::Complete
    );
    let stats = engine.stats().unwrap();
    assert!(2_000_000 <= stats.written_bytes(IoReason::Log));
    for reason in [IoReason::Flush, IoReason::Merge] {
        assert!(0 < stats.written_bytes(reason), "{reason:?}");
    }
    let cache = stats.cache.unwrap();
    assert!(cache.used_bytes <= cache.capacity_bytes);
    assert_eq!(stats.debt_bytes.map(|debt| debt < 100_000), Some(true));

    let exact = engine.tree_stats(tree, StatScope::Exact).unwrap();
    assert_eq!((exact.entries.value, exact.entries.exact), (10_000, true));
    assert_eq!(exact.live_bytes, Some(1_040_000));
    let quick = engine.tree_stats(tree, StatScope::Quick).unwrap();
    assert!(!quick.entries.exact && quick.entries.value == 10_000);
    assert!(quick.allocated_bytes.unwrap() < 1_040_000, "it compresses");

    let map = engine.storage_map().unwrap();
    let kinds: Vec<RegionKind> = map.regions.iter().map(|r| r.kind).collect();
    for kind in [RegionKind::Data, RegionKind::Log, RegionKind::Meta] {
        assert!(kinds.contains(&kind), "{kind:?}");
    }
    let data = map.regions.iter().find(|r| r.kind == RegionKind::Data);
    assert_eq!(data.and_then(|region| region.tree), Some(tree));
    for region in &map.regions {
        assert!(
            directory.path().join(&region.file).exists(),
            "{}",
            region.file
        );
    }
}

#[test]
fn a_compaction_can_be_cancelled_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    fill(&*engine, tree, 1_000);
    let result = engine.compact(tree, KeyRange::ALL, &mut |_| Flow::Cancel);
    assert_eq!(result.unwrap(), Compaction::Cancelled);
    assert_eq!(keys(&*engine, tree).len(), 1_000);
}

#[test]
fn a_backup_opens_with_what_was_there_and_goes_nowhere_twice() {
    let directory = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let engine = open_with(directory.path(), &[("compaction", "universal")]);
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    fill(&*engine, tree, 100);
    let mut watch = |_| Flow::Continue;
    let target = copy.path().join("new");
    assert_eq!(
        engine.backup(&target, &mut watch).unwrap(),
        Compaction::Complete
    );
    put(&*engine, tree, b"later", b"");
    let error = engine.backup(&target, &mut watch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    let other = open(&target);
    let tree = other.open_tree("t").unwrap();
    assert_eq!(keys(&*other, tree).len(), 100);
}

#[test]
fn every_shape_of_options_opens_and_works() {
    for (own, codec, direct_io) in [
        (
            vec![("compaction", "universal"), ("bloom", "0")],
            Codec::None,
            false,
        ),
        (
            vec![("pipelined", "false"), ("open_files", "-1")],
            Codec::Fast,
            false,
        ),
        (
            vec![("write_buffer", "64K"), ("l0_trigger", "2")],
            Codec::None,
            false,
        ),
        (
            vec![("subcompactions", "2"), ("block", "4K")],
            Codec::Fast,
            true,
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let options = EngineOptions {
            codec,
            direct_io,
            threads: 1,
            cache: stdx::ByteSize::mib(4),
            ..options(&own)
        };
        let engine = match kv_rocksdb::factory().open(directory.path(), &options) {
            Ok(engine) => engine,
            // An in-memory file system may not support direct I/O.
            Err(error) => {
                assert!(direct_io, "{own:?}: {error}");
                continue;
            }
        };
        let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
        fill(&*engine, tree, 20_000);
        engine.checkpoint().unwrap();
        assert_eq!(keys(&*engine, tree).len(), 20_000, "{own:?}");
        engine.close().unwrap();
    }
}

#[test]
fn after_a_failed_flush_writes_answer_closed_and_reads_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        log: false,
        ..EngineOptions::default()
    };
    let engine = kv_rocksdb::factory()
        .open(directory.path(), &options)
        .unwrap();
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    put(&*engine, tree, b"k", b"v");
    // New files cannot be created without the directory.
    fs::remove_dir_all(directory.path().join("db")).unwrap();
    let error = engine.checkpoint().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    let mut batch = Batch::new();
    batch.put(tree, b"l", b"v");
    let error = engine.write(&batch, Durability::None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    let mut transaction = engine.begin_write().unwrap();
    transaction.put(tree, b"l", b"v").unwrap();
    let error = transaction.commit(Durability::None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    let value = engine.begin_read().unwrap().get(tree, b"k").unwrap();
    assert_eq!(value.as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_commit_into_a_dropped_tree_is_refused_whole_and_the_store_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let kept = engine.create_tree("kept", &TreeOptions::default()).unwrap();
    let gone = engine.create_tree("gone", &TreeOptions::default()).unwrap();
    for is_blind in [true, false] {
        let gone = engine.open_tree("gone").unwrap_or(gone);
        let mut transaction = engine.begin_write().unwrap();
        transaction.put(kept, b"k", b"v").unwrap();
        if is_blind {
            transaction.put_blind(gone, b"k", b"v").unwrap();
        } else {
            transaction.put(gone, b"k", b"v").unwrap();
        }
        engine.drop_tree("gone").unwrap();
        let error = transaction.commit(Durability::None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(keys(&*engine, kept).is_empty());
        engine.create_tree("gone", &TreeOptions::default()).unwrap();
    }
    put(&*engine, kept, b"k", b"v");
}

#[test]
fn writers_race_with_the_dropping_of_their_tree() {
    let directory = tempfile::tempdir().unwrap();
    let engine: Arc<dyn Engine> = Arc::from(open(directory.path()));
    let kept = engine.create_tree("kept", &TreeOptions::default()).unwrap();
    for round in 0..30_u8 {
        let gone = engine.create_tree("gone", &TreeOptions::default()).unwrap();
        let writer = {
            let engine = Arc::clone(&engine);
            stdx::sync::spawn("writer", move || {
                let mut batch = Batch::new();
                batch.put(gone, &[round], &[1; 100]);
                batch.put(kept, &[round], &[1; 100]);
                let mut count = 0;
                while let Ok(()) = engine.write(&batch, Durability::None) {
                    engine.checkpoint().unwrap();
                    count += 1;
                }
                count
            })
            .unwrap()
        };
        while engine
            .begin_read()
            .unwrap()
            .get(kept, &[round])
            .unwrap()
            .is_none()
        {}
        engine.drop_tree("gone").unwrap();
        assert!(0 < writer.join().unwrap());
    }
    put(&*engine, kept, b"k", b"v");
    assert_eq!(keys(&*engine, kept).len(), 31);
}

/// A cursor over a tree that was created after its snapshot stays usable after the tree is dropped.
#[test]
fn a_cursor_outlives_a_tree_that_its_snapshot_did_not_know() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let snapshot = engine.begin_read().unwrap();
    let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
    put(&*engine, tree, b"k", b"v");
    let mut cursor = snapshot
        .cursor(tree, KeyRange::ALL, Direction::Forward)
        .unwrap();
    engine.drop_tree("t").unwrap();
    // R2: the iterator holds the family and the database.
    assert!(!cursor.seek(b"a").unwrap());
    assert!(!cursor.advance().unwrap());
}

#[test]
fn filters_spare_reads_of_absent_keys_where_they_were_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let useful = || engine.stats().unwrap().counters["rocksdb.bloom.filter.useful"];
    for (name, point_lookups) in [("with", true), ("without", false)] {
        let options = TreeOptions {
            point_lookups,
            ..TreeOptions::default()
        };
        let tree = engine.create_tree(name, &options).unwrap();
        fill(&*engine, tree, 1_000);
        engine.checkpoint().unwrap();
        let before = useful();
        let snapshot = engine.begin_read().unwrap();
        for n in 0..100_u8 {
            assert_eq!(snapshot.get(tree, &[0, 0, 1, n, 0]).unwrap(), None);
        }
        assert_eq!(before < useful(), point_lookups, "{name}");
    }
}

#[test]
fn memtables_of_many_trees_do_not_outgrow_the_cache_by_far() {
    let directory = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        cache: stdx::ByteSize::mib(16),
        ..EngineOptions::default()
    };
    let engine = kv_rocksdb::factory()
        .open(directory.path(), &options)
        .unwrap();
    let trees: Vec<TreeId> = (0..50)
        .map(|n| {
            let name = format!("t{n}");
            engine.create_tree(&name, &TreeOptions::default()).unwrap()
        })
        .collect();
    for round in 0..8_u32 {
        for tree in &trees {
            let mut batch = Batch::new();
            for n in 0..1_000_u32 {
                let key = (n * 10 + round).to_be_bytes();
                batch.put(*tree, &key, &[7; 100]);
            }
            engine.write(&batch, Durability::None).unwrap();
        }
        let cache = engine.stats().unwrap().cache.unwrap();
        let (used, capacity) = (cache.used_bytes, cache.capacity_bytes);
        assert!(used < 2 * capacity, "{used} of {capacity}");
    }
}

#[test]
fn what_rocksdb_tells_is_beside_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    for _ in 0..2 {
        let engine = open(&path);
        let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
        fill(engine.as_ref(), tree, 10);
        engine.drop_tree("t").unwrap();
        engine.close().unwrap();
    }
    let told = fs::read_to_string(path.join("db/LOG")).unwrap();
    let times = |text: &str| told.matches(text).count();
    // One file has the lines of both periods in which the store was open.
    assert_eq!(times("Dropped column family"), 2, "{told}");
}

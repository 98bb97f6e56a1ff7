//! Properties of this adapter: the directory, options, levels, backups.

use std::time::Duration;

use kv::{Batch, Compaction, Durability, EngineOptions, ErrorKind, Flow};

use crate::support::{create, fill, keys, open, open_with, refused, with};

#[test]
fn another_engines_directory_is_refused_naming_both() {
    let directory = tempfile::tempdir().unwrap();
    kv::identity::claim(directory.path(), "lmdb", 1, "").unwrap();
    let error = refused(kv_betree::factory().open(directory.path(), &EngineOptions::default()));
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(text.contains("lmdb") && text.contains("betree"), "{text}");
}

#[test]
fn unknown_and_bad_options_are_refused_before_anything_is_created() {
    let directory = tempfile::tempdir().unwrap();
    for (name, value) in [("colour", "blue"), ("preset", "lsm"), ("page", "1T")] {
        let options = with(&[(name, value)]);
        let error = refused(kv_betree::factory().open(directory.path(), &options));
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(name), "{error}");
        let error = refused(kv_betree::factory().check(&options));
        assert!(error.to_string().contains(name), "{error}");
    }
    assert!(vfs::is_empty(directory.path()).unwrap());
}

#[test]
fn an_open_store_is_held_until_it_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let error = refused(kv_betree::factory().open(directory.path(), &EngineOptions::default()));
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    engine.close().unwrap();
    drop(open(directory.path()));
    drop(open(directory.path()));
}

#[test]
fn every_option_may_differ_at_the_next_open() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open_with(directory.path(), &[("codec", "none"), ("page", "512")]);
    let tree = create(&*engine, "t");
    fill(&*engine, tree, 3_000);
    engine.settle(Duration::from_secs(60)).unwrap();
    engine.close().unwrap();
    for own in [
        &[("codec", "zstd:1"), ("bucket", "64K")][..],
        &[("preset", "btree"), ("filter", "all")],
        &[("preset", "ingest"), ("buffers", "0.9")],
    ] {
        let engine = open_with(directory.path(), own);
        let tree = engine.open_tree("t").unwrap();
        fill(&*engine, tree, 3_500);
        let all = keys(&*engine.begin_read().unwrap(), tree);
        assert_eq!(all.len(), 3_500, "{own:?}");
        engine.verify().unwrap();
        engine.close().unwrap();
    }
}

#[test]
fn without_a_log_it_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        log: false,
        ..EngineOptions::default()
    };
    let engine = kv_betree::factory()
        .open(directory.path(), &options)
        .unwrap();
    let found = engine.capabilities();
    assert!(!found.persistent && !found.interval && !found.group_commit);
    let tree = create(&*engine, "t");
    let mut batch = Batch::new();
    batch.put(tree, b"k", b"v");
    let error = refused(engine.write(&batch, Durability::Sync));
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("without a log"), "{error}");
    engine.write(&batch, Durability::None).unwrap();
    engine.close().unwrap();
    let engine = open(directory.path());
    assert!(engine.capabilities().persistent);
    let tree = engine.open_tree("t").unwrap();
    assert_eq!(keys(&*engine.begin_read().unwrap(), tree), [b"k"]);
}

#[test]
fn a_snapshot_past_its_age_asks_to_begin_again() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open_with(directory.path(), &[("snapshot_age", "1ms")]);
    let tree = create(&*engine, "t");
    fill(&*engine, tree, 10);
    let old = engine.begin_read().unwrap();
    let begin = stdx::time::now();
    let error = loop {
        // The snapshot becomes invalid when a version that it needs must be dropped.
        fill(&*engine, tree, 10);
        engine.settle(Duration::from_secs(60)).unwrap();
        if let Err(error) = old.get(tree, &[0; 4]) {
            break error;
        }
        let waited = stdx::time::now() - begin;
        assert!(waited < Duration::from_secs(60), "it never ends");
    };
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
}

#[test]
fn a_backup_that_is_cancelled_is_no_store() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory.path().join("store"));
    let tree = create(&*engine, "t");
    fill(&*engine, tree, 1_000);
    let copy = directory.path().join("copy");
    let ended = engine.backup(&copy, &mut |_| Flow::Cancel).unwrap();
    assert_eq!(ended, Compaction::Cancelled);
    // I1 of `backup`: an incomplete copy has no identity.
    assert_eq!(kv::identity::read(&copy).unwrap(), None);
}

#[test]
fn a_delete_of_nothing_takes_nothing_away() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let tree = create(&*engine, "t");
    let mut txn = engine.begin_write().unwrap();
    assert!(!txn.delete(tree, b"k").unwrap());
    let mut batch = Batch::new();
    batch.put(tree, b"k", b"put meanwhile, blindly");
    engine.write(&batch, Durability::None).unwrap();
    txn.commit(Durability::None).unwrap();
    assert_eq!(keys(&*engine.begin_read().unwrap(), tree), [b"k"]);
}

//! Trees: their handles, their slots, and readers that outlive a tree.

use std::path::Path;

use heed::types::Bytes;
use heed::{Database, EnvOpenOptions};
use kv::{Durability, Engine, ErrorKind, StatScope, TreeId, TreeOptions};

use crate::support::{keys, open, open_with, refused};

fn create(engine: &dyn Engine, name: &str) -> TreeId {
    engine.create_tree(name, &TreeOptions::default()).unwrap()
}

fn put(engine: &dyn Engine, tree: TreeId, key: &[u8]) {
    let mut txn = engine.begin_write().unwrap();
    txn.put(tree, key, b"v").unwrap();
    txn.commit(Durability::None).unwrap();
}

#[test]
fn trees_live_across_opens() {
    // I2: wrong slot numbers would be refused when the store is opened again.
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    for name in ["b", "a", "catalog", "t0"] {
        let tree = create(&*engine, name);
        put(&*engine, tree, name.as_bytes());
        assert_eq!(engine.open_tree(name).unwrap(), tree);
        let again = refused(engine.create_tree(name, &TreeOptions::default()));
        assert_eq!(again.kind(), ErrorKind::Exists);
    }
    engine.drop_tree("b").unwrap();
    engine.close().unwrap();
    let engine = open(dir.path());
    assert_eq!(engine.trees().unwrap(), ["a", "catalog", "t0"]);
    let snapshot = engine.begin_read().unwrap();
    for name in engine.trees().unwrap() {
        let tree = engine.open_tree(&name).unwrap();
        assert_eq!(keys(&*snapshot, tree), [name.as_bytes()]);
    }
    assert_eq!(refused(engine.open_tree("b")).kind(), ErrorKind::NotFound);
    assert_eq!(refused(engine.drop_tree("b")).kind(), ErrorKind::NotFound);
    assert_eq!(engine.stats().unwrap().counters["empty_slots"], 1);
}

#[test]
fn an_old_snapshot_reads_a_dropped_tree_and_knows_no_newer_one() {
    // I3, I4.
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let old = create(&*engine, "t");
    put(&*engine, old, b"old");
    let snapshot = engine.begin_read().unwrap();
    engine.drop_tree("t").unwrap();
    let new = create(&*engine, "t");
    put(&*engine, new, b"new");
    assert_ne!(old, new);
    // The new tree has the slot of the old one.
    assert_eq!(engine.stats().unwrap().counters["empty_slots"], 0);
    assert_eq!(keys(&*snapshot, old), [b"old"]);
    assert_eq!(
        refused(snapshot.get(new, b"new")).kind(),
        ErrorKind::Invalid
    );
    let later = engine.begin_read().unwrap();
    assert_eq!(keys(&*later, new), [b"new"]);
    assert_eq!(refused(later.get(old, b"old")).kind(), ErrorKind::Invalid);
    let mut txn = engine.begin_write().unwrap();
    assert_eq!(refused(txn.put(old, b"k", b"")).kind(), ErrorKind::Invalid);
    let stats = engine.tree_stats(old, StatScope::Quick);
    assert_eq!(refused(stats).kind(), ErrorKind::Invalid);
}

#[test]
fn trees_beyond_the_limit_are_full_and_a_smaller_limit_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open_with(dir.path(), &[("trees", "2")]).unwrap();
    create(&*engine, "a");
    create(&*engine, "b");
    let error = refused(engine.create_tree("c", &TreeOptions::default()));
    assert_eq!((error.kind(), error.tree()), (ErrorKind::Full, Some("c")));
    assert!(error.to_string().contains("option trees"), "{error}");
    engine.drop_tree("a").unwrap();
    create(&*engine, "c");
    engine.close().unwrap();
    let error = refused(open_with(dir.path(), &[("trees", "1")]));
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("trees=2"), "{error}");
    let engine = open_with(dir.path(), &[("trees", "3")]).unwrap();
    assert_eq!(engine.trees().unwrap(), ["b", "c"]);
}

#[test]
fn a_thread_that_writes_may_not_wait_for_itself() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let tree = create(&*engine, "t");
    let mut txn = engine.begin_write().unwrap();
    txn.put(tree, b"k", b"v").unwrap();
    let mut kinds = vec![
        refused(engine.begin_write()).kind(),
        refused(engine.write(&kv::Batch::new(), Durability::Sync)).kind(),
        refused(engine.create_tree("u", &TreeOptions::default())).kind(),
        refused(engine.drop_tree("t")).kind(),
        refused(engine.backup(&dir.path().join("b"), &mut |_| kv::Flow::Continue)).kind(),
    ];
    kinds.dedup();
    assert_eq!(kinds, [ErrorKind::Invalid]);
    // Reads and lookups of names still work, and the transaction is not affected.
    assert_eq!(engine.open_tree("t").unwrap(), tree);
    assert!(keys(&*engine.begin_read().unwrap(), tree).is_empty());
    txn.commit(Durability::Sync).unwrap();
    assert_eq!(keys(&*engine.begin_read().unwrap(), tree), [b"k"]);
}

#[test]
fn another_thread_waits_for_its_turn() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let engine = &*engine;
    let tree = create(engine, "t");
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            scope.spawn(move || {
                for n in 0..50_u8 {
                    put(engine, tree, &[thread, n]);
                    if n % 10 == 0 {
                        let name = format!("{thread}-{n}");
                        create(engine, &name);
                        engine.drop_tree(&name).unwrap();
                    }
                    let snapshot = engine.begin_read().unwrap();
                    assert!(snapshot.get(tree, &[thread, n]).unwrap().is_some());
                }
            });
        }
    });
    assert_eq!(keys(&*engine.begin_read().unwrap(), tree).len(), 200);
    assert_eq!(engine.trees().unwrap(), ["t"]);
    engine.verify().unwrap();
}

/// Write `record` under `name` into the catalog of the closed store in `directory`.
fn spoil(directory: &Path, name: &str, record: &[u8]) {
    // SAFETY: the store is closed and the directory is this test's own.
    let env = unsafe { EnvOpenOptions::new().max_dbs(4).open(directory) }.unwrap();
    let mut txn = env.write_txn().unwrap();
    let catalog: Database<Bytes, Bytes> = env.create_database(&mut txn, Some("catalog")).unwrap();
    catalog.put(&mut txn, name.as_bytes(), record).unwrap();
    txn.commit().unwrap();
    env.prepare_for_closing().wait();
}

#[test]
fn a_wrong_catalog_is_corrupt_and_says_why() {
    // I1 (two trees of one slot); I2 (a slot that does not exist).
    for (name, record, why) in [
        ("u", &[0, 0, 0][..], "4 bytes"),
        ("u", &[0, 0, 0, 9], "does not exist"),
        ("u", &[0, 0, 0, 0], "same slot"),
        ("no spaces", &[0, 0, 0, 1], "' '"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let engine = open(dir.path());
        create(&*engine, "t");
        engine.close().unwrap();
        spoil(dir.path(), name, record);
        let error = refused(open_with(dir.path(), &[]));
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(why), "{error}");
    }
}

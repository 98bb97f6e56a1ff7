//! Ranges whose bounds cross hold no key: they are legal, and nothing happens.

use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::path::Path;
use std::sync::Arc;

use betree::{Batch, Db, Direction, Durability, KeyRange, Options, TreeId, TreeOptions};
use sim::{SimOptions, SimVfs};

type Bounds = (Bound<&'static [u8]>, Bound<&'static [u8]>);

const CROSSED: [Bounds; 5] = [
    (Included(b"m"), Included(b"b")),
    (Included(b"m"), Excluded(b"m")),
    (Excluded(b"m"), Included(b"m")),
    (Excluded(b"m"), Excluded(b"m")),
    (Unbounded, Excluded(b"")),
];

/// A store of a few buckets, with entries in runs and in buffers.
fn store() -> (Db, TreeId) {
    let options = Options::default()
        .with_memory(1 << 20)
        .with_bucket(4 << 10)
        .with_page(512)
        .with_threads(0);
    let disk = SimVfs::new(SimOptions::default());
    let db = Db::open_with(Arc::new(disk), Path::new("/store"), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    let mut batch = Batch::new();
    for letter in b'a'..=b'z' {
        batch.put(tree, &[letter], &[letter; 1000]);
    }
    db.write(&batch, Durability::None).unwrap();
    db.compact(tree, Unbounded, Unbounded, &mut |_, _| true)
        .unwrap();
    let mut batch = Batch::new();
    batch.put(tree, b"m", b"in a buffer");
    db.write(&batch, Durability::None).unwrap();
    (db, tree)
}

fn count(db: &Db, tree: TreeId) -> u64 {
    db.tree_stats(tree, true).unwrap().entries
}

#[test]
fn cursors_between_crossed_bounds_find_nothing() {
    let (db, tree) = store();
    let snapshot = db.begin_read().unwrap();
    let mut txn = db.begin().unwrap();
    txn.put(tree, b"mm", b"own").unwrap();
    for (start, end) in CROSSED {
        for direction in [Direction::Forward, Direction::Backward] {
            let context = format!("{start:?} {end:?} {direction:?}");
            let read = snapshot.cursor(tree, start, end, direction).unwrap();
            let own = txn.cursor(tree, start, end, direction).unwrap();
            for mut cursor in [read, own] {
                assert!(!cursor.advance().unwrap(), "{context}");
                for key in [&b""[..], b"b", b"c", b"m", b"z"] {
                    assert!(!cursor.seek(key).unwrap(), "{context} {key:?}");
                }
            }
        }
    }
}

#[test]
fn deletes_between_crossed_bounds_remove_nothing() {
    let (db, tree) = store();
    for (start, end) in CROSSED {
        let mut batch = Batch::new();
        batch.delete_range(tree, KeyRange { start, end });
        db.write(&batch, Durability::None).unwrap();
        let mut txn = db.begin().unwrap();
        txn.delete_range(tree, start, end).unwrap();
        txn.commit(Durability::None).unwrap();
        assert!(db.compact(tree, start, end, &mut |_, _| true).unwrap());
        assert_eq!(count(&db, tree), 26, "{start:?} {end:?}");
    }
}

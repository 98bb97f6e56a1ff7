//! Dropping trees under readers, writers and flushes.

use std::sync::Arc;

use betree::{Batch, Durability, ErrorKind, TreeOptions};

use crate::books::{Books, disk, join, open, scan, thread, tiny};
use crate::explore::explore;

#[test]
fn a_snapshot_reads_a_tree_to_the_end_though_it_is_dropped() {
    explore(400, || {
        let books = Books::new(1, 100, &tiny());
        let tree = books
            .db
            .create_tree("doomed", TreeOptions::default())
            .unwrap();
        let write = |number: u8| {
            let mut batch = Batch::new();
            batch.put(tree, b"a", &[number; 100]);
            batch.put(tree, b"b", &[number; 100]);
            books.db.write(&batch, Durability::None)
        };
        write(0).unwrap();
        let reader = || {
            let books = Arc::clone(&books);
            thread(move || {
                let snapshot = books.db.begin_read().unwrap();
                for _ in 0..2 {
                    if let Err(error) = snapshot.get(tree, b"a") {
                        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
                        return;
                    }
                    // The tree exists for this snapshot until the snapshot is closed.
                    let found = scan(&snapshot, tree);
                    let values: Vec<_> = found.values().collect();
                    assert_eq!(values.len(), 2);
                    assert_eq!(values[0], values[1]);
                }
            })
        };
        let writer = {
            let books = Arc::clone(&books);
            thread(move || {
                for number in 1..4 {
                    let mut batch = Batch::new();
                    batch.put(tree, b"a", &[number; 100]);
                    batch.put(tree, b"b", &[number; 100]);
                    if let Err(error) = books.db.write(&batch, Durability::None) {
                        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
                    }
                }
            })
        };
        let dropper = {
            let books = Arc::clone(&books);
            thread(move || books.db.drop_tree("doomed").unwrap())
        };
        join([
            reader(),
            reader(),
            writer,
            dropper,
            books.worker(2),
            books.worker(1),
        ]);
        let snapshot = books.db.begin_read().unwrap();
        assert!(snapshot.get(tree, b"a").is_err(), "it is dropped");
        drop(snapshot);
        while books.db.step().unwrap() {}
        assert!(books.db.settle(std::time::Duration::from_secs(60)).unwrap());
    });
}

#[test]
fn a_snapshot_taken_while_a_tree_is_dropped_sees_it_or_not() {
    explore(800, || {
        let db = Arc::new(open(&disk(), &tiny()));
        let tree = db.create_tree("doomed", TreeOptions::default()).unwrap();
        let mut batch = Batch::new();
        batch.put(tree, b"a", b"value");
        db.write(&batch, Durability::None).unwrap();
        let last = db.begin_read().unwrap().seq();
        let reader = || {
            let db = Arc::clone(&db);
            thread(move || {
                for _ in 0..3 {
                    let snapshot = db.begin_read().unwrap();
                    let found = snapshot.get(tree, b"a");
                    if snapshot.seq() == last {
                        assert_eq!(found.unwrap(), Some(b"value".to_vec()));
                    } else {
                        assert_eq!(found.unwrap_err().kind(), ErrorKind::Invalid);
                    }
                }
            })
        };
        let worker = {
            let db = Arc::clone(&db);
            thread(move || {
                for _ in 0..4 {
                    db.step().unwrap();
                }
            })
        };
        let dropper = {
            let db = Arc::clone(&db);
            thread(move || db.drop_tree("doomed").unwrap())
        };
        join([dropper, worker, reader(), reader()]);
    });
}

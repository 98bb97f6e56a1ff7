//! Closing a store while transactions are in progress.

use std::sync::Arc;

use betree::{Batch, Db, Durability, ErrorKind, TreeOptions};

use stdx::sync::Mutex;

use crate::books::{disk, join, open, scan, thread, tiny};
use crate::explore::explore;

/// What is acknowledged by a transaction that outlives its store's handle is in the store that is
/// opened next, and what is refused is not.
#[test]
fn a_commit_beside_close_is_durable_or_refused() {
    explore(600, || {
        let disk = disk();
        let db = open(&disk, &tiny());
        let tree = db.create_tree("rows", TreeOptions::default()).unwrap();
        let results: Arc<Mutex<Vec<(u8, bool)>>> = Arc::default();
        let committer = |db: &Db, name: u8, level: Durability| {
            let mut transaction = db.begin().unwrap();
            transaction.put(tree, &[name], b"value").unwrap();
            let results = Arc::clone(&results);
            thread(move || {
                let result = transaction.commit(level);
                if let Err(error) = &result {
                    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
                }
                results.lock().push((name, result.is_ok()));
            })
        };
        let committers = [
            committer(&db, 1, Durability::Sync),
            committer(&db, 2, Durability::Group),
            committer(&db, 3, Durability::Interval),
        ];
        db.close().unwrap();
        let mut next = open(&disk, &tiny());
        join(committers);
        for round in 0..2 {
            let found = scan(&next.begin_read().unwrap(), tree);
            for &(name, acknowledged) in results.lock().iter() {
                let there = found.contains_key(&[name][..]);
                assert_eq!(there, acknowledged, "commit {name}, round {round}");
            }
            drop(next);
            next = open(&disk, &tiny());
        }
    });
}

/// A transaction that outlives its store's handle writes nothing any more once close has returned:
/// the next store may have given out the same bytes of the file by then.
#[test]
fn a_spill_beside_close_writes_nothing_into_the_next_store() {
    explore(2_000, || {
        let disk = disk();
        let db = open(&disk, &tiny());
        let tree = db.create_tree("rows", TreeOptions::default()).unwrap();
        let mut transaction = db.begin().unwrap();
        let spiller = thread(move || {
            // The second write finds the first too large for memory.
            for key in 0..4 {
                if let Err(error) = transaction.put_blind(tree, &[key], &[key; 70_000]) {
                    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
                    return;
                }
            }
        });
        db.close().unwrap();
        let next = open(&disk, &tiny());
        let mut batch = Batch::new();
        (0..100).for_each(|key| batch.put(tree, &[key], &[key; 2_000]));
        next.write(&batch, Durability::None).unwrap();
        next.flush().unwrap();
        next.checkpoint().unwrap();
        join([spiller]);
        next.verify().unwrap();
    });
}

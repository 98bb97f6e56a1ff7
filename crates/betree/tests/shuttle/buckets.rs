//! Commits, freezes, flushes, merges and splits of a few buckets, with readers.

use std::sync::Arc;

use betree::{Batch, Durability};

use crate::books::{Books, join, thread, tiny};
use crate::explore::explore;

/// Readers of new snapshots, and of one that stays open for long.
fn readers(books: &Arc<Books>, rounds: u32) -> impl FnOnce() + Send + use<> {
    let books = Arc::clone(books);
    move || {
        let held = books.db.begin_read().unwrap();
        let then = books.audit(&held);
        for _ in 0..rounds {
            let snapshot = books.db.begin_read().unwrap();
            let counters = books.audit(&snapshot);
            assert!(then <= counters || held.seq() <= snapshot.seq());
            assert_eq!(books.audit(&held), then, "a snapshot does not change");
        }
    }
}

#[test]
fn snapshots_see_whole_commits_while_buckets_are_flushed_and_merged() {
    explore(150, || {
        let books = Books::new(2, 20, &tiny());
        join([
            books.writer(0, 4, Durability::Interval),
            books.writer(1, 4, Durability::None),
            books.worker(2),
            thread(readers(&books, 2)),
        ]);
        books.audit(&books.db.begin_read().unwrap());
    });
}

#[test]
fn snapshots_see_whole_commits_while_buckets_split() {
    explore(80, || {
        let books = Books::new(2, 700, &tiny());
        books.write(0, 1, Durability::None).unwrap();
        join([
            thread({
                let books = Arc::clone(&books);
                move || (2..5).for_each(|n| books.write(0, n, Durability::None).unwrap())
            }),
            books.writer(1, 3, Durability::None),
            books.worker(2),
            books.worker(2),
            thread(readers(&books, 2)),
        ]);
        books.audit(&books.db.begin_read().unwrap());
    });
}

#[test]
fn a_registered_snapshot_loses_no_version_it_sees() {
    explore(150, || {
        let books = Books::new(1, 10, &tiny());
        let snapshots = |rounds: u32| {
            let books = Arc::clone(&books);
            move || {
                let mut held = Vec::new();
                for _ in 0..rounds {
                    held.push(books.db.begin_read().unwrap());
                }
                for snapshot in held {
                    books.audit(&snapshot);
                }
            }
        };
        join([
            books.writer(0, 6, Durability::None),
            books.worker(3),
            thread(snapshots(3)),
            thread(snapshots(2)),
        ]);
    });
}

/// With three commits at a time a bucket has at most two more runs than with one: `k_cap` + 8.
#[test]
fn runs_of_a_bucket_stay_within_their_bound() {
    explore(60, || {
        let books = Books::new(0, 0, &tiny().with_k_cap(1));
        let writer = |name: u8| {
            let books = Arc::clone(&books);
            thread(move || {
                for round in 0..7 {
                    let mut batch = Batch::new();
                    (0..3).for_each(|key| batch.put(books.tree, &[key], &[name, round]));
                    books.db.write(&batch, Durability::None).unwrap();
                    books.db.flush().unwrap();
                    let stats = books.db.stats().unwrap();
                    // The number of runs above the base, plus the base.
                    let met = stats.runs_per_bucket.len() - 1;
                    assert!(met <= 9 + 2 + 1, "{met} runs");
                }
            })
        };
        join([writer(1), writer(2), writer(3)]);
        books.db.verify().unwrap();
    });
}

//! Full memory and failing flushes.

use std::sync::Arc;
use std::time::Duration;

use betree::{Batch, Durability, IoReason, Options, TreeId, TreeOptions};
use sim::{Fault, FaultKind};
use vfs::Vfs;

use crate::books::{Books, join, scan, thread, tiny};
use crate::explore::{draw, explore};

/// Bytes of a value that is merged in [`two_to_merge`], and of one that only takes room.
const SIZE: usize = 850;
const FILLER: usize = 2_000;

/// Three batches fill the memory.
fn small() -> Options {
    tiny().with_buffer_share(0.05)
}

#[test]
fn commits_that_find_memory_full_make_room_together() {
    explore(200, || {
        let books = Books::new(3, 3_000, &small());
        join([
            books.writer(0, 5, Durability::None),
            books.writer(1, 5, Durability::None),
            books.writer(2, 5, Durability::None),
        ]);
        books.audit(&books.db.begin_read().unwrap());
    });
}

/// A buffer that is shared by the parts of a split bucket is flushed into each, once, whatever
/// attempts fail on the way.
#[test]
fn a_flush_that_failed_is_finished_later() {
    explore(300, || {
        let books = Books::new(2, 700, &tiny());
        books
            .disk
            .inject(Fault::once("flush.write", 1 + draw(6), FaultKind::Eio));
        books
            .disk
            .inject(Fault::once("flush.write", 1 + draw(6), FaultKind::Enospc));
        let worker = || {
            let books = Arc::clone(&books);
            thread(move || {
                for _ in 0..2 {
                    // The error is that of the fault; the work is retried.
                    let _ = books.db.settle(std::time::Duration::ZERO);
                    for _ in 0..20 {
                        let _ = books.db.step();
                    }
                }
            })
        };
        join([
            books.writer(0, 4, Durability::None),
            books.writer(1, 4, Durability::None),
            worker(),
            worker(),
        ]);
        books.disk.clear_faults();
        books.audit(&books.db.begin_read().unwrap());
        assert!(books.db.settle(std::time::Duration::from_secs(60)).unwrap());
        books.audit(&books.db.begin_read().unwrap());
    });
}

/// Two trees with one bucket each, whose merge writes many runs; if `full`, on a disk with room for
/// less than two such merges.
fn two_to_merge(full: bool) -> Arc<Books> {
    let options = tiny().with_bucket(8 << 10).with_k_cap(1).with_log(false);
    let books = Books::new(0, 0, &options);
    let tree = |name| books.db.create_tree(name, TreeOptions::default()).unwrap();
    let (other, filler) = (tree("other"), tree("filler"));
    let put = |tree: TreeId, first: u8, bytes: usize| {
        let mut batch = Batch::new();
        (first..80)
            .step_by(2)
            .for_each(|key| batch.put(tree, &[key], &vec![key; bytes]));
        books.db.write(&batch, Durability::None).unwrap();
        books.freeze();
        assert!(books.db.step().unwrap(), "there is a flush");
    };
    // The first run of a bucket is its base.
    put(books.tree, 0, SIZE);
    put(other, 0, SIZE);
    let used = books.disk.used();
    books.disk.set_capacity(full.then_some(used));
    put(books.tree, 1, SIZE);
    put(other, 1, SIZE);
    put(filler, 0, FILLER);
    books
}

/// Step until all is merged; returns the number of bytes that merges wrote.
fn merge_all(books: &Books) -> u64 {
    let stats = || books.db.stats().unwrap();
    for _ in 0..100 {
        if stats().delta_bytes == 0 {
            break;
        }
        // What was put off is looked for again after a while.
        books.disk.sleep(Duration::from_millis(100));
        let _ = books.db.step();
    }
    assert_eq!(stats().delta_bytes, 0, "both are done");
    stats().written_bytes(IoReason::Merge)
}

/// Merges that run at once on a disk with room for one of them would each write until there is no
/// room, and give up.
#[test]
fn merges_on_a_full_disk_leave_each_other_room() {
    explore(200, || {
        let needed = merge_all(&two_to_merge(false));
        let books = two_to_merge(true);
        let worker = || {
            let books = Arc::clone(&books);
            thread(move || {
                for _ in 0..30 {
                    // It may be full for a moment.
                    let _ = books.db.step();
                }
            })
        };
        join([worker(), worker()]);
        let written = merge_all(&books);
        // A merge that gives up has written more than that.
        assert!(written <= needed + needed / 8, "{written} for {needed}");
        books.disk.set_capacity(None);
        assert!(books.db.settle(Duration::from_secs(60)).unwrap());
    });
}

/// The parts of a split share a buffer. One attempt to flush it gets into the first part and fails
/// in the second; by then the first may be flushing its next buffer, and a merge may be waiting to
/// split it again.
#[test]
fn a_failed_flush_leaves_the_marks_of_others_alone() {
    // Three threads have to meet: with the bug planted 400 schedules found it from 7 seeds of 10,
    // 1200 from all of them.
    explore(3000, || {
        let books = Books::new(0, 0, &tiny().with_k_cap(1));
        let put = |keys: &mut dyn Iterator<Item = u8>, size: usize| {
            let mut batch = Batch::new();
            keys.for_each(|key| batch.put(books.tree, &[key], &vec![key; size]));
            books.db.write(&batch, Durability::None).unwrap();
        };
        let step = |db: &betree::Db| assert!(db.step().unwrap(), "there is work");
        put(&mut (0..80).step_by(10), 700);
        books.freeze();
        step(&books.db);
        put(&mut (5..80).step_by(20), 300);
        books.freeze();
        step(&books.db);
        // Not frozen until the merge splits the bucket, and then shared.
        put(&mut (1..80).step_by(4), 500);
        step(&books.db);
        assert!(1 < books.db.stats().unwrap().buckets, "it was split");
        put(&mut (3..4), 20);
        books.freeze();
        let call = 2 + draw(2);
        books
            .disk
            .inject(Fault::once("flush.write", call, FaultKind::Eio));
        let worker = || {
            let books = Arc::clone(&books);
            thread(move || {
                for _ in 0..6 {
                    // The error is that of the fault; the work is retried.
                    let _ = books.db.step();
                }
            })
        };
        join([worker(), worker(), worker()]);
        books.disk.clear_faults();
        assert!(books.db.settle(std::time::Duration::from_secs(60)).unwrap());
        assert_eq!(scan(&books.db.begin_read().unwrap(), books.tree).len(), 29);
    });
}

//! Compacting a key range during writes.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use betree::{Batch, Db, Durability, Options, TreeId, TreeOptions};

/// Far more progress reports than the merges of the range need.
const LOOKS: u64 = 100_000;

fn put(db: &Db, tree: TreeId, keys: impl Iterator<Item = u32>) {
    let mut batch = Batch::new();
    keys.for_each(|key| batch.put(tree, &key.to_be_bytes(), &[7; 60]));
    db.write(&batch, Durability::None).unwrap();
}

#[test]
fn compacting_ends_while_a_writer_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default()
        .with_memory(1 << 20)
        .with_bucket(16 << 10)
        .with_page(512)
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_threads(1);
    let db = Arc::new(Db::open(dir.path(), options).unwrap());
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    for offset in 0..4 {
        put(&db, tree, (offset..4000).step_by(4));
        db.flush().unwrap();
    }
    let done = Arc::new(AtomicBool::new(false));
    let rounds = Arc::new(AtomicU64::new(0));
    let writer = {
        let (db, done, rounds) = (Arc::clone(&db), Arc::clone(&done), Arc::clone(&rounds));
        stdx::sync::spawn("writer", move || {
            while !done.load(Ordering::Acquire) {
                // One bucket, which gets deltas again and again.
                put(&db, tree, 2000..2050);
                db.flush().unwrap();
                rounds.fetch_add(1, Ordering::Release);
            }
        })
        .unwrap()
    };
    while rounds.load(Ordering::Acquire) < 3 {
        std::thread::yield_now();
    }
    let key = 2000_u32.to_be_bytes();
    for (start, end) in [
        (Bound::Included(&key[..]), Bound::Included(&key[..])),
        (Bound::Unbounded, Bound::Unbounded),
    ] {
        let mut looks = 0;
        let ended = db.compact(tree, start, end, &mut |done, all| {
            assert!(done <= all);
            looks += 1;
            looks < LOOKS
        });
        assert!(ended.unwrap(), "it follows the writer");
    }
    done.store(true, Ordering::Release);
    writer.join().unwrap();
    db.verify().unwrap();
}

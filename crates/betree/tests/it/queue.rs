//! A queue: rows are added at one end and removed at the other.

use std::ops::Bound;
use std::time::Duration;

use betree::{Batch, Db, Direction, Durability, Options, TreeOptions};

#[test]
fn a_queue_keeps_its_order_and_gives_its_space_back() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default()
        .with_memory(1 << 20)
        .with_bucket(16 << 10)
        .with_page(512)
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_checkpoint_bytes(256 << 10)
        .with_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("queue", TreeOptions::default()).unwrap();
    let mut batch = Batch::new();
    let kept = 2000_u64;
    let mut largest = 0;
    for row in 0..60_000_u64 {
        batch.put(tree, &row.to_be_bytes(), &[7; 40]);
        if let Some(old) = row.checked_sub(kept) {
            batch.delete(tree, &old.to_be_bytes());
        }
        if batch.len() >= 100 {
            db.write(&batch, Durability::None).unwrap();
            batch.clear();
            db.step().unwrap();
        }
        if row % 10_000 == 9_999 {
            assert!(db.settle(Duration::from_secs(60)).unwrap());
            let usage = vfs::usage(dir.path()).unwrap();
            largest = usage.length_bytes.max(largest);
        }
    }
    let snapshot = db.begin_read().unwrap();
    let mut cursor = snapshot
        .cursor(tree, Bound::Unbounded, Bound::Unbounded, Direction::Forward)
        .unwrap();
    for row in 60_000 - kept..60_000 {
        assert!(cursor.advance().unwrap());
        assert_eq!(cursor.key(), row.to_be_bytes());
    }
    assert!(!cursor.advance().unwrap());
    // 2000 rows are 100 KB; the rest is log segments and space that waits for a checkpoint.
    assert!(largest < 2 << 20, "{largest}");
}

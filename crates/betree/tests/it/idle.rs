//! Background work of a store without commits.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use betree::{Batch, Db, Durability, Options, TreeOptions};
use sim::{SimOptions, SimVfs};
use vfs::Vfs;

/// Do background work until there is none.
fn work(db: &Db) {
    for _ in 0..10_000 {
        if !db.step().unwrap() {
            return;
        }
    }
    panic!("an idle store always has work");
}

/// The runs of a tree that was dropped are released by the last snapshot that sees it. Nothing is
/// committed then, and no bucket changes; a checkpoint has to free them all the same.
#[test]
fn what_the_last_reader_lets_go_of_is_freed_within_a_checkpoint_interval() {
    let interval = Duration::from_secs(10);
    for log in [true, false] {
        let disk = SimVfs::new(SimOptions::default());
        let options = Options::default()
            .with_memory(1 << 20)
            .with_log(log)
            .with_checkpoint_interval(interval)
            .with_threads(0);
        let db = Db::open_with(Arc::new(disk.clone()), Path::new("/store"), options).unwrap();
        let tree = db.create_tree("rows", TreeOptions::default()).unwrap();
        let mut batch = Batch::new();
        for key in 0..2_000_u32 {
            batch.put(tree, &key.to_be_bytes(), &key.to_be_bytes().repeat(100));
        }
        db.write(&batch, Durability::None).unwrap();
        assert!(db.settle(Duration::from_secs(60)).unwrap());
        let before = db.stats().unwrap().space;
        let snapshot = db.begin_read().unwrap();
        db.drop_tree("rows").unwrap();
        db.checkpoint().unwrap();
        work(&db);
        drop(snapshot);
        work(&db);
        disk.sleep(interval);
        work(&db);
        let after = db.stats().unwrap().space;
        assert_eq!(after.pending_bytes, 0, "log {log}: {before:?}, {after:?}");
        assert!(after.used_bytes < before.used_bytes / 4, "{after:?}");
        // It has no further work.
        let number = db.stats().unwrap().checkpoint.number;
        for _ in 0..5 {
            disk.sleep(interval);
            work(&db);
        }
        assert_eq!(db.stats().unwrap().checkpoint.number, number);
    }
}

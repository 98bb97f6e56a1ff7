//! Many threads that commit at once, on a disk with room.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use betree::{Batch, Db, Durability, Options, TreeOptions};
use sim::{SimOptions, SimVfs};

const THREADS: u32 = 8;
const COMMITS: u32 = 20_000;

/// No commit takes the lack of kept room, which another one has found meanwhile, for a full disk:
/// none is refused, and none makes a checkpoint or flushes to find space.
#[test]
fn committers_that_race_for_room_find_it() {
    for log in [false, true] {
        let options = Options::default()
            .with_memory(4 << 20)
            .with_log(log)
            .with_checkpoint_interval(Duration::from_secs(3_600))
            .with_checkpoint_bytes(1 << 40)
            .with_threads(1);
        let disk = Arc::new(SimVfs::new(SimOptions::default()));
        let db = Db::open_with(disk, Path::new("/store"), options).unwrap();
        let tree = db.create_tree("t", TreeOptions::default()).unwrap();
        let before = db.stats().unwrap().operations.checkpoints;
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let db = &db;
                scope.spawn(move || {
                    for number in 0..COMMITS {
                        let key = (thread << 20 | number).to_be_bytes();
                        let mut batch = Batch::new();
                        match thread % 2 {
                            0 => batch.put(tree, &key, &[7; 100]),
                            _ => batch.delete(tree, &key),
                        };
                        let done = db.write(&batch, Durability::None);
                        assert!(done.is_ok(), "log {log}, {thread}, {number}: {done:?}");
                    }
                });
            }
        });
        let stats = db.stats().unwrap().operations;
        assert_eq!(stats.checkpoints, before, "with a log: {log}");
        db.close().unwrap();
    }
}

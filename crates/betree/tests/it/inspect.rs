//! Verification, statistics, maps and copies of a store during writes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use betree::{
    Batch, Db, Direction, Durability, IoReason, KeyRange, Options, RegionKind, TreeId, TreeOptions,
};
use sim::{Call, SimOptions, SimVfs};

pub(crate) fn tiny(threads: u32) -> Options {
    Options::default()
        .with_memory(1 << 20)
        .with_bucket(16 << 10)
        .with_page(512)
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_checkpoint_bytes(64 << 10)
        .with_checkpoint_interval(Duration::from_millis(20))
        .with_threads(threads)
}

/// The `number`th commit: fifty keys, new ones at the end and others rewritten, some deleted.
fn batch(trees: &[TreeId], number: u64) -> Batch {
    let mut batch = Batch::new();
    for &tree in trees {
        for i in 0..50_u64 {
            let key = if i % 5 == 0 {
                1_000_000 + number * 50 + i
            } else {
                (number * 7919 + i * 104_729) % 5000
            };
            if i % 11 == 3 {
                batch.delete(tree, &key.to_be_bytes());
            } else {
                batch.put(tree, &key.to_be_bytes(), &[7; 40]);
            }
        }
    }
    batch
}

fn durability(log: bool) -> Durability {
    if log {
        Durability::Interval
    } else {
        Durability::None
    }
}

#[test]
fn a_store_is_sound_while_it_is_written_to() {
    for log in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), tiny(2).with_log(log)).unwrap();
        let make = |name| db.create_tree(name, TreeOptions::default()).unwrap();
        let trees = [make("a"), make("b")];
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..1500 {
                    db.write(&batch(&trees, number), durability(log)).unwrap();
                }
                stop.store(true, Ordering::Release);
            });
            while !stop.load(Ordering::Acquire) {
                db.verify().unwrap();
                db.stats().unwrap();
            }
        });
        assert!(db.settle(Duration::from_secs(60)).unwrap());
        let report = db.verify().unwrap();
        assert_eq!(report.trees, 2);
        assert!(0 < report.bytes);
        db.close().unwrap();
        let db = Db::open(dir.path(), tiny(0).with_log(log)).unwrap();
        assert_eq!(db.verify().unwrap().entries, report.entries);
    }
}

#[test]
fn the_check_passes_with_snapshots_open_and_trees_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), tiny(0)).unwrap();
    let a = db.create_tree("a", TreeOptions::default()).unwrap();
    let b = db.create_tree("b", TreeOptions::default()).unwrap();
    let mut held = Vec::new();
    for number in 0..300 {
        if number % 20 == 0 {
            held.push(db.begin_read().unwrap());
        }
        db.write(&batch(&[a, b], number), Durability::None).unwrap();
        for _ in 0..number % 17 {
            db.step().unwrap();
        }
        if number % 10 == 0 {
            db.verify().unwrap();
        }
    }
    db.drop_tree("b").unwrap();
    db.verify().unwrap();
    let last = held.last().unwrap();
    let all = Bound::Unbounded;
    let mut cursor = last.cursor(b, all, all, Direction::Forward).unwrap();
    assert!(cursor.advance().unwrap(), "I2 of the catalog: it is seen");
    drop(cursor);
    // What it has in memory only need not be in the log any more.
    db.checkpoint().unwrap();
    db.verify().unwrap();
    while db.step().unwrap() {
        db.verify().unwrap();
    }
    held.clear();
    while db.step().unwrap() {}
    db.verify().unwrap();
    db.checkpoint().unwrap();
    assert_eq!(db.verify().unwrap().trees, 1);
}

#[test]
fn statistics_of_a_tree_agree_with_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), tiny(0)).unwrap();
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    let mut batch = Batch::new();
    for i in 0..20_000_u64 {
        batch.put(tree, &(i * 7919 % 20_000).to_be_bytes(), &[1; 30]);
        if batch.len() == 100 {
            db.write(&batch, Durability::None).unwrap();
            batch.clear();
        }
    }
    batch.delete_range(tree, KeyRange::half_open(b"", &1000_u64.to_be_bytes()));
    db.write(&batch, Durability::None).unwrap();
    let exact = db.tree_stats(tree, true).unwrap();
    assert!(exact.exact);
    assert_eq!((exact.entries, exact.live_bytes), (19_000, 19_000 * 38));
    let quick = db.tree_stats(tree, false).unwrap();
    assert!(!quick.exact);
    assert!((17_000..=22_000).contains(&quick.entries), "{quick:?}");
    assert!(db.settle(Duration::from_secs(60)).unwrap());
    let quick = db.tree_stats(tree, false).unwrap();
    assert_eq!((quick.entries, quick.live_bytes), (19_000, 19_000 * 38));
    assert_eq!((quick.delta_bytes, quick.buffered_bytes), (0, 0));
    assert!(quick.base_bytes <= quick.allocated_bytes);
    let stats = db.stats().unwrap();
    assert_eq!(stats.operations.puts, 20_000);
    assert_eq!(
        (stats.operations.deletes, stats.operations.range_deletes),
        (1000, 1)
    );
    assert_eq!(stats.operations.commits, 201);
    assert_eq!((stats.buckets, stats.runs), (quick.buckets, quick.runs));
    assert_eq!(stats.base_bytes, quick.base_bytes);
    assert!(stats.mean_runs() <= 1.0);
    assert!(stats.activity.is_empty());
    assert!(0 < stats.written_bytes(IoReason::Log));
    assert!(quick.base_bytes <= stats.written_bytes(IoReason::Merge));
    assert_eq!(stats.checkpoint.number, stats.operations.checkpoints);
}

#[test]
fn the_map_of_an_idle_store_covers_the_file_without_gaps() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), tiny(0)).unwrap();
    let trees = ["a", "b"].map(|name| db.create_tree(name, TreeOptions::default()).unwrap());
    for number in 0..300 {
        db.write(&batch(&trees, number), Durability::None).unwrap();
        db.step().unwrap();
        db.storage_map().unwrap();
    }
    assert!(db.settle(Duration::from_secs(60)).unwrap());
    db.write(&batch(&trees, 300), Durability::None).unwrap();
    let map = db.storage_map().unwrap();
    let mut end = 0;
    for region in &map.regions {
        assert_eq!(region.offset, end, "{region:?}");
        end += region.len;
    }
    let stats = db.stats().unwrap();
    assert!(end <= stats.space.file_bytes);
    assert_eq!(map.bytes(RegionKind::Pending), stats.space.pending_bytes);
    assert!(stats.space.free_bytes <= map.bytes(RegionKind::Free));
    assert_eq!(map.buckets.len() as u64, stats.buckets);
    let base: u64 = map.buckets.iter().map(|b| b.base_bytes).sum();
    assert_eq!(base, stats.base_bytes);
    let buffered: u64 = map.buckets.iter().map(|b| b.buffered_bytes).sum();
    assert_eq!(buffered, stats.buffered_bytes);
    assert!(map.log.iter().any(|segment| segment.held));
    for segment in &map.log {
        assert_eq!(
            std::fs::metadata(dir.path().join(&segment.file))
                .unwrap()
                .len(),
            segment.len
        );
    }
}

#[test]
fn bytes_written_by_reason_are_what_the_disk_saw() {
    let disk = SimVfs::new(SimOptions::default());
    let directory = Path::new("/db");
    let db = Db::open_with(Arc::new(disk.clone()), directory, tiny(0)).unwrap();
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    for number in 0..400 {
        db.write(&batch(&[tree], number), Durability::Group)
            .unwrap();
        db.step().unwrap();
    }
    assert!(db.settle(Duration::from_secs(60)).unwrap());
    let stats = db.stats().unwrap();
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    let table = disk.table();
    for row in table.rows().filter(|row| row.call == Call::Write) {
        *seen.entry(row.site.0).or_insert(0) += row.bytes;
    }
    let mut take = |site: &str| seen.remove(site).unwrap_or(0);
    assert_eq!(stats.written_bytes(IoReason::Flush), take("flush.write"));
    assert_eq!(stats.written_bytes(IoReason::Merge), take("merge.write"));
    assert_eq!(
        stats.written_bytes(IoReason::Checkpoint),
        take("image.write")
    );
    let superblocks = take("superblock.write") + take("superblock.copy");
    assert_eq!(stats.written_bytes(IoReason::Meta), superblocks);
    assert_eq!(stats.written_bytes(IoReason::Log), take("log.write"));
    // The remaining bytes are headers of log segments, and the creation of the store.
    let rest: u64 = seen.values().sum();
    assert!(rest < 1 << 20, "{seen:?}");
    let total: u64 = stats.written.iter().map(|count| count.bytes).sum();
    assert!(rest * 5 < total, "{seen:?} of {total}");
}

//! Idle cursors keep neither memory nor disk space.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use betree::{
    Batch, Codec, Cursor, Db, Direction, Durability, ErrorKind, Options, TreeId, TreeOptions,
};
use sim::{SimOptions, SimVfs};
use vfs::Vfs;

const KEYS: u32 = 4000;
const LONG: Duration = Duration::from_secs(3600);

fn options() -> Options {
    Options::default()
        .with_memory(2 << 20)
        .with_bucket(64 << 10)
        .with_codec(Codec::None)
        .with_delta_codec(Codec::None)
        .with_page(1 << 10)
        .with_log_segment(256 << 10)
        .with_log_max(1 << 20)
        .with_checkpoint_bytes(1 << 20)
        .with_threads(0)
}

fn open(options: Options) -> (SimVfs, Db, TreeId) {
    let disk = SimVfs::new(SimOptions::default());
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let db = Db::open_with(vfs, Path::new("/store"), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    (disk, db, tree)
}

fn value(round: u32) -> Vec<u8> {
    round.to_be_bytes().repeat(15)
}

/// Put every key in a scattered order, so that all buckets are changed.
fn overwrite(db: &Db, tree: TreeId, round: u32) {
    let mut batch = Batch::new();
    for number in 0..KEYS {
        let key = (number * 1009 % KEYS).to_be_bytes();
        batch.put(tree, &key, &value(round));
        if 10_000 < batch.byte_len() {
            db.write(&batch, Durability::None).unwrap();
            batch.clear();
        }
    }
    db.write(&batch, Durability::None).unwrap();
}

/// A cursor at the first key from `from` on, in its direction.
fn rest_at(db: &Db, tree: TreeId, from: u32, direction: Direction) -> Cursor<'static> {
    let (from, all) = (from.to_be_bytes(), Bound::Unbounded);
    let snapshot = db.begin_read().unwrap();
    let (start, end) = match direction {
        Direction::Forward => (Bound::Included(&from[..]), all),
        Direction::Backward => (all, Bound::Included(&from[..])),
    };
    let mut cursor = snapshot.cursor(tree, start, end, direction).unwrap();
    assert!(cursor.advance().unwrap());
    cursor
}

/// Read to the end: every key from `from` on must have its value of `round`.
fn finish(mut cursor: Cursor<'_>, from: u32, round: u32, direction: Direction) {
    let rest: Vec<u32> = match direction {
        Direction::Forward => (from..KEYS).collect(),
        Direction::Backward => (0..=from).rev().collect(),
    };
    for (index, key) in rest.iter().enumerate() {
        assert_eq!(cursor.key(), key.to_be_bytes(), "{direction:?} from {from}");
        assert_eq!(cursor.value(), value(round), "key {key} in round {round}");
        assert_eq!(cursor.advance().unwrap(), index + 1 < rest.len());
    }
}

#[test]
fn ten_thousand_idle_cursors_keep_no_buffers() {
    let (_disk, db, tree) = open(options());
    let mut resting = Vec::new();
    for round in 0..20 {
        overwrite(&db, tree, round);
        for number in 0..500 {
            let direction = if number % 2 == 0 {
                Direction::Forward
            } else {
                Direction::Backward
            };
            let from = number * 8 % KEYS;
            resting.push((rest_at(&db, tree, from, direction), from, round, direction));
        }
        assert!(
            0 < db.stats().unwrap().buffered_bytes,
            "they stand in buffers"
        );
        db.flush().unwrap();
        let stats = db.stats().unwrap();
        assert_eq!(
            stats.buffered_bytes + stats.pinned_bytes,
            0,
            "round {round}"
        );
    }
    assert_eq!(db.stats().unwrap().snapshots.open, 10_000);
    // Each cursor continues at its position, although its data were replaced.
    for (index, (cursor, from, round, direction)) in resting.into_iter().enumerate() {
        if index % 97 == 0 {
            finish(cursor, from, round, direction);
        }
    }
}

#[test]
fn a_snapshot_that_was_given_up_gives_its_space_back_though_cursors_rest() {
    let age = Duration::from_secs(10_000);
    let (disk, db, tree) = open(options().with_snapshot_max_age(Some(age)));
    overwrite(&db, tree, 1);
    assert!(db.settle(LONG).unwrap());
    let alone = db.stats().unwrap().space.used_bytes;
    let mut resting: Vec<Cursor<'static>> = (0..KEYS)
        .step_by(100)
        .map(|from| rest_at(&db, tree, from, Direction::Forward))
        .collect();
    overwrite(&db, tree, 2);
    assert!(db.settle(LONG).unwrap());
    let pinned = db.stats().unwrap().space.used_bytes;
    assert!(alone * 3 / 2 < pinned, "{alone} alone, {pinned} when read");
    disk.sleep(age + Duration::from_secs(1));
    assert!(db.settle(LONG).unwrap());
    let stats = db.stats().unwrap();
    assert_eq!(stats.snapshots.open, 0, "they were given up");
    let used = stats.space.used_bytes;
    assert!(
        used <= alone + alone / 10,
        "{alone} alone, {used} though given up"
    );
    for cursor in &mut resting {
        let error = cursor.advance().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        let error = cursor.seek(&[0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
}

#[test]
fn a_cursor_that_rests_keeps_no_space_that_its_snapshot_does_not_need() {
    let (_disk, db, tree) = open(options());
    overwrite(&db, tree, 1);
    assert!(db.settle(LONG).unwrap());
    let alone = db.stats().unwrap().space.used_bytes;
    let directions = [Direction::Forward, Direction::Backward];
    let mut resting = Vec::new();
    for from in (0..KEYS).step_by(50) {
        for direction in directions {
            resting.push((rest_at(&db, tree, from, direction), from, direction));
        }
    }
    // Merged again and again: two versions of each key, not one for each time.
    for round in 2..8 {
        overwrite(&db, tree, round);
        assert!(db.settle(LONG).unwrap());
    }
    let used = db.stats().unwrap().space.used_bytes;
    assert!(
        used < alone * 5 / 2,
        "{alone} alone, {used} with two versions"
    );
    for (index, (cursor, from, direction)) in resting.into_iter().enumerate() {
        if index % 7 == 0 {
            finish(cursor, from, 1, direction);
        }
    }
    assert!(db.settle(LONG).unwrap());
    let used = db.stats().unwrap().space.used_bytes;
    assert!(
        used <= alone + alone / 10,
        "{alone} alone, {used} without readers"
    );
}

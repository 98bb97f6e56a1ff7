//! Snapshots that are open beyond their maximum age.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use betree::{Batch, Codec, Db, Direction, Durability, ErrorKind, Options, TreeId, TreeOptions};
use sim::{SimOptions, SimVfs};
use vfs::Vfs;

const KEYS: u32 = 5000;

fn overwrite(db: &Db, tree: TreeId, rounds: u8) {
    for round in 0..rounds {
        let mut batch = Batch::new();
        for number in 0..KEYS {
            batch.put(tree, &number.to_be_bytes(), &[round; 100]);
            if 20_000 < batch.byte_len() {
                db.write(&batch, Durability::None).unwrap();
                batch.clear();
            }
        }
        db.write(&batch, Durability::None).unwrap();
    }
}

fn used(db: &Db) -> u64 {
    assert!(db.settle(Duration::from_secs(3600)).unwrap());
    db.stats().unwrap().space.used_bytes
}

#[test]
fn a_snapshot_beyond_the_age_limit_fails_and_gives_its_space_back() {
    let disk = SimVfs::new(SimOptions::default());
    let options = Options::default()
        .with_memory(1 << 20)
        .with_bucket(64 << 10)
        .with_codec(Codec::None)
        .with_delta_codec(Codec::None)
        .with_page(512)
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_snapshot_max_age(Some(Duration::from_secs(10_000)))
        .with_threads(0);
    let db = Db::open_with(Arc::new(disk.clone()), Path::new("/store"), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    overwrite(&db, tree, 1);
    let alone = used(&db);

    let held = db.begin_read().unwrap();
    let all = Bound::Unbounded;
    let mut cursor = held.cursor(tree, all, all, Direction::Forward).unwrap();
    assert!(cursor.advance().unwrap());
    let mut transaction = db.begin().unwrap();
    transaction.put(tree, b"key", b"value").unwrap();
    overwrite(&db, tree, 3);
    let pinned = used(&db);
    assert!(
        alone * 3 / 2 < pinned,
        "{alone} alone, {pinned} with a snapshot"
    );
    assert_eq!(
        held.get(tree, &7_u32.to_be_bytes()).unwrap(),
        Some(vec![0; 100])
    );

    disk.sleep(Duration::from_secs(10_001));
    overwrite(&db, tree, 3);
    let after = used(&db);
    assert!(
        after < alone * 5 / 4,
        "{alone} alone, {after} after the snapshot was given up"
    );
    let too_old = |error: betree::Error| assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    too_old(held.get(tree, &7_u32.to_be_bytes()).unwrap_err());
    too_old(
        held.cursor(tree, all, all, Direction::Forward)
            .map(|_| ())
            .unwrap_err(),
    );
    too_old(cursor.advance().unwrap_err());
    too_old(cursor.seek(b"x").unwrap_err());
    too_old(transaction.get(tree, b"other").unwrap_err());
    too_old(transaction.commit(Durability::None).unwrap_err());
    let fresh = db.begin_read().unwrap();
    assert_eq!(fresh.get(tree, b"key").unwrap(), None);
    assert_eq!(
        fresh.get(tree, &7_u32.to_be_bytes()).unwrap(),
        Some(vec![2; 100])
    );
}

//! Empty buckets whose range a neighbor takes over.
//!
//! A flush that runs while its bucket is merged and cut leaves one delta that all parts share. A
//! part that is merged drops the delta; its neighbours keep it, with the old versions of keys that
//! the part has deleted since. A neighbour that took over the range of such a part would bring
//! those keys back.

use std::ops::Bound;
use std::sync::Arc;

use betree::{Batch, Db, Durability, KeyRange, TreeId, TreeOptions};
use sim::{SimOptions, SimVfs};

use crate::rig::DIRECTORY;
use crate::scripts::small;

const KEYS: u32 = 1200;
/// Keys from this one on are deleted.
const DELETED: u32 = 800;
const SEEDS: u64 = 12;

fn key(number: u32) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

fn put(db: &Db, tree: TreeId, keys: impl Iterator<Item = u32>) {
    let mut batch = Batch::new();
    keys.for_each(|number| batch.put(tree, &key(number), &[7; 40]));
    db.write(&batch, Durability::None).expect("nothing fails");
}

/// Number of keys in the tree from `first` on.
fn count(db: &Db, tree: TreeId, first: u32) -> usize {
    let first = key(first);
    let snapshot = db.begin_read().expect("nothing fails");
    let start = Bound::Included(first.as_slice());
    let mut cursor = snapshot
        .cursor(tree, start, Bound::Unbounded, betree::Direction::Forward)
        .expect("nothing fails");
    let mut found = 0;
    while cursor.advance().expect("nothing fails") {
        found += 1;
    }
    found
}

fn compact(db: &Db, tree: TreeId, number: u32, watch: &mut dyn FnMut(u64, u64) -> bool) {
    let number = key(number);
    let here = Bound::Included(number.as_slice());
    let done = db.compact(tree, here, here, watch);
    assert!(done.expect("nothing fails"), "nothing stops it");
}

/// Load one bucket, and flush every 100th key again while the bucket is merged and cut into many.
fn shared_delta(db: &Db, tree: TreeId) {
    for offset in 0..2 {
        put(db, tree, (offset..KEYS).step_by(2));
        db.flush().expect("nothing fails");
    }
    let mut calls = 0;
    let all = db.compact(tree, Bound::Unbounded, Bound::Unbounded, &mut |_, _| {
        calls += 1;
        if calls == 3 {
            put(db, tree, (0..KEYS).step_by(100));
            db.flush().expect("nothing fails");
        }
        true
    });
    assert!(all.expect("nothing fails"), "nothing stops it");
    assert!(3 <= calls, "the merge takes several slices");
    let map = db.storage_map().expect("nothing fails");
    let shared = map.buckets.iter().filter(|b| 0 < b.delta_bytes).count();
    assert!(4 < shared, "several buckets share the delta, not {shared}");
}

#[test]
fn deleted_keys_stay_deleted_when_their_buckets_are_given_up() {
    for seed in 0..SEEDS {
        let vfs = SimVfs::new(SimOptions::default());
        let options = small().with_k_cap(16).with_seed(seed);
        let db = Db::open_with(Arc::new(vfs), DIRECTORY.as_ref(), options).expect("nothing fails");
        let tree = db.create_tree("a", TreeOptions::default());
        let tree = tree.expect("nothing fails");
        shared_delta(&db, tree);
        let mut batch = Batch::new();
        let first = key(DELETED);
        batch.delete_range(tree, KeyRange::from(&first));
        db.write(&batch, Durability::None).expect("nothing fails");
        db.flush().expect("nothing fails");
        for number in (DELETED..KEYS).rev().step_by(20) {
            compact(&db, tree, number, &mut |_, _| true);
            let back = count(&db, tree, DELETED);
            assert_eq!(back, 0, "deleted keys are back, seed {seed}, at {number}");
        }
        assert_eq!(count(&db, tree, 0), DELETED as usize, "seed {seed}");
        let done = db.settle(std::time::Duration::from_secs(3600));
        assert!(done.expect("nothing fails"), "there is time");
        let buckets = db.storage_map().expect("nothing fails").buckets;
        let empty = buckets.iter().filter(|bucket| bucket.base_bytes == 0);
        assert_eq!(empty.count(), 0, "seed {seed}: empty buckets stay");
        assert_eq!(
            count(&db, tree, 0),
            DELETED as usize,
            "seed {seed}, settled"
        );
        db.verify().expect("the store is sound");
    }
}

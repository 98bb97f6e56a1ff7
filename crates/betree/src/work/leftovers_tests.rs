//! Tests that versions kept for snapshots, and empty buckets, disappear when the snapshots are
//! closed.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sim::{SimOptions, SimVfs};
use vfs::Vfs;

use crate::db::{Db, Snapshot};
use crate::options::{Codec, Options};
use crate::stats::IoReason;
use crate::tree::Bucket;
use crate::types::{Batch, Durability, KeyRange, Seq, TreeId, TreeOptions};

const ROWS: u32 = 12_000;
const LONG: Duration = Duration::from_secs(3600);

fn options() -> Options {
    Options::default()
        .with_memory(1 << 20)
        .with_bucket(64 << 10)
        .with_codec(Codec::None)
        .with_delta_codec(Codec::None)
        .with_page(1 << 10)
        .with_log_segment(256 << 10)
        .with_log_max(1 << 20)
        .with_checkpoint_bytes(256 << 10)
        .with_threads(0)
}

struct Store {
    disk: SimVfs,
    options: Options,
    db: Db,
    tree: TreeId,
}

impl Store {
    fn new() -> Store {
        Store::with(options())
    }

    fn with(options: Options) -> Store {
        let disk = SimVfs::new(SimOptions::default());
        let db = open(&disk, &options);
        let tree = db.create_tree("t", TreeOptions::default()).unwrap();
        Store {
            disk,
            options,
            db,
            tree,
        }
    }

    fn reopen(self) -> Store {
        self.db.close().unwrap();
        let db = open(&self.disk, &self.options);
        Store { db, ..self }
    }

    /// Put all rows, in an order that returns to every bucket again and again.
    fn load(&self, round: u8) {
        put(&self.db, self.tree, 0..ROWS, round);
    }

    fn delete_all(&self) {
        let mut batch = Batch::new();
        batch.delete_range(self.tree, KeyRange::ALL);
        self.db.write(&batch, Durability::None).unwrap();
    }

    fn settle(&self) {
        assert!(self.db.settle(LONG).unwrap());
    }

    fn used(&self) -> u64 {
        self.db.stats().unwrap().space.used_bytes
    }

    fn merges(&self) -> u64 {
        self.db.stats().unwrap().operations.merges
    }

    fn buckets(&self) -> usize {
        self.db.core().buckets().len()
    }

    fn snapshot(&self) -> Snapshot {
        self.db.begin_read().unwrap()
    }

    /// Leave the store idle until it has no work left.
    fn rest(&self) {
        let mut quiet = 0;
        for _ in 0..100_000 {
            if self.db.step().unwrap() {
                quiet = 0;
                continue;
            }
            quiet += 1;
            if quiet == 5 {
                return;
            }
            self.disk.sleep(Duration::from_millis(150));
        }
        panic!("the store never rests");
    }

    /// What must hold of a settled store of `rows` rows without readers.
    fn assert_plain(&self, rows: u64) {
        assert_plain(&self.db, rows);
    }

    /// Check that the store is as small as one that was loaded once with the same rows.
    fn assert_as_fresh(&self, rows: u32) {
        let fresh = Store::with(self.options.clone());
        put(&fresh.db, fresh.tree, 0..rows, 1);
        fresh.settle();
        let (used, least) = (self.used(), fresh.used());
        // A tenth more, and two units: an empty store consists of the image only.
        let most = least + least / 10 + 8192;
        assert!(used <= most, "{used} bytes used, {least} by a fresh store");
        let (buckets, few) = (self.buckets(), fresh.buckets());
        assert!(buckets <= 2 * few, "{buckets} buckets, {few} when fresh");
    }
}

fn open(disk: &SimVfs, options: &Options) -> Db {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    Db::open_with(vfs, Path::new("/store"), options.clone()).unwrap()
}

fn put(db: &Db, tree: TreeId, rows: std::ops::Range<u32>, round: u8) {
    let (count, mut batch) = (rows.end - rows.start, Batch::new());
    for row in 0..count {
        // Every row once: 7919 is prime and does not divide the counts used here.
        let row = rows.start + u32::try_from(u64::from(row) * 7919 % u64::from(count)).unwrap();
        batch.put(tree, &row.to_be_bytes(), &[round; 60]);
        if 10_000 < batch.byte_len() {
            db.write(&batch, Durability::None).unwrap();
            batch.clear();
        }
    }
    db.write(&batch, Durability::None).unwrap();
}

/// What must hold of a settled store of `rows` rows without readers.
fn assert_plain(db: &Db, rows: u64) {
    let core = db.core();
    let mut entries = 0;
    for tree in core.catalog.all() {
        let routing = tree.routing();
        let sole = routing.buckets().len() == 1;
        for bucket in routing.buckets() {
            let state = bucket.state();
            assert!(sole || !state.is_empty(), "an empty bucket stays");
            assert!(state.deltas.is_empty(), "all is merged");
            for run in state.base.iter() {
                assert_eq!(run.meta().tombstones, 0, "nothing is deleted twice");
                assert_eq!(run.meta().max_seq, Seq::ANCIENT, "versions cost nothing");
                entries += run.meta().entries;
            }
        }
    }
    assert_eq!(entries, rows, "one version of each row");
    assert_eq!(db.stats().unwrap().debt_bytes, 0, "nothing is owed");
    db.verify().unwrap();
}

#[test]
fn a_range_deleted_under_a_snapshot_gives_its_space_back() {
    let store = Store::new();
    store.load(1);
    store.settle();
    let held = store.snapshot();
    store.delete_all();
    store.settle();
    assert!(
        ROWS * 60 < u32::try_from(store.used()).unwrap(),
        "the snapshot reads it"
    );
    assert_eq!(held.get(store.tree, &[0; 4]).unwrap(), Some(vec![1; 60]));
    drop(held);
    assert!(0 < store.db.stats().unwrap().debt_bytes, "it is owed");
    store.settle();
    store.assert_plain(0);
    store.assert_as_fresh(0);
}

#[test]
fn an_idle_store_drops_what_a_snapshot_held_back() {
    let store = Store::new();
    store.load(1);
    store.settle();
    let held = store.snapshot();
    store.delete_all();
    store.settle();
    drop(held);
    store.rest();
    store.assert_plain(0);
    store.assert_as_fresh(0);
}

#[test]
fn an_idle_store_merges_until_no_bucket_has_a_delta() {
    let store = Store::new();
    store.load(1);
    store.load(2);
    store.rest();
    let stats = store.db.stats().unwrap();
    assert!(0 < stats.buffered_bytes, "an idle store keeps its buffers");
    assert_eq!(stats.delta_bytes, 0);
    assert_eq!(
        stats.debt_bytes, stats.buffered_bytes,
        "nothing else is owed"
    );
    store.settle();
    store.assert_plain(u64::from(ROWS));
}

#[test]
fn versions_of_many_snapshots_are_dropped_when_they_are_gone() {
    let store = Store::new();
    let mut held = Vec::new();
    for round in 0..7 {
        store.load(round);
        store.settle();
        held.push(store.snapshot());
    }
    store.load(7);
    store.settle();
    assert!(
        ROWS * 60 * 7 < u32::try_from(store.used()).unwrap(),
        "all are kept"
    );
    for (round, snapshot) in (0_u8..).zip(&held) {
        let row = snapshot.get(store.tree, &[0; 4]).unwrap();
        assert_eq!(row, Some(vec![round; 60]));
    }
    // The oldest first: closing each makes some versions unnecessary while the others are open.
    let mut used = store.used();
    for _ in 0..7 {
        drop(held.remove(0));
        store.settle();
        assert!(store.used() < used, "its versions are dropped");
        used = store.used();
    }
    store.assert_plain(u64::from(ROWS));
    store.assert_as_fresh(ROWS);
}

#[test]
fn what_a_snapshot_held_back_goes_after_reopening() {
    let store = Store::new();
    store.load(1);
    let held = store.snapshot();
    store.load(2);
    store.delete_all();
    put(&store.db, store.tree, 0..4000, 3);
    store.settle();
    drop(held);
    let store = store.reopen();
    assert!(0 < store.db.stats().unwrap().debt_bytes, "it is owed");
    store.settle();
    store.assert_plain(4000);
    store.assert_as_fresh(4000);
}

#[test]
fn compact_drops_what_a_snapshot_held_back() {
    let store = Store::new();
    store.load(1);
    let held = store.snapshot();
    store.load(2);
    store.settle();
    drop(held);
    let all = Bound::Unbounded;
    assert!(
        store
            .db
            .compact(store.tree, all, all, &mut |_, _| true)
            .unwrap()
    );
    store.assert_plain(u64::from(ROWS));
}

#[test]
fn a_busy_store_drops_what_a_snapshot_held_back() {
    let store = Store::new();
    let other = store.db.create_tree("u", TreeOptions::default()).unwrap();
    store.load(1);
    let held = store.snapshot();
    store.load(2);
    store.settle();
    drop(held);
    let old = |store: &Store| {
        let (all, mut old) = (store.db.core().buckets(), 0);
        for (tree, bucket) in all {
            let state = bucket.state();
            let base = state.base.iter().filter(|_| tree.id == store.tree);
            old += base.map(|run| run.leftovers().entries()).sum::<u64>();
        }
        old
    };
    assert_eq!(
        old(&store),
        u64::from(ROWS),
        "a version of each row is kept"
    );
    let merged = || store.db.stats().unwrap().written_bytes(IoReason::Merge);
    let before = merged();
    // Ascending keys in another tree need no merges, and keep the store from being idle.
    let mut row = 0;
    for turn in 0..20_000 {
        let mut batch = Batch::new();
        for _ in 0..50 {
            row += 1_u32;
            batch.put(other, &row.to_be_bytes(), &[9; 60]);
        }
        store.db.write(&batch, Durability::None).unwrap();
        store.db.step().unwrap();
        if turn % 50 == 0 && old(&store) == 0 {
            break;
        }
    }
    assert_eq!(old(&store), 0, "it comes to them in time");
    // One byte written for four of keys and values committed; the first merge does not wait.
    let (written, committed) = (merged() - before, u64::from(row) * 64);
    let most = committed / 4 + (256 << 10);
    assert!(
        written <= most,
        "{written} bytes written for {committed} committed"
    );
}

#[test]
fn nothing_is_merged_again_for_nothing() {
    // leftover: I1.
    let store = Store::new();
    store.load(1);
    let first = store.snapshot();
    store.load(2);
    let second = store.snapshot();
    store.load(3);
    store.settle();
    let merges = store.merges();
    store.settle();
    store.rest();
    assert_eq!(store.merges(), merges, "both snapshots are there");
    drop(first);
    store.settle();
    let after_first = store.merges();
    assert!(merges < after_first, "the first versions go");
    store.settle();
    store.rest();
    assert_eq!(store.merges(), after_first, "the others stay");
    drop(second);
    store.rest();
    let after_second = store.merges();
    assert!(after_first < after_second, "the others go");
    store.settle();
    store.rest();
    assert_eq!(store.merges(), after_second, "nothing is left");
    store.assert_plain(u64::from(ROWS));
}

#[test]
fn ascending_keys_written_under_a_snapshot_are_written_once_unless_settled() {
    let store = Store::new();
    let held = store.snapshot();
    let mut batch = Batch::new();
    for row in 0..ROWS {
        batch.put(store.tree, &row.to_be_bytes(), &[1; 60]);
        if 10_000 < batch.byte_len() {
            store.db.write(&batch, Durability::None).unwrap();
            batch.clear();
        }
    }
    store.db.write(&batch, Durability::None).unwrap();
    store.db.flush().unwrap();
    drop(held);
    store.rest();
    assert_eq!(store.merges(), 0, "there is nothing to drop but numbers");
    assert_eq!(store.db.stats().unwrap().debt_bytes, 0);
    store.settle();
    store.assert_plain(u64::from(ROWS));
    let merges = store.merges();
    store.settle();
    assert_eq!(store.merges(), merges);
}

#[test]
fn filled_and_emptied_again_and_again_a_tree_stays_small() {
    let directory = tempfile::tempdir().unwrap();
    for threads in [0, 2] {
        let path = directory.path().join(threads.to_string());
        let db = Db::open(&path, options().with_threads(threads)).unwrap();
        let tree = db.create_tree("t", TreeOptions::default()).unwrap();
        for round in 0..4 {
            put(&db, tree, 0..ROWS, round);
            let mut batch = Batch::new();
            batch.delete_range(tree, KeyRange::ALL);
            db.write(&batch, Durability::None).unwrap();
            assert!(db.settle(LONG).unwrap());
            let stats = db.stats().unwrap();
            assert_eq!(stats.buckets, 1, "threads {threads}, round {round}");
            let used = stats.space.used_bytes;
            assert!(
                used <= 16 << 10,
                "{used} bytes, threads {threads}, round {round}"
            );
        }
        assert_plain(&db, 0);
        db.close().unwrap();
    }
}

/// Rows in one bucket, of which every 100th was flushed again while the bucket was merged and
/// split: all parts share that run.
fn parts_that_share_a_run(store: &Store) {
    for part in 0..2 {
        let mut batch = Batch::new();
        for row in (part..ROWS).step_by(2) {
            batch.put(store.tree, &row.to_be_bytes(), &[1; 60]);
        }
        store.db.write(&batch, Durability::None).unwrap();
        store.db.flush().unwrap();
    }
    let mut calls = 0;
    let all = Bound::Unbounded;
    let done = store.db.compact(store.tree, all, all, &mut |_, _| {
        calls += 1;
        if calls == 3 {
            let mut batch = Batch::new();
            for row in (0..ROWS).step_by(100) {
                batch.put(store.tree, &row.to_be_bytes(), &[2; 60]);
            }
            store.db.write(&batch, Durability::None).unwrap();
            store.db.flush().unwrap();
        }
        true
    });
    assert!(done.unwrap());
    let shared = store.db.core().buckets();
    let shared = shared
        .iter()
        .filter(|(_, it)| !it.state().deltas.is_empty());
    assert!(4 < shared.count(), "several buckets share the delta");
}

#[test]
fn empty_buckets_go_when_their_neighbours_share_nothing_any_more() {
    for rest in [true, false] {
        let store = Store::with(options().with_memory(16 << 20).with_k_cap(16));
        parts_that_share_a_run(&store);
        let mut batch = Batch::new();
        let from = (ROWS / 3).to_be_bytes();
        batch.delete_range(store.tree, KeyRange::from(&from));
        store.db.write(&batch, Durability::None).unwrap();
        // From the right, so that the left neighbor of each bucket still shares the run.
        for row in (ROWS / 3..ROWS).rev().step_by(50) {
            let key = row.to_be_bytes();
            let here = Bound::Included(&key[..]);
            store
                .db
                .compact(store.tree, here, here, &mut |_, _| true)
                .unwrap();
        }
        if rest {
            store.rest();
        } else {
            store.settle();
        }
        store.assert_plain(u64::from(ROWS / 3));
    }
}

/// A bucket that became empty while both neighbours, which are too large to be joined, waited for a
/// flush of one row each: of the row behind their last one, or of their last one again.
struct Between {
    store: Store,
    left: Arc<Bucket>,
    empty: Arc<Bucket>,
}

impl Between {
    fn new(behind: bool) -> Between {
        let store = Store::new();
        store.load(1);
        store.settle();
        let buckets = store.db.core().buckets();
        let half = store.options.bucket() / 2;
        let large = |at: usize| half < buckets[at].1.state().base_bytes();
        let at = (1..buckets.len() - 1).find(|at| large(at - 1) && large(at + 1));
        let at = at.expect("large buckets are frequent");
        let [left, empty, right] = [at - 1, at, at + 1].map(|at| Arc::clone(&buckets[at].1));
        let mut batch = Batch::new();
        let hi = empty.hi.as_ref().unwrap();
        batch.delete_range(store.tree, KeyRange::half_open(&empty.lo, hi));
        store.db.write(&batch, Durability::None).unwrap();
        store.db.flush().unwrap();
        batch.clear();
        for bucket in [&left, &right] {
            let last = bucket.state().base.last().unwrap().meta().max_key.to_vec();
            let key = if behind {
                [&*last, &[0]].concat()
            } else {
                last
            };
            batch.put(store.tree, &key, &[9; 60]);
        }
        store.db.write(&batch, Durability::None).unwrap();
        let core = store.db.core();
        core.freeze_older_than(Seq::MAX);
        let between = Between { store, left, empty };
        between.merge(&between.empty);
        assert!(between.empty.state().is_empty());
        assert!(between.is_there(), "its neighbours are busy");
        between.store.db.core().flush_until_idle().unwrap();
        assert_ne!(between.left.state().deltas.is_empty(), !behind);
        between
    }

    fn merge(&self, bucket: &Arc<Bucket>) {
        let core = self.store.db.core();
        let tree = core.catalog.tree(self.store.tree).unwrap();
        let mut offer = Some((tree, Arc::clone(bucket)));
        while core.merge_slice(|| offer.take()).unwrap() {}
    }

    fn is_there(&self) -> bool {
        !self.empty.state().retired
    }
}

#[test]
fn an_empty_bucket_goes_though_nothing_beside_it_is_merged() {
    for rest in [true, false] {
        let between = Between::new(true);
        let merges = between.store.merges();
        if rest {
            between.store.rest();
            assert_eq!(between.store.merges(), merges, "there is nothing to merge");
        } else {
            between.store.settle();
        }
        assert!(!between.is_there(), "idle: {rest}");
    }
}

#[test]
fn an_empty_bucket_goes_with_the_next_merge_of_a_neighbour() {
    let between = Between::new(false);
    between.merge(&between.left);
    assert!(!between.is_there());
    between.store.settle();
}

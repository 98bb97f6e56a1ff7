//! Commits larger than memory, and transactions that spill.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use betree::{Batch, Db, Direction, Durability, ErrorKind, KeyRange, Options, TreeId, TreeOptions};
use sim::{Crash, Fault, FaultKind, SimOptions, SimVfs};
use stdx::rng::Rng;

const STORE: &str = "/store";

/// Write buffers of about 400 KiB: transactions spill from 64 KiB on.
fn tiny() -> Options {
    Options::default()
        .with_memory(1 << 20)
        .with_bucket(16 << 10)
        .with_page(512)
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_checkpoint_bytes(1 << 20)
        .with_threads(0)
}

fn open(disk: &SimVfs) -> Db {
    Db::open_with(Arc::new(disk.clone()), Path::new(STORE), tiny()).unwrap()
}

fn count(db: &Db, tree: TreeId) -> usize {
    let snapshot = db.begin_read().unwrap();
    let (all, forward) = (Bound::Unbounded, Direction::Forward);
    let mut cursor = snapshot.cursor(tree, all, all, forward).unwrap();
    let mut count = 0;
    while cursor.advance().unwrap() {
        count += 1;
    }
    count
}

#[test]
fn a_transaction_larger_than_memory_reads_its_own_writes_and_commits_them() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), tiny()).unwrap();
    let trees = ["a", "b"].map(|name| db.create_tree(name, TreeOptions::default()).unwrap());
    let mut rng = Rng::new(5);
    let mut model: BTreeMap<(TreeId, Vec<u8>), Vec<u8>> = BTreeMap::new();
    for round in 0..3 {
        let before = model.clone();
        let mut transaction = db.begin().unwrap();
        for _ in 0..30_000 {
            let tree = trees[rng.index(2)];
            let key = rng.below(20_000).to_be_bytes().to_vec();
            match rng.index(10) {
                0 | 1 => {
                    let there = transaction.delete(tree, &key).unwrap();
                    assert_eq!(there, model.remove(&(tree, key)).is_some());
                }
                2 => {
                    let found = transaction.get(tree, &key).unwrap();
                    assert_eq!(found.as_ref(), model.get(&(tree, key)));
                }
                3 => {
                    let inserted = transaction.insert(tree, &key, b"new");
                    match model.entry((tree, key)) {
                        std::collections::btree_map::Entry::Occupied(_) => {
                            assert_eq!(inserted.unwrap_err().kind(), ErrorKind::Exists);
                        }
                        std::collections::btree_map::Entry::Vacant(place) => {
                            inserted.unwrap();
                            place.insert(b"new".to_vec());
                        }
                    }
                }
                4 => {
                    transaction.put_blind(tree, &key, b"blind").unwrap();
                    model.insert((tree, key), b"blind".to_vec());
                }
                _ => {
                    let value = vec![u8::try_from(rng.index(256)).unwrap(); rng.index(120)];
                    transaction.put(tree, &key, &value).unwrap();
                    model.insert((tree, key), value);
                }
            }
        }
        for tree in trees {
            for direction in [Direction::Forward, Direction::Backward] {
                let all = Bound::Unbounded;
                let mut cursor = transaction.cursor(tree, all, all, direction).unwrap();
                let mut seen = Vec::new();
                while cursor.advance().unwrap() {
                    seen.push((cursor.key().to_vec(), cursor.value().to_vec()));
                }
                if direction == Direction::Backward {
                    seen.reverse();
                }
                let of = |((t, k), v): (&(TreeId, Vec<u8>), &Vec<u8>)| {
                    (*t == tree).then(|| (k.clone(), v.clone()))
                };
                let expected: Vec<_> = model.iter().filter_map(of).collect();
                assert_eq!(seen, expected);
            }
        }
        if round == 1 {
            transaction.rollback();
            model = before;
        } else {
            transaction.commit(Durability::Interval).unwrap();
        }
        let snapshot = db.begin_read().unwrap();
        for ((tree, key), value) in &model {
            assert_eq!(snapshot.get(*tree, key).unwrap().as_ref(), Some(value));
        }
        assert_eq!(
            trees.map(|tree| count(&db, tree)).iter().sum::<usize>(),
            model.len()
        );
    }
    db.close().unwrap();
    let db = Db::open(dir.path(), tiny()).unwrap();
    assert_eq!(
        trees.map(|tree| count(&db, tree)).iter().sum::<usize>(),
        model.len()
    );
}

#[test]
fn a_rollback_gives_the_spilled_space_back_at_once() {
    let disk = SimVfs::new(SimOptions::default());
    let db = open(&disk);
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    let mut largest = 0;
    for round in 0..5 {
        let mut transaction = db.begin().unwrap();
        for number in 0..20_000_u32 {
            transaction
                .put(tree, &number.to_be_bytes(), &[round; 50])
                .unwrap();
        }
        transaction.rollback();
        let used = disk.used();
        if round == 0 {
            largest = used;
        }
        assert!(
            used <= largest + (64 << 10),
            "round {round}: {used}, first {largest}"
        );
    }
    assert_eq!(count(&db, tree), 0);
}

#[test]
fn the_first_to_commit_wins_against_a_spilled_write() {
    let disk = SimVfs::new(SimOptions::default());
    let db = open(&disk);
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    for blind in [false, true] {
        let mut large = db.begin().unwrap();
        let key = |number: u32| number.to_be_bytes();
        if blind {
            large.put_blind(tree, &key(77), b"large").unwrap();
        } else {
            large.put(tree, &key(77), b"large").unwrap();
        }
        for number in 1000..10_000 {
            large.put_blind(tree, &key(number), &[7; 50]).unwrap();
        }
        // A blind write of a key that was also written with a check still takes part in conflict
        // detection.
        large.put_blind(tree, &key(77), b"again").unwrap();
        let mut small = db.begin().unwrap();
        small.put(tree, &key(77), b"small").unwrap();
        small.commit(Durability::None).unwrap();
        let result = large.commit(Durability::None);
        let expected: &[u8] = if blind { b"again" } else { b"small" };
        match blind {
            true => result.unwrap(),
            false => assert_eq!(result.unwrap_err().kind(), ErrorKind::Conflict),
        }
        let found = db.begin_read().unwrap().get(tree, &key(77)).unwrap();
        assert_eq!(found.as_deref(), Some(expected));
    }
}

/// Commit a large batch, a large transaction and a range delete, on a disk that may stop.
fn workload(db: &Db, tree: TreeId) -> betree::Result<()> {
    let mut batch = Batch::new();
    for number in 0..3000_u32 {
        batch.put(
            tree,
            &number.wrapping_mul(0x9E37_79B1).to_be_bytes(),
            &[1; 40],
        );
    }
    db.write(&batch, Durability::Sync)?;
    let mut transaction = db.begin()?;
    for number in 3000..6000_u32 {
        let key = number.wrapping_mul(0x9E37_79B1).to_be_bytes();
        transaction.put(tree, &key, &[2; 40])?;
    }
    transaction.commit(Durability::Sync)?;
    let mut batch = Batch::new();
    batch.delete_range(tree, KeyRange::ALL);
    db.write(&batch, Durability::Sync)
}

#[test]
fn after_a_crash_at_any_moment_a_bulk_commit_is_whole_or_not_there() {
    // I1.
    let prepared = SimVfs::new(SimOptions::default());
    let db = open(&prepared);
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    db.close().unwrap();
    let whole = prepared.fork();
    let before = whole.changes();
    workload(&open(&whole), tree).unwrap();
    let last = whole.changes();
    let mut rng = Rng::new(11);
    let mut seen = [0; 3];
    for _ in 0..120 {
        let disk = prepared.fork();
        disk.stop_at_change(before + 1 + rng.next_u64() % (last - before));
        let opened = Db::open_with(Arc::new(disk.clone()), Path::new(STORE), tiny());
        let done = match &opened {
            Ok(db) => workload(db, tree).is_ok(),
            Err(_) => false,
        };
        drop(opened);
        let db = open(&disk.crash(Crash::draw(&mut rng)));
        let found = count(&db, tree);
        let place = [0, 3000, 6000].iter().position(|&n| n == found);
        seen[place.unwrap_or_else(|| panic!("{found} entries, done: {done}"))] += 1;
        db.checkpoint().unwrap();
        workload(&db, tree).unwrap();
        assert_eq!(count(&db, tree), 0);
    }
    assert!(seen.iter().all(|&n| 0 < n), "{seen:?}");
}

#[test]
fn a_full_disk_refuses_a_bulk_commit_and_leaves_nothing_of_it() {
    for site in ["log.allocate", "log.create", "spill.write", "run.allocate"] {
        for nth in 1..6 {
            let disk = SimVfs::new(SimOptions::default());
            let db = open(&disk);
            let tree = db.create_tree("t", TreeOptions::default()).unwrap();
            disk.inject(Fault::once(site, nth, FaultKind::Enospc));
            let refused = match workload(&db, tree) {
                Ok(()) => continue,
                Err(error) => error.kind(),
            };
            assert_eq!(refused, ErrorKind::Full, "{site} {nth}");
            let found = count(&db, tree);
            assert!([0, 3000, 6000].contains(&found), "{site} {nth}: {found}");
            disk.clear_faults();
            workload(&db, tree).unwrap();
            drop(db);
            assert_eq!(count(&open(&disk), tree), 0);
        }
    }
}

#[test]
fn readers_see_all_of_a_bulk_commit_or_nothing() {
    // I3.
    let dir = tempfile::tempdir().unwrap();
    let db = Arc::new(Db::open(dir.path(), tiny().with_threads(2)).unwrap());
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (db, done) = (Arc::clone(&db), Arc::clone(&done));
        stdx::sync::spawn("reader", move || {
            while !done.load(Ordering::Acquire) {
                let found = count(&db, tree);
                assert_eq!(found % 5000, 0);
            }
        })
        .unwrap()
    };
    let writer = {
        let (db, done) = (Arc::clone(&db), Arc::clone(&done));
        let other = db.create_tree("other", TreeOptions::default()).unwrap();
        stdx::sync::spawn("writer", move || {
            let mut number = 0_u32;
            while !done.load(Ordering::Acquire) {
                let mut transaction = db.begin().unwrap();
                transaction
                    .insert(other, &number.to_be_bytes(), b"x")
                    .unwrap();
                transaction.commit(Durability::Interval).unwrap();
                number += 1;
            }
        })
        .unwrap()
    };
    for round in 0..6_u32 {
        let mut transaction = db.begin().unwrap();
        for number in 0..5000_u32 {
            let mut key = number.wrapping_mul(0x9E37_79B1).to_be_bytes().to_vec();
            key.extend(round.to_be_bytes());
            transaction.put(tree, &key, &[7; 60]).unwrap();
        }
        transaction.commit(Durability::Interval).unwrap();
    }
    done.store(true, Ordering::Release);
    reader.join().unwrap();
    writer.join().unwrap();
    assert_eq!(count(&db, tree), 30_000);
}

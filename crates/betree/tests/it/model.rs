//! Random operations on a store with tiny limits, against a sorted map.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use betree::{Batch, Db, Direction, Durability, Options, Snapshot, TreeId, TreeOptions};
use stdx::tape::Tape;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn tiny(threads: u32) -> Options {
    Options::default()
        .with_memory(1 << 20)
        .with_bucket(16 << 10)
        .with_page(512)
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_checkpoint_bytes(64 << 10)
        .with_threads(threads)
}

fn key(tape: &mut Tape) -> Vec<u8> {
    let number = if tape.chance(128) {
        tape.below(64)
    } else {
        tape.below(20_000)
    };
    let mut key = number.to_be_bytes().to_vec();
    key.extend(std::iter::repeat_n(7, tape.index(3)));
    key
}

fn same(snapshot: &Snapshot, tree: TreeId, model: &Model) {
    for direction in [Direction::Forward, Direction::Backward] {
        let mut cursor = snapshot
            .cursor(tree, Bound::Unbounded, Bound::Unbounded, direction)
            .unwrap();
        let mut seen = Vec::new();
        while cursor.advance().unwrap() {
            seen.push((cursor.key().to_vec(), cursor.value().to_vec()));
        }
        if direction == Direction::Backward {
            seen.reverse();
        }
        let expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(seen.len(), expected.len());
        assert_eq!(seen, expected, "{direction:?}");
    }
}

fn run(seed: u64, threads: u32, log: bool) {
    let dir = tempfile::tempdir().unwrap();
    let options = tiny(threads).with_log(log);
    let mut db = Db::open(dir.path(), options.clone()).unwrap();
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    let durability = if log {
        Durability::Interval
    } else {
        Durability::None
    };
    let mut tape = Tape::from_seed(seed, 300_000);
    let mut model = Model::new();
    let mut held: Vec<(Snapshot, Model)> = Vec::new();
    let mut ascending = 1_000_000_u32;
    while !tape.is_empty() {
        match tape.below(40) {
            0 => same(&db.begin_read().unwrap(), tree, &model),
            1 => held.push((db.begin_read().unwrap(), model.clone())),
            2 if !held.is_empty() => {
                let (snapshot, then) = held.swap_remove(tape.index(held.len()));
                same(&snapshot, tree, &then);
            }
            3 => {
                held.clear();
                db.close().unwrap();
                db = Db::open(dir.path(), options.clone()).unwrap();
                same(&db.begin_read().unwrap(), tree, &model);
            }
            4 => assert!(db.settle(Duration::from_secs(60)).unwrap()),
            5 => {
                db.checkpoint().unwrap();
                db.verify().unwrap();
            }
            6..=9 => {
                for _ in 0..tape.below(50) {
                    db.step().unwrap();
                }
            }
            10..=12 => {
                let k = key(&mut tape);
                let found = db.begin_read().unwrap().get(tree, &k).unwrap();
                assert_eq!(found.as_ref(), model.get(&k));
            }
            _ => {
                let mut batch = Batch::new();
                for _ in 0..tape.below(200) {
                    let delete = tape.chance(40);
                    let k = if tape.chance(60) {
                        ascending += 1;
                        ascending.to_be_bytes().to_vec()
                    } else {
                        key(&mut tape)
                    };
                    if delete {
                        batch.delete(tree, &k);
                        model.remove(&k);
                    } else {
                        let v = vec![tape.byte(); tape.index(90)];
                        batch.put(tree, &k, &v);
                        model.insert(k, v);
                    }
                }
                db.write(&batch, durability).unwrap();
            }
        }
    }
    same(&db.begin_read().unwrap(), tree, &model);
}

#[test]
fn a_store_without_threads_agrees_with_a_map() {
    for seed in 0..6 {
        run(seed, 0, true);
    }
}

#[test]
fn a_store_with_threads_agrees_with_a_map() {
    for seed in 10..14 {
        run(seed, 2, true);
    }
}

#[test]
fn a_store_without_a_log_agrees_with_a_map() {
    for seed in 20..24 {
        run(seed, 0, false);
    }
}

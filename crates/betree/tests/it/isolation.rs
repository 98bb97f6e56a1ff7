//! Snapshot isolation: several concurrent transactions on one thread, compared with a model.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use betree::TreeOptions;
use betree::{Batch, Db, Direction, Durability, ErrorKind, KeyRange, Options, Transaction, TreeId};
use sim::{SimOptions, SimVfs};
use stdx::tape::Tape;

use crate::seeds::seeds;

/// The number of the tree, and the key.
type Key = (usize, Vec<u8>);
type Model = BTreeMap<Key, Vec<u8>>;

/// An open transaction and the content that it must see.
struct Open {
    transaction: Transaction,
    /// Number of commits when it began.
    since: u64,
    view: Model,
    writes: BTreeMap<Key, Option<Vec<u8>>>,
    checked: BTreeSet<Key>,
    lost: bool,
}

struct World {
    disk: SimVfs,
    db: Db,
    trees: [TreeId; 2],
    committed: Model,
    commits: u64,
    /// The commit that last wrote each key with conflict detection.
    last: BTreeMap<Key, u64>,
    open: Vec<Open>,
}

fn store(disk: &SimVfs) -> Db {
    let options = Options::default()
        .with_memory(1 << 20)
        .with_bucket(16 << 10)
        .with_page(512)
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_checkpoint_bytes(64 << 10)
        .with_threads(0);
    Db::open_with(Arc::new(disk.clone()), Path::new("/store"), options).unwrap()
}

fn key(tape: &mut Tape) -> Key {
    let number = tape.below(48);
    (tape.index(2), number.to_be_bytes().to_vec())
}

/// Mostly small; some values are so large that a few of them cause a spill.
fn value(tape: &mut Tape) -> Vec<u8> {
    let len = if tape.chance(16) {
        20_000
    } else {
        tape.index(40)
    };
    vec![tape.byte(); len]
}

fn range(tape: &mut Tape) -> (usize, Vec<u8>, Vec<u8>) {
    let (a, b) = (tape.below(48), tape.below(12));
    (
        tape.index(2),
        a.to_be_bytes().to_vec(),
        (a + b).to_be_bytes().to_vec(),
    )
}

fn within(model: &Model, tree: usize, low: &[u8], high: &[u8]) -> Vec<Key> {
    let of = model
        .keys()
        .filter(|(t, k)| *t == tree && low <= &k[..] && &k[..] < high);
    of.cloned().collect()
}

impl Open {
    fn set(&mut self, key: Key, value: Option<Vec<u8>>, checked: bool) {
        match &value {
            Some(value) => self.view.insert(key.clone(), value.clone()),
            None => self.view.remove(&key),
        };
        if checked {
            self.checked.insert(key.clone());
        }
        self.writes.insert(key, value);
    }

    /// Check the answer to a checked write of `key`: a conflict error, or none.
    fn judge<T>(
        &mut self,
        key: &Key,
        last: &BTreeMap<Key, u64>,
        result: betree::Result<T>,
    ) -> Option<T> {
        let newer = last.get(key).is_some_and(|&commit| self.since < commit);
        match result {
            Ok(done) => {
                assert!(!newer, "a write after a newer commit of {key:?}");
                Some(done)
            }
            Err(error) if error.kind() == ErrorKind::Exists => {
                assert!(!newer && self.view.contains_key(key));
                None
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                assert!(newer, "a conflict without a commit: {key:?}");
                self.lost = true;
                None
            }
        }
    }

    fn act(&mut self, tape: &mut Tape, trees: [TreeId; 2], last: &BTreeMap<Key, u64>) {
        let at = key(tape);
        let tree = trees[at.0];
        match tape.below(12) {
            0..=2 => {
                let value = value(tape);
                let result = self.transaction.put(tree, &at.1, &value);
                if self.judge(&at, last, result).is_some() {
                    self.set(at, Some(value), true);
                }
            }
            3 | 4 => {
                let value = value(tape);
                let result = self.transaction.insert(tree, &at.1, &value);
                if self.judge(&at, last, result).is_some() {
                    assert!(!self.view.contains_key(&at), "inserted twice");
                    self.set(at, Some(value), true);
                }
            }
            5 => {
                let result = self.transaction.delete(tree, &at.1);
                if let Some(there) = self.judge(&at, last, result) {
                    assert_eq!(there, self.view.contains_key(&at));
                    // Deleting a missing key has no effect and does not take part in conflict
                    // detection.
                    if there {
                        self.set(at, None, true);
                    }
                }
            }
            6 => {
                let value = value(tape);
                self.transaction.put_blind(tree, &at.1, &value).unwrap();
                self.set(at, Some(value), false);
            }
            7 => {
                self.transaction.delete_blind(tree, &at.1).unwrap();
                self.set(at, None, false);
            }
            8 => {
                let (tree, low, high) = range(tape);
                let bounds = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
                self.transaction
                    .delete_range(trees[tree], bounds.0, bounds.1)
                    .unwrap();
                for key in within(&self.view, tree, &low, &high) {
                    self.set(key, None, true);
                }
            }
            9 => self.check_all(trees),
            _ => {
                let found = self.transaction.get(tree, &at.1).unwrap();
                assert_eq!(found.as_ref(), self.view.get(&at));
            }
        }
    }

    fn check_all(&self, trees: [TreeId; 2]) {
        for (number, tree) in trees.into_iter().enumerate() {
            for direction in [Direction::Forward, Direction::Backward] {
                let all = Bound::Unbounded;
                let mut cursor = self.transaction.cursor(tree, all, all, direction).unwrap();
                let mut seen = Vec::new();
                while cursor.advance().unwrap() {
                    seen.push(((number, cursor.key().to_vec()), cursor.value().to_vec()));
                }
                if direction == Direction::Backward {
                    seen.reverse();
                }
                let of = self.view.iter().filter(|((tree, _), _)| *tree == number);
                let expected: Vec<_> = of.map(|(k, v)| (k.clone(), v.clone())).collect();
                assert_eq!(seen, expected, "tree {number}, {direction:?}");
            }
        }
    }
}

impl World {
    fn new() -> World {
        let disk = SimVfs::new(SimOptions::default());
        let db = store(&disk);
        let create = |name| db.create_tree(name, TreeOptions::default()).unwrap();
        let trees = ["a", "b"].map(create);
        World {
            disk,
            trees,
            committed: Model::new(),
            commits: 0,
            last: BTreeMap::new(),
            open: Vec::new(),
            db,
        }
    }

    fn apply(&mut self, writes: BTreeMap<Key, Option<Vec<u8>>>) {
        for (key, value) in writes {
            match value {
                Some(value) => self.committed.insert(key, value),
                None => self.committed.remove(&key),
            };
        }
    }

    fn commit(&mut self, open: Open) {
        let newer = |key| {
            self.last
                .get(key)
                .is_some_and(|&commit| open.since < commit)
        };
        let refused = open.lost || open.checked.iter().any(newer);
        match open.transaction.commit(Durability::Interval) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                assert!(refused, "a conflict without a commit");
            }
            Ok(()) => {
                assert!(!refused, "the first to commit wins");
                self.commits += 1;
                for key in open.checked {
                    self.last.insert(key, self.commits);
                }
                self.apply(open.writes);
            }
        }
    }

    fn write(&mut self, tape: &mut Tape) {
        let mut batch = Batch::new();
        let mut view = self.committed.clone();
        for _ in 0..tape.below(8) {
            let (tree, key) = key(tape);
            match tape.below(4) {
                0 => {
                    batch.delete(self.trees[tree], &key);
                    view.remove(&(tree, key));
                }
                1 => {
                    let (tree, low, high) = range(tape);
                    batch.delete_range(self.trees[tree], KeyRange::half_open(&low, &high));
                    for key in within(&view, tree, &low, &high) {
                        view.remove(&key);
                    }
                }
                _ => {
                    let value = value(tape);
                    batch.put(self.trees[tree], &key, &value);
                    view.insert((tree, key), value);
                }
            }
        }
        self.db.write(&batch, Durability::Interval).unwrap();
        self.commits += 1;
        self.committed = view;
    }

    fn step(&mut self, tape: &mut Tape) {
        match tape.below(64) {
            0..=5 if self.open.len() < 5 => self.open.push(Open {
                transaction: self.db.begin().unwrap(),
                since: self.commits,
                view: self.committed.clone(),
                writes: BTreeMap::new(),
                checked: BTreeSet::new(),
                lost: false,
            }),
            6..=9 if !self.open.is_empty() => {
                let open = self.open.swap_remove(tape.index(self.open.len()));
                self.commit(open);
            }
            10 if !self.open.is_empty() => {
                let open = self.open.swap_remove(tape.index(self.open.len()));
                open.check_all(self.trees);
                open.transaction.rollback();
            }
            11..=13 => self.write(tape),
            14..=17 => {
                for _ in 0..tape.below(20) {
                    self.db.step().unwrap();
                }
            }
            18 => self.db.checkpoint().unwrap(),
            19 if tape.chance(100) => {
                assert!(self.db.settle(Duration::from_secs(3600)).unwrap());
            }
            20 if tape.chance(60) => {
                self.open.clear();
                self.db.verify().unwrap();
                // The store must release the directory before it is opened again.
                let other = SimVfs::new(SimOptions::default());
                drop(std::mem::replace(&mut self.db, store(&other)));
                self.db = store(&self.disk);
            }
            _ if !self.open.is_empty() => {
                let index = tape.index(self.open.len());
                self.open[index].act(tape, self.trees, &self.last);
            }
            _ => {}
        }
    }
}

fn run(seed: u64) {
    let mut tape = Tape::from_seed(seed, 40_000);
    let mut world = World::new();
    while !tape.is_empty() {
        world.step(&mut tape);
    }
    world.open.clear();
    let open = Open {
        transaction: world.db.begin().unwrap(),
        since: world.commits,
        view: world.committed.clone(),
        writes: BTreeMap::new(),
        checked: BTreeSet::new(),
        lost: false,
    };
    open.check_all(world.trees);
}

#[test]
fn interleaved_transactions_agree_with_a_model() {
    // transaction: I1, I2.
    for seed in seeds(0, 12) {
        eprintln!("seed {seed}");
        run(seed);
    }
}

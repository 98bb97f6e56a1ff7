//! Random operations on a store with tiny limits, compared with a sorted map; and its limits.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use betree::{
    Batch, Cursor, Db, Direction, Durability, ErrorKind, KeyRange, MasterKey, Options, Snapshot,
    Stats, Transaction, TreeId, TreeOptions,
};
use stdx::tape::Tape;

use crate::seeds::{Repeat, seeds};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const MEMORY: u64 = 1 << 20;
const BUFFER_SHARE: f64 = 0.1;
const K_CAP: u32 = 1;
/// Maximum number of runs above its base in a bucket with one commit at a time, according to
/// `docs/betree.md`: twice `k_cap`, and at least `k_cap` + 8.
const MOST_RUNS: usize = 9;

fn tiny(threads: u32) -> Options {
    Options::default()
        .with_memory(MEMORY)
        .with_buffer_share(BUFFER_SHARE)
        .with_k_cap(K_CAP)
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

/// A cursor that is idle between its steps, and the entries that it must still return.
struct Walk {
    cursor: Cursor<'static>,
    expected: std::vec::IntoIter<(Vec<u8>, Vec<u8>)>,
}

impl Walk {
    fn begin(db: &Db, tree: TreeId, model: &Model, tape: &mut Tape) -> Walk {
        let all = Bound::Unbounded;
        let mut expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        let direction = if tape.chance(128) {
            Direction::Forward
        } else {
            expected.reverse();
            Direction::Backward
        };
        let snapshot = db.begin_read().unwrap();
        Walk {
            cursor: snapshot.cursor(tree, all, all, direction).unwrap(),
            expected: expected.into_iter(),
        }
    }

    fn advance(&mut self, steps: u32) {
        for _ in 0..steps {
            let found = self.cursor.advance().unwrap();
            let here = (self.cursor.key().to_vec(), self.cursor.value().to_vec());
            assert_eq!(found.then_some(here), self.expected.next());
        }
    }
}

/// Check a settled store without readers: it contains one version of each key and nothing else, and
/// holds no space or memory for former readers.
fn holds_nothing_else(db: &Db, tree: TreeId, model: &Model) {
    let stats = db.stats().unwrap();
    assert_eq!((stats.debt_bytes, stats.delta_bytes), (0, 0), "all is done");
    let of_tree = db.tree_stats(tree, false).unwrap();
    assert_eq!(
        of_tree.entries,
        model.len() as u64,
        "one version of each key"
    );
    let image = stats.checkpoint.image_bytes.next_multiple_of(4096);
    let live = of_tree.allocated_bytes + image;
    assert_eq!(stats.space.used_bytes, live, "nothing else is kept");
    let buckets = db.storage_map().unwrap().buckets;
    let empty = buckets.iter().filter(|bucket| bucket.base_bytes == 0);
    assert!(
        buckets.len() == 1 || empty.count() == 0,
        "an empty bucket stays"
    );
}

/// Check the limits, which hold at any time; that of runs requires a commit since the store was
/// opened.
fn is_within_bounds(stats: &Stats) {
    assert_eq!(stats.pinned_bytes, 0, "cursors hold no buffers");
    let met = stats.runs_per_bucket.iter().rposition(|&count| 0 < count);
    let met = met.unwrap_or(0);
    let paid = 0 < stats.operations.puts;
    assert!(!paid || met <= MOST_RUNS + 1, "{met} runs, the base is one");
    // A chunk of a commit is applied at once, and a buffer takes memory in each bucket.
    let most = MEMORY / 10 + (128 << 10) + 512 * stats.buckets;
    assert!(stats.buffered_bytes <= most, "{}", stats.buffered_bytes);
    let most = (256 << 10) + (64 << 10);
    assert!(
        stats.transaction_bytes <= most,
        "{}",
        stats.transaction_bytes
    );
}

/// An open transaction and its writes.
struct Open {
    transaction: Transaction,
    writes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Open {
    fn write(&mut self, tape: &mut Tape, tree: TreeId) {
        for _ in 0..tape.below(400) {
            let (key, value) = (key(tape), vec![tape.byte(); tape.index(400)]);
            match self.transaction.put_blind(tree, &key, &value) {
                Ok(()) => self.writes.push((key, value)),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                    return;
                }
            }
        }
    }

    fn commit(self, durability: Durability, model: &mut Model) {
        self.transaction.commit(durability).unwrap();
        model.extend(self.writes);
    }
}

/// A batch, applied to the model as well.
fn batch(
    tape: &mut Tape,
    tree: TreeId,
    most: u32,
    ascending: &mut u32,
    model: &mut Model,
) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..tape.below(most) {
        let delete = tape.chance(40);
        let k = if tape.chance(60) {
            *ascending += 1;
            ascending.to_be_bytes().to_vec()
        } else {
            key(tape)
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
    batch
}

/// Delete a range, sometimes nearly everything.
fn delete_range(tape: &mut Tape, tree: TreeId, model: &mut Model) -> Batch {
    let (mut from, mut to) = (key(tape), key(tape));
    if to < from {
        std::mem::swap(&mut from, &mut to);
    }
    let end = if tape.chance(40) {
        Bound::Unbounded
    } else {
        Bound::Excluded(to.as_slice())
    };
    let mut batch = Batch::new();
    let start = Bound::Included(from.as_slice());
    batch.delete_range(tree, KeyRange { start, end });
    model.retain(|key, _| *key < from || end == Bound::Excluded(&to) && to <= *key);
    batch
}

fn run(seed: u64, threads: u32, log: bool) {
    let _repeat = Repeat(seed);
    let dir = tempfile::tempdir().unwrap();
    let master = (seed % 2 == 1).then(|| MasterKey::new([7; 32]));
    let options = tiny(threads).with_log(log).with_encryption(master);
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
    let mut walks: Vec<Walk> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut ascending = 1_000_000_u32;
    while !tape.is_empty() {
        match tape.below(45) {
            0 => same(&db.begin_read().unwrap(), tree, &model),
            1 => held.push((db.begin_read().unwrap(), model.clone())),
            2 if !held.is_empty() => {
                let (snapshot, then) = held.swap_remove(tape.index(held.len()));
                same(&snapshot, tree, &then);
            }
            3 => {
                held.clear();
                walks.clear();
                // Transactions that outlive the handle are rolled back after it was dropped.
                let late: Vec<Open> = open.drain(..).filter(|_| tape.chance(128)).collect();
                db.close().unwrap();
                db = Db::open(dir.path(), options.clone()).unwrap();
                drop(late);
                same(&db.begin_read().unwrap(), tree, &model);
            }
            4 => {
                assert!(db.settle(Duration::from_secs(60)).unwrap());
                if held.is_empty() && walks.is_empty() && open.is_empty() {
                    holds_nothing_else(&db, tree, &model);
                }
            }
            5 => {
                db.checkpoint().unwrap();
                db.verify().unwrap();
            }
            // In half of the histories only commits do background work.
            6..=9 if seed.is_multiple_of(2) => {
                for _ in 0..tape.below(50) {
                    db.step().unwrap();
                }
            }
            10..=12 => {
                let k = key(&mut tape);
                let found = db.begin_read().unwrap().get(tree, &k).unwrap();
                assert_eq!(found.as_ref(), model.get(&k));
            }
            13 if walks.len() < 8 => walks.push(Walk::begin(&db, tree, &model, &mut tape)),
            14 if !walks.is_empty() => drop(walks.swap_remove(tape.index(walks.len()))),
            15 | 16 => walks
                .iter_mut()
                .for_each(|walk| walk.advance(tape.below(200))),
            17 => {
                let batch = delete_range(&mut tape, tree, &mut model);
                db.write(&batch, durability).unwrap();
            }
            19 | 20 if open.len() < 40 => open.push(Open {
                transaction: db.begin().unwrap(),
                writes: Vec::new(),
            }),
            21 | 22 if !open.is_empty() => {
                let at = tape.index(open.len());
                open[at].write(&mut tape, tree);
            }
            23 if !open.is_empty() => {
                let ended = open.swap_remove(tape.index(open.len()));
                if tape.chance(192) {
                    ended.commit(durability, &mut model);
                }
            }
            drawn => {
                let most = if drawn == 18 { 2000 } else { 200 };
                let batch = batch(&mut tape, tree, most, &mut ascending, &mut model);
                db.write(&batch, durability).unwrap();
            }
        }
        is_within_bounds(&db.stats().unwrap());
    }
    same(&db.begin_read().unwrap(), tree, &model);
    walks.iter_mut().for_each(|walk| walk.advance(100));
    held.clear();
    walks.clear();
    open.clear();
    assert!(db.settle(Duration::from_secs(60)).unwrap());
    holds_nothing_else(&db, tree, &model);
}

#[test]
fn a_store_without_threads_agrees_with_a_map() {
    for seed in seeds(0, 6) {
        run(seed, 0, true);
    }
}

#[test]
fn a_store_with_threads_agrees_with_a_map() {
    for seed in seeds(10, 4) {
        run(seed, 2, true);
    }
}

#[test]
fn a_store_without_a_log_agrees_with_a_map() {
    for seed in seeds(20, 4) {
        run(seed, 0, false);
    }
}

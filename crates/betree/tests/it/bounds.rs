//! Limits in random histories: commits of all sizes, many open transactions, and a caller who never
//! does background work.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use betree::{Batch, Db, Direction, Durability, ErrorKind, Options, Transaction, TreeId};
use betree::{Stats, TreeOptions};
use sim::{SimOptions, SimVfs};
use stdx::rng::Rng;

use crate::seeds::{Repeat, seeds};

const MEMORY: u64 = 1 << 20;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Maximum number of runs above the base in a bucket, according to `docs/betree.md`.
fn most_runs(k_cap: u32) -> usize {
    let k_cap = k_cap as usize;
    (2 * k_cap).max(k_cap + 8)
}

/// An open transaction and its writes.
struct Open {
    transaction: Transaction,
    writes: Vec<(Vec<u8>, Vec<u8>)>,
}

struct World {
    db: Db,
    tree: TreeId,
    k_cap: u32,
    model: Model,
    open: Vec<Open>,
    rng: Rng,
    /// The maximum number of runs above a base so far, and the number of transactions refused for
    /// lack of memory.
    most: usize,
    refused: usize,
}

impl World {
    fn new(seed: u64, k_cap: u32) -> World {
        let options = Options::default()
            .with_memory(MEMORY)
            .with_buffer_share(0.2)
            .with_bucket(64 << 10)
            .with_page(512)
            .with_log_segment(64 << 10)
            .with_log_max(128 << 10)
            .with_k_cap(k_cap)
            .with_threads(0)
            .with_seed(seed);
        let disk = SimVfs::new(SimOptions::default());
        let db = Db::open_with(Arc::new(disk), Path::new("/store"), options).unwrap();
        let tree = db.create_tree("t", TreeOptions::default()).unwrap();
        World {
            db,
            tree,
            k_cap,
            model: Model::new(),
            open: Vec::new(),
            rng: Rng::new(seed),
            most: 0,
            refused: 0,
        }
    }

    fn entry(&mut self) -> (Vec<u8>, Vec<u8>) {
        let number = u32::try_from(self.rng.below(60_000)).unwrap();
        let mut value = vec![0; self.rng.index(90)];
        self.rng.fill(&mut value);
        (number.to_be_bytes().to_vec(), value)
    }

    fn batch(&mut self) {
        let entries = match self.rng.below(8) {
            0 => 1,
            1 | 2 => 1 + self.rng.below(100),
            3..=6 => 1 + self.rng.below(1000),
            _ => 4000 + self.rng.below(4000),
        };
        let mut batch = Batch::new();
        for _ in 0..entries {
            let (key, value) = self.entry();
            if self.rng.chance(0.1) {
                batch.delete(self.tree, &key);
                self.model.remove(&key);
            } else {
                batch.put(self.tree, &key, &value);
                self.model.insert(key, value);
            }
        }
        self.db.write(&batch, Durability::None).unwrap();
    }

    fn begin(&mut self) {
        if self.open.len() < 200 {
            self.open.push(Open {
                transaction: self.db.begin().unwrap(),
                writes: Vec::new(),
            });
        }
    }

    /// Write in some of the open transactions.
    fn push(&mut self) {
        for _ in 0..self.open.len().min(50) {
            let at = self.rng.index(self.open.len());
            for _ in 0..self.rng.below(60) {
                let (key, value) = self.entry();
                let open = &mut self.open[at];
                match open.transaction.put_blind(self.tree, &key, &value) {
                    Ok(()) => open.writes.push((key, value)),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                        self.refused += 1;
                        break;
                    }
                }
            }
        }
    }

    /// End one of the open transactions.
    fn end(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let Open {
            transaction,
            writes,
        } = self.open.swap_remove(self.rng.index(self.open.len()));
        if self.rng.chance(0.3) {
            return transaction.rollback();
        }
        transaction.commit(Durability::None).unwrap();
        self.model.extend(writes);
    }

    fn look(&mut self) -> Stats {
        let stats = self.db.stats().unwrap();
        // The base is one.
        let met = stats.runs_per_bucket.iter().rposition(|&count| 0 < count);
        let runs = met.unwrap_or(0).saturating_sub(1);
        let limit = most_runs(self.k_cap);
        assert!(runs <= limit, "{runs} runs, k_cap {}", self.k_cap);
        self.most = self.most.max(runs);
        // A chunk of a bulk commit is applied at once, and a buffer takes memory in each bucket.
        let over = (128 << 10) + 512 * stats.buckets;
        assert!(stats.buffered_bytes <= MEMORY / 5 + over);
        // The memory that transactions may hold however small the buffers are, plus one chunk of
        // memory.
        let most = (256 << 10) + (64 << 10);
        assert!(stats.transaction_bytes <= most);
        assert_eq!(stats.pinned_bytes, 0, "there are no readers");
        stats
    }

    fn same(&self) {
        let snapshot = self.db.begin_read().unwrap();
        let all = Bound::Unbounded;
        let cursor = snapshot.cursor(self.tree, all, all, Direction::Forward);
        let mut cursor = cursor.unwrap();
        for (key, value) in &self.model {
            assert!(cursor.advance().unwrap());
            assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
        }
        assert!(!cursor.advance().unwrap());
    }
}

#[test]
fn runs_and_memory_stay_bounded_in_random_histories() {
    let (mut merges, mut refused) = (0, 0);
    let (seeds, usual) = (seeds(1, 5), 1..6);
    for seed in seeds.clone() {
        let _repeat = Repeat(seed);
        let k_cap = [8, 1, 4, 8, 16][usize::try_from(seed % 5).unwrap()];
        let mut world = World::new(seed, k_cap);
        for _ in 0..250 {
            match world.rng.below(10) {
                0..=3 => world.batch(),
                4 | 5 => (0..20).for_each(|_| world.begin()),
                6 | 7 => world.push(),
                8 => (0..10).for_each(|_| world.end()),
                _ => world.db.flush().unwrap(),
            }
            world.look();
        }
        let stats = world.look();
        merges += stats.operations.merges;
        refused += world.refused;
        world.open.clear();
        world.same();
        world.db.verify().unwrap();
        let near = most_runs(k_cap) - 2;
        let reached = near <= world.most;
        assert!(reached || seeds != usual, "seed {seed} came near the limit");
    }
    assert!(
        seeds != usual || 0 < refused && 100 < merges,
        "{refused} refused, {merges} merges"
    );
}

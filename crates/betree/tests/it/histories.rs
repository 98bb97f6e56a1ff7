//! Transactions of real threads, checked by the list-append checker: snapshot isolation, where
//! every transaction sees all commits acknowledged before it began.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use betree::{Batch, Db, Durability, ErrorKind, Options, Transaction, TreeId, TreeOptions};
use sim::checker::append::{self, Kind, Level, Op, Outcome, Txn};
use stdx::Rng;
use stdx::sync::spawn;

use crate::seeds::seeds;

const CLIENTS: u64 = 4;
/// Number of keys: few, so that transactions conflict; replaced after a while, so that lists stay
/// short.
const KEYS: u64 = 5;
const ROUND: u64 = 60;

/// The store, and a clock shared by all clients.
struct Shared {
    db: Db,
    tree: TreeId,
    clock: AtomicU64,
    values: AtomicU64,
}

fn list(transaction: &Transaction, tree: TreeId, key: u64) -> Vec<u64> {
    let found = transaction.get(tree, &key.to_be_bytes()).unwrap();
    let bytes = found.unwrap_or_default();
    let (values, rest) = bytes.as_chunks::<8>();
    assert!(rest.is_empty(), "a list of numbers");
    values
        .iter()
        .map(|value| u64::from_be_bytes(*value))
        .collect()
}

fn bytes(list: &[u64]) -> Vec<u8> {
    list.iter().flat_map(|value| value.to_be_bytes()).collect()
}

impl Shared {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// One transaction of a client.
    fn transact(&self, client: u64, number: u64, rng: &mut Rng) -> Txn {
        let start = self.tick();
        let mut ops = Vec::new();
        let outcome = match self.attempt(number, rng, &mut ops) {
            Ok(()) => Outcome::Committed,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                Outcome::Aborted
            }
        };
        Txn {
            session: client,
            start,
            end: self.tick(),
            outcome,
            ops,
        }
    }

    fn attempt(&self, number: u64, rng: &mut Rng, ops: &mut Vec<Op>) -> betree::Result<()> {
        let mut transaction = self.db.begin()?;
        for _ in 0..1 + rng.below(4) {
            let key = number / ROUND * KEYS + rng.below(KEYS);
            let mut list = list(&transaction, self.tree, key);
            if rng.chance(0.5) {
                ops.push(Op::Read(key, list));
                continue;
            }
            let value = self.values.fetch_add(1, Ordering::SeqCst);
            list.push(value);
            ops.push(Op::Append(key, value));
            transaction.put(self.tree, &key.to_be_bytes(), &bytes(&list))?;
        }
        let levels = [Durability::None, Durability::Interval, Durability::Group];
        transaction.commit(levels[rng.index(3)])
    }
}

/// The histories of all clients, each in its order.
fn run(seed: u64, transactions: u64) -> Vec<Txn> {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default()
        .with_memory(1 << 20)
        .with_buffer_share(0.05)
        .with_bucket(4 << 10)
        .with_page(256)
        .with_k_cap(2)
        .with_log_segment(64 << 10)
        .with_log_max(128 << 10)
        .with_checkpoint_bytes(64 << 10)
        .with_threads(2);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("lists", TreeOptions::default()).unwrap();
    let other = db.create_tree("ballast", TreeOptions::default()).unwrap();
    let shared = Arc::new(Shared {
        db,
        tree,
        clock: AtomicU64::new(1),
        values: AtomicU64::new(1),
    });
    let clients = (0..CLIENTS).map(|client| {
        let shared = Arc::clone(&shared);
        spawn("client", move || {
            let mut rng = Rng::new(seed * 100 + client);
            let one = |number: u64| {
                if number.is_multiple_of(8) {
                    // Fills memory, so that lists are continuously flushed and merged.
                    let mut batch = Batch::new();
                    batch.put(other, &number.to_be_bytes(), &[1; 2000]);
                    shared.db.write(&batch, Durability::None).unwrap();
                    let _ = shared.db.settle(Duration::ZERO).unwrap();
                }
                shared.transact(client, number, &mut rng)
            };
            (0..transactions).map(one).collect::<Vec<Txn>>()
        })
    });
    let clients: Vec<_> = clients.map(Result::unwrap).collect();
    let histories = clients.into_iter().map(|client| client.join().unwrap());
    let history: Vec<Txn> = histories.flatten().collect();
    shared.db.verify().unwrap();
    history
}

#[test]
fn transactions_keep_snapshot_isolation() {
    // transaction: I1.
    for seed in seeds(1, 1) {
        let history = run(seed, 1_500);
        let verdict = append::check(&history);
        let committed = history
            .iter()
            .filter(|txn| txn.outcome == Outcome::Committed);
        let committed = committed.count();
        let skewed = verdict.anomalies.iter().filter(|a| a.kind == Kind::G2Item);
        println!(
            "seed {seed}: {committed} of {} transactions committed, {} write skews",
            history.len(),
            skewed.count()
        );
        assert!(
            verdict.holds(Level::SnapshotIsolation),
            "seed {seed}: {verdict}"
        );
        assert!(history.len() / 4 < committed, "most of them get through");
        assert!(committed < history.len(), "they meet");
    }
}

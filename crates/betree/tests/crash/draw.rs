//! Random options and workloads. Each draw omits most kinds of operations, so that the remaining
//! ones often interact.

use std::ops::Bound;
use std::time::Duration;

use betree::{Codec, Durability, Filter, MasterKey, Options};
use sim::checker::Change;
use stdx::Rng;

use crate::rig::{Step, World};
use crate::txn::Txn;

/// A random element.
pub(crate) fn pick<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    *all.get(rng.index(all.len()))
        .expect("an index below the length")
}

/// Each codec; those with levels at the fastest one.
pub(crate) const CODECS: [Codec; 5] = [
    Codec::None,
    Codec::Lz4,
    Codec::Zstd(1),
    Codec::Snappy,
    Codec::Zlib(1),
];

/// Tiny options, so that everything happens often.
pub(crate) fn options(rng: &mut Rng) -> Options {
    Options::default()
        .with_threads(0)
        .with_memory(pick(rng, &[1 << 20, 1 << 20, 2 << 20]))
        .with_buffer_share(pick(rng, &[0.05, 0.05, 0.1, 0.5]))
        .with_page(pick(rng, &[256, 512, 1024, 4096, 16384]))
        .with_bucket(pick(rng, &[4 << 10, 8 << 10, 16 << 10, 64 << 10]))
        .with_rho(pick(rng, &[0.05, 0.5, 2.0, 16.0]))
        .with_k_cap(pick(rng, &[1, 2, 4, 16]))
        .with_codec(pick(rng, &CODECS))
        .with_delta_codec(pick(rng, &CODECS))
        .with_filter(pick(rng, &[Filter::None, Filter::Auto, Filter::All]))
        .with_log(!rng.chance(0.15))
        .with_log_segment(pick(rng, &[64 << 10, 64 << 10, 128 << 10]))
        .with_log_max(pick(rng, &[128 << 10, 256 << 10]))
        .with_checkpoint_bytes(pick(rng, &[4 << 10, 16 << 10, 64 << 10]))
        .with_checkpoint_interval(Duration::from_millis(pick(rng, &[5, 50, 10_000])))
        .with_interval(Duration::from_millis(pick(rng, &[1, 20])))
        .with_direct_io(rng.chance(0.3))
        .with_seed(rng.next_u64())
        .with_encryption(rng.chance(0.4).then(|| MasterKey::new([7; 32])))
}

/// Options for opening a store again: that it is encrypted, or not, stays.
pub(crate) fn again(rng: &mut Rng, before: &Options) -> Options {
    options(rng).with_encryption(before.encryption().cloned())
}

/// The kinds of operations with their default weights.
const KINDS: [(Kind, u64); 13] = [
    (Kind::Batch, 40),
    (Kind::Ascending, 20),
    (Kind::Transactions, 6),
    (Kind::Steps, 30),
    (Kind::Create, 2),
    (Kind::Drop, 1),
    (Kind::Hold, 4),
    (Kind::Release, 4),
    (Kind::Checkpoint, 4),
    (Kind::Sync, 4),
    (Kind::Settle, 1),
    (Kind::Read, 4),
    (Kind::Long, 1),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Batch,
    Ascending,
    Transactions,
    Steps,
    Create,
    Drop,
    Hold,
    Release,
    Checkpoint,
    Sync,
    Settle,
    Read,
    Long,
}

/// A random mixture of operations.
pub(crate) struct Load {
    weights: Vec<(Kind, u64)>,
    total: u64,
    value: u64,
    batch: u64,
    keys: u64,
    next: u64,
    open: Vec<Txn>,
}

impl Load {
    pub(crate) fn draw(rng: &mut Rng) -> Load {
        let mut weights: Vec<(Kind, u64)> = KINDS
            .into_iter()
            .map(|(kind, weight)| match kind {
                Kind::Batch | Kind::Create => (kind, weight),
                _ if rng.chance(0.4) => (kind, 0),
                _ => (kind, weight * (1 + rng.below(3))),
            })
            .collect();
        weights.retain(|(_, weight)| 0 < *weight);
        Load {
            total: weights.iter().map(|(_, weight)| weight).sum(),
            weights,
            value: pick(rng, &[0, 20, 100, 400]),
            batch: pick(rng, &[4, 40, 150]),
            keys: pick(rng, &[20, 500, 20_000]),
            next: 1 << 40,
            open: Vec::new(),
        }
    }

    /// Drop the open transactions, as after a crash.
    pub(crate) fn forget(&mut self) {
        self.open.clear();
    }

    /// Run one random operation.
    pub(crate) fn act(&mut self, world: &mut World, rng: &mut Rng) -> Step {
        let mut at = rng.below(self.total);
        let kind = self.weights.iter().find(|(_, weight)| {
            let found = at < *weight;
            at = at.saturating_sub(*weight);
            found
        });
        let kind = kind.expect("a number below the total").0;
        if world.ids.is_empty() {
            return world.create("a").map(drop);
        }
        let n = self.batch;
        match kind {
            Kind::Batch => {
                let changes = (0..=rng.below(n))
                    .map(|_| self.change(world, rng))
                    .collect();
                world.write(changes, durability(rng)).map(drop)
            }
            Kind::Ascending => {
                let tree = tree(world, rng);
                let changes = (0..=rng.below(n))
                    .map(|_| {
                        self.next += 1 + rng.below(3);
                        let value = self.fill(world, rng);
                        Change::Put(tree.clone(), self.next.to_be_bytes().to_vec(), value)
                    })
                    .collect();
                world.write(changes, durability(rng)).map(drop)
            }
            Kind::Transactions => self.transactions(world, rng),
            Kind::Steps => world.steps(1 + rng.below(40)),
            Kind::Create => {
                let name = pick(rng, &["a", "b", "c", "d"]);
                if world.ids.contains_key(name) {
                    return Ok(());
                }
                world.create(name).map(drop)
            }
            Kind::Drop => {
                let name = tree(world, rng);
                world.drop_tree(&name).map(drop)
            }
            Kind::Hold if world.held.len() < 4 => {
                world.hold();
                Ok(())
            }
            Kind::Hold | Kind::Release => world.release(rng.index(8)),
            Kind::Checkpoint => world.checkpoint().map(drop),
            Kind::Sync => world.sync_log().map(drop),
            Kind::Settle if rng.chance(0.5) => {
                let name = tree(world, rng);
                world.compact(&name).map(drop)
            }
            Kind::Settle => world.settle().map(drop),
            Kind::Read if rng.chance(0.3) => world.look(),
            Kind::Read => {
                let key = self.key(rng);
                let name = tree(world, rng);
                world.get(&name, &key)
            }
            Kind::Long => {
                let value = world.value(pick(rng, &[3_000, 40_000, 70_000, 150_000]));
                let change = Change::Put(tree(world, rng), self.key(rng), value);
                world.write(vec![change], durability(rng)).map(drop)
            }
        }
    }

    fn transactions(&mut self, world: &mut World, rng: &mut Rng) -> Step {
        if self.open.len() < 3 && rng.chance(0.6) {
            let Some(mut txn) = world.begin()? else {
                return Ok(());
            };
            for _ in 0..rng.below(8) {
                let change = self.change(world, rng);
                if !world.transact(&mut txn, change, rng.chance(0.3))? {
                    return Ok(());
                }
            }
            self.open.push(txn);
            return Ok(());
        }
        if self.open.is_empty() {
            return Ok(());
        }
        let mut txn = self.open.swap_remove(rng.index(self.open.len()));
        for _ in 0..rng.below(3) {
            let change = self.change(world, rng);
            if !world.transact(&mut txn, change, rng.chance(0.3))? {
                return Ok(());
            }
        }
        if rng.chance(0.1) {
            return Ok(());
        }
        world.finish(txn, durability(rng)).map(drop)
    }

    fn key(&self, rng: &mut Rng) -> Vec<u8> {
        let number = if rng.chance(0.3) {
            rng.below(10)
        } else {
            rng.below(self.keys)
        };
        let mut key = format!("{number:05}").into_bytes();
        match rng.below(20) {
            0 => key.clear(),
            1 => key.extend([0; 3]),
            2 => key.extend(vec![b'x'; 300]),
            _ => {}
        }
        key
    }

    fn fill(&self, world: &mut World, rng: &mut Rng) -> Vec<u8> {
        let length = usize::try_from(rng.below(self.value + 1)).expect("small");
        world.value(length)
    }

    fn change(&self, world: &mut World, rng: &mut Rng) -> Change {
        let tree = tree(world, rng);
        match rng.below(30) {
            0 => {
                let (a, b) = (self.key(rng), self.key(rng));
                let (low, high) = (a.clone().min(b.clone()), a.max(b));
                let start = pick(rng, &[0, 1, 2]);
                let end = pick(rng, &[0, 1, 1, 2, 2]);
                Change::DeleteRange(tree, side(start, low), side(end, high))
            }
            1..=6 => Change::Delete(tree, self.key(rng)),
            _ => Change::Put(tree, self.key(rng), self.fill(world, rng)),
        }
    }
}

fn side(kind: u8, key: Vec<u8>) -> Bound<Vec<u8>> {
    match kind {
        0 => Bound::Unbounded,
        1 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

fn tree(world: &World, rng: &mut Rng) -> String {
    let at = rng.index(world.ids.len());
    world
        .ids
        .keys()
        .nth(at)
        .expect("an index below the length")
        .clone()
}

fn durability(rng: &mut Rng) -> Durability {
    use Durability::{Group, Interval, None, Sync};
    pick(rng, &[None, Interval, Interval, Interval, Group, Sync])
}

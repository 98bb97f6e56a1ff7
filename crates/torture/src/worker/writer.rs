//! A writer: draws a commit, announces it, executes it, acknowledges it, and repeats.
//!
//! Its choices follow from the seed, the writer and the counter. Ascending keys belong to one
//! writer and are never written twice; hot and random keys are shared by all writers. I1: the
//! changes of a commit always include the writer's entry in the ledger.

use kv::Durability;
use stdx::Rng;
use stdx::rng::mix64;

use super::Shared;
use super::act::Actor;
use crate::draw::pick;
use crate::key::{CHANGES_MAX, HOT_KEYS, Key, RANDOM_KEYS, TREES};
use crate::protocol::{Change, Intent};
use crate::value::{VALUE_MAX, VALUE_MIN};

/// Number of commits whose ascending keys are kept; older ones are trimmed.
const KEPT_COMMITS: u64 = 120;

/// The frequencies of the kinds of commits, drawn at each start.
struct Mix {
    /// The weight of each durability, in the order of the enum.
    levels: [u64; 4],
    transactions: f64,
    large: f64,
    long: f64,
    deletes: f64,
    trims: f64,
    hot: f64,
}

impl Mix {
    fn draw(rng: &mut Rng) -> Mix {
        let mut levels = [0; 4];
        for level in &mut levels {
            *level = pick(rng, &[0, 1, 1, 6, 30]);
        }
        if levels.iter().sum::<u64>() == 0 {
            levels = [1, 1, 1, 1];
        }
        Mix {
            levels,
            transactions: pick(rng, &[0.0, 0.3, 0.6, 1.0]),
            large: pick(rng, &[0.0, 0.02, 0.1]),
            long: pick(rng, &[0.0, 0.002, 0.02]),
            deletes: pick(rng, &[0.02, 0.2, 0.5]),
            trims: pick(rng, &[0.01, 0.05]),
            hot: pick(rng, &[0.1, 0.4, 0.8]),
        }
    }

    fn level(&self, rng: &mut Rng) -> Durability {
        let mut left = rng.below(self.levels.iter().sum());
        for (level, &weight) in Durability::ALL.into_iter().zip(&self.levels) {
            if left < weight {
                return level;
            }
            left -= weight;
        }
        Durability::Sync
    }
}

/// Write until stopped.
pub(super) fn run(shared: &Shared<'_>, writer: u32) {
    let seed = mix64(shared.start.seed);
    let mix = Mix::draw(&mut Rng::new(seed));
    let mut actor = Actor::new(shared, writer);
    let mut counter = shared.start.first;
    while !shared.stopped() {
        let mut rng = Rng::new(mix64(seed ^ u64::from(writer) << 48 ^ counter));
        let intent = draw(&mix, &mut rng, writer, counter);
        if let Err(message) = actor.act(&intent, &mut rng) {
            return shared.wrong(format!("writer {writer}, commit {counter}: {message}"));
        }
        counter += 1;
    }
}

fn draw(mix: &Mix, rng: &mut Rng, writer: u32, counter: u64) -> Intent {
    let transaction = rng.chance(mix.transactions);
    let count = if rng.chance(mix.large) {
        20 + rng.below(200)
    } else {
        1 + rng.below(8)
    };
    assert!(count < CHANGES_MAX, "I1: a commit has room for its changes");
    let note = rng.below(count);
    let mut changes = Vec::new();
    for index in 0..count {
        if index == note {
            changes.push(Change::Put(Key::ledger(writer), VALUE_MIN));
        }
        let key = key(mix, rng, writer, counter, index);
        if rng.chance(mix.deletes) {
            changes.push(Change::Delete(older(key, rng, writer, counter)));
        } else {
            changes.push(Change::Put(key, length(mix, rng)));
        }
    }
    if rng.chance(mix.trims) {
        changes.push(trim(rng, writer, counter, transaction));
    }
    Intent {
        writer,
        counter,
        durability: mix.level(rng),
        transaction,
        changes,
    }
}

/// A tree other than the ledger.
fn tree(rng: &mut Rng) -> u8 {
    let number = 1 + rng.index(TREES.len() - 1);
    u8::try_from(number).expect("there are few trees")
}

fn key(mix: &Mix, rng: &mut Rng, writer: u32, counter: u64, index: u64) -> Key {
    let tree = tree(rng);
    if rng.chance(mix.hot) {
        Key::hot(tree, rng.below(HOT_KEYS))
    } else if rng.chance(0.5) {
        Key::ascending(tree, writer, counter, index)
    } else {
        Key::random(tree, rng.below(RANDOM_KEYS))
    }
}

/// The key to delete in place of `key`: an ascending key does not exist yet, so an older one is
/// used.
fn older(key: Key, rng: &mut Rng, writer: u32, counter: u64) -> Key {
    if key != Key::ascending(key.tree, writer, counter, key.id % CHANGES_MAX) {
        return key;
    }
    let back = 1 + rng.below(KEPT_COMMITS);
    Key::ascending(key.tree, writer, counter.saturating_sub(back), rng.below(6))
}

fn length(mix: &Mix, rng: &mut Rng) -> u32 {
    let limit = if rng.chance(mix.long) {
        VALUE_MAX
    } else if rng.chance(0.05) {
        4_000
    } else {
        160
    };
    let more = rng.below(u64::from(limit - VALUE_MIN + 1));
    VALUE_MIN + u32::try_from(more).expect("below the longest value")
}

/// A range delete: the writer's oldest ascending keys or, in a batch (whose range delete has a
/// single place in the order of commits), some shared hot keys.
fn trim(rng: &mut Rng, writer: u32, counter: u64, transaction: bool) -> Change {
    let tree = tree(rng);
    if !transaction && rng.chance(0.3) {
        let from = rng.below(HOT_KEYS);
        let to = from + 1 + rng.below(4);
        return Change::DeleteRange(Key::hot(tree, from), Key::hot(tree, to));
    }
    let oldest = counter.saturating_sub(KEPT_COMMITS);
    let from = Key::ascending(tree, writer, 0, 0);
    Change::DeleteRange(from, Key::ascending(tree, writer, oldest, 0))
}

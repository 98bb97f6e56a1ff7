//! Executing a commit: the intent is sent before it begins, the outcome after it returned.
//!
//! - I1: the intent of a commit is sent before the engine's commit is called.
//! - I2: a commit reported as aborted was rolled back, or refused by the engine.

use kv::{Batch, ErrorKind, KeyRange, Transaction};
use stdx::Rng;

use super::Shared;
use super::store::text;
use crate::key::Key;
use crate::protocol::{Change, Event, Intent, Lie};
use crate::value::{Stamp, encode};

/// Probability that a commit is rolled back after its announcement.
const ROLLBACK: f64 = 0.04;

/// Probability that a commit is affected, for the ways of cheating that do not affect all commits.
const CHEAT: f64 = 0.05;

/// Executes the commits of a writer; reuses its buffers for all commits.
pub(super) struct Actor<'a> {
    shared: &'a Shared<'a>,
    writer: u32,
    batch: Batch,
    value: Vec<u8>,
    held: Option<Batch>,
}

impl<'a> Actor<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, writer: u32) -> Actor<'a> {
        Actor {
            shared,
            writer,
            batch: Batch::new(),
            value: Vec::new(),
            held: None,
        }
    }

    /// Execute the commit of `intent`, with choices from `rng`. A conflict is not an error.
    pub(super) fn act(&mut self, intent: &Intent, rng: &mut Rng) -> Result<(), String> {
        if let Some(lie) = self.shared.start.lie
            && self.cheat(lie, intent, rng)?
        {
            return Ok(());
        }
        if intent.transaction {
            self.transact(intent, rng)
        } else {
            self.say(Event::Intend(intent.clone()));
            self.fill(intent, intent.changes.len());
            self.write(intent)?;
            self.acked(intent);
            Ok(())
        }
    }

    fn say(&self, event: Event) {
        self.shared.voice.say(&event);
    }

    fn acked(&self, intent: &Intent) {
        self.say(Event::Acked(intent.writer, intent.counter));
    }

    fn aborted(&self, intent: &Intent) {
        self.say(Event::Aborted(intent.writer, intent.counter));
    }

    /// Put the value of `key` in this commit, of `len` bytes, into `self.value`.
    fn encode(&mut self, intent: &Intent, key: Key, len: u32) {
        let stamp = Stamp {
            writer: self.writer,
            counter: intent.counter,
            len,
        };
        encode(key, stamp, &mut self.value);
    }

    /// Put the first `count` changes of `intent` into the batch.
    fn fill(&mut self, intent: &Intent, count: usize) {
        self.batch.clear();
        for &change in intent.changes.iter().take(count) {
            match change {
                Change::Put(key, len) => {
                    self.encode(intent, key, len);
                    let tree = self.shared.store.tree(key.tree);
                    self.batch.put(tree, &key.bytes(), &self.value);
                }
                Change::Delete(key) => {
                    let tree = self.shared.store.tree(key.tree);
                    self.batch.delete(tree, &key.bytes());
                }
                Change::DeleteRange(from, to) => {
                    let tree = self.shared.store.tree(from.tree);
                    let (from, to) = (from.id.to_be_bytes(), to.id.to_be_bytes());
                    self.batch
                        .delete_range(tree, KeyRange::half_open(&from, &to));
                }
            }
        }
    }

    fn write(&self, intent: &Intent) -> Result<(), String> {
        let engine = &self.shared.store.engine;
        let written = engine.write(&self.batch, intent.durability);
        written.map_err(text("write"))
    }

    fn transact(&mut self, intent: &Intent, rng: &mut Rng) -> Result<(), String> {
        let begun = self.shared.store.engine.begin_write();
        let mut transaction = begun.map_err(text("begin_write"))?;
        for &change in &intent.changes {
            match self.change(transaction.as_mut(), intent, change, rng) {
                Ok(()) => {}
                // The commit was not announced, so it must not have happened.
                Err(e) if e.kind() == ErrorKind::Conflict => return Ok(()),
                Err(e) => return Err(text("a change in a transaction")(e)),
            }
        }
        self.say(Event::Intend(intent.clone()));
        if rng.chance(ROLLBACK) {
            if self.shared.start.lie == Some(Lie::Leak) {
                transaction
                    .commit(intent.durability)
                    .map_err(text("commit"))?;
            } else {
                transaction.rollback();
            }
            self.aborted(intent);
            return Ok(());
        }
        match transaction.commit(intent.durability) {
            Ok(()) => self.acked(intent),
            Err(e) if e.kind() == ErrorKind::Conflict => self.aborted(intent),
            Err(e) => return Err(text("commit")(e)),
        }
        Ok(())
    }

    fn change(
        &mut self,
        transaction: &mut dyn Transaction,
        intent: &Intent,
        change: Change,
        rng: &mut Rng,
    ) -> kv::Result<()> {
        let store = self.shared.store;
        match change {
            Change::Put(key, len) => {
                self.encode(intent, key, len);
                let (tree, bytes) = (store.tree(key.tree), key.bytes());
                match rng.below(3) {
                    0 => transaction.put(tree, &bytes, &self.value),
                    1 => transaction.put_blind(tree, &bytes, &self.value),
                    _ => match transaction.insert(tree, &bytes, &self.value) {
                        // The key exists, so its value is replaced.
                        Err(e) if e.kind() == ErrorKind::Exists => {
                            transaction.put(tree, &bytes, &self.value)
                        }
                        other => other,
                    },
                }
            }
            Change::Delete(key) => {
                let (tree, bytes) = (store.tree(key.tree), key.bytes());
                // Whether deleting a missing key counts as a write depends on the engine. A blind
                // delete always does, and so has a place in the order of the commits.
                if rng.chance(0.5) && transaction.delete(tree, &bytes)? {
                    return Ok(());
                }
                transaction.delete_blind(tree, &bytes)
            }
            Change::DeleteRange(from, to) => {
                let tree = store.tree(from.tree);
                let (from, to) = (from.id.to_be_bytes(), to.id.to_be_bytes());
                transaction.delete_range(tree, KeyRange::half_open(&from, &to))
            }
        }
    }

    /// Cheat as `lie` requires; returns false if this commit must be executed normally.
    fn cheat(&mut self, lie: Lie, intent: &Intent, rng: &mut Rng) -> Result<bool, String> {
        match lie {
            Lie::Skip if rng.chance(CHEAT) => {
                self.say(Event::Intend(intent.clone()));
                self.acked(intent);
            }
            Lie::Tear if 1 < intent.changes.len() && rng.chance(CHEAT) => {
                self.say(Event::Intend(intent.clone()));
                self.fill(intent, intent.changes.len() / 2);
                self.write(intent)?;
                self.acked(intent);
            }
            Lie::Hold => {
                self.say(Event::Intend(intent.clone()));
                self.fill(intent, intent.changes.len());
                let next = std::mem::take(&mut self.batch);
                if let Some(held) = self.held.replace(next) {
                    self.batch = held;
                    self.write(intent)?;
                }
                self.acked(intent);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

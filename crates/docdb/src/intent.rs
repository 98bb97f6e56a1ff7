//! Intents: the keys that open transactions and plain writes are about to change.
//!
//! An engine detects conflicts at the commit, and the first to commit wins: a plain write (one
//! outside of multi-document transactions) that commits between two statements of a transaction
//! would make that transaction fail at its commit. Intents prevent this:
//!
//! - I1. A transaction that has written a key holds the intent of this key until it has ended. A
//!   plain write that wants the key gives up its engine transaction and its latches, waits until
//!   the transaction has ended, and starts again. It holds nothing while it waits, so there is no
//!   deadlock.
//! - I2. If two transactions want the same key, the second fails at once with `WriteConflict`. So
//!   does a transaction that wants a key which a plain write in progress has changed.
//! - I3. Plain writes register their intents only while a transaction has written. The first write
//!   of a transaction waits until all unregistered plain writes have ended; these wait for no
//!   transaction.
//! - I4. A transaction holds at most [`KEYS_MAX`] intents on keys. Beyond that it holds whole
//!   trees: plain writes wait for every tree it writes to. Conflicts between two such transactions
//!   are detected by the engine.
//!
//! Two plain writes do not exclude each other: the engine detects the conflict, and the loser is
//! retried. Plain writes on engines with one writer need no intents: only one of them runs at a
//! time.
//!
//! Keys are compared by a 64-bit hash: a collision of two different keys costs a wait.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use kv::TreeId;
use query::Result;
use stdx::sync::atomic::{AtomicUsize, Ordering};
use stdx::sync::{Condvar, Mutex};

use crate::patience::{Check, Patience};

/// Maximum number of key intents of a transaction before it holds whole trees: with two entries of
/// at most 40 bytes each, the 1,000 transactions that may be open hold less than 700 MB.
const KEYS_MAX: usize = 16 * 1024;

/// A key of a tree, as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Intent(u64);

impl Intent {
    fn of(tree: TreeId, key: &[u8]) -> Intent {
        Intent(stdx::hash::hash64_seeded(key, u64::from(tree.0)))
    }
}

/// All intents of a store.
#[derive(Default)]
pub(crate) struct Intents {
    table: Mutex<Table>,
    /// Open transactions that have written. Changed under the lock of the table.
    writing: AtomicUsize,
    /// Plain writes in progress that have not registered (I3).
    unregistered: AtomicUsize,
    /// Notified, under the lock of the table, when the last unregistered plain write has ended.
    drained: Condvar,
}

#[derive(Default)]
struct Table {
    keys: HashMap<Intent, Claimed>,
    trees: HashMap<TreeId, Vec<Arc<Holder>>>,
}

/// The owner of a claimed key.
enum Claimed {
    Transaction(Arc<Holder>),
    /// The number of claims by plain writes.
    Plain(usize),
}

/// A transaction that has written; others can wait until it has ended.
#[derive(Default)]
pub(crate) struct Holder {
    ended: Mutex<bool>,
    changed: Condvar,
}

impl Holder {
    /// Wait until the transaction has ended, by commit or abort.
    ///
    /// # Errors
    /// Errors of `check`.
    pub(crate) fn wait(&self, check: Check<'_>) -> Result<()> {
        let mut ended = self.ended.lock();
        let mut patience = Patience::new(None);
        while !*ended {
            patience.wait(&self.changed, &mut ended, check)?;
        }
        Ok(())
    }
}

/// The reason why a key could not be claimed.
pub(crate) enum Refused {
    /// Retry after this transaction has ended (I1).
    After(Arc<Holder>),
    /// Another transaction or plain write claimed the key first (I2).
    Conflict,
}

/// The intents of one engine transaction. They are released when it is dropped.
pub(crate) struct Claims<'s> {
    intents: &'s Intents,
    keys: Vec<Intent>,
    by: By,
}

enum By {
    Transaction {
        holder: Arc<Holder>,
        trees: Vec<TreeId>,
    },
    Plain {
        registered: bool,
    },
}

impl Intents {
    /// The claims of a plain write.
    pub(crate) fn plain(&self) -> Claims<'_> {
        // Each side first changes its own counter and then reads the other's, so at least one of
        // them sees the other.
        self.unregistered.fetch_add(1, Ordering::SeqCst);
        let registered = self.writing.load(Ordering::SeqCst) != 0;
        if registered {
            self.leave();
        }
        Claims {
            intents: self,
            keys: Vec::new(),
            by: By::Plain { registered },
        }
    }

    /// The claims of a transaction that writes for the first time (I3).
    ///
    /// # Errors
    /// Errors of `check`, while plain writes are in progress.
    pub(crate) fn transaction(&self, check: Check<'_>) -> Result<Claims<'_>> {
        let mut table = self.table.lock();
        self.writing.fetch_add(1, Ordering::SeqCst);
        let claims = Claims {
            intents: self,
            keys: Vec::new(),
            by: By::Transaction {
                holder: Arc::default(),
                trees: Vec::new(),
            },
        };
        let mut patience = Patience::new(None);
        while self.unregistered.load(Ordering::SeqCst) != 0 {
            if let Err(ended) = patience.wait(&self.drained, &mut table, check) {
                // Dropping the claims takes the lock.
                drop(table);
                return Err(ended);
            }
        }
        Ok(claims)
    }

    /// Remove an unregistered plain write from the count.
    fn leave(&self) {
        let before = self.unregistered.fetch_sub(1, Ordering::SeqCst);
        if before == 1 && self.writing.load(Ordering::SeqCst) != 0 {
            // A waiting transaction holds the lock from reading the counter until it waits.
            drop(self.table.lock());
            self.drained.notify_all();
        }
    }

    /// How many keys are claimed, and how many trees.
    #[cfg(test)]
    fn len(&self) -> (usize, usize) {
        let table = self.table.lock();
        (table.keys.len(), table.trees.len())
    }
}

impl Claims<'_> {
    /// Claim a key.
    pub(crate) fn take(&mut self, tree: TreeId, key: &[u8]) -> Result<(), Refused> {
        if let By::Plain { registered: false } = self.by {
            return Ok(());
        }
        let intent = Intent::of(tree, key);
        match &mut self.by {
            By::Plain { .. } => {
                let mut table = self.intents.table.lock();
                if let Some(holder) = table.trees.get(&tree).and_then(|all| all.first()) {
                    return Err(Refused::After(Arc::clone(holder)));
                }
                match table.keys.entry(intent).or_insert(Claimed::Plain(0)) {
                    Claimed::Plain(count) => *count += 1,
                    Claimed::Transaction(holder) => {
                        return Err(Refused::After(Arc::clone(holder)));
                    }
                }
            }
            By::Transaction { holder, trees } => {
                let table = &mut *self.intents.table.lock();
                let entry = match table.keys.entry(intent) {
                    Entry::Vacant(entry) => entry,
                    Entry::Occupied(there) => match there.get() {
                        Claimed::Transaction(own) if Arc::ptr_eq(own, holder) => return Ok(()),
                        _ => return Err(Refused::Conflict),
                    },
                };
                if KEYS_MAX <= self.keys.len() {
                    if !trees.contains(&tree) {
                        trees.push(tree);
                        table
                            .trees
                            .entry(tree)
                            .or_default()
                            .push(Arc::clone(holder));
                    }
                    return Ok(());
                }
                entry.insert(Claimed::Transaction(Arc::clone(holder)));
            }
        }
        self.keys.push(intent);
        Ok(())
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        if let By::Plain { registered: false } = self.by {
            self.intents.leave();
            return;
        }
        if let By::Plain { .. } = self.by
            && self.keys.is_empty()
        {
            return;
        }
        let mut table = self.intents.table.lock();
        for key in &self.keys {
            if let Some(Claimed::Plain(count)) = table.keys.get_mut(key)
                && 1 < *count
            {
                *count -= 1;
            } else {
                table.keys.remove(key);
            }
        }
        if let By::Transaction { holder, trees } = &self.by {
            for tree in trees {
                if let Some(holders) = table.trees.get_mut(tree) {
                    holders.retain(|other| !Arc::ptr_eq(other, holder));
                    if holders.is_empty() {
                        table.trees.remove(tree);
                    }
                }
            }
            self.intents.writing.fetch_sub(1, Ordering::SeqCst);
            drop(table);
            *holder.ended.lock() = true;
            holder.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use query::{Code, Error};

    use super::*;

    const TREE: TreeId = TreeId(7);

    fn transaction(intents: &Intents) -> Claims<'_> {
        intents.transaction(&|| Ok(())).unwrap()
    }

    fn holder_of(refused: Result<(), Refused>) -> Arc<Holder> {
        match refused {
            Err(Refused::After(holder)) => holder,
            Err(Refused::Conflict) => panic!("a plain write waits"),
            Ok(()) => panic!("it was claimed twice"),
        }
    }

    fn enough() -> Result<()> {
        Err(Error::new(Code::INTERRUPTED, "enough"))
    }

    /// I1.
    #[test]
    fn a_plain_write_waits_for_a_transaction_and_not_for_a_plain_write() {
        let intents = Intents::default();
        let mut open = transaction(&intents);
        assert!(open.take(TREE, b"a").is_ok());
        assert!(open.take(TREE, b"a").is_ok(), "its own");
        let (mut first, mut second) = (intents.plain(), intents.plain());
        assert!(first.take(TREE, b"b").is_ok());
        assert!(second.take(TREE, b"b").is_ok());
        let holder = holder_of(first.take(TREE, b"a"));
        assert!(holder.wait(&enough).is_err(), "it waits");
        drop(open);
        holder.wait(&enough).unwrap();
        assert!(first.take(TREE, b"a").is_ok());
        drop((first, second));
        assert_eq!(intents.len(), (0, 0));
    }

    /// I2.
    #[test]
    fn a_transaction_conflicts_with_whoever_was_first() {
        let intents = Intents::default();
        let mut first = transaction(&intents);
        let mut second = transaction(&intents);
        let mut plain = intents.plain();
        assert!(first.take(TREE, b"a").is_ok());
        assert!(plain.take(TREE, b"b").is_ok());
        for key in [b"a", b"b"] {
            assert!(matches!(second.take(TREE, key), Err(Refused::Conflict)));
        }
        assert!(second.take(TreeId(8), b"a").is_ok(), "of another tree");
        drop((first, plain));
        assert!(second.take(TREE, b"a").is_ok());
        assert!(second.take(TREE, b"b").is_ok());
    }

    /// I3.
    #[test]
    fn a_transaction_waits_for_plain_writes_that_have_not_registered() {
        let intents = Intents::default();
        let plain = intents.plain();
        assert!(intents.transaction(&enough).is_err());
        assert_eq!(intents.writing.load(Ordering::SeqCst), 0);
        let looks = Cell::new(0);
        let check = || {
            looks.set(looks.get() + 1);
            // As if the plain write ended now: it cannot be dropped under the table's lock.
            intents.unregistered.store(0, Ordering::SeqCst);
            Ok(())
        };
        let mut open = intents.transaction(&check).unwrap();
        assert_eq!(looks.get(), 1);
        intents.unregistered.store(1, Ordering::SeqCst);
        drop(plain);
        assert!(open.take(TREE, b"a").is_ok());
        drop(holder_of(intents.plain().take(TREE, b"a")));
    }

    /// I4.
    #[test]
    fn beyond_a_number_of_keys_whole_trees_are_held() {
        let intents = Intents::default();
        let mut open = transaction(&intents);
        for number in 0..KEYS_MAX {
            assert!(open.take(TREE, &number.to_be_bytes()).is_ok());
        }
        assert_eq!(intents.len(), (KEYS_MAX, 0));
        assert!(intents.plain().take(TREE, b"free").is_ok());
        assert!(open.take(TREE, b"one more").is_ok());
        assert_eq!(intents.len(), (KEYS_MAX, 1));
        let mut plain = intents.plain();
        drop(holder_of(plain.take(TREE, b"free")));
        assert!(plain.take(TreeId(8), b"free").is_ok());
        drop((open, plain));
        assert_eq!(intents.len(), (0, 0));
    }

    #[test]
    fn transactions_and_plain_writes_are_never_in_one_key_together() {
        let intents = Intents::default();
        let (inside, plain_inside) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let mut claims = transaction(&intents);
                        if claims.take(TREE, b"a").is_err() {
                            continue;
                        }
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        assert_eq!(plain_inside.load(Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
                scope.spawn(|| {
                    for _ in 0..500 {
                        let mut claims = intents.plain();
                        match claims.take(TREE, b"a") {
                            Err(Refused::After(holder)) => {
                                drop(claims);
                                holder.wait(&|| Ok(())).unwrap();
                            }
                            Err(Refused::Conflict) => panic!("a plain write waits"),
                            Ok(()) => {
                                plain_inside.fetch_add(1, Ordering::SeqCst);
                                assert_eq!(inside.load(Ordering::SeqCst), 0);
                                plain_inside.fetch_sub(1, Ordering::SeqCst);
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(intents.len(), (0, 0));
    }
}

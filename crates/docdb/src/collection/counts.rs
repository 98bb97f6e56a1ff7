//! Document count and size of a collection, and the numbers of its records.
//!
//! - C1. Every transaction that changes the counts of a collection writes the change as an entry
//!   of its own in the tree `_counts`. The sum of a collection's entries is the count of its
//!   committed documents, also after a crash, and transactions do not conflict over a counter.
//! - C2. Entries are periodically folded into one, in a transaction of their own.
//! - C4. A fold reads the folded entry and those that may not be folded yet: all from the number
//!   below which, before an earlier fold, every transaction had ended. It does not walk over the
//!   entries that earlier folds deleted, of which an engine may hold traces for long.
//! - C3. The entries also hold the highest record number ever committed: numbers are never reused,
//!   even if the last document was deleted before a restart.
//!
//! A key is the collection's UUID and the entry's number (0 for the folded one), 24 bytes; a value
//! is the number of documents, the bytes and the highest record number, 8 bytes each, big-endian.

use std::collections::BTreeSet;

use kv::{Direction, KeyRange, Snapshot, Transaction, TreeId};
use query::Result;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::error;

pub(crate) const TREE: &str = "_counts";

/// Number of entries after which they are folded: few enough that opening a store reads little.
const FOLD_AFTER: u64 = 256;

/// A change of the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delta {
    /// Documents.
    pub(crate) documents: i64,
    /// Bytes of documents.
    pub(crate) bytes: i64,
    /// The highest number of a record.
    pub(crate) record: i64,
}

impl Delta {
    /// Whether it changes nothing, so that it needs no entry (C1).
    pub(crate) fn is_zero(self) -> bool {
        self == Delta::default()
    }

    fn add(&mut self, other: Delta) {
        self.documents += other.documents;
        self.bytes += other.bytes;
        self.record = self.record.max(other.record);
    }

    fn to_bytes(self) -> [u8; 24] {
        let mut out = [0; 24];
        let (a, rest) = out.split_at_mut(8);
        let (b, c) = rest.split_at_mut(8);
        a.copy_from_slice(&self.documents.to_be_bytes());
        b.copy_from_slice(&self.bytes.to_be_bytes());
        c.copy_from_slice(&self.record.to_be_bytes());
        out
    }

    fn from_bytes(bytes: &[u8]) -> Option<Delta> {
        let (documents, rest) = bytes.split_first_chunk()?;
        let (size, rest) = rest.split_first_chunk()?;
        Some(Delta {
            documents: i64::from_be_bytes(*documents),
            bytes: i64::from_be_bytes(*size),
            record: i64::from_be_bytes(rest.try_into().ok()?),
        })
    }
}

/// The counts of one collection.
#[derive(Debug)]
pub(crate) struct Counts {
    documents: AtomicI64,
    bytes: AtomicI64,
    next_record: AtomicI64,
    entries: Mutex<Entries>,
    since_fold: AtomicU64,
}

/// The numbers of the entries.
#[derive(Debug)]
struct Entries {
    next: u64,
    /// Those of transactions that have not ended.
    open: BTreeSet<u64>,
    /// All below it are folded, or will never exist (C4).
    first: u64,
}

/// The entry of a transaction, which has not ended until this is dropped.
#[must_use = "a fold passes over the entries of transactions that have ended"]
pub(crate) struct OpenEntry<'c> {
    counts: &'c Counts,
    number: u64,
}

impl Drop for OpenEntry<'_> {
    fn drop(&mut self) {
        self.counts.entries.lock().open.remove(&self.number);
    }
}

/// What a fold has to read, asked for before its transaction begins (C4).
#[derive(Clone, Copy)]
pub(crate) struct Unfolded {
    /// The first entry.
    first: u64,
    /// The transactions of all entries below it have ended.
    ended: u64,
}

impl Counts {
    /// The counts of an empty collection.
    pub(crate) fn new() -> Counts {
        Counts::of(Delta::default(), 0)
    }

    fn of(sum: Delta, last_entry: u64) -> Counts {
        Counts {
            documents: AtomicI64::new(sum.documents),
            bytes: AtomicI64::new(sum.bytes),
            next_record: AtomicI64::new(sum.record + 1),
            entries: Mutex::new(Entries {
                next: last_entry + 1,
                open: BTreeSet::new(),
                first: 1,
            }),
            since_fold: AtomicU64::new(0),
        }
    }

    /// Counts that are only shown: those of a collection that no transaction writes.
    pub(crate) fn shown(documents: i64, bytes: i64) -> Counts {
        let sum = Delta {
            documents,
            bytes,
            record: 0,
        };
        Counts::of(sum, 0)
    }

    /// Change counts that are only shown.
    pub(crate) fn show(&self, documents: i64, bytes: i64) {
        self.documents.fetch_add(documents, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Read the counts when the store is opened.
    pub(crate) fn load(snapshot: &dyn Snapshot, tree: TreeId, uuid: &[u8; 16]) -> Result<Counts> {
        let mut last = 0;
        let mut sum = Delta::default();
        visit(snapshot, tree, uuid, 0, &mut |entry, delta| {
            sum.add(delta);
            last = last.max(entry);
        })?;
        Ok(Counts::of(sum, last))
    }

    pub(crate) fn documents(&self) -> i64 {
        self.documents.load(Ordering::Relaxed).max(0)
    }

    pub(crate) fn bytes(&self) -> i64 {
        self.bytes.load(Ordering::Relaxed).max(0)
    }

    /// Reserve `count` record numbers; returns the first.
    pub(crate) fn take_records(&self, count: i64) -> i64 {
        self.next_record.fetch_add(count, Ordering::Relaxed)
    }

    /// Reserve all numbers up to one.
    pub(crate) fn skip_records(&self, last: i64) {
        self.next_record.fetch_max(last + 1, Ordering::Relaxed);
    }

    /// Write the entry of a transaction (C1). Keep what is returned until the transaction has
    /// ended.
    pub(crate) fn write(
        &self,
        txn: &mut dyn Transaction,
        tree: TreeId,
        uuid: &[u8; 16],
        delta: Delta,
    ) -> Result<OpenEntry<'_>> {
        let number = {
            let mut entries = self.entries.lock();
            let number = entries.next;
            entries.next += 1;
            entries.open.insert(number);
            number
        };
        let open = OpenEntry {
            counts: self,
            number,
        };
        let put = txn.put_blind(tree, &key(uuid, number), &delta.to_bytes());
        put.map_err(error::engine)?;
        Ok(open)
    }

    /// What the next fold has to read.
    pub(crate) fn unfolded(&self) -> Unfolded {
        let entries = self.entries.lock();
        Unfolded {
            first: entries.first,
            ended: entries.open.first().copied().unwrap_or(entries.next),
        }
    }

    /// A fold has committed.
    pub(crate) fn folded(&self, unfolded: Unfolded) {
        let mut entries = self.entries.lock();
        entries.first = entries.first.max(unfolded.ended);
    }

    /// Apply a committed transaction's change. Returns true when the entries should be folded.
    pub(crate) fn committed(&self, delta: Delta) -> bool {
        self.documents.fetch_add(delta.documents, Ordering::Relaxed);
        self.bytes.fetch_add(delta.bytes, Ordering::Relaxed);
        let entries = self.since_fold.fetch_add(1, Ordering::Relaxed) + 1;
        if entries < FOLD_AFTER {
            return false;
        }
        // Exactly one of the threads that arrive here folds the entries.
        let taken =
            self.since_fold
                .compare_exchange(entries, 0, Ordering::Relaxed, Ordering::Relaxed);
        taken.is_ok()
    }
}

/// Fold the entries of a collection into one (C2).
pub(crate) fn fold(
    txn: &mut dyn Transaction,
    tree: TreeId,
    uuid: &[u8; 16],
    unfolded: Unfolded,
) -> Result<()> {
    let mut entries = Vec::new();
    let mut sum = Delta::default();
    let before = txn.get(tree, &key(uuid, 0)).map_err(error::engine)?;
    if let Some(before) = before {
        sum.add(Delta::from_bytes(&before).ok_or_else(corrupt)?);
    }
    assert!(0 < unfolded.first, "C4: the folded entry is read apart");
    visit(txn, tree, uuid, unfolded.first, &mut |entry, delta| {
        entries.push(entry);
        sum.add(delta);
    })?;
    // They were read above. Of two folds at the same time one fails: both put the folded entry.
    for entry in entries {
        let deleted = txn.delete_blind(tree, &key(uuid, entry));
        deleted.map_err(error::engine)?;
    }
    let put = txn.put(tree, &key(uuid, 0), &sum.to_bytes());
    put.map_err(error::engine)
}

/// Remove all entries of a collection that is dropped.
pub(crate) fn remove(txn: &mut dyn Transaction, tree: TreeId, uuid: &[u8; 16]) -> Result<()> {
    let mut entries = Vec::new();
    visit(txn, tree, uuid, 0, &mut |entry, _| entries.push(entry))?;
    for entry in entries {
        txn.delete(tree, &key(uuid, entry)).map_err(error::engine)?;
    }
    Ok(())
}

/// Visit the entries from a number on.
fn visit(
    snapshot: &(impl Snapshot + ?Sized),
    tree: TreeId,
    uuid: &[u8; 16],
    from: u64,
    each: &mut dyn FnMut(u64, Delta),
) -> Result<()> {
    let (start, end) = (key(uuid, from), key(uuid, u64::MAX));
    let range = KeyRange::half_open(&start, &end);
    let cursor = snapshot.cursor(tree, range, Direction::Forward);
    let mut cursor = cursor.map_err(error::engine)?;
    while cursor.advance().map_err(error::engine)? {
        let entry = cursor.key().last_chunk().map(|b| u64::from_be_bytes(*b));
        let delta = Delta::from_bytes(cursor.value());
        let (Some(entry), Some(delta)) = (entry, delta) else {
            return Err(corrupt());
        };
        each(entry, delta);
    }
    Ok(())
}

fn corrupt() -> query::Error {
    error::corrupt("an entry of the counts of a collection")
}

fn key(uuid: &[u8; 16], entry: u64) -> [u8; 24] {
    let mut key = [0; 24];
    let (head, tail) = key.split_at_mut(16);
    head.copy_from_slice(uuid);
    tail.copy_from_slice(&entry.to_be_bytes());
    key
}

#[cfg(test)]
mod tests {
    use kv::{Durability, TreeOptions};

    use super::*;

    const UUID: [u8; 16] = [7; 16];

    fn fold_all(engine: &dyn kv::Engine, tree: TreeId, counts: &Counts) {
        let unfolded = counts.unfolded();
        let mut txn = engine.begin_write().unwrap();
        fold(txn.as_mut(), tree, &UUID, unfolded).unwrap();
        txn.commit(Durability::None).unwrap();
        counts.folded(unfolded);
    }

    /// C4.
    #[test]
    fn a_fold_begins_behind_what_is_folded_and_forgets_no_late_transaction() {
        let path = tempfile::tempdir().unwrap();
        let engine = kv::memory::factory().open(path.path(), &kv::EngineOptions::default());
        let engine = engine.unwrap();
        let tree = engine.create_tree(TREE, &TreeOptions::default()).unwrap();
        let counts = Counts::new();
        let one = Delta {
            documents: 1,
            bytes: 10,
            record: 1,
        };
        let commit = || {
            let mut txn = engine.begin_write().unwrap();
            let _open = counts.write(txn.as_mut(), tree, &UUID, one).unwrap();
            txn.commit(Durability::None).unwrap();
        };
        let sum = || {
            let snapshot = engine.begin_read().unwrap();
            Counts::load(snapshot.as_ref(), tree, &UUID)
                .unwrap()
                .documents()
        };
        (0..10).for_each(|_| commit());
        fold_all(engine.as_ref(), tree, &counts);
        assert_eq!((counts.unfolded().first, sum()), (11, 10), "C4");
        // A transaction that ends after two folds.
        let mut late = engine.begin_write().unwrap();
        let open = counts.write(late.as_mut(), tree, &UUID, one).unwrap();
        for _ in 0..2 {
            (0..10).for_each(|_| commit());
            fold_all(engine.as_ref(), tree, &counts);
        }
        assert_eq!((counts.unfolded().first, sum()), (11, 30), "it is open");
        late.commit(Durability::None).unwrap();
        drop(open);
        fold_all(engine.as_ref(), tree, &counts);
        assert_eq!((counts.unfolded().first, sum()), (32, 31), "C4");
        // One that rolls back.
        let mut gone = engine.begin_write().unwrap();
        drop(counts.write(gone.as_mut(), tree, &UUID, one).unwrap());
        gone.rollback();
        commit();
        fold_all(engine.as_ref(), tree, &counts);
        assert_eq!((counts.unfolded().first, sum()), (34, 32));
    }

    #[test]
    fn entries_say_the_same_when_they_are_folded_and_numbers_are_not_used_again() {
        let path = tempfile::tempdir().unwrap();
        let engine = kv::memory::factory().open(path.path(), &kv::EngineOptions::default());
        let engine = engine.unwrap();
        let tree = engine.create_tree(TREE, &TreeOptions::default()).unwrap();
        let counts = Counts::new();
        let (mut highest, mut folds) = (0, 0);
        for step in 0..600 {
            highest = counts.take_records(1);
            // All but the first are deleted again.
            let documents = i64::from(step == 0);
            let delta = Delta {
                documents,
                bytes: documents * 10,
                record: highest,
            };
            let mut txn = engine.begin_write().unwrap();
            let open = counts.write(txn.as_mut(), tree, &UUID, delta).unwrap();
            txn.commit(Durability::None).unwrap();
            drop(open);
            if counts.committed(delta) {
                fold_all(engine.as_ref(), tree, &counts);
                folds += 1;
            }
        }
        let snapshot = engine.begin_read().unwrap();
        let mut entries = 0;
        visit(snapshot.as_ref(), tree, &UUID, 0, &mut |_, _| entries += 1).unwrap();
        assert_eq!((folds, entries), (2, 600 - 2 * FOLD_AFTER + 1), "C2");
        let loaded = Counts::load(snapshot.as_ref(), tree, &UUID).unwrap();
        assert_eq!((loaded.documents(), loaded.bytes()), (1, 10), "C1");
        assert!(highest < loaded.take_records(1), "C3");
    }
}

//! Transactions: a snapshot, and private writes put on top of the trees at commit.
//!
//! - I1. Of two transactions that wrote one key (not blind) and overlapped in time, the first to
//!   commit wins; the other gets `Conflict`.
//! - I2. Nothing of a transaction is in the trees before it commits, so there is nothing to undo.

use std::ops::Bound;
use std::sync::Arc;

use super::core::{Committer, Core};
use super::iter::{Iter, Span};
use super::key_range::AsKeyRange;
use super::own_writes::OwnWrites;
use super::reader::{Cursor, Reader};
use crate::cursor::{self, At, Buckets};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{KEY_MAX, VALUE_MAX};
use crate::merge::Source;
use crate::plant::{Plant, planted};
use crate::types::{Batch, Direction, Durability, Op, Seq, TreeId};
use crate::work::Ask;

/// Number of keys collected from a range before they are deleted.
const DELETE_AT_ONCE: usize = 1024;

/// A unit of atomicity over any number of trees, at snapshot isolation: it reads its snapshot with
/// its own writes on top. Dropping it gives up all changes. Made by [`crate::Db::begin`].
///
/// `Conflict` means that a key that takes part was written by a commit after the snapshot, or that
/// the snapshot was given up because of its age.
/// Blind writes ([`Transaction::put_blind`]) of others are not asked for it, with one exception: if
/// in that time some transaction has also written, checked, another key whose hash falls on the
/// same of 65,536 places, the exact check finds the blind write and cannot tell it from a checked
/// one. So blind writes are for keys without checked writes.
pub struct Transaction {
    reader: Arc<Reader>,
    writes: OwnWrites,
    bytes: u64,
    puts: u64,
    deletes: u64,
    /// Whether it has met a conflict and so cannot commit.
    lost: bool,
}

impl Transaction {
    pub(crate) fn new(core: &Arc<Core>) -> Result<Transaction> {
        core.health.check_writable()?;
        Ok(Transaction {
            reader: Reader::new(core)?,
            writes: OwnWrites::new(core),
            bytes: 0,
            puts: 0,
            deletes: 0,
            lost: false,
        })
    }

    /// The newest commit its snapshot sees.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.reader.seq()
    }

    /// Read `key`.
    ///
    /// # Errors
    /// As [`crate::Snapshot::get_into`].
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut value = Vec::new();
        Ok(self.get_into(tree, key, &mut value)?.then_some(value))
    }

    /// Read `key` into `value` (cleared first). False when it is absent.
    ///
    /// # Errors
    /// As [`crate::Snapshot::get_into`].
    pub fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        match self.writes.get(tree, key, value)? {
            Some(Op::Put) => Ok(true),
            Some(Op::Delete) => {
                value.clear();
                Ok(false)
            }
            None => self.reader.get_into(tree, key, value),
        }
    }

    /// Read several keys, as by [`crate::Snapshot::get_many`], of the snapshot with the own writes
    /// on top.
    ///
    /// # Errors
    /// As [`crate::Snapshot::get_into`].
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        tree: TreeId,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let mut values = vec![None; keys.len()];
        let mut asked = Vec::new();
        let mut value = Vec::new();
        for (key, place) in keys.iter().map(AsRef::as_ref).zip(&mut values) {
            match self.writes.get(tree, key, &mut value)? {
                Some(Op::Put) => *place = Some(std::mem::take(&mut value)),
                Some(Op::Delete) => {}
                None => asked.push((key, place)),
            }
        }
        self.reader.fill(tree, asked)?;
        Ok(values)
    }

    /// The entries of `tree` within `range`, in the order of their keys: those of the snapshot with
    /// the own writes on top. The transaction can write again when the iterator is dropped.
    ///
    /// # Errors
    /// As [`crate::Snapshot::cursor`].
    pub fn range(&self, tree: TreeId, range: impl AsKeyRange) -> Result<Iter<'_>> {
        let own = self.writes.of(tree);
        Iter::new(&self.reader, own, Span::of(tree, &range))
    }

    /// The entries of `tree` whose keys begin with `prefix`, as by [`Transaction::range`].
    ///
    /// # Errors
    /// As [`crate::Snapshot::cursor`].
    pub fn prefix(&self, tree: TreeId, prefix: impl AsRef<[u8]>) -> Result<Iter<'_>> {
        let own = self.writes.of(tree);
        Iter::new(&self.reader, own, Span::with_prefix(tree, prefix.as_ref()))
    }

    /// A cursor as by [`crate::Snapshot::cursor`], over the snapshot with the own writes on top.
    ///
    /// # Errors
    /// As [`crate::Snapshot::cursor`].
    pub fn cursor(
        &self,
        tree: TreeId,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Cursor<'_>> {
        let own = self.writes.of(tree);
        self.reader.cursor(tree, own, start, end, direction)
    }

    /// Insert `key`; it must be absent.
    ///
    /// # Errors
    /// `Exists`, and the transaction may continue; `Conflict`; `Invalid` beyond the limits.
    pub fn insert(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_write(tree, key, value, true)?;
        let mut old = Vec::new();
        if self.get_into(tree, key, &mut old)? {
            let message = "the key exists already";
            return Err(Error::new(ErrorKind::Exists, message).with_key(key));
        }
        self.push(tree, Op::Put, key, value, true)
    }

    /// Set `key` to `value`. Takes part in conflict detection.
    ///
    /// # Errors
    /// `Conflict`. `Invalid` beyond the limits and `Full` beyond `transaction_max`, or when the
    /// open transactions together hold half of the memory of the write buffers; the write is not
    /// made, and the transaction may continue.
    pub fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_write(tree, key, value, true)?;
        self.push(tree, Op::Put, key, value, true)
    }

    /// Remove `key`; says whether it was there. Takes part in conflict detection.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        self.check_write(tree, key, &[], true)?;
        let mut old = Vec::new();
        let there = self.get_into(tree, key, &mut old)?;
        // A key that does not exist is not removed: else the commit would remove what a blind
        // write, which does not conflict, has put in the meantime.
        if there {
            self.push(tree, Op::Delete, key, &[], true)?;
        }
        Ok(there)
    }

    /// Set `key` to `value` without reading and without conflict detection: for keys that are
    /// derived from keys that take part. Of several writes of one key the last wins.
    ///
    /// # Errors
    /// `Invalid` beyond the limits.
    pub fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_write(tree, key, value, false)?;
        self.push(tree, Op::Put, key, value, false)
    }

    /// Remove `key` without reading; see [`Transaction::put_blind`].
    ///
    /// # Errors
    /// As [`Transaction::put_blind`].
    pub fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.check_write(tree, key, &[], false)?;
        self.push(tree, Op::Delete, key, &[], false)
    }

    /// Remove every key between the bounds that this transaction sees, each as by
    /// [`Transaction::delete`].
    ///
    /// # Errors
    /// As [`Transaction::delete`].
    pub fn delete_range(
        &mut self,
        tree: TreeId,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> Result<()> {
        self.check_write(tree, &[], &[], false)?;
        let mut keys: Vec<Box<[u8]>> = Vec::new();
        let mut start = start;
        let mut last: Box<[u8]>;
        loop {
            debug_assert!(keys.is_empty(), "what was collected is deleted");
            let mut cursor = self.cursor(tree, start, end, Direction::Forward)?;
            while keys.len() < DELETE_AT_ONCE && cursor.advance()? {
                keys.push(cursor.key().into());
            }
            drop(cursor);
            for key in &keys {
                self.push(tree, Op::Delete, key, &[], true)?;
            }
            if keys.len() < DELETE_AT_ONCE {
                return Ok(());
            }
            // Deleted keys would not be returned again, but be skipped one by one.
            last = keys.pop().expect("as many as are deleted at once");
            start = Bound::Excluded(&last);
            keys.clear();
        }
    }

    /// Commit. What it has seen is then as durable as what it has written, so a transaction that
    /// wrote nothing waits as well.
    ///
    /// # Errors
    /// On an error nothing of the transaction is visible, except after a failed sync (`Io`), when
    /// it may be visible but not durable, and the store is closed for writes. `Conflict`: retry
    /// the transaction. `Full`, `Closed`.
    pub fn commit(self, durability: Durability) -> Result<()> {
        let core = Arc::clone(&self.reader.core);
        core.check_durability(durability)?;
        if self.lost {
            core.counters.conflicts.add(1);
            return Err(Error::new(
                ErrorKind::Conflict,
                "a write of this transaction met a conflict; retry the transaction",
            ));
        }
        if self.writes.is_empty() {
            self.reader.check()?;
            // It may contain deletes that found nothing.
            return core.make_past_durable(durability);
        }
        let Some(sets) = self.writes.small(core.tuning.bulk) else {
            let bytes = usize::try_from(self.bytes).unwrap_or(usize::MAX);
            core.wait_for_room(bytes, self.puts <= self.deletes)?;
            let ask = Ask::new(bytes, self.puts <= self.deletes);
            return core.with_room(&ask, || {
                let mut check = |last| self.check_all(last);
                core.commit_bulk(&self.writes, &ask, durability, &mut check)
            });
        };
        let mut batch = Batch::with_capacity(usize::try_from(self.bytes).unwrap_or(0));
        for (tree, set) in sets {
            for write in set.iter() {
                match write.op {
                    Op::Put => batch.put(tree, write.key, write.value),
                    Op::Delete => batch.delete(tree, write.key),
                }
            }
        }
        assert!(!batch.is_empty(), "something was written");
        core.commit(&batch, durability, &mut |committer| self.check(committer))?;
        Ok(())
    }

    /// Discard all changes; the same as dropping the transaction.
    pub fn rollback(self) {}

    /// I1, for all writes, under the commit lock; then they count as written by the next commit.
    fn check(&self, committer: &Committer) -> Result<()> {
        let core = &self.reader.core;
        let snapshot = self.seq();
        assert!(
            snapshot <= committer.last,
            "a snapshot is of commits that were made"
        );
        // The versions that the check below reads are not kept for an expired snapshot.
        self.reader.check()?;
        let sets = || self.writes.small(usize::MAX).into_iter().flatten();
        if snapshot < committer.last {
            for (tree, set) in sets() {
                for write in set.iter().filter(|write| write.checked) {
                    if self.is_newer(tree, write.key)? {
                        core.counters.conflicts.add(1);
                        return Err(conflict(write.key));
                    }
                }
            }
        }
        let next = Seq(committer.last.0 + 1);
        for (tree, set) in sets() {
            for write in set.iter().filter(|write| write.checked) {
                core.recent.note(tree, write.key, next);
            }
        }
        Ok(())
    }

    /// As [`Transaction::check`], for a bulk commit after commit `last`: no other commit gets
    /// in meanwhile.
    fn check_all(&self, last: Seq) -> Result<()> {
        let core = &self.reader.core;
        self.reader.check()?;
        let next = Seq(last.0 + 1);
        assert!(
            self.seq() <= last,
            "a snapshot is of commits that were made"
        );
        if self.seq() < last {
            self.each_checked(&mut |tree, key| {
                if self.is_newer(tree, key)? {
                    core.counters.conflicts.add(1);
                    return Err(conflict(key));
                }
                Ok(())
            })?;
        }
        // Not in one pass: what is noted and then not written would bring others to the exact read,
        // which cannot tell a blind write from a checked one.
        self.each_checked(&mut |tree, key| {
            core.recent.note(tree, key, next);
            Ok(())
        })?;
        // What was read above is complete if the snapshot was kept to here.
        self.reader.check()
    }

    /// Visit every key that takes part in conflict detection.
    fn each_checked(&self, visit: &mut dyn FnMut(TreeId, &[u8]) -> Result<()>) -> Result<()> {
        for tree in self.writes.trees() {
            let mut merged = self.writes.merged(tree)?;
            while let Some(write) = merged.current() {
                if merged.checked() {
                    visit(tree, write.key)?;
                }
                merged.advance()?;
            }
        }
        Ok(())
    }

    /// Whether `key` was written by a commit after the snapshot.
    fn is_newer(&self, tree: TreeId, key: &[u8]) -> Result<bool> {
        let core = &self.reader.core;
        if planted(Plant::SkipConflictCheck) {
            return Ok(false);
        }
        if !core.recent.perhaps_newer(tree, key, self.seq()) {
            return Ok(false);
        }
        let tree = core.catalog.tree(tree)?;
        let view = tree.view(At::Key(key))?.expect("every key has a bucket");
        let newest = cursor::newest(&view, key)?;
        Ok(newest.is_some_and(|newest| self.seq() < newest))
    }

    /// Check a write before it is made.
    fn check_write(&mut self, tree: TreeId, key: &[u8], value: &[u8], checked: bool) -> Result<()> {
        let core = &self.reader.core;
        core.health.check_writable()?;
        core.catalog.tree(tree)?;
        if KEY_MAX < key.len() {
            let message = format!("a key has at most {KEY_MAX} bytes, this one {}", key.len());
            return Err(Error::invalid(message).with_key(key));
        }
        if VALUE_MAX < value.len() {
            let length = value.len();
            let message = format!("a value has at most {VALUE_MAX} bytes, this one {length}");
            return Err(Error::invalid(message).with_key(key));
        }
        if checked && self.is_newer(tree, key)? {
            self.lost = true;
            return Err(conflict(key));
        }
        Ok(())
    }

    fn push(
        &mut self,
        tree: TreeId,
        op: Op,
        key: &[u8],
        value: &[u8],
        checked: bool,
    ) -> Result<()> {
        let bytes = (key.len() + value.len()) as u64 + 8;
        let most = self.reader.core.options.transaction_max();
        if most < self.bytes + bytes {
            let message = format!(
                "the transaction would hold more than transaction_max = {most} bytes; commit \
                 what is written so far, or raise the limit"
            );
            return Err(Error::new(ErrorKind::Full, message));
        }
        self.writes.push(tree, op, key, value, checked)?;
        self.bytes += bytes;
        match op {
            Op::Put => self.puts += 1,
            Op::Delete => self.deletes += 1,
        }
        assert!(self.bytes <= most, "the limit was asked before");
        Ok(())
    }
}

fn conflict(key: &[u8]) -> Error {
    let message = "another transaction wrote the key and was first; retry the transaction";
    Error::new(ErrorKind::Conflict, message).with_key(key)
}

//! Snapshots and transactions of the rig.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use kv::{
    Batch, Cursor, Direction, Durability, Error, ErrorKind, KeyRange, Result, Snapshot,
    Transaction, TreeId,
};

use super::cursor::Copied;
use super::engine::{Rig, Turn};
use super::plant::Plant;

/// A snapshot.
pub(crate) struct View<'e> {
    pub(crate) rig: &'e Rig,
    pub(crate) inner: Box<dyn Snapshot + 'e>,
}

/// A transaction.
pub(crate) struct Txn<'e> {
    pub(crate) rig: &'e Rig,
    pub(crate) inner: Option<Box<dyn Transaction + 'e>>,
    /// The content when the transaction began.
    pub(crate) base: Box<dyn Snapshot + 'e>,
    /// The writes of the transaction, for bugs that repeat them.
    pub(crate) log: Batch,
    pub(crate) commits: u64,
    pub(crate) spoilt: bool,
    pub(crate) last: Option<Vec<u8>>,
    pub(crate) _turn: Option<Turn<'e>>,
}

/// `range`, changed by the planted bug if it is about bounds.
fn bounds<'a>(rig: &Rig, range: KeyRange<'a>) -> KeyRange<'a> {
    let mut seen = range;
    if let (true, Bound::Excluded(start)) = (rig.has(Plant::ExcludedStartIncluded), range.start) {
        seen.start = Bound::Included(start);
    }
    if let (true, Bound::Included(end)) = (rig.has(Plant::IncludedEndExcluded), range.end) {
        seen.end = Bound::Excluded(end);
    }
    seen
}

fn read(
    rig: &Rig,
    view: &dyn Snapshot,
    tree: TreeId,
    key: &[u8],
    value: &mut Vec<u8>,
) -> Result<bool> {
    let before = std::mem::take(value);
    let found = match view.get_into(tree, key, value) {
        Err(e) if rig.has(Plant::StaleHandleRead) && e.kind() == ErrorKind::Invalid => false,
        other => other?,
    };
    if !found && rig.has(Plant::BufferNotCleared) {
        *value = before;
    }
    if rig.has(Plant::LongValueCut) {
        value.truncate(60_000);
    }
    Ok(found && !(rig.has(Plant::EmptyValueAbsent) && value.is_empty()))
}

fn many<V: Snapshot + ?Sized>(
    view: &V,
    reversed: bool,
    tree: TreeId,
    keys: &[&[u8]],
    visit: &mut dyn FnMut(usize, Option<&[u8]>),
) -> Result<()> {
    // An invalid handle is an error even for an empty list of keys.
    view.get(tree, b"k")?;
    for (index, key) in keys.iter().enumerate() {
        let value = view.get(tree, key)?;
        let told = if reversed {
            keys.len() - 1 - index
        } else {
            index
        };
        visit(told, value.as_deref());
    }
    Ok(())
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        self.rig.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Snapshot for View<'_> {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        if self.rig.has(Plant::SnapshotSeesLater) {
            let now = self.rig.inner().begin_read()?;
            return read(self.rig, &*now, tree, key, value);
        }
        read(self.rig, &*self.inner, tree, key, value)
    }

    fn get_many(
        &self,
        tree: TreeId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        many(self, self.rig.has(Plant::ManyReversed), tree, keys, visit)
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let range = bounds(self.rig, range);
        let copied = if self.rig.has(Plant::CursorSeesLater) {
            let now = self.rig.inner().begin_read()?;
            Copied::of(&*now, tree, range, direction, self.rig.plant)?
        } else {
            Copied::of(&*self.inner, tree, range, direction, self.rig.plant)?
        };
        Ok(Box::new(copied))
    }
}

impl Txn<'_> {
    fn inner(&self) -> &dyn Transaction {
        self.inner.as_deref().expect("open until it is committed")
    }

    fn write(
        &mut self,
        key: &[u8],
        value: &[u8],
        write: impl FnOnce(&mut dyn Transaction) -> Result<()>,
    ) -> Result<()> {
        self.rig.check(key, value)?;
        self.last = Some(key.to_vec());
        let inner = self
            .inner
            .as_deref_mut()
            .expect("open until it is committed");
        match write(inner) {
            Err(e) if e.kind() == ErrorKind::Conflict && self.rig.has(Plant::ConflictMissed) => {
                Ok(())
            }
            other => other,
        }
    }
}

impl Snapshot for Txn<'_> {
    fn get_into(&self, tree: TreeId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = read(self.rig, self.inner(), tree, key, value)?;
        if !found && self.rig.has(Plant::OwnDeletesHidden) {
            return read(self.rig, &*self.base, tree, key, value);
        }
        Ok(found)
    }

    fn get_many(
        &self,
        tree: TreeId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        many(self, self.rig.has(Plant::ManyReversed), tree, keys, visit)
    }

    fn cursor(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let view: &dyn Snapshot = match self.rig.has(Plant::OwnWritesHidden) {
            true => &*self.base,
            false => self.inner(),
        };
        let range = bounds(self.rig, range);
        Ok(Box::new(Copied::of(
            view,
            tree,
            range,
            direction,
            self.rig.plant,
        )?))
    }
}

impl Transaction for Txn<'_> {
    fn insert(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        if self.rig.has(Plant::InsertOverwrites) {
            return self.put(tree, key, value);
        }
        let done = self.write(key, value, |txn| txn.insert(tree, key, value));
        match &done {
            Ok(()) => self.log.put(tree, key, value),
            Err(_) => self.spoilt = self.rig.has(Plant::ExistsSpoilsTransaction),
        }
        done
    }

    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.log.put(tree, key, value);
        self.write(key, value, |txn| txn.put(tree, key, value))
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        if self.rig.has(Plant::DeleteLost) {
            return Ok(self.get(tree, key)?.is_some());
        }
        self.log.delete(tree, key);
        let mut was_there = false;
        self.write(b"k", b"", |txn| {
            was_there = txn.delete(tree, key)?;
            Ok(())
        })?;
        Ok(was_there || self.rig.has(Plant::DeleteAlwaysTrue))
    }

    fn put_blind(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        if self.rig.has(Plant::BlindConflicts) {
            return self.put(tree, key, value);
        }
        self.log.put(tree, key, value);
        self.write(key, value, |txn| txn.put_blind(tree, key, value))
    }

    fn delete_blind(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.log.delete(tree, key);
        self.write(b"k", b"", |txn| txn.delete_blind(tree, key))
    }

    fn delete_range(&mut self, tree: TreeId, range: KeyRange<'_>) -> Result<()> {
        let mut range = range;
        if let (true, Bound::Excluded(end)) = (self.rig.has(Plant::RangeDeleteTakesEnd), range.end)
        {
            range.end = Bound::Included(end);
        }
        self.log.delete_range(tree, range);
        self.write(b"k", b"", |txn| txn.delete_range(tree, range))
    }

    fn commit(mut self: Box<Self>, durability: Durability) -> Result<()> {
        if self.rig.has(Plant::SyncRefused) && durability == Durability::Sync {
            return Err(Error::unsupported("memory", "commit at sync"));
        }
        let meanwhile = self.rig.commits.load(Ordering::Relaxed) != self.commits;
        if self.spoilt || (self.rig.has(Plant::ConflictInvented) && meanwhile) {
            return Err(Error::new(ErrorKind::Conflict, "spoilt").with_engine("memory"));
        }
        let inner = self.inner.take().expect("open until it is committed");
        match inner.commit(durability) {
            Err(e) if e.kind() == ErrorKind::Conflict && self.rig.has(Plant::ConflictMissed) => {
                self.rig.inner().write(&self.log, durability)?;
            }
            other => other?,
        }
        self.rig.wrote(self.last.take());
        Ok(())
    }

    fn rollback(self: Box<Self>) {}
}

impl Drop for Txn<'_> {
    fn drop(&mut self) {
        if let (Some(inner), true) = (self.inner.take(), self.rig.has(Plant::RollbackLeaks)) {
            // If the leak has a conflict, it commits nothing.
            let _ = inner.commit(Durability::None);
        }
    }
}

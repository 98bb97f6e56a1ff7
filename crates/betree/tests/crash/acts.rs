//! Operations on a store that write: each is recorded in the history, checked, and applied to the
//! model.

use std::ops::Bound;
use std::time::Duration;

use betree::{Batch, Db, Durability, Error, KeyRange, TreeOptions};
use sim::checker::Change;

use crate::rig::{Step, World, say};

impl World {
    /// Write a batch.
    pub(crate) fn write(&mut self, changes: Vec<Change>, durability: Durability) -> Step<bool> {
        let there = |change: &Change| match change {
            Change::Put(tree, ..) | Change::Delete(tree, _) | Change::DeleteRange(tree, ..) => {
                self.ids.contains_key(tree)
            }
            Change::CreateTree(_) | Change::DropTree(_) => false,
        };
        if changes.is_empty() || self.is_down() || (self.faulty && !changes.iter().all(there)) {
            return Ok(false);
        }
        let mut batch = Batch::new();
        for change in &changes {
            match change {
                Change::Put(tree, key, value) => batch.put(self.id(tree), key, value),
                Change::Delete(tree, key) => batch.delete(self.id(tree), key),
                Change::DeleteRange(tree, start, end) => {
                    let (start, end) = (bound(start), bound(end));
                    batch.delete_range(self.id(tree), KeyRange { start, end });
                }
                Change::CreateTree(_) | Change::DropTree(_) => unreachable!("not of a batch"),
            }
        }
        let durability = if self.logged() {
            durability
        } else {
            Durability::None
        };
        let written = changes.clone();
        let done = self.commit(changes, durability.is_synced(), |db| {
            db.write(&batch, durability)
        })?;
        if done {
            self.check_bounds(&written);
        }
        Ok(done)
    }

    /// Create a tree.
    pub(crate) fn create(&mut self, name: &str) -> Step<bool> {
        let mut made = None;
        let change = vec![Change::CreateTree(name.to_owned())];
        let done = self.commit(change, true, |db| {
            made = Some(db.create_tree(name, TreeOptions::default())?);
            Ok(())
        })?;
        if self.is_down() {
            return Ok(false);
        }
        if let Ok(id) = self.db().open_tree(name) {
            assert!(
                made.is_none_or(|made| made == id),
                "the tree is the one just made"
            );
            self.ids.insert(name.to_owned(), id);
        }
        Ok(done)
    }

    /// Drop a tree.
    pub(crate) fn drop_tree(&mut self, name: &str) -> Step<bool> {
        if self.faulty && !self.ids.contains_key(name) {
            return Ok(false);
        }
        let change = vec![Change::DropTree(name.to_owned())];
        let done = self.commit(change, true, |db| db.drop_tree(name))?;
        if !self.model.contains_key(name) {
            self.ids.remove(name);
            self.written.retain(|(tree, _), _| tree != name);
        }
        Ok(done)
    }

    /// A call that makes everything before it durable, if it succeeds.
    pub(crate) fn barrier(&mut self, act: impl FnOnce(&Db) -> Result<bool, Error>) -> Step<bool> {
        if self.is_down() {
            return Ok(false);
        }
        let mut all = false;
        let result = act(self.db()).map(|done| all = done);
        say(|| format!("barrier: {result:?} {all}, call {}", self.vfs.ios()));
        let done = self.judge(result)?;
        if done && all {
            self.history.synced();
        }
        Ok(done && all)
    }

    pub(crate) fn checkpoint(&mut self) -> Step<bool> {
        self.barrier(|db| db.checkpoint().map(|()| true))
    }

    pub(crate) fn sync_log(&mut self) -> Step<bool> {
        self.barrier(|db| db.sync_log().map(|()| true))
    }

    pub(crate) fn settle(&mut self) -> Step<bool> {
        self.barrier(|db| db.settle(Duration::from_secs(600)))
    }

    /// Do at most `n` units of background work.
    pub(crate) fn steps(&mut self, n: u64) -> Step {
        for _ in 0..n {
            if self.is_down() {
                return Ok(());
            }
            let mut more = false;
            let result = self.db().step().map(|any| more = any);
            if !self.judge(result)? || !more {
                break;
            }
        }
        Ok(())
    }

    /// Merge a tree.
    pub(crate) fn compact(&mut self, tree: &str) -> Step<bool> {
        if self.is_down() || (self.faulty && !self.ids.contains_key(tree)) {
            return Ok(false);
        }
        let id = self.id(tree);
        self.barrier(|db| db.compact(id, Bound::Unbounded, Bound::Unbounded, &mut |_, _| true))
    }

    /// Write `n` keys from `from` on, with values of about `length` bytes.
    pub(crate) fn fill(
        &mut self,
        tree: &str,
        (from, n, step): (u32, u32, u32),
        length: usize,
        durability: Durability,
    ) -> Step<bool> {
        let put = |i: u32| {
            let key = format!("{:06}", from + i * step).into_bytes();
            Change::Put(tree.to_owned(), key, self.value(length))
        };
        let changes = (0..n).map(put).collect();
        self.write(changes, durability)
    }

    /// Delete `n` keys that [`World::fill`] has written.
    pub(crate) fn clear(&mut self, tree: &str, (from, n, step): (u32, u32, u32)) -> Step<bool> {
        let key = |i: u32| format!("{:06}", from + i * step).into_bytes();
        let changes = (0..n)
            .map(|i| Change::Delete(tree.to_owned(), key(i)))
            .collect();
        self.write(changes, Durability::Interval)
    }
}

/// A bound in the form of the library.
pub(crate) fn bound(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
    }
}

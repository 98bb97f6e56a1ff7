//! betree: the defaults, with all the memory. Commits of `Synced::No` are handed to the operating
//! system (`Durability::Interval`), those of `Synced::Yes` synced (`Durability::Sync`).

use std::ops::Bound;
use std::path::Path;

use ::betree::{Batch, Db, Direction, Durability, Options, Tree};

use crate::Outcome;
use crate::peer::{Change, Peer, Setup, Synced, look};

struct Store {
    db: Db,
    tree: Tree,
    batch: Batch,
}

/// Make a store.
pub(super) fn open(directory: &Path, setup: Setup) -> Outcome<Box<dyn Peer>> {
    let options = Options::default().with_memory(setup.cache as u64);
    let db = Db::open(directory, options)?;
    let tree = db.tree("t")?;
    let batch = Batch::new();
    Ok(Box::new(Store { db, tree, batch }))
}

impl Peer for Store {
    fn write(&mut self, changes: &[Change], synced: Synced) -> Outcome<()> {
        self.batch.clear();
        let id = self.tree.id();
        for change in changes {
            match change {
                Change::Put(key, value) => self.batch.put(id, key, value),
                Change::Delete(key) => self.batch.delete(id, key),
            }
        }
        let durability = match synced {
            Synced::No => Durability::Interval,
            Synced::Yes => Durability::Sync,
        };
        Ok(self.db.write(&self.batch, durability)?)
    }

    fn read(&self, keys: &[Vec<u8>]) -> Outcome<usize> {
        let snapshot = self.db.begin_read()?;
        let (mut found, mut value) = (0, Vec::new());
        for key in keys {
            if snapshot.get_into(self.tree.id(), key, &mut value)? {
                found += look(&value);
            }
        }
        Ok(found)
    }

    fn scan(&self, from: &[u8], most: usize) -> Outcome<usize> {
        let snapshot = self.db.begin_read()?;
        let from = Bound::Included(from);
        let (id, end) = (self.tree.id(), Bound::Unbounded);
        let mut cursor = snapshot.cursor(id, from, end, Direction::Forward)?;
        let mut found = 0;
        while found < most && cursor.advance()? {
            found += look(cursor.value());
        }
        Ok(found)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(self.db.close()?)
    }
}

//! fjall: the defaults, but half of the memory as cache and memtables of an eighth. Commits of
//! `Synced::No` are `PersistMode::Buffer`, those of `Synced::Yes` `PersistMode::SyncData`.

use std::path::Path;

use ::fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};

use crate::Outcome;
use crate::peer::{Change, Peer, Setup, Synced, look};

struct Store {
    db: Database,
    tree: Keyspace,
}

/// Make a store.
pub(super) fn open(directory: &Path, setup: Setup) -> Outcome<Box<dyn Peer>> {
    let cache = setup.cache as u64;
    let db = Database::builder(directory).cache_size(cache / 2).open()?;
    let options = || KeyspaceCreateOptions::default().max_memtable_size(cache / 8);
    let tree = db.keyspace("t", options)?;
    Ok(Box::new(Store { db, tree }))
}

impl Peer for Store {
    fn write(&mut self, changes: &[Change], synced: Synced) -> Outcome<()> {
        let mut batch = self.db.batch().durability(Some(match synced {
            Synced::No => PersistMode::Buffer,
            Synced::Yes => PersistMode::SyncData,
        }));
        for change in changes {
            match change {
                Change::Put(key, value) => {
                    batch.insert(&self.tree, key.as_slice(), value.as_slice());
                }
                Change::Delete(key) => batch.remove(&self.tree, key.as_slice()),
            }
        }
        Ok(batch.commit()?)
    }

    fn read(&self, keys: &[Vec<u8>]) -> Outcome<usize> {
        let snapshot = self.db.snapshot();
        let mut found = 0;
        for key in keys {
            if let Some(value) = snapshot.get(&self.tree, key)? {
                found += look(&value);
            }
        }
        Ok(found)
    }

    fn scan(&self, from: &[u8], most: usize) -> Outcome<usize> {
        let mut found = 0;
        for entry in self.tree.range(from..).take(most) {
            found += look(&entry.value()?);
        }
        Ok(found)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }
}

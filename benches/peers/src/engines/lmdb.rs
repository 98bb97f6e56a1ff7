//! LMDB through heed: a map of 16 GiB. It has no cache of its own: the page cache of the operating
//! system serves it, up to the limit of the process. Commits of `Synced::No` are made under
//! `MDB_NOSYNC`, which writes the pages to the operating system.

use std::ops::Bound;
use std::path::Path;

use ::heed::types::Bytes;
use ::heed::{Database, Env, EnvFlags, EnvOpenOptions, FlagSetMode};

use crate::Outcome;
use crate::peer::{Change, Peer, Setup, Synced, look};

const MAP: usize = 16 << 30;

struct Store {
    env: Env,
    table: Database<Bytes, Bytes>,
    synced: Synced,
}

/// Make a store.
pub(super) fn open(directory: &Path, _setup: Setup) -> Outcome<Box<dyn Peer>> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP);
    // SAFETY: the directory is new and of this process alone, so nothing else changes the map.
    let env = unsafe { options.open(directory)? };
    let mut transaction = env.write_txn()?;
    let table = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Box::new(Store {
        env,
        table,
        synced: Synced::Yes,
    }))
}

impl Peer for Store {
    fn write(&mut self, changes: &[Change], synced: Synced) -> Outcome<()> {
        if self.synced != synced {
            let mode = match synced {
                Synced::No => FlagSetMode::Enable,
                Synced::Yes => FlagSetMode::Disable,
            };
            // SAFETY: one thread uses the environment, and no transaction is open.
            unsafe { self.env.set_flags(EnvFlags::NO_SYNC, mode)? };
            self.synced = synced;
        }
        let mut transaction = self.env.write_txn()?;
        for change in changes {
            match change {
                Change::Put(key, value) => self.table.put(&mut transaction, key, value)?,
                Change::Delete(key) => {
                    self.table.delete(&mut transaction, key)?;
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&self, keys: &[Vec<u8>]) -> Outcome<usize> {
        let transaction = self.env.read_txn()?;
        let mut found = 0;
        for key in keys {
            if let Some(value) = self.table.get(&transaction, key)? {
                found += look(value);
            }
        }
        Ok(found)
    }

    fn scan(&self, from: &[u8], most: usize) -> Outcome<usize> {
        let transaction = self.env.read_txn()?;
        let range: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(from), Bound::Unbounded);
        let mut found = 0;
        for entry in self.table.range(&transaction, &range)?.take(most) {
            found += look(entry?.1);
        }
        Ok(found)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(self.env.force_sync()?)
    }
}

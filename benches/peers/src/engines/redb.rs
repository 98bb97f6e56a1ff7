//! redb: the defaults, with all the memory as cache. Commits of `Synced::Yes` are
//! `Durability::Immediate`. It has no level between that and `Durability::None`, under which a
//! commit stays in the memory of the process: `Synced::No` promises less here than elsewhere.

use std::path::Path;

use ::redb::{Builder, Database, Durability, ReadableDatabase, TableDefinition};

use crate::Outcome;
use crate::peer::{Change, Peer, Setup, Synced, look};

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("t");

struct Store {
    db: Database,
}

/// Make a store.
pub(super) fn open(directory: &Path, setup: Setup) -> Outcome<Box<dyn Peer>> {
    let db = Builder::new()
        .set_cache_size(setup.cache)
        .create(directory.join("t.redb"))?;
    let transaction = db.begin_write()?;
    drop(transaction.open_table(TABLE)?);
    transaction.commit()?;
    Ok(Box::new(Store { db }))
}

impl Peer for Store {
    fn write(&mut self, changes: &[Change], synced: Synced) -> Outcome<()> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(match synced {
            Synced::No => Durability::None,
            Synced::Yes => Durability::Immediate,
        })?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for change in changes {
                match change {
                    Change::Put(key, value) => {
                        table.insert(key.as_slice(), value.as_slice())?;
                    }
                    Change::Delete(key) => {
                        table.remove(key.as_slice())?;
                    }
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&self, keys: &[Vec<u8>]) -> Outcome<usize> {
        let transaction = self.db.begin_read()?;
        let table = transaction.open_table(TABLE)?;
        let mut found = 0;
        for key in keys {
            if let Some(value) = table.get(key.as_slice())? {
                found += look(value.value());
            }
        }
        Ok(found)
    }

    fn scan(&self, from: &[u8], most: usize) -> Outcome<usize> {
        let transaction = self.db.begin_read()?;
        let table = transaction.open_table(TABLE)?;
        let mut found = 0;
        for entry in table.range(from..)?.take(most) {
            let (_, value) = entry?;
            found += look(value.value());
        }
        Ok(found)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(self.db.close()?)
    }
}

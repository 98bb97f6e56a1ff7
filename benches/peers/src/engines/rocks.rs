//! RocksDB: the defaults with LZ4, half of the memory as block cache, and two write buffers of an
//! eighth. Commits of `Synced::Yes` sync the log, those of `Synced::No` write it.

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Direction, IteratorMode, Options, WriteBatch,
    WriteOptions,
};

use crate::Outcome;
use crate::peer::{Change, Peer, Setup, Synced, look};

struct Store {
    db: DB,
}

/// Make a store.
pub(super) fn open(directory: &Path, setup: Setup) -> Outcome<Box<dyn Peer>> {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(setup.cache / 2));
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(setup.cache / 8);
    options.set_max_background_jobs(2);
    let db = DB::open(&options, directory)?;
    Ok(Box::new(Store { db }))
}

impl Peer for Store {
    fn write(&mut self, changes: &[Change], synced: Synced) -> Outcome<()> {
        let mut batch = WriteBatch::default();
        for change in changes {
            match change {
                Change::Put(key, value) => batch.put(key, value),
                Change::Delete(key) => batch.delete(key),
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(synced == Synced::Yes);
        Ok(self.db.write_opt(batch, &options)?)
    }

    fn read(&self, keys: &[Vec<u8>]) -> Outcome<usize> {
        let snapshot = self.db.snapshot();
        let mut found = 0;
        for key in keys {
            if let Some(value) = snapshot.get_pinned(key)? {
                found += look(&value);
            }
        }
        Ok(found)
    }

    fn scan(&self, from: &[u8], most: usize) -> Outcome<usize> {
        let mode = IteratorMode::From(from, Direction::Forward);
        let mut found = 0;
        for entry in self.db.iterator(mode).take(most) {
            found += look(&entry?.1);
        }
        Ok(found)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(self.db.flush_wal(true)?)
    }
}

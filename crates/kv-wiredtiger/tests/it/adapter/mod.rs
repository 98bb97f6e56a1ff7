//! Behaviour of WiredTiger or of this adapter that the laws do not cover.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod codecs;
mod durability;
mod transactions;
mod trees;
mod upkeep;

use std::path::Path;

use kv::{Batch, Durability, Engine, EngineOptions, KeyRange, TreeId, TreeOptions};

/// Default options with some engine-specific options.
fn own(pairs: &[(&str, &str)]) -> EngineOptions {
    let pairs = pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    EngineOptions {
        own: pairs.collect(),
        ..EngineOptions::default()
    }
}

fn open_with(directory: &Path, options: &EngineOptions) -> Box<dyn Engine> {
    kv_wiredtiger::factory().open(directory, options).unwrap()
}

fn open(directory: &Path) -> Box<dyn Engine> {
    open_with(directory, &EngineOptions::default())
}

fn create(db: &dyn Engine, name: &str) -> TreeId {
    db.create_tree(name, &TreeOptions::default()).unwrap()
}

/// Write `count` entries with keys of 8 bytes and values of `length` bytes.
fn fill(db: &dyn Engine, tree: TreeId, count: u64, length: usize) {
    let mut batch = Batch::new();
    for n in 0..count {
        let byte = u8::try_from(n % 251).unwrap();
        batch.put(tree, &n.to_be_bytes(), &vec![byte; length]);
        if batch.byte_len() > 1 << 20 {
            db.write(&batch, Durability::None).unwrap();
            batch.clear();
        }
    }
    db.write(&batch, Durability::None).unwrap();
}

fn put(db: &dyn Engine, tree: TreeId, key: &[u8], value: &[u8], durability: Durability) {
    let mut txn = db.begin_write().unwrap();
    txn.put(tree, key, value).unwrap();
    txn.commit(durability).unwrap();
}

fn get(db: &dyn Engine, tree: TreeId, key: &[u8]) -> Option<Vec<u8>> {
    db.begin_read().unwrap().get(tree, key).unwrap()
}

fn count(db: &dyn Engine, tree: TreeId) -> u64 {
    let now = db.begin_read().unwrap();
    let mut cursor = now
        .cursor(tree, KeyRange::ALL, kv::Direction::Forward)
        .unwrap();
    let mut entries = 0;
    while cursor.advance().unwrap() {
        entries += 1;
    }
    entries
}

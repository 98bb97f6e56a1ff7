//! Shared code of the tests: options, opening a store, filling a tree and reading it whole.

use std::path::Path;

use kv::{
    Batch, Direction, Durability, Engine, EngineOptions, Error, KeyRange, Result, Snapshot, TreeId,
    TreeOptions,
};
use stdx::Rng;

pub(crate) fn with(own: &[(&str, &str)]) -> EngineOptions {
    let own = own.iter().map(|&(n, v)| (n.to_owned(), v.to_owned()));
    EngineOptions {
        own: own.collect(),
        ..EngineOptions::default()
    }
}

pub(crate) fn open(directory: &Path) -> Box<dyn Engine> {
    open_with(directory, &[])
}

pub(crate) fn open_with(directory: &Path, own: &[(&str, &str)]) -> Box<dyn Engine> {
    kv_betree::factory().open(directory, &with(own)).unwrap()
}

pub(crate) fn create(engine: &dyn Engine, name: &str) -> TreeId {
    engine.create_tree(name, &TreeOptions::default()).unwrap()
}

pub(crate) fn refused<T>(result: Result<T>) -> Error {
    result.err().expect("this must be refused")
}

/// Keys 0 to `count`, as big-endian numbers, with values of 100 random bytes, in batches of 100.
pub(crate) fn fill(engine: &dyn Engine, tree: TreeId, count: u32) {
    let mut rng = Rng::new(u64::from(count));
    let mut value = [0; 100];
    let mut batch = Batch::new();
    for n in 0..count {
        rng.fill(&mut value);
        batch.put(tree, &n.to_be_bytes(), &value);
        if n % 100 == 99 || n + 1 == count {
            engine.write(&batch, Durability::None).unwrap();
            batch.clear();
        }
    }
}

pub(crate) fn keys(snapshot: &dyn Snapshot, tree: TreeId) -> Vec<Vec<u8>> {
    let cursor = snapshot.cursor(tree, KeyRange::ALL, Direction::Forward);
    let mut cursor = cursor.unwrap();
    let mut found = Vec::new();
    while cursor.advance().unwrap() {
        found.push(cursor.key().to_vec());
    }
    found
}

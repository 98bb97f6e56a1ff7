//! Shared code of the tests: opening a store, and reading a tree whole.

use std::path::Path;

use kv::{Direction, Engine, EngineOptions, Error, KeyRange, Result, Snapshot, TreeId};

pub(crate) fn open(directory: &Path) -> Box<dyn Engine> {
    open_with(directory, &[]).unwrap()
}

pub(crate) fn open_with(directory: &Path, own: &[(&str, &str)]) -> Result<Box<dyn Engine>> {
    let mut options = EngineOptions::default();
    let own = own.iter().map(|&(n, v)| (n.to_owned(), v.to_owned()));
    options.own.extend(own);
    kv_lmdb::factory().open(directory, &options)
}

pub(crate) fn refused<T>(result: Result<T>) -> Error {
    result.err().expect("this must be refused")
}

pub(crate) fn entries(
    snapshot: &dyn Snapshot,
    tree: TreeId,
    range: KeyRange<'_>,
    direction: Direction,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = snapshot.cursor(tree, range, direction).unwrap();
    let mut found = Vec::new();
    while cursor.advance().unwrap() {
        found.push((cursor.key().to_vec(), cursor.value().to_vec()));
    }
    assert!(!cursor.advance().unwrap());
    assert!(cursor.key().is_empty() && cursor.value().is_empty());
    found
}

pub(crate) fn keys(snapshot: &dyn Snapshot, tree: TreeId) -> Vec<Vec<u8>> {
    let all = entries(snapshot, tree, KeyRange::ALL, Direction::Forward);
    all.into_iter().map(|(key, _)| key).collect()
}

//! Functions for the laws. Each does one thing that must succeed, and panics otherwise.

use std::ops::Bound;

use kv::{
    Batch, Cursor, Direction, Durability, Engine, ErrorKind, KeyRange, Result, Snapshot,
    Transaction, TreeId, TreeOptions,
};

pub(crate) use kv::Direction::{Backward, Forward};

/// The durability of most commits: few laws are about durability.
pub(crate) const QUICK: Durability = Durability::None;

/// More entries than any law stores: a scan that returns more has a broken cursor and fails.
const SCAN_MAX: usize = 100_000;

pub(crate) type Entry = (Vec<u8>, Vec<u8>);

pub(crate) fn create(db: &dyn Engine, name: &str) -> TreeId {
    match db.create_tree(name, &TreeOptions::default()) {
        Ok(tree) => tree,
        Err(e) => panic!("create_tree({name}): {e}"),
    }
}

/// Set `key` in a transaction of its own.
pub(crate) fn put(db: &dyn Engine, tree: TreeId, key: &[u8], value: &[u8]) {
    change(db, |t| t.put(tree, key, value)).unwrap();
}

/// Delete `key` in a transaction of its own; returns whether it existed.
pub(crate) fn delete(db: &dyn Engine, tree: TreeId, key: &[u8]) -> bool {
    let mut was_there = false;
    change(db, |t| {
        was_there = t.delete(tree, key)?;
        Ok(())
    })
    .unwrap();
    was_there
}

/// Run `body` in a transaction and commit it.
pub(crate) fn change(
    db: &dyn Engine,
    body: impl FnOnce(&mut dyn Transaction) -> Result<()>,
) -> Result<()> {
    finish(db.begin_write()?, body)
}

/// Run `body` in `txn` and commit it; after an error the transaction is dropped.
pub(crate) fn finish(
    mut txn: Box<dyn Transaction + '_>,
    body: impl FnOnce(&mut dyn Transaction) -> Result<()>,
) -> Result<()> {
    body(&mut *txn)?;
    txn.commit(QUICK)
}

/// Set all `entries` by one batch.
pub(crate) fn fill(db: &dyn Engine, tree: TreeId, entries: &[(&[u8], &[u8])]) {
    let mut batch = Batch::new();
    for (key, value) in entries {
        batch.put(tree, key, value);
    }
    db.write(&batch, QUICK).unwrap();
}

/// Set each of `keys` to a value equal to the key, by one batch.
pub(crate) fn fill_keys(db: &dyn Engine, tree: TreeId, keys: &[&str]) {
    let entries: Vec<(&[u8], &[u8])> = keys.iter().map(|k| (k.as_bytes(), k.as_bytes())).collect();
    fill(db, tree, &entries);
}

/// Set `count` numbered keys (see [`numbered`]) by batches of 500 keys.
pub(crate) fn fill_numbered(db: &dyn Engine, tree: TreeId, count: u32, value: &[u8]) {
    for chunk in (0..count).collect::<Vec<u32>>().chunks(500) {
        let mut batch = Batch::new();
        for &n in chunk {
            batch.put(tree, &numbered(n), value);
        }
        db.write(&batch, QUICK).unwrap();
    }
}

/// The key of number `n`: eight digits, so that keys sort as numbers.
pub(crate) fn numbered(n: u32) -> Vec<u8> {
    format!("{n:08}").into_bytes()
}

/// The current value of `key`, read outside of transactions.
pub(crate) fn get(db: &dyn Engine, tree: TreeId, key: &[u8]) -> Option<Vec<u8>> {
    db.begin_read().unwrap().get(tree, key).unwrap()
}

/// All current entries of a tree.
pub(crate) fn all(db: &dyn Engine, tree: TreeId) -> Vec<Entry> {
    scan(
        &*db.begin_read().unwrap(),
        tree,
        KeyRange::ALL,
        Direction::Forward,
    )
}

/// All current keys of a tree, as text.
pub(crate) fn all_keys(db: &dyn Engine, tree: TreeId) -> Vec<String> {
    keys(
        &*db.begin_read().unwrap(),
        tree,
        KeyRange::ALL,
        Direction::Forward,
    )
}

/// The entries of `range`.
pub(crate) fn scan<V: Snapshot + ?Sized>(
    view: &V,
    tree: TreeId,
    range: KeyRange<'_>,
    direction: Direction,
) -> Vec<Entry> {
    rest(&mut *view.cursor(tree, range, direction).unwrap())
}

/// The keys of `range`, as text.
pub(crate) fn keys<V: Snapshot + ?Sized>(
    view: &V,
    tree: TreeId,
    range: KeyRange<'_>,
    direction: Direction,
) -> Vec<String> {
    texts(&scan(view, tree, range, direction))
}

/// The keys of `entries`, as text.
pub(crate) fn texts(entries: &[Entry]) -> Vec<String> {
    entries
        .iter()
        .map(|(key, _)| key.escape_ascii().to_string())
        .collect()
}

/// The remaining entries of the cursor's scan.
pub(crate) fn rest<C: Cursor + ?Sized>(cursor: &mut C) -> Vec<Entry> {
    let mut found = Vec::new();
    while cursor.advance().unwrap() {
        assert!(found.len() < SCAN_MAX, "a scan that does not end");
        found.push((cursor.key().to_vec(), cursor.value().to_vec()));
    }
    found
}

/// The kind of the error in `result`; panics if it is not an error.
#[track_caller]
pub(crate) fn refused<T>(result: Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("the call succeeded; it had to be refused"),
        Err(e) => e.kind(),
    }
}

/// An included bound.
pub(crate) fn at(key: &str) -> Bound<&[u8]> {
    Bound::Included(key.as_bytes())
}

/// An excluded bound.
pub(crate) fn past(key: &str) -> Bound<&[u8]> {
    Bound::Excluded(key.as_bytes())
}

/// No bound.
pub(crate) fn open() -> Bound<&'static [u8]> {
    Bound::Unbounded
}

/// The range between two bounds.
pub(crate) fn range<'a>(start: Bound<&'a [u8]>, end: Bound<&'a [u8]>) -> KeyRange<'a> {
    KeyRange { start, end }
}

//! Batches: one atomic write without a transaction.
//!
//! A range delete becomes one of RocksDB's range tombstones, whose end is exclusive and must be a
//! key. For a range without an end, the adapter uses the key right after the last existing key;
//! this requires that the batch is the only writer ([`Kind::Exclusive`]).

use std::ops::Bound;

use kv::{Batch, Change, Durability, Result, TreeId};

use super::bounds::{Bounds, after};
use super::catalog::Catalog;
use super::engine::{Store, check_key, check_value};
use super::error::error;
use super::gate::Kind;
use super::range_deletes::Note;
use super::raw::{ReadOptions, WriteBatch};

/// Apply `batch`.
pub(super) fn write(store: &Store, batch: &Batch, durability: Durability) -> Result<()> {
    let options = store.write_options(durability)?;
    if batch.is_empty() {
        return Ok(());
    }
    store.prepare_write("write")?;
    let catalog = store.catalog();
    let (raw, deleted, pass) = if batch.ops().any(|change| is_open_ended(&change)) {
        let pass = store.gate().enter(Kind::Exclusive);
        let (raw, deleted) = translate(store, &catalog, batch)?;
        (raw, deleted, pass)
    } else {
        let (raw, deleted) = translate(store, &catalog, batch)?;
        (raw, deleted, store.gate().enter(Kind::Batch))
    };
    store.check_trees(&catalog, trees(batch))?;
    let result = store.db().write(options, &raw);
    result.map_err(|status| store.write_error(status, "write"))?;
    if !deleted.is_empty() {
        note(store, deleted);
    }
    drop(pass);
    store.wrote(durability);
    Ok(())
}

fn trees(batch: &Batch) -> impl Iterator<Item = TreeId> {
    batch.ops().map(|change| match change {
        Change::Put { tree, .. }
        | Change::Delete { tree, .. }
        | Change::DeleteRange { tree, .. } => tree,
    })
}

fn is_open_ended(change: &Change<'_>) -> bool {
    matches!(change, Change::DeleteRange { range, .. } if range.end == Bound::Unbounded)
}

/// The batch in RocksDB's form, and the ranges it deletes.
fn translate(store: &Store, catalog: &Catalog, batch: &Batch) -> Result<(WriteBatch, Vec<Note>)> {
    // RocksDB's record of a change has a tag, a tree number and two lengths: at most 16 bytes.
    let mut raw = WriteBatch::with_capacity(batch.byte_len() + 16 * batch.len() + 16);
    let mut deleted = Vec::new();
    for (index, change) in batch.ops().enumerate() {
        match change {
            Change::Put { tree, key, value } => {
                check_key(key)?;
                check_value(value)?;
                raw.put(&catalog.need(tree)?.family, key, value);
            }
            Change::Delete { tree, key } => {
                check_key(key)?;
                raw.delete(&catalog.need(tree)?.family, key);
            }
            Change::DeleteRange { tree, range } => {
                let family = &catalog.need(tree)?.family;
                let Some(bounds) = Bounds::of(range) else {
                    continue;
                };
                let from = bounds.lower.unwrap_or_default();
                let to = match bounds.upper {
                    Some(to) => to,
                    None => end_of_tree(store, catalog, batch, index, tree)?,
                };
                if from < to {
                    raw.delete_range(family, &from, &to);
                    deleted.push(Note { tree, from, to });
                }
            }
        }
    }
    Ok((raw, deleted))
}

/// The next key after all keys of `tree`, as they are after the first `count` changes of `batch`.
fn end_of_tree(
    store: &Store,
    catalog: &Catalog,
    batch: &Batch,
    count: usize,
    tree: TreeId,
) -> Result<Box<[u8]>> {
    let mut iter = store
        .db()
        .iter(ReadOptions::newest(), &catalog.need(tree)?.family);
    iter.seek_to_last();
    iter.status().map_err(|status| error(status, "write"))?;
    let stored = iter.valid().then(|| after(iter.key()));
    let written = batch.ops().take(count).filter_map(|change| match change {
        Change::Put { tree: at, key, .. } if at == tree => Some(key),
        _ => None,
    });
    Ok(written.max().map(after).max(stored).unwrap_or_default())
}

fn note(store: &Store, deleted: Vec<Note>) {
    let db = store.db();
    let oldest = match db.number(c"rocksdb.num-snapshots") {
        Some(0) => u64::MAX,
        _ => db.number(c"rocksdb.oldest-snapshot-sequence").unwrap_or(0),
    };
    store.range_deletes().add(db.sequence(), oldest, deleted);
}

//! Building the index trees from the rows, as `CREATE INDEX` does.
//!
//! One index after the other: scan the rows by primary key, gather entries until the sort buffer is
//! full, sort them, insert them in order. Engines get sorted stretches, not the whole index in one
//! piece, because a real build with little memory sorts in pieces too.

use std::sync::atomic::Ordering;

use kv::{Batch, Direction, KeyRange, TreeId};
use stdx::time;

use super::session::text;
use super::step::Shared;
use crate::workload::iibench::Row;

/// Memory of the sort buffer, in bytes: a small share of the smallest envelope.
const SORT_BYTES: usize = 8 << 20;

/// Entries in one transaction.
const BATCH: usize = 1000;

/// Build all three indexes.
pub(super) fn indexes(shared: &Shared<'_>) {
    let Some(trees) = shared.session.indexes else {
        return;
    };
    for (index, tree) in trees.into_iter().enumerate() {
        if let Err(message) = build(shared, index, tree) {
            return shared.fail(message);
        }
        if shared.stopped() {
            return shared.fail("building the indexes took longer than the step may".to_owned());
        }
    }
}

fn build(shared: &Shared<'_>, index: usize, tree: TreeId) -> Result<(), String> {
    let session = shared.session;
    let key_bytes = session.generator.params().shape.key_bytes();
    let entry_bytes = key_bytes.get(index).copied().unwrap_or(28) + size_of::<Vec<u8>>();
    let capacity = SORT_BYTES / entry_bytes;
    let mut keys: Vec<Vec<u8>> = Vec::with_capacity(capacity);
    let mut row = Row::default();
    let mut next = session.live.low;
    while next < session.live.high && !shared.stopped() {
        keys.clear();
        next = gather(shared, index, next, capacity, &mut keys, &mut row)?;
        shared.generate(|| keys.sort_unstable());
        insert(shared, index, tree, &keys)?;
    }
    Ok(())
}

/// Read up to `capacity` rows from row `next` on and gather their keys; returns the row after them.
fn gather(
    shared: &Shared<'_>,
    index: usize,
    next: u64,
    capacity: usize,
    keys: &mut Vec<Vec<u8>>,
    row: &mut Row,
) -> Result<u64, String> {
    let session = shared.session;
    let end = session.live.high.min(next + capacity as u64);
    let mut expected = next;
    if session.keeps {
        let snapshot = session.engine.begin_read().map_err(text)?;
        let (from, to) = (next.to_be_bytes(), end.to_be_bytes());
        let range = KeyRange::half_open(&from, &to);
        let mut cursor = snapshot
            .cursor(session.rows, range, Direction::Forward)
            .map_err(text)?;
        while cursor.advance().map_err(text)? {
            if cursor.key() != expected.to_be_bytes() {
                return Err(format!("row {expected} is missing while an index is built"));
            }
            expected += 1;
        }
        if expected != end {
            return Err(format!("row {expected} is missing while an index is built"));
        }
    }
    shared.generate(|| {
        for id in next..end {
            session.generator.row(id, row);
            keys.extend(row.index_keys().nth(index).map(<[u8]>::to_vec));
        }
    });
    Ok(end)
}

fn insert(shared: &Shared<'_>, index: usize, tree: TreeId, keys: &[Vec<u8>]) -> Result<(), String> {
    let session = shared.session;
    let mut batch = Batch::new();
    for part in keys.chunks(BATCH) {
        batch.clear();
        for key in part {
            batch.put(tree, key, b"");
        }
        let due = time::now();
        shared.main.begin(0, due);
        session
            .engine
            .write(&batch, session.durability)
            .map_err(text)?;
        shared.main.end(0, due, time::now());
        shared
            .logical_bytes
            .fetch_add(batch.byte_len() as u64, Ordering::Relaxed);
        // A row counts when its entry is in the last index; before, its share does not show.
        if index == 2 {
            shared.rows.fetch_add(part.len() as u64, Ordering::Relaxed);
        }
    }
    Ok(())
}

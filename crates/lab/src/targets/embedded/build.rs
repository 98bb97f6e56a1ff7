//! Builds an index tree from the rows, as `CREATE INDEX` does.
//!
//! The build scans the rows by primary key, gathers entries until the sort buffer is full, sorts
//! them, and inserts them in order. So engines receive sorted runs, not the whole index in one
//! piece, because a real build with little memory also sorts in pieces.

use std::ops::Range;

use kv::{Batch, Direction, KeyRange, TreeId};
use lab_report::error::{Error, Result};

use super::{Embedded, text};
use crate::targets::database::{Meter, indexed_rows};
use crate::workload::iibench::Row;

/// Size of the sort buffer, in bytes: a small share of the smallest envelope's memory.
const SORT_BYTES: usize = 8 << 20;

/// Entries in one transaction.
const BATCH: usize = 1000;

/// Build index `index`, from 0.
pub(super) fn index(
    database: &Embedded,
    index: usize,
    rows: Range<u64>,
    meter: &dyn Meter,
) -> Result<()> {
    let tree = database.index(index)?;
    let indexes = database.generator.params().indexes;
    let key_bytes = database.generator.params().shape.key_bytes();
    let entry_bytes = key_bytes.get(index).copied().unwrap_or(28) + size_of::<Vec<u8>>();
    let capacity = SORT_BYTES / entry_bytes;
    let mut keys: Vec<Vec<u8>> = Vec::with_capacity(capacity);
    let mut row = Row::default();
    let mut next = rows.start;
    while next < rows.end && !meter.stopped() {
        keys.clear();
        let part = next..rows.end.min(next + capacity as u64);
        next = part.end;
        if database.keeps && !database.generator.scattered() {
            all_there(database, &part)?;
        }
        meter.generate(&mut || {
            for id in part.clone() {
                database.generator.row(id, &mut row);
                keys.extend(row.index_keys().nth(index).map(<[u8]>::to_vec));
            }
            keys.sort_unstable();
        });
        let from = part.start - rows.start;
        let share = |done: Range<u64>| {
            let of = rows.end - rows.start;
            indexed_rows(index, indexes, of, from + done.start..from + done.end)
        };
        insert(database, tree, &keys, &share, meter)?;
    }
    Ok(())
}

/// Read the rows, and check that all of them exist.
fn all_there(database: &Embedded, rows: &Range<u64>) -> Result<()> {
    let snapshot = database.engine.begin_read().map_err(text)?;
    let (from, to) = (rows.start.to_be_bytes(), rows.end.to_be_bytes());
    let range = KeyRange::half_open(&from, &to);
    let mut cursor = snapshot
        .cursor(database.rows, range, Direction::Forward)
        .map_err(text)?;
    let mut expected = rows.start;
    while cursor.advance().map_err(text)? {
        if cursor.key() != expected.to_be_bytes() {
            break;
        }
        expected += 1;
    }
    if expected != rows.end {
        return Err(Error::target(format!(
            "row {expected} is missing while an index is built"
        )));
    }
    Ok(())
}

fn insert(
    database: &Embedded,
    tree: TreeId,
    keys: &[Vec<u8>],
    share: &dyn Fn(Range<u64>) -> u64,
    meter: &dyn Meter,
) -> Result<()> {
    let mut batch = Batch::new();
    let mut done = 0;
    for part in keys.chunks(BATCH) {
        batch.clear();
        for key in part {
            batch.put(tree, key, b"");
        }
        meter.begin();
        let written = database.engine.write(&batch, database.durability);
        written.map_err(text)?;
        meter.end();
        let before = done;
        done += part.len() as u64;
        meter.wrote(share(before..done), batch.byte_len() as u64);
    }
    Ok(())
}

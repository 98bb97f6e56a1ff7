//! Counts the writes of a client of tables, once they are committed.

use crate::workload::table::{Row, Table, Value, pick, row_bytes};
use crate::workload::tables::{Answer, Lock, Mode, Range, Refused, TableClient};

/// Totals of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// Rows inserted, changed or deleted.
    pub rows: u64,
    /// Rows deleted.
    pub deleted: u64,
    /// Bytes of values written to the target, index entries included.
    pub bytes: u64,
    /// Change in the number of rows.
    pub live_rows: i64,
    /// Change in the number of bytes.
    pub live_bytes: i64,
}

impl Written {
    fn add(&mut self, more: Written) {
        self.rows += more.rows;
        self.deleted += more.deleted;
        self.bytes += more.bytes;
        self.live_rows += more.live_rows;
        self.live_bytes += more.live_bytes;
    }
}

/// A client that counts its writes.
pub(super) struct Counting<'a> {
    client: Box<dyn TableClient + 'a>,
    tables: &'a [Table],
    open: bool,
    pending: Written,
    /// Committed writes since the totals were last taken.
    pub(super) written: Written,
}

/// Bytes of a row with its index entries.
fn bytes(table: &Table, row: &[Value]) -> u64 {
    let entries = table
        .indexes
        .iter()
        .map(|index| entry_bytes(table, index, row));
    row_bytes(row) + entries.sum::<u64>()
}

fn entry_bytes(table: &Table, index: &crate::workload::table::Index, row: &[Value]) -> u64 {
    let columns = [&index.columns, &table.key, &index.stored];
    let parts = columns.map(|c| {
        c.iter()
            .map(|&c| crate::workload::table::at(row, c).len() as u64)
    });
    parts.into_iter().flatten().sum()
}

impl<'a> Counting<'a> {
    pub(super) fn new(client: Box<dyn TableClient + 'a>, tables: &'a [Table]) -> Counting<'a> {
        Counting {
            client,
            tables,
            open: false,
            pending: Written::default(),
            written: Written::default(),
        }
    }

    /// Count a successful change when its transaction is committed; drop the counts of a
    /// transaction that ended with a conflict.
    fn note<T>(&mut self, answer: &Answer<T>, more: impl FnOnce(&[Table]) -> Written) {
        match answer {
            Ok(_) => {
                self.pending.add(more(self.tables));
                if !self.open {
                    self.written.add(std::mem::take(&mut self.pending));
                }
            }
            Err(Refused::Conflict) => self.over(),
            Err(Refused::Failed(_)) => {}
        }
    }

    fn over(&mut self) {
        self.open = false;
        self.pending = Written::default();
    }
}

#[expect(clippy::cast_possible_wrap, reason = "sizes of rows")]
fn signed(bytes: u64) -> i64 {
    bytes as i64
}

impl TableClient for Counting<'_> {
    fn begin(&mut self, mode: Mode) -> Answer<()> {
        self.over();
        self.client.begin(mode)?;
        self.open = true;
        Ok(())
    }

    fn commit(&mut self) -> Answer<()> {
        let done = self.client.commit();
        if done.is_ok() {
            self.written.add(self.pending);
        }
        self.over();
        done
    }

    fn abort(&mut self) {
        self.client.abort();
        self.over();
    }

    fn get(&mut self, table: usize, key: &[Value], lock: Lock, row: &mut Row) -> Answer<bool> {
        let answer = self.client.get(table, key, lock, row);
        if answer == Err(Refused::Conflict) {
            self.over();
        }
        answer
    }

    fn range(&mut self, range: &Range<'_>, visit: &mut dyn FnMut(&[Value]) -> bool) -> Answer<u64> {
        let answer = self.client.range(range, visit);
        if answer == Err(Refused::Conflict) {
            self.over();
        }
        answer
    }

    fn insert(&mut self, table: usize, rows: &[Row]) -> Answer<()> {
        let answer = self.client.insert(table, rows);
        self.note(&answer, |tables| {
            let of = |row: &Row| tables.get(table).map_or(0, |t| bytes(t, row));
            let bytes: u64 = rows.iter().map(of).sum();
            Written {
                rows: rows.len() as u64,
                deleted: 0,
                bytes,
                live_rows: signed(rows.len() as u64),
                live_bytes: signed(bytes),
            }
        });
        answer
    }

    fn update(&mut self, table: usize, old: &[Value], new: &[Value]) -> Answer<()> {
        let answer = self.client.update(table, old, new);
        self.note(&answer, |tables| {
            let Some(table) = tables.get(table) else {
                return Written::default();
            };
            let moved = table.indexes.iter().filter(|i| {
                pick(old, &i.columns) != pick(new, &i.columns)
                    || pick(old, &i.stored) != pick(new, &i.stored)
            });
            let entries: u64 = moved.map(|i| entry_bytes(table, i, new)).sum();
            Written {
                rows: 1,
                deleted: 0,
                bytes: row_bytes(new) + entries,
                live_rows: 0,
                live_bytes: signed(bytes(table, new)) - signed(bytes(table, old)),
            }
        });
        answer
    }

    fn set(&mut self, table: usize, key: &[Value], column: usize, value: &Value) -> Answer<()> {
        let answer = self.client.set(table, key, column, value);
        self.note(&answer, |_| Written {
            rows: 1,
            bytes: row_bytes(key) + value.len() as u64,
            ..Written::default()
        });
        answer
    }

    fn delete(&mut self, table: usize, old: &[Value]) -> Answer<()> {
        let answer = self.client.delete(table, old);
        self.note(&answer, |tables| {
            let Some(table) = tables.get(table) else {
                return Written::default();
            };
            Written {
                rows: 1,
                deleted: 1,
                bytes: row_bytes(&pick(old, &table.key)),
                live_rows: -1,
                live_bytes: -signed(bytes(table, old)),
            }
        });
        answer
    }
}

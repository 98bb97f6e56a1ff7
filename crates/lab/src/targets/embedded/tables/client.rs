//! One client of tables on an engine.

use std::sync::Arc;

use kv::{
    Batch, Direction, Durability, Engine, ErrorKind, KeyRange, Snapshot, Transaction, TreeId,
};
use lab_report::error::{Error, Result};

use super::super::{Embedded, text};
use super::codec::{DAMAGED, put_key, take_key, take_value};
use super::{Changes, Made, engine};
use crate::workload::table::{Row, Value, nth};
use crate::workload::tables::{Answer, By, Lock, Mode, Range, Refused, TableClient};

/// The open snapshot or transaction, if any.
enum Open<'a> {
    Nothing,
    Reading(Box<dyn Snapshot + 'a>),
    Writing(Box<dyn Transaction + 'a>),
}

/// A client, with its transaction and its buffers.
pub(super) struct Client<'a> {
    engine: &'a dyn Engine,
    durability: Durability,
    made: Arc<Vec<Made>>,
    open: Open<'a>,
    batch: Batch,
    key: Vec<u8>,
    value: Vec<u8>,
    row: Row,
}

impl<'a> Client<'a> {
    pub(super) fn new(database: &'a Embedded) -> Client<'a> {
        let (engine, durability) = engine(database);
        Client {
            engine,
            durability,
            made: database.catalog.all(),
            open: Open::Nothing,
            batch: Batch::new(),
            key: Vec::new(),
            value: Vec::new(),
            row: Row::new(),
        }
    }

    /// Convert an engine's error. After a conflict the transaction has ended.
    fn refuse(&mut self, error: kv::Error) -> Refused {
        let within = matches!(self.open, Open::Writing(_));
        match error.kind() {
            ErrorKind::Conflict => {}
            ErrorKind::Exists if within => {}
            _ => return Refused::Failed(text(error)),
        }
        self.open = Open::Nothing;
        Refused::Conflict
    }

    /// Run `change` in the open transaction, or in a batch of its own.
    fn change(
        &mut self,
        change: &mut dyn FnMut(&mut dyn Changes, Buffers<'_>) -> Result<(), Trouble>,
    ) -> Answer<()> {
        let buffers = (&mut self.key, &mut self.value);
        let done = match &mut self.open {
            Open::Writing(transaction) => change(transaction, buffers),
            Open::Reading(_) => {
                return Err(Refused::failed("a transaction that reads cannot write"));
            }
            Open::Nothing => {
                self.batch.clear();
                change(&mut self.batch, buffers).and_then(|()| {
                    let written = self.engine.write(&self.batch, self.durability);
                    written.map_err(Trouble::Engine)
                })
            }
        };
        done.map_err(|trouble| match trouble {
            Trouble::Engine(error) => self.refuse(error),
            Trouble::Row(error) => Refused::Failed(error),
        })
    }
}

type Buffers<'b> = (&'b mut Vec<u8>, &'b mut Vec<u8>);

/// The error of a change.
enum Trouble {
    Engine(kv::Error),
    Row(Error),
}

fn damaged(table: &str) -> Error {
    Error::target(format!("{DAMAGED} (table {table})"))
}

impl From<kv::Error> for Trouble {
    fn from(error: kv::Error) -> Trouble {
        Trouble::Engine(error)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Row(error)
    }
}

/// Write the index entries that only `new` has, and delete those that only `old` has.
fn entries(
    made: &Made,
    (old, new): (Option<&[Value]>, Option<&[Value]>),
    changes: &mut dyn Changes,
    (key, value): Buffers<'_>,
) -> Result<(), Trouble> {
    let (mut old_key, mut old_value) = (Vec::new(), Vec::new());
    for (index, tree) in made.indexes.iter().enumerate() {
        if let Some(old) = old {
            made.entry(index, old, (&mut old_key, &mut old_value))?;
        }
        let Some(new) = new else {
            changes.delete_entry(*tree, &old_key)?;
            continue;
        };
        made.entry(index, new, (&mut *key, &mut *value))?;
        if old.is_some() {
            if old_key == *key && old_value == *value {
                continue;
            }
            if old_key != *key {
                changes.delete_entry(*tree, &old_key)?;
            }
        }
        changes.put_entry(*tree, key, value)?;
    }
    Ok(())
}

/// The bounds of a range as encoded keys.
fn bounds(made: &Made, range: &Range<'_>) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
    let key = &made.table.key;
    let columns: Vec<usize> = match range.by {
        By::Key => key.clone(),
        By::Index(index) => {
            let index = nth(&made.table.indexes, index, "index")?;
            index.columns.iter().chain(key).copied().collect()
        }
    };
    let mut start = Vec::new();
    made.key_of(&columns, range.equal, &mut start)?;
    let mut end = start.clone();
    let next = columns.get(range.equal.len()).copied();
    for (bound, bytes) in [(range.from, &mut start), (range.to, &mut end)] {
        if let Some(value) = bound {
            let column = next.and_then(|c| made.table.columns.get(c));
            put_key(
                column.ok_or_else(|| Error::target("there is no column to bound"))?,
                value,
                bytes,
            )?;
        }
    }
    Ok((start, beyond(end)))
}

/// The first key that is after all keys with `prefix`; `None` if no key is.
fn beyond(mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = prefix.pop() {
        if let Some(next) = last.checked_add(1) {
            prefix.push(next);
            return Some(prefix);
        }
    }
    None
}

/// Decode the columns of a key into their positions in `row`.
fn take_columns(made: &Made, columns: &[usize], key: &mut &[u8], row: &mut [Value]) -> Option<()> {
    for &position in columns {
        let value = take_key(made.table.columns.get(position)?, key)?;
        *row.get_mut(position)? = value;
    }
    Some(())
}

/// Visit the entries of a range in a snapshot.
fn walk(
    snapshot: &dyn Snapshot,
    made: &Made,
    range: &Range<'_>,
    (row, value): (&mut Row, &mut Vec<u8>),
    visit: &mut dyn FnMut(&[Value]) -> bool,
) -> Result<u64, Trouble> {
    let (start, end) = bounds(made, range)?;
    let keys = match &end {
        Some(end) => KeyRange::half_open(&start, end),
        None => KeyRange::from(&start),
    };
    let direction = if range.backward {
        Direction::Backward
    } else {
        Direction::Forward
    };
    let index = match range.by {
        By::Key => None,
        By::Index(index) => made.table.indexes.get(index).zip(made.indexes.get(index)),
    };
    let tree: TreeId = index.map_or(made.rows, |(_, tree)| *tree);
    let damaged = || Trouble::Row(damaged(&made.table.name));
    row.resize(made.table.columns.len(), Value::Null);
    let mut cursor = snapshot.cursor(tree, keys, direction)?;
    let mut shown = 0;
    while (range.limit == 0 || shown < range.limit) && cursor.advance()? {
        let (mut key, stored) = (cursor.key(), cursor.value());
        match index {
            None => {
                take_columns(made, &made.table.key, &mut key, row)
                    .and_then(|()| take_value(&made.table.columns, &made.others, stored, row))
                    .ok_or_else(damaged)?;
            }
            Some((index, _)) => {
                take_columns(made, &index.columns, &mut key, row).ok_or_else(damaged)?;
                let primary = key;
                take_columns(made, &made.table.key, &mut key, row).ok_or_else(damaged)?;
                if range.covered {
                    take_value(&made.table.columns, &index.stored, stored, row)
                        .ok_or_else(damaged)?;
                } else {
                    behind(snapshot, made, (index.name, primary), (row, value))?;
                }
            }
        }
        shown += 1;
        if !visit(row) {
            break;
        }
    }
    Ok(shown)
}

/// Read the row that an index entry refers to.
fn behind(
    snapshot: &dyn Snapshot,
    made: &Made,
    (index, primary): (&str, &[u8]),
    (row, value): (&mut Row, &mut Vec<u8>),
) -> Result<(), Trouble> {
    let table = &made.table;
    if !snapshot.get_into(made.rows, primary, value)? {
        let name = &table.name;
        let message = format!("index {index} of {name} names a row that does not exist");
        return Err(Trouble::Row(Error::target(message)));
    }
    let taken = take_value(&table.columns, &made.others, value, row);
    taken.ok_or_else(|| Trouble::Row(damaged(&table.name)))
}

impl TableClient for Client<'_> {
    fn begin(&mut self, mode: Mode) -> Answer<()> {
        self.abort();
        let opened = match mode {
            Mode::Read => self.engine.begin_read().map(Open::Reading),
            Mode::Write => self.engine.begin_write().map(Open::Writing),
        };
        self.open = opened.map_err(|e| self.refuse(e))?;
        Ok(())
    }

    fn commit(&mut self) -> Answer<()> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing | Open::Reading(_) => Ok(()),
            Open::Writing(transaction) => {
                let done = transaction.commit(self.durability);
                done.map_err(|e| self.refuse(e))
            }
        }
    }

    fn abort(&mut self) {
        if let Open::Writing(transaction) = std::mem::replace(&mut self.open, Open::Nothing) {
            transaction.rollback();
        }
    }

    fn get(&mut self, which: usize, key: &[Value], _lock: Lock, row: &mut Row) -> Answer<bool> {
        let made = Arc::clone(&self.made);
        let made = nth(&made, which, "table")?;
        self.key.clear();
        made.key_of(&made.table.key, key, &mut self.key)?;
        let found = match &self.open {
            Open::Reading(snapshot) => snapshot.get_into(made.rows, &self.key, &mut self.value),
            Open::Writing(writing) => writing.get_into(made.rows, &self.key, &mut self.value),
            Open::Nothing => self
                .engine
                .begin_read()
                .and_then(|now| now.get_into(made.rows, &self.key, &mut self.value)),
        };
        if !found.map_err(|e| self.refuse(e))? {
            return Ok(false);
        }
        row.resize(made.table.columns.len(), Value::Null);
        for (position, value) in made.table.key.iter().zip(key) {
            if let Some(place) = row.get_mut(*position) {
                place.clone_from(value);
            }
        }
        take_value(&made.table.columns, &made.others, &self.value, row)
            .ok_or_else(|| damaged(&made.table.name))?;
        Ok(true)
    }

    fn range(&mut self, range: &Range<'_>, visit: &mut dyn FnMut(&[Value]) -> bool) -> Answer<u64> {
        let made = Arc::clone(&self.made);
        let made = nth(&made, range.table, "table")?;
        let mut row = std::mem::take(&mut self.row);
        let buffers = (&mut row, &mut self.value);
        let shown = match &self.open {
            Open::Reading(snapshot) => walk(snapshot.as_ref(), made, range, buffers, visit),
            Open::Writing(writing) => walk(writing.as_ref(), made, range, buffers, visit),
            Open::Nothing => match self.engine.begin_read() {
                Ok(now) => walk(now.as_ref(), made, range, buffers, visit),
                Err(e) => Err(Trouble::Engine(e)),
            },
        };
        self.row = row;
        shown.map_err(|trouble| match trouble {
            Trouble::Engine(error) => self.refuse(error),
            Trouble::Row(error) => Refused::Failed(error),
        })
    }

    fn insert(&mut self, which: usize, rows: &[Row]) -> Answer<()> {
        let made = Arc::clone(&self.made);
        let made = nth(&made, which, "table")?;
        self.change(&mut |changes, (key, value)| {
            for row in rows {
                made.row(row, (&mut *key, &mut *value))?;
                changes.insert(made.rows, key, value)?;
                entries(made, (None, Some(row)), changes, (&mut *key, &mut *value))?;
            }
            Ok(())
        })
    }

    fn update(&mut self, which: usize, old: &[Value], new: &[Value]) -> Answer<()> {
        let made = Arc::clone(&self.made);
        let made = nth(&made, which, "table")?;
        self.change(&mut |changes, (key, value)| {
            made.row(new, (&mut *key, &mut *value))?;
            changes.put(made.rows, key, value)?;
            entries(made, (Some(old), Some(new)), changes, (key, value))
        })
    }

    fn delete(&mut self, which: usize, old: &[Value]) -> Answer<()> {
        let made = Arc::clone(&self.made);
        let made = nth(&made, which, "table")?;
        self.change(&mut |changes, (key, value)| {
            made.row(old, (&mut *key, &mut *value))?;
            changes.delete(made.rows, key)?;
            entries(made, (Some(old), None), changes, (key, value))
        })
    }
}

//! One client's operations on an embedded engine.

use std::ops::Range;

use kv::{Batch, Direction, KeyRange, TreeId};

use super::{Embedded, build, text};
use crate::targets::database::{Connection, Meter};
use crate::workload::iibench::Row;

/// A client: its batch and its buffers.
pub(super) struct Client<'a> {
    pub(super) database: &'a Embedded,
    batch: Batch,
    row: Row,
    value: Vec<u8>,
}

impl<'a> Client<'a> {
    pub(super) fn new(database: &'a Embedded) -> Client<'a> {
        Client {
            database,
            batch: Batch::new(),
            row: Row::default(),
            value: Vec::new(),
        }
    }

    fn indexes(&self, indexed: bool) -> Option<[TreeId; 3]> {
        self.database.indexes().filter(|_| indexed)
    }

    fn write(&self) -> Result<u64, String> {
        let database = self.database;
        let bytes = self.batch.byte_len() as u64;
        let written = database.engine.write(&self.batch, database.durability);
        written.map(|()| bytes).map_err(text)
    }

    /// Read the rows to be deleted.
    fn find(&self, rows: &Range<u64>, meter: &dyn Meter) -> Result<(), String> {
        let database = self.database;
        let snapshot = database.engine.begin_read().map_err(text)?;
        if database.generator.scattered() {
            let mut value = Vec::new();
            for id in rows.clone() {
                let key = database.generator.key(id).to_be_bytes();
                if !snapshot
                    .get_into(database.rows, &key, &mut value)
                    .map_err(text)?
                {
                    meter.wrong(format!("row {id} was to be deleted and is not there"));
                }
            }
            return Ok(());
        }
        let (from, to) = (rows.start.to_be_bytes(), rows.end.to_be_bytes());
        let range = KeyRange::half_open(&from, &to);
        let mut cursor = snapshot
            .cursor(database.rows, range, Direction::Forward)
            .map_err(text)?;
        let mut expected = rows.start;
        while cursor.advance().map_err(text)? {
            if cursor.key() != expected.to_be_bytes() {
                meter.wrong(format!("row {expected} was to be deleted and is not there"));
            }
            expected += 1;
        }
        if expected != rows.end {
            let (found, of) = (expected - rows.start, rows.end - rows.start);
            meter.wrong(format!("{found} of {of} old rows found"));
        }
        Ok(())
    }
}

impl Connection for Client<'_> {
    fn fill(&mut self, rows: Range<u64>, indexed: bool) {
        self.batch.clear();
        let database = self.database;
        let indexes = self.indexes(indexed);
        for id in rows {
            database.generator.row(id, &mut self.row);
            self.batch
                .put(database.rows, &self.row.key, &self.row.value);
            for (tree, key) in indexes.into_iter().flatten().zip(self.row.index_keys()) {
                self.batch.put(tree, key, b"");
            }
        }
    }

    fn insert(&mut self) -> Result<u64, String> {
        self.write()
    }

    fn delete(
        &mut self,
        rows: Range<u64>,
        indexed: bool,
        meter: &dyn Meter,
    ) -> Result<u64, String> {
        let database = self.database;
        if database.keeps {
            self.find(&rows, meter)?;
        }
        self.batch.clear();
        let indexes = self.indexes(indexed);
        for id in rows {
            database.generator.row(id, &mut self.row);
            self.batch.delete(database.rows, &self.row.key);
            for (tree, key) in indexes.into_iter().flatten().zip(self.row.index_keys()) {
                self.batch.delete(tree, key);
            }
        }
        self.write()
    }

    fn range(
        &mut self,
        index: usize,
        random: u64,
        id: u64,
        limit: usize,
        meter: &dyn Meter,
    ) -> Result<u64, String> {
        let database = self.database;
        let trees = database.indexes().ok_or("there are no indexes")?;
        let start = database.generator.query_key(index, random, id);
        let Some(tree) = trees.get(index).copied().filter(|_| database.keeps) else {
            return Ok(0);
        };
        let snapshot = database.engine.begin_read().map_err(text)?;
        let range = KeyRange::from(&start);
        let mut cursor = snapshot
            .cursor(tree, range, Direction::Forward)
            .map_err(text)?;
        let mut found = 0;
        let mut last = std::mem::take(&mut self.value);
        last.clear();
        last.extend_from_slice(&start);
        while found < limit && cursor.advance().map_err(text)? {
            let in_order = if found == 0 {
                cursor.key() >= last.as_slice()
            } else {
                cursor.key() > last.as_slice()
            };
            if !in_order {
                meter.wrong(format!("a range query on index {index} was out of order"));
            }
            last.clear();
            last.extend_from_slice(cursor.key());
            found += 1;
        }
        self.value = last;
        Ok(found as u64)
    }

    fn point(&mut self, id: u64, meter: &dyn Meter) -> Result<bool, String> {
        let database = self.database;
        if !database.keeps {
            return Ok(true);
        }
        let snapshot = database.engine.begin_read().map_err(text)?;
        let key = database.generator.key(id).to_be_bytes();
        let found = snapshot.get_into(database.rows, &key, &mut self.value);
        if !found.map_err(text)? {
            return Ok(false);
        }
        let row = &mut self.row;
        meter.generate(&mut || database.generator.row(id, row));
        if self.row.value != self.value {
            meter.wrong(format!("row {id} has a wrong value"));
        }
        Ok(true)
    }

    fn scan(&mut self, part: usize, piece: u64, meter: &dyn Meter) -> Result<u64, String> {
        let database = self.database;
        if !database.keeps {
            return Ok(0);
        }
        let indexes = database.indexes().into_iter().flatten();
        let mut trees = [database.rows].into_iter().chain(indexes);
        let tree = trees.nth(part).ok_or("there are no indexes")?;
        let snapshot = database.engine.begin_read().map_err(text)?;
        let mut cursor = snapshot
            .cursor(tree, KeyRange::ALL, Direction::Forward)
            .map_err(text)?;
        let mut all = 0;
        while !meter.stopped() {
            meter.begin();
            let mut found = 0;
            // Read keys and values, as a program that sums them does.
            let mut bytes = 0u64;
            while found < piece && cursor.advance().map_err(text)? {
                found += 1;
                bytes += cursor.key().len() as u64 + cursor.value().len() as u64;
            }
            meter.end();
            std::hint::black_box(bytes);
            all += found;
            meter.met(found);
            if found < piece {
                break;
            }
        }
        Ok(all)
    }

    fn build(&mut self, index: usize, rows: Range<u64>, meter: &dyn Meter) -> Result<(), String> {
        build::index(self.database, index, rows, meter)
    }
}

//! One client's operations on an embedded engine.

use std::ops::Range;

use kv::{Batch, Direction, KeyRange, TreeId};
use lab_report::error::{Error, Result};
use stdx::hash;

use super::{Embedded, build, text};
use crate::targets::database::{Compared, Connection, Counted, Deleted, Meter, Part, Ranged};
use crate::workload::iibench::Row;

/// A client, with its batch and its buffers.
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

    fn write(&self) -> Result<u64> {
        let database = self.database;
        let bytes = self.batch.byte_len() as u64;
        let written = database.engine.write(&self.batch, database.durability);
        written.map(|()| bytes).map_err(text)
    }

    /// Read the rows to be deleted; returns the number of those that exist.
    fn find(&self, rows: &Range<u64>) -> Result<u64> {
        let database = self.database;
        let snapshot = database.engine.begin_read().map_err(text)?;
        let mut found = 0;
        if database.generator.scattered() {
            let mut value = Vec::new();
            for id in rows.clone() {
                let key = database.generator.key(id).to_be_bytes();
                let got = snapshot.get_into(database.rows, &key, &mut value);
                found += u64::from(got.map_err(text)?);
            }
            return Ok(found);
        }
        let (from, to) = (rows.start.to_be_bytes(), rows.end.to_be_bytes());
        let range = KeyRange::half_open(&from, &to);
        let mut cursor = snapshot
            .cursor(database.rows, range, Direction::Forward)
            .map_err(text)?;
        while cursor.advance().map_err(text)? {
            found += 1;
        }
        Ok(found)
    }

    /// The tree of a part.
    fn tree(&self, part: Part) -> Result<TreeId> {
        match part {
            Part::Index(index) => self.database.index(index),
            Part::Rows => Ok(self.database.rows),
        }
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

    fn insert(&mut self) -> Result<u64> {
        self.write()
    }

    fn delete(&mut self, rows: Range<u64>, indexed: bool) -> Result<Deleted> {
        let database = self.database;
        let found = match database.keeps {
            true => self.find(&rows)?,
            false => rows.end - rows.start,
        };
        self.batch.clear();
        let indexes = self.indexes(indexed);
        for id in rows {
            database.generator.row(id, &mut self.row);
            self.batch.delete(database.rows, &self.row.key);
            for (tree, key) in indexes.into_iter().flatten().zip(self.row.index_keys()) {
                self.batch.delete(tree, key);
            }
        }
        let bytes = self.write()?;
        Ok(Deleted { found, bytes })
    }

    fn range(&mut self, index: usize, random: u64, id: u64, limit: usize) -> Result<Ranged> {
        let database = self.database;
        let trees = database
            .indexes()
            .ok_or_else(|| Error::target("there are no indexes"))?;
        let start = database.generator.query_key(index, random, id);
        let mut ranged = Ranged {
            entries: 0,
            in_order: true,
        };
        let Some(tree) = trees.get(index).copied().filter(|_| database.keeps) else {
            return Ok(ranged);
        };
        let snapshot = database.engine.begin_read().map_err(text)?;
        let range = KeyRange::from(&start);
        let mut cursor = snapshot
            .cursor(tree, range, Direction::Forward)
            .map_err(text)?;
        let last = &mut self.value;
        last.clear();
        last.extend_from_slice(&start);
        while ranged.entries < limit as u64 && cursor.advance().map_err(text)? {
            ranged.in_order &= if ranged.entries == 0 {
                last.as_slice() <= cursor.key()
            } else {
                last.as_slice() < cursor.key()
            };
            last.clear();
            last.extend_from_slice(cursor.key());
            ranged.entries += 1;
        }
        Ok(ranged)
    }

    fn get(&mut self, id: u64) -> Result<bool> {
        let database = self.database;
        if !database.keeps {
            return Ok(true);
        }
        let snapshot = database.engine.begin_read().map_err(text)?;
        let key = database.generator.key(id).to_be_bytes();
        let found = snapshot.get_into(database.rows, &key, &mut self.value);
        found.map_err(text)
    }

    fn matches(&mut self, id: u64) -> bool {
        let database = self.database;
        if !database.keeps {
            return true;
        }
        database.generator.row(id, &mut self.row);
        self.row.value == self.value
    }

    fn scan(&mut self, part: Part, piece: u64, meter: &dyn Meter) -> Result<u64> {
        let database = self.database;
        if !database.keeps {
            return Ok(0);
        }
        let tree = self.tree(part)?;
        let snapshot = database.engine.begin_read().map_err(text)?;
        let mut cursor = snapshot
            .cursor(tree, KeyRange::ALL, Direction::Forward)
            .map_err(text)?;
        let mut all = 0;
        while !meter.stopped() {
            meter.begin();
            let mut found = 0;
            // Read every key and value, as a program that sums them does.
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

    fn rows(&mut self, visit: &mut dyn FnMut(Compared) -> bool) -> Result<()> {
        let database = self.database;
        let snapshot = database.engine.begin_read().map_err(text)?;
        let mut cursor = snapshot
            .cursor(database.rows, KeyRange::ALL, Direction::Forward)
            .map_err(text)?;
        let row = &mut self.row;
        while cursor.advance().map_err(text)? {
            let key = <[u8; 8]>::try_from(cursor.key()).ok();
            let id = key.map(|key| database.generator.id(u64::from_be_bytes(key)));
            let (mut right, mut digests) = (false, [0; 3]);
            if let Some(id) = id {
                database.generator.row(id, row);
                right = row.value == cursor.value();
                for (digest, key) in digests.iter_mut().zip(row.index_keys()) {
                    *digest = hash::hash64(key);
                }
            }
            if !visit(Compared { id, right, digests }) {
                break;
            }
        }
        Ok(())
    }

    fn count(&mut self, part: Part) -> Result<Counted> {
        let tree = self.tree(part)?;
        let snapshot = self.database.engine.begin_read().map_err(text)?;
        let mut cursor = snapshot
            .cursor(tree, KeyRange::ALL, Direction::Forward)
            .map_err(text)?;
        let mut counted = Counted {
            entries: 0,
            digest: 0,
        };
        while cursor.advance().map_err(text)? {
            counted.entries += 1;
            counted.digest = counted.digest.wrapping_add(hash::hash64(cursor.key()));
        }
        Ok(counted)
    }

    fn build(&mut self, index: usize, rows: Range<u64>, meter: &dyn Meter) -> Result<()> {
        build::index(self.database, index, rows, meter)
    }
}

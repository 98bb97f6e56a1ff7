//! Tables on an embedded engine. Each table has one tree for its rows, by primary key, and one tree
//! per index. The key of an index entry is the index columns and the primary key; its value is the
//! stored columns.

mod client;
mod codec;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kv::{Batch, Durability, Engine, ErrorKind, TreeId, TreeOptions};
use lab_report::error::{Error, Result};
use stdx::sync::Mutex;

use super::{Embedded, text, tree};
use crate::workload::table::{Table, Value, at, nth};
use crate::workload::tables::{TableClient, Tables};

/// Maximum number of indexes of a table.
const INDEXES_MAX: usize = 16;

/// A table with its trees.
#[derive(Clone, Debug)]
struct Made {
    table: Table,
    rows: TreeId,
    indexes: Vec<TreeId>,
    /// The positions of the columns that are not in the primary key.
    others: Vec<usize>,
}

impl Made {
    fn of(table: &Table, tree: &dyn Fn(&str, bool) -> Result<TreeId>) -> Result<Made> {
        if INDEXES_MAX < table.indexes.len() || table.key.is_empty() {
            return Err(Error::target(format!(
                "table {} is not made as tables are",
                table.name
            )));
        }
        let rows = tree(&table.name, true)?;
        let name = |index: &str| format!("{}.{index}", table.name);
        let indexes = table.indexes.iter().map(|i| tree(&name(i.name), false));
        let others = (0..table.columns.len()).filter(|c| !table.key.contains(c));
        Ok(Made {
            rows,
            indexes: indexes.collect::<Result<_, _>>()?,
            others: others.collect(),
            table: table.clone(),
        })
    }

    /// Append to `key` the encoded `values` of the columns at `positions`.
    fn key_of(&self, positions: &[usize], values: &[Value], key: &mut Vec<u8>) -> Result<()> {
        for (position, value) in positions.iter().zip(values) {
            codec::put_key(nth(&self.table.columns, *position, "column")?, value, key)?;
        }
        Ok(())
    }

    /// Append to `key` the encoded columns at `positions` of a row.
    fn key_from(&self, positions: &[usize], row: &[Value], key: &mut Vec<u8>) -> Result<()> {
        for &position in positions {
            let column = nth(&self.table.columns, position, "column")?;
            codec::put_key(column, at(row, position), key)?;
        }
        Ok(())
    }

    /// The entry of a row in its primary tree.
    fn row(&self, row: &[Value], (key, value): (&mut Vec<u8>, &mut Vec<u8>)) -> Result<()> {
        key.clear();
        value.clear();
        if row.len() != self.table.columns.len() {
            return Err(Error::target(format!(
                "a row of {} has not a value a column",
                self.table.name
            )));
        }
        self.key_from(&self.table.key, row, key)?;
        codec::put_value(&self.table.columns, &self.others, row, value)
    }

    /// The entry of a row in an index.
    fn entry(
        &self,
        index: usize,
        row: &[Value],
        (key, value): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Result<()> {
        key.clear();
        value.clear();
        let index = nth(&self.table.indexes, index, "index")?;
        self.key_from(&index.columns, row, key)?;
        self.key_from(&self.table.key, row, key)?;
        codec::put_value(&self.table.columns, &index.stored, row, value)
    }
}

/// The tables of an engine.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    made: Mutex<Arc<Vec<Made>>>,
}

impl Catalog {
    fn all(&self) -> Arc<Vec<Made>> {
        Arc::clone(&self.made.lock())
    }
}

/// The options of a table's tree.
fn options(primary: bool) -> TreeOptions {
    TreeOptions {
        point_lookups: primary,
        ..TreeOptions::default()
    }
}

impl Tables for Embedded {
    fn create(&self, tables: &[Table]) -> Result<()> {
        self.drop_all()?;
        let engine = self.engine.as_ref();
        let fresh = |name: &str, primary: bool| {
            match engine.drop_tree(name) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(text(e)),
                _ => {}
            }
            tree(engine, name, &options(primary))
        };
        let made: Result<Vec<Made>> = tables.iter().map(|table| Made::of(table, &fresh)).collect();
        *self.catalog.made.lock() = Arc::new(made?);
        Ok(())
    }

    fn attach(&self, tables: &[Table]) -> Result<()> {
        let engine = self.engine.as_ref();
        let there = |name: &str, _primary: bool| engine.open_tree(name).map_err(text);
        let made: Result<Vec<Made>> = tables.iter().map(|table| Made::of(table, &there)).collect();
        *self.catalog.made.lock() = Arc::new(made?);
        Ok(())
    }

    fn drop_all(&self) -> Result<()> {
        let made = std::mem::take(&mut *self.catalog.made.lock());
        for made in made.iter() {
            let indexes = made.table.indexes.iter();
            let names = indexes.map(|i| format!("{}.{}", made.table.name, i.name));
            for name in names.chain([made.table.name.clone()]) {
                self.engine.drop_tree(&name).map_err(text)?;
            }
        }
        Ok(())
    }

    fn client(&self) -> Result<Box<dyn TableClient + '_>> {
        Ok(Box::new(client::Client::new(self)))
    }
}

/// Receives changes of rows: a transaction, or a batch.
trait Changes {
    fn insert(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> kv::Result<()>;
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> kv::Result<()>;
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> kv::Result<()>;
    /// Write an index entry, for a row in the same set of changes.
    fn put_entry(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> kv::Result<()>;
    /// Delete an index entry, for a row in the same set of changes.
    fn delete_entry(&mut self, tree: TreeId, key: &[u8]) -> kv::Result<()>;
}

impl Changes for Box<dyn kv::Transaction + '_> {
    fn insert(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> kv::Result<()> {
        self.as_mut().insert(tree, key, value)
    }
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> kv::Result<()> {
        self.as_mut().put(tree, key, value)
    }
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> kv::Result<()> {
        self.as_mut().delete(tree, key).map(|_| ())
    }
    fn put_entry(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> kv::Result<()> {
        self.as_mut().put_blind(tree, key, value)
    }
    fn delete_entry(&mut self, tree: TreeId, key: &[u8]) -> kv::Result<()> {
        self.as_mut().delete_blind(tree, key)
    }
}

impl Changes for Batch {
    fn insert(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> kv::Result<()> {
        Batch::put(self, tree, key, value);
        Ok(())
    }
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> kv::Result<()> {
        Batch::put(self, tree, key, value);
        Ok(())
    }
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> kv::Result<()> {
        Batch::delete(self, tree, key);
        Ok(())
    }
    fn put_entry(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> kv::Result<()> {
        Batch::put(self, tree, key, value);
        Ok(())
    }
    fn delete_entry(&mut self, tree: TreeId, key: &[u8]) -> kv::Result<()> {
        Batch::delete(self, tree, key);
        Ok(())
    }
}

/// The engine, and the durability of its commits.
fn engine(database: &Embedded) -> (&dyn Engine, Durability) {
    (database.engine.as_ref(), database.durability)
}

//! Tables as collections. A row is a document whose `_id` is the primary key; a primary key of
//! several columns is an embedded document.
//!
//! Columns of the key that a secondary index contains are also stored at the top level, since an
//! index on fields within `_id` cannot be covering. An index ends with `_id`, so that entries with
//! equal values are in the order of the primary key, followed by the stored columns. The
//! collections have a prefix that is reserved for the laboratory.

mod client;
mod document;

use std::sync::Arc;

use bson::{Document, RawDocumentBuf};
use lab_report::error::{Error, Result};
use mongodb::IndexModel;
use mongodb::sync::Collection;
use stdx::sync::Mutex;

use super::database::{PREFIX, Server, collection};
use crate::workload::table::Table;
use crate::workload::tables::{TableClient, Tables};

/// A table and its collection.
pub(super) struct Made {
    table: Table,
    rows: Collection<RawDocumentBuf>,
    /// Columns of the key that are also stored at the top level.
    twice: Vec<usize>,
}

impl Made {
    fn new(server: &Server, table: &Table) -> Made {
        let name = format!("{PREFIX}{}", table.name);
        let place = (&server.client, server.database.as_str());
        let named = |c: &&usize| {
            let mut indexes = table.indexes.iter();
            indexes.any(|i| i.columns.contains(c) || i.stored.contains(c))
        };
        Made {
            rows: collection(place, &name, &server.concern),
            // If the key is a single column, it is `_id` itself, with which every index ends.
            twice: table.key.iter().filter(named).copied().collect(),
            table: table.clone(),
        }
    }
}

/// The tables that a workload declares, on one server.
#[derive(Default)]
pub(super) struct Catalog {
    made: Mutex<Arc<Vec<Made>>>,
}

impl Catalog {
    fn all(&self) -> Arc<Vec<Made>> {
        Arc::clone(&self.made.lock())
    }

    fn set(&self, made: Vec<Made>) -> Arc<Vec<Made>> {
        std::mem::replace(&mut *self.made.lock(), Arc::new(made))
    }
}

impl Server {
    fn create_one(&self, made: &Made) -> Result<()> {
        let database = self.client.database(&self.database);
        made.rows.drop().run().map_err(|e| self.text(&e))?;
        let created = database.create_collection(made.rows.name()).run();
        created.map_err(|e| self.text(&e))?;
        let models: Vec<IndexModel> = (0..made.table.indexes.len())
            .map(|index| {
                let keys: Document = document::keys(&made.table, index, false);
                IndexModel::builder().keys(keys).build()
            })
            .collect();
        if !models.is_empty() {
            let indexed = made.rows.create_indexes(models).run();
            indexed.map_err(|e| self.text(&e))?;
        }
        Ok(())
    }
}

impl Tables for Server {
    fn create(&self, tables: &[Table]) -> Result<()> {
        self.drop_all()?;
        let made: Vec<Made> = tables.iter().map(|t| Made::new(self, t)).collect();
        for one in &made {
            self.create_one(one)?;
        }
        self.catalog.set(made);
        Ok(())
    }

    fn attach(&self, tables: &[Table]) -> Result<()> {
        let database = self.client.database(&self.database);
        let there = database.list_collection_names().run();
        let there = there.map_err(|e| self.text(&e))?;
        let made: Vec<Made> = tables.iter().map(|t| Made::new(self, t)).collect();
        let missing = made
            .iter()
            .find(|m| !there.iter().any(|n| n == m.rows.name()));
        if let Some(made) = missing {
            return Err(Error::target(format!(
                "{}: there is no {}",
                self.place,
                made.rows.name()
            )));
        }
        self.catalog.set(made);
        Ok(())
    }

    fn drop_all(&self) -> Result<()> {
        let made = self.catalog.set(Vec::new());
        for one in made.iter() {
            one.rows.drop().run().map_err(|e| self.text(&e))?;
        }
        Ok(())
    }

    fn client(&self) -> Result<Box<dyn TableClient + '_>> {
        let made = self.catalog.all();
        client::Client::new(self, made).map(|c| Box::new(c) as Box<dyn TableClient>)
    }
}

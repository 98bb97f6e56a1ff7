//! The tables a workload declares, on an SQL server. Each becomes one SQL table; each index ends
//! with the columns of the primary key, so that one index provides every order a range can request.
//!
//! Transactions are at snapshot isolation everywhere: `REPEATABLE READ` with
//! `innodb_snapshot_isolation` where MariaDB has it, MyRocks' and PostgreSQL's `REPEATABLE READ`.

mod client;
mod statements;

use std::sync::Arc;

use lab_report::error::Result;
use stdx::sync::RwLock;

use self::client::Client;
use self::statements::Known;
use super::address::{Address, Protocol};
use super::dialect::Dialect;
use super::wire;
use crate::workload::table::Table;
use crate::workload::tables::{TableClient, Tables};

/// The tables that a workload declares, on one server.
pub(super) struct SqlTables {
    address: Address,
    dialect: Dialect,
    /// Whether a commit waits for the disk.
    waits: bool,
    /// Whether commits are logged.
    logged: bool,
    known: RwLock<Arc<Vec<Known>>>,
}

impl SqlTables {
    pub(super) fn new(address: Address, waits: bool, logged: bool) -> SqlTables {
        let dialect = address.dialect();
        SqlTables {
            address,
            dialect,
            waits,
            logged,
            known: RwLock::new(Arc::default()),
        }
    }

    /// The table names on the server.
    pub(super) fn names(&self) -> Vec<String> {
        self.known
            .read()
            .iter()
            .map(|known| known.name.clone())
            .collect()
    }

    fn known(&self, tables: &[Table]) -> Vec<Known> {
        let each = tables.iter().map(|table| Known::new(self.dialect, table));
        each.collect()
    }
}

impl Tables for SqlTables {
    fn create(&self, tables: &[Table]) -> Result<()> {
        self.drop_all()?;
        let known = self.known(tables);
        let mut wire = wire::connect(&self.address)?;
        for table in &known {
            for statement in table.create(self.logged) {
                wire.run(&statement)?;
            }
        }
        *self.known.write() = Arc::new(known);
        Ok(())
    }

    fn attach(&self, tables: &[Table]) -> Result<()> {
        let known = self.known(tables);
        let mut wire = wire::connect(&self.address)?;
        for table in &known {
            wire.all(&format!("SELECT 1 FROM {} LIMIT 1", table.name), Vec::new())?;
        }
        *self.known.write() = Arc::new(known);
        Ok(())
    }

    fn drop_all(&self) -> Result<()> {
        let known = std::mem::take(&mut *self.known.write());
        if known.is_empty() {
            return Ok(());
        }
        let mut wire = wire::connect(&self.address)?;
        for table in known.iter() {
            wire.run(&format!("DROP TABLE IF EXISTS {}", table.name))?;
        }
        Ok(())
    }

    fn client(&self) -> Result<Box<dyn TableClient + '_>> {
        let mut wire = wire::connect(&self.address)?;
        for statement in self.dialect.greeting(self.waits) {
            wire.run(&statement)?;
        }
        match self.address.protocol {
            Protocol::MySql => {
                wire.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
                // Older releases do not support it, and MySQL never did.
                let _ = wire.run("SET SESSION innodb_snapshot_isolation = ON");
            }
            Protocol::Postgres => {
                // Scans in key order must use the index of that key.
                wire.run("SET enable_seqscan = off")?;
            }
        }
        let transactions = self.address.engine.transactions();
        let known = self.known.read().clone();
        Ok(Box::new(Client::new(
            wire,
            known,
            self.dialect,
            transactions,
        )))
    }
}

//! The server, the table with the rows, and the operations on them as a whole.

use std::path::PathBuf;
use std::time::Duration;

use kv::{Durability, EngineStats};
use lab_report::error::{Error, Result};
use stdx::sync::Mutex;

use super::address::{Address, Protocol};
use super::connection::Link;
use super::engine::Engine;
use super::private::FILL;
use super::sales::{Sales, TABLE};
use super::tables::SqlTables;
use super::wire::{self, Wire};
use super::{facts, settle, stats};
use crate::protocol::{Open, ServerFacts};
use crate::targets::database::{Connection, Database, Meter, Settled, State};
use crate::targets::poll::Polled;
use crate::workload::iibench::Generator;
use crate::workload::table::Value;
use crate::workload::tables::Tables;

/// Name of the counter with the size of the insert benchmark's table and its indexes, in bytes. It
/// is a gauge.
pub(crate) const TABLE_BYTES: &str = "table_bytes";

/// The query for the size of the table's file in InnoDB.
fn tablespace() -> String {
    format!(
        "SELECT CAST(FILE_SIZE AS UNSIGNED) FROM information_schema.INNODB_SYS_TABLESPACES WHERE \
         NAME = CONCAT(DATABASE(), '/{TABLE}')"
    )
}

pub(super) struct Server {
    address: Address,
    pub(super) sales: Sales,
    /// The tables that the workload declares.
    tables: SqlTables,
    /// Whether the workload declares its own tables, instead of the table of the insert benchmark.
    own: bool,
    facts: ServerFacts,
    keep: bool,
    /// Whether a commit waits for the disk.
    waits: bool,
    /// The statistics of the server at the time it was opened, to which later ones are relative.
    base: EngineStats,
    indexed: Mutex<[bool; 3]>,
    last: Mutex<Look>,
}

/// The polled state of the server, and the connection for polls.
struct Look {
    wire: Box<dyn Wire>,
    polled: Polled,
}

/// Check that a server answers, accepts the user of the address, and has its engine.
///
/// # Errors
/// A message that states what to do next.
pub(in crate::targets) fn answers(text: &str) -> Result<()> {
    let address: Address = text.parse().map_err(Error::usage)?;
    let mut wire = wire::connect(&address)?;
    if address.protocol == Protocol::MySql {
        has_engine(wire.as_mut(), &address)?;
    }
    Ok(())
}

/// The codecs that MyRocks was built with, by RocksDB's names for them.
///
/// # Errors
/// The unexpected reply or the error.
pub(in crate::targets) fn codecs(text: &str) -> Result<Vec<String>> {
    let address: Address = text.parse().map_err(Error::usage)?;
    let mut wire = wire::connect(&address)?;
    let asked = "SELECT @@rocksdb_supported_compression_types";
    let rows = wire.all(asked, Vec::new())?;
    match rows.first().and_then(|row| row.first()) {
        Some(Value::Text(list)) => Ok(list.split(',').map(str::to_owned).collect()),
        other => Err(Error::target(format!(
            "the server does not list its codecs, but {other:?}"
        ))),
    }
}

/// The data directory of a server's engine, if it is on this machine.
pub(in crate::targets) fn directory(text: &str) -> Result<Option<PathBuf>> {
    let address: Address = text.parse().map_err(Error::usage)?;
    let mut wire = wire::connect(&address)?;
    let directory = facts::gather(wire.as_mut(), &address)?.data_dir;
    Ok(directory.map(|directory| match address.engine {
        Engine::MyRocks => directory.join("#rocksdb"),
        _ => directory,
    }))
}

fn has_engine(wire: &mut dyn Wire, address: &Address) -> Result<()> {
    let engine = address.engine.sql();
    let asked = format!(
        "SELECT COUNT(*) FROM information_schema.ENGINES WHERE ENGINE = '{engine}' AND SUPPORT IN \
         ('YES', 'DEFAULT')"
    );
    if wire.number(&asked)? == 0 {
        return Err(Error::target(format!(
            "{}: this server has no storage engine {}; on Debian MyRocks is in the package \
             mariadb-plugin-rocksdb",
            address.text, address.engine
        )));
    }
    Ok(())
}

/// Connect to a server, and recreate the table, unless the request is to open existing data.
pub(in crate::targets) fn open(text: &str, request: &Open) -> Result<Box<dyn Database>> {
    let address: Address = text.parse().map_err(Error::usage)?;
    let dialect = address.dialect();
    let level = address.engine.level(request.durability);
    let logged = level != Durability::None;
    let fill = request.options.own.get(FILL).and_then(|f| f.parse().ok());
    let sales = Sales::new(dialect, Generator::new(request.rows), logged).filled(fill);
    let mut wire = wire::connect(&address)?;
    let own = request.program.is_some();
    if !request.found {
        if address.protocol == Protocol::MySql {
            has_engine(wire.as_mut(), &address)?;
        }
        // The tables that a workload declares are created when its load starts.
        for statement in sales.create().iter().filter(|_| !own) {
            wire.run(statement)?;
        }
    }
    let base = stats::ask(wire.as_mut(), address.engine).unwrap_or_default();
    let waits = matches!(level, Durability::Sync | Durability::Group);
    Ok(Box::new(Server {
        facts: facts::gather(wire.as_mut(), &address)?,
        tables: SqlTables::new(address.clone(), waits, logged),
        own,
        address,
        sales,
        keep: request.keep,
        base,
        waits,
        indexed: Mutex::new([request.found; 3]),
        last: Mutex::new(Look {
            wire,
            polled: Polled::new(),
        }),
    }))
}

impl Server {
    /// Open a new connection.
    pub(super) fn connection(&self) -> Result<Box<dyn Wire>> {
        let mut wire = wire::connect(&self.address)?;
        for statement in self.sales.dialect.greeting(self.waits) {
            wire.run(&statement)?;
        }
        Ok(wire)
    }

    /// The names of all tables that the laboratory created.
    fn names(&self) -> Vec<String> {
        if self.own {
            self.tables.names()
        } else {
            vec![TABLE.to_owned()]
        }
    }

    /// Create an index, unless it exists.
    pub(super) fn create_index(&self, index: usize, wire: &mut dyn Wire) -> Result<()> {
        let mut made = self.indexed.lock();
        let Some(made) = made.get_mut(index) else {
            return Err(Error::target("there is no such index"));
        };
        if !*made {
            wire.run(&self.sales.create_index(index)?)?;
            *made = true;
        }
        Ok(())
    }

    /// Bytes of the tables and their indexes, as the server reports them.
    fn size(&self, wire: &mut dyn Wire) -> Option<u64> {
        let names: Vec<String> = self.names().iter().map(|n| format!("'{n}'")).collect();
        if names.is_empty() {
            return Some(0);
        }
        let names = names.join(", ");
        let asked = match self.address.protocol {
            Protocol::MySql => format!(
                "SELECT CAST(SUM(DATA_LENGTH + INDEX_LENGTH) AS UNSIGNED) FROM \
                 information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN \
                 ({names})"
            ),
            Protocol::Postgres => format!(
                "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = \
                 'r' AND pg_table_is_visible(oid) AND relname IN ({names})"
            ),
        };
        wire.number(&asked).ok()
    }

    /// Size of the files of the table and its indexes, in bytes, for engines that report it
    /// cheaply.
    fn own_size(&self, wire: &mut dyn Wire) -> Option<u64> {
        match self.address.engine {
            Engine::Heap => self.size(wire),
            Engine::InnoDb => wire.number(&tablespace()).ok(),
            Engine::MyRocks | Engine::MyIsam | Engine::Aria => None,
        }
    }

    /// Query the current state; values that the server does not report stay as in `last`.
    fn look(&self, wire: &mut dyn Wire, last: &State) -> State {
        // The lab can see the files of a server that it started.
        let seen = self.address.managed();
        let file_bytes = (!seen).then(|| self.size(wire)).flatten();
        let asked = stats::ask(wire, self.address.engine);
        let mut stats = asked.map_or_else(|_| last.stats.clone(), |s| stats::since(s, &self.base));
        // The server's directory also contains a log and system tables, which are larger than a
        // small table. So query the size of the table itself.
        if seen && !self.own {
            let size = self.own_size(wire);
            stats
                .counters
                .extend(size.map(|bytes| (TABLE_BYTES.to_owned(), bytes)));
        }
        State { stats, file_bytes }
    }
}

impl Database for Server {
    fn keeps(&self) -> bool {
        true
    }

    fn server(&self) -> Option<ServerFacts> {
        Some(self.facts.clone())
    }

    fn tables(&self) -> Result<&dyn Tables> {
        Ok(&self.tables)
    }

    fn connect(&self) -> Result<Box<dyn Connection + '_>> {
        Ok(Box::new(Link::new(self)?))
    }

    fn create_indexes(&self) -> Result<()> {
        let mut wire = self.connection()?;
        let all = self.sales.indexes().len();
        (0..all).try_for_each(|index| self.create_index(index, wire.as_mut()))
    }

    fn row_bytes(&self, indexed: bool) -> f64 {
        self.sales.mean_bytes(indexed)
    }

    fn settle(&self, limit: Duration) -> Result<Settled> {
        let mut wire = self.connection()?;
        settle::settle(wire.as_mut(), self.address.engine, &self.names(), limit)
    }

    fn rebuild(&self, _meter: &dyn Meter) -> Result<()> {
        let mut wire = self.connection()?;
        wire.run(&self.sales.rebuild())?;
        Ok(())
    }

    fn state(&self) -> State {
        let mut last = self.last.lock();
        let Look { wire, polled } = &mut *last;
        polled.state(|known| self.look(wire.as_mut(), known))
    }

    fn close(self: Box<Self>) -> Result<()> {
        // The directory of a server that the laboratory started is removed as a whole, so the
        // tables need not be dropped.
        if self.keep || self.address.managed() {
            return Ok(());
        }
        if self.own {
            return self.tables.drop_all();
        }
        let mut wire = self.connection()?;
        wire.run(&format!("DROP TABLE IF EXISTS {TABLE}"))?;
        Ok(())
    }
}

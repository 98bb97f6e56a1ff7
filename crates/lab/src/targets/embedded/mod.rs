//! An embedded engine as a target: a row is one entry in the primary tree and one in each of three
//! index trees, written in one batch.

mod build;
mod connection;
mod tables;
#[cfg(test)]
mod tests;

use std::time::Duration;

use kv::{
    Compaction, Durability, Engine, ErrorKind, Flow, KeyRange, Progress, TreeId, TreeOptions,
};
use lab_report::error::{Error, Result};
use stdx::sync::OnceLock;

use super::database::{Connection, Database, Meter, Settled, State};
use super::factory;
use crate::protocol::Open;
use crate::workload::iibench::{Generator, TREES};
use crate::workload::table::nth;
use crate::workload::tables::Tables;

/// An open engine in this process.
pub(super) struct Embedded {
    engine: Box<dyn Engine>,
    generator: Generator,
    durability: Durability,
    rows: TreeId,
    indexes: OnceLock<[TreeId; 3]>,
    keeps: bool,
    catalog: tables::Catalog,
}

/// Open an engine; a new store has no rows.
pub(super) fn open(request: &Open) -> Result<Embedded> {
    let factory = factory(&request.engine)?;
    let engine = factory
        .open(&request.directory, &request.options)
        .map_err(text)?;
    let options = TreeOptions {
        ascending: true,
        point_lookups: true,
    };
    let [rows, ..] = TREES;
    Ok(Embedded {
        rows: tree(engine.as_ref(), rows, &options)?,
        indexes: OnceLock::new(),
        generator: Generator::new(request.rows),
        durability: request.durability,
        keeps: request.engine != "null",
        catalog: tables::Catalog::default(),
        engine,
    })
}

impl Embedded {
    /// The index trees; `None` until they are created.
    fn indexes(&self) -> Option<[TreeId; 3]> {
        self.indexes.get().copied()
    }

    /// The tree of an index, from 0; the indexes are created unless they exist.
    fn index(&self, index: usize) -> Result<TreeId> {
        self.create_indexes()?;
        let trees = self.indexes();
        nth(trees.as_slice().as_flattened(), index, "index").copied()
    }
}

impl Database for Embedded {
    fn keeps(&self) -> bool {
        self.keeps
    }

    fn tables(&self) -> Result<&dyn Tables> {
        if self.keeps {
            Ok(self)
        } else {
            Err(Error::target(super::NO_TABLES))
        }
    }

    fn connect(&self) -> Result<Box<dyn Connection + '_>> {
        Ok(Box::new(connection::Client::new(self)))
    }

    fn create_indexes(&self) -> Result<()> {
        if self.indexes().is_some() {
            return Ok(());
        }
        let [_, one, two, three] = TREES;
        let options = TreeOptions::default();
        let make = |name| tree(self.engine.as_ref(), name, &options);
        let made = [make(one)?, make(two)?, make(three)?];
        self.indexes.get_or_init(|| made);
        Ok(())
    }

    fn row_bytes(&self, indexed: bool) -> f64 {
        self.generator.logical_bytes(indexed)
    }

    fn settle(&self, limit: Duration) -> Result<Settled> {
        Ok(match self.engine.settle(limit).map_err(text)? {
            Compaction::Cancelled => Settled::Cut,
            _ => Settled::Complete,
        })
    }

    fn rebuild(&self, meter: &dyn Meter) -> Result<()> {
        let mut watch = |_: Progress| match meter.stopped() {
            true => Flow::Cancel,
            false => Flow::Continue,
        };
        let done = self.engine.compact(self.rows, KeyRange::ALL, &mut watch);
        match done.map_err(text)? {
            Compaction::Complete => Ok(()),
            _ => Err(Error::target(
                "rewriting the rows took longer than the step may",
            )),
        }
    }

    fn state(&self) -> State {
        State {
            stats: self.engine.stats().unwrap_or_default(),
            file_bytes: None,
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.engine.close().map_err(text)
    }
}

fn tree(engine: &dyn Engine, name: &str, options: &TreeOptions) -> Result<TreeId> {
    match engine.create_tree(name, options) {
        Err(e) if e.kind() == ErrorKind::Exists => engine.open_tree(name).map_err(text),
        other => other.map_err(text),
    }
}

/// An engine's error with its cause.
#[expect(clippy::needless_pass_by_value, reason = "made for map_err")]
fn text(error: kv::Error) -> Error {
    let mut text = error.to_string();
    let mut below = std::error::Error::source(&error);
    while let Some(source) = below {
        let more = source.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        below = source.source();
    }
    if error.kind() == ErrorKind::Full && !text.contains("make room") {
        text.push_str("; free some space or choose a smaller --preset or --scale");
    }
    match error.kind() {
        ErrorKind::Full | ErrorKind::Io => Error::environment(text),
        _ => Error::target(text),
    }
}

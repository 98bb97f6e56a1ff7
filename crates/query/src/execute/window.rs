//! `$setWindowFields`, `$fill`, `$densify`: one partition is held at a time.
//!
//! The input is sorted by `$sort`'s own sorter, which spills, on the key of the partition and on
//! `sortBy`. Where the stage orders nothing, rows pass in the order in which they come: as one
//! partition, or each by itself where the stage looks at single rows.

use std::sync::Arc;

use super::sort::SortRows;
use super::{Host, Rows, memory};
use crate::expr::Variables;
use crate::meter::Held;
use crate::settings::Settings;
use crate::window::{Entry, Partition, Partitioning, Run, WindowStage};
use crate::{Result, Row};

/// A stage over ordered partitions.
pub(super) struct WindowRows {
    input: Input,
    run: Run,
    variables: Variables,
    /// Whether rows carry the values they were sorted by.
    keyed: bool,
    /// The first row of the next partition.
    ahead: Option<Entry>,
    /// The rows of the partition before.
    ready: std::vec::IntoIter<Row>,
    /// Bytes of the documents held, as they are stored and as trees.
    stored: usize,
    decoded: usize,
    /// Its share of the memory of all operations.
    held: Held,
}

enum Input {
    /// Not read yet.
    Unsorted(Box<dyn Rows>),
    /// Each row is a partition.
    Single(Box<dyn Rows>),
    /// Rows in their order.
    Whole(Box<dyn Rows>, Arc<Partitioning>),
    /// Wrapped rows in the order of partitions.
    Sorted(Box<SortRows>, Arc<Partitioning>),
    Done,
}

impl WindowRows {
    pub(super) fn new(input: Box<dyn Rows>, stage: WindowStage, settings: &Settings) -> WindowRows {
        WindowRows {
            input: Input::Unsorted(input),
            run: Run::new(stage, settings),
            variables: settings.variables.clone(),
            keyed: false,
            ahead: None,
            ready: Vec::new().into_iter(),
            stored: 0,
            decoded: 0,
            held: Held::new(),
        }
    }

    /// The same; with `keyed` rows carry the values they were sorted by.
    pub(super) fn keyed(mut self, keyed: bool) -> WindowRows {
        self.keyed = keyed;
        self
    }

    fn open(&mut self) -> Result<()> {
        let input = match std::mem::replace(&mut self.input, Input::Done) {
            Input::Unsorted(input) => input,
            open => {
                self.input = open;
                return Ok(());
            }
        };
        let by = self.run.stage().partitioning().cloned().map(Arc::new);
        self.input = match by {
            None => Input::Single(input),
            Some(by) if by.sorts() => {
                let wrapped = Wrapped {
                    input,
                    by: Arc::clone(&by),
                    variables: self.variables.clone(),
                };
                let sorted = SortRows::new(Box::new(wrapped), by.order()?, None, by.collator());
                Input::Sorted(Box::new(sorted), by)
            }
            Some(by) => Input::Whole(input, by),
        };
        Ok(())
    }

    /// The next document.
    fn pull(&mut self, host: &mut dyn Host) -> Result<Option<Entry>> {
        if let Some(entry) = self.ahead.take() {
            return Ok(Some(entry));
        }
        host.check()?;
        match &mut self.input {
            Input::Single(rows) => match rows.next(host)? {
                Some(row) => Partitioning::default()
                    .entry(row, &self.variables)
                    .map(Some),
                None => Ok(None),
            },
            Input::Whole(rows, by) => match rows.next(host)? {
                Some(row) => by.entry(row, &self.variables).map(Some),
                None => Ok(None),
            },
            Input::Sorted(rows, by) => match rows.next(host)? {
                Some(row) => by.unwrap(&row, self.keyed).map(Some),
                None => Ok(None),
            },
            Input::Unsorted(_) | Input::Done => Ok(None),
        }
    }

    /// The next partition.
    fn partition(&mut self, host: &mut dyn Host) -> Result<Option<Partition>> {
        if !self.run.waits() {
            (self.stored, self.decoded) = (0, 0);
        }
        let Some(first) = self.pull(host)? else {
            return Ok(None);
        };
        let by = match &self.input {
            Input::Whole(_, by) | Input::Sorted(_, by) => Some(Arc::clone(by)),
            _ => None,
        };
        let mut partition = Partition::default();
        let key = first.key.clone();
        self.hold(first, &mut partition, host)?;
        let Some(by) = by else {
            return Ok(Some(partition));
        };
        while let Some(entry) = self.pull(host)? {
            if !by.same(&key, &entry.key) {
                self.ahead = Some(entry);
                break;
            }
            self.hold(entry, &mut partition, host)?;
        }
        Ok(Some(partition))
    }

    /// Adds a document to a partition.
    fn hold(&mut self, entry: Entry, partition: &mut Partition, host: &dyn Host) -> Result<()> {
        let name = self.run.stage().name();
        self.stored += entry.stored + size_of::<Row>();
        if self.stored > host.memory_limit() {
            return Err(memory::exceeded(name));
        }
        // The limit is about documents as they are stored; trees take more.
        self.decoded += memory::document(&entry.document);
        self.held.require(name, self.decoded)?;
        partition.push(entry.document, entry.sort_values);
        Ok(())
    }
}

impl Rows for WindowRows {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        self.open()?;
        loop {
            if let Some(row) = self.ready.next() {
                return Ok(Some(row));
            }
            if matches!(self.input, Input::Done) {
                self.held.clear();
                return Ok(None);
            }
            let rows = match self.partition(host)? {
                Some(partition) => self.run.add(partition)?,
                None => {
                    self.input = Input::Done;
                    self.run.finish()?
                }
            };
            if !self.run.waits() || !rows.is_empty() {
                let mut decoded = 0;
                for row in &rows {
                    decoded += memory::document(row.document()?);
                }
                self.held.require(self.run.stage().name(), decoded)?;
            }
            self.ready = rows.into_iter();
        }
    }
}

/// Rows with the keys of their partitions.
struct Wrapped {
    input: Box<dyn Rows>,
    by: Arc<Partitioning>,
    variables: Variables,
}

impl Rows for Wrapped {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        match self.input.next(host)? {
            Some(row) => self.by.wrap(&row, &self.variables).map(Some),
            None => Ok(None),
        }
    }
}

//! `$setWindowFields`, `$fill`, `$densify`: one partition at a time is held in memory.
//!
//! The input is sorted by the partition key and by `sortBy`, with `$sort`'s own sorter, which may
//! spill. A stage that needs no sort takes rows in input order: as one partition, or, if it
//! computes each row by itself, as one partition per row.

use std::sync::Arc;

use super::sort::SortRows;
use super::{Host, Rows, memory};
use crate::expr::Variables;
use crate::meter::Held;
use crate::settings::Settings;
use crate::window::{Entry, Partition, Partitioning, Run, WindowStage};
use crate::{Result, Row};

/// A stage that processes ordered partitions.
pub(super) struct WindowRows {
    input: Input,
    run: Run,
    variables: Variables,
    /// Whether rows carry the values by which they were sorted.
    keyed: bool,
    /// The first row of the next partition.
    ahead: Option<Entry>,
    /// The remaining result rows of the previous partition.
    ready: std::vec::IntoIter<Row>,
    /// Bytes of the held documents, as BSON and as owned documents.
    stored: usize,
    decoded: usize,
    /// Memory reserved in the budget of all operations.
    held: Held,
}

enum Input {
    /// The input before the first row is read.
    Unsorted(Box<dyn Rows>),
    /// Each row is a partition of its own.
    Single(Box<dyn Rows>),
    /// All rows are one partition, in input order.
    Whole(Box<dyn Rows>, Arc<Partitioning>),
    /// Rows wrapped by [`Partitioning::wrap`], sorted by partition.
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

    /// Sets whether rows carry the values by which they were sorted.
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

    /// Reads the next document.
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

    /// Reads the next partition.
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
        // The limit applies to documents as BSON; as owned documents they take more memory.
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

/// Wraps the rows of the input with the keys of their partitions, for the sort.
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

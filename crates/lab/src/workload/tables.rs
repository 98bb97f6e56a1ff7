//! The general layer: any tables a workload declares, on any target that can keep them.
//!
//! A workload's transactions are written once, against [`Tables`] and [`TableClient`]. An embedded
//! engine answers them over `kv` (one tree for each table and each index), a server that speaks
//! MongoDB's protocol with documents, an SQL server with statements.
//!
//! # What an implementer owes
//!
//! - G1. [`Tables::create`] leaves every table empty, whatever was there under its name, with its
//!   indexes. [`Tables::drop_all`] removes what `create` made, and nothing else.
//! - G2. Between [`TableClient::begin`] and [`TableClient::commit`] all is one transaction at
//!   snapshot isolation or stronger: it reads one state, with its own writes on top, and commits
//!   whole or not at all. Outside of one, each call is a transaction of its own.
//! - G3. A row read with [`Lock::Update`] is not changed by another transaction that commits before
//!   this one: the implementer locks it (`FOR UPDATE`) or lets one of the two fail with
//!   [`Refused::Conflict`]. So a read, a computation and an update lose nothing.
//! - G4. [`Refused::Conflict`] is for whatever goes away when the transaction is done again:
//!   deadlocks, write conflicts, lock timeouts, serialization failures, and a duplicate key within
//!   a transaction, since workloads insert keys they found absent. The transaction is over then,
//!   as after [`TableClient::abort`]. Everything else is [`Refused::Failed`], with a sentence.
//! - G5. Commits have the durability of the run. Reading never waits for the disk to sync.
//! - G6. Statements are prepared once for each client; nothing is parsed for each row. Values come
//!   back as they went in: types, nulls, and every bit of a double.
//! - G7. Ranges are in the order of T2 (see [`super::table`]), by the index that is
//!   named and no other (hint it where the target may choose).
//! - G8. A target refuses what it cannot express where the plan is made, else when it is asked for
//!   its tables; it never leaves anything out silently.

use super::table::{Row, Table, Value};

/// Why something did not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Another transaction was in the way: begin again. This one is over.
    Conflict,
    /// Anything else, in a sentence that says what to do next.
    Failed(String),
}

impl From<String> for Refused {
    fn from(message: String) -> Refused {
        Refused::Failed(message)
    }
}

impl From<&str> for Refused {
    fn from(message: &str) -> Refused {
        Refused::Failed(message.to_owned())
    }
}

/// An answer of a [`TableClient`].
pub type Answer<T> = Result<T, Refused>;

/// What a transaction is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Read only.
    Read,
    /// Read and write.
    Write,
}

/// Whether a row is read in order to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// It is only looked at.
    None,
    /// It will be changed by this transaction (see G3). Outside of a transaction the same as
    /// `None`.
    Update,
}

/// By what a range is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The primary key.
    Key,
    /// The secondary index of this position.
    Index(usize),
}

/// Which rows a range query asks for, and in what order.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// The table, by its position in what was created.
    pub table: usize,
    /// By what.
    pub by: By,
    /// The first columns of the key or index must equal these; none for all rows.
    pub equal: &'a [Value],
    /// The column behind those must be at least this.
    pub from: Option<&'a Value>,
    /// And at most this.
    pub to: Option<&'a Value>,
    /// From the last row to the first.
    pub backward: bool,
    /// The most rows; 0 for all.
    pub limit: u64,
    /// Only columns of the index, those stored with it and those of the primary key are looked at:
    /// others may be null in the rows given. For the primary key it changes nothing.
    pub covered: bool,
}

impl<'a> Range<'a> {
    /// All rows whose primary key begins with `equal`, ascending.
    #[must_use]
    pub fn by_key(table: usize, equal: &'a [Value]) -> Range<'a> {
        Range {
            table,
            by: By::Key,
            equal,
            from: None,
            to: None,
            backward: false,
            limit: 0,
            covered: false,
        }
    }

    /// All rows whose columns of an index begin with `equal`, ascending.
    #[must_use]
    pub fn by_index(table: usize, index: usize, equal: &'a [Value]) -> Range<'a> {
        Range {
            by: By::Index(index),
            ..Range::by_key(table, equal)
        }
    }

    /// At most so many rows.
    #[must_use]
    pub fn limit(self, limit: u64) -> Range<'a> {
        Range { limit, ..self }
    }

    /// The last first.
    #[must_use]
    pub fn backward(self) -> Range<'a> {
        Range {
            backward: true,
            ..self
        }
    }

    /// From `from` to `to`, both included, in the next column.
    #[must_use]
    pub fn between(self, from: &'a Value, to: &'a Value) -> Range<'a> {
        Range {
            from: Some(from),
            to: Some(to),
            ..self
        }
    }

    /// Only what the index holds.
    #[must_use]
    pub fn covered(self) -> Range<'a> {
        Range {
            covered: true,
            ..self
        }
    }
}

/// A target that keeps tables. One object for all clients; see the module for what is owed.
pub trait Tables: Send + Sync {
    /// Create these tables, empty. From then on they are known by their positions.
    ///
    /// # Errors
    /// A sentence.
    fn create(&self, tables: &[Table]) -> Result<(), String>;

    /// Know these tables by their positions, which are there already: after the target was opened
    /// again.
    ///
    /// # Errors
    /// A sentence; so too when one of them is missing.
    fn attach(&self, tables: &[Table]) -> Result<(), String>;

    /// Drop the tables.
    ///
    /// # Errors
    /// A sentence.
    fn drop_all(&self) -> Result<(), String>;

    /// A client's own way to the tables created so far.
    ///
    /// # Errors
    /// A sentence.
    fn client(&self) -> Result<Box<dyn TableClient + '_>, String>;
}

/// One client: at most one transaction at a time, on one thread.
pub trait TableClient {
    /// Begin a transaction.
    ///
    /// # Errors
    /// `Failed`.
    fn begin(&mut self, mode: Mode) -> Answer<()>;

    /// Commit it. It is over whatever is answered.
    ///
    /// # Errors
    /// `Conflict`, `Failed`.
    fn commit(&mut self) -> Answer<()>;

    /// Undo it. Does nothing where there is none.
    fn abort(&mut self);

    /// Get a row by its primary key into `row`; false where there is none.
    ///
    /// # Errors
    /// `Conflict`, `Failed`.
    fn get(&mut self, table: usize, key: &[Value], lock: Lock, row: &mut Row) -> Answer<bool>;

    /// Show the rows of a range, in order, until `visit` answers false. Returns how many were
    /// shown.
    ///
    /// # Errors
    /// `Conflict`, `Failed`.
    fn range(&mut self, range: &Range<'_>, visit: &mut dyn FnMut(&[Value]) -> bool) -> Answer<u64>;

    /// Insert rows whose keys are not there. Outside of a transaction it may be blind: fast, and
    /// without looking whether they are; a load does so, with many rows at once.
    ///
    /// # Errors
    /// `Conflict` for a key that is there, within a transaction; `Failed`.
    fn insert(&mut self, table: usize, rows: &[Row]) -> Answer<()>;

    /// Change a row from `old`, as it was read, to `new`. The primary key stays.
    ///
    /// # Errors
    /// `Conflict`, `Failed`.
    fn update(&mut self, table: usize, old: &[Value], new: &[Value]) -> Answer<()>;

    /// Delete a row, given as it was read.
    ///
    /// # Errors
    /// `Conflict`, `Failed`.
    fn delete(&mut self, table: usize, old: &[Value]) -> Answer<()>;
}

//! The general layer: tables that a workload declares, on any target that supports them.
//!
//! A workload's transactions are written once, against [`Tables`] and [`TableClient`]. An embedded
//! engine implements these traits over `kv` (one tree for each table and each index), a server with
//! MongoDB's protocol by documents, an SQL server by statements.
//!
//! # Requirements for an implementation
//!
//! - G1. [`Tables::create`] leaves every table empty, whatever existed under its name, with its
//!   indexes. [`Tables::drop_all`] removes what `create` made, and nothing else.
//! - G2. Between [`TableClient::begin`] and [`TableClient::commit`] all operations are one
//!   transaction at snapshot isolation or stronger: it reads one state, with its own writes on top,
//!   and commits completely or not at all. Outside of one, each call is a separate transaction.
//! - G3. A row read with [`Lock::Update`] is not changed by another transaction that commits before
//!   this one: the implementation locks it (`FOR UPDATE`) or fails one of the two transactions with
//!   [`Refused::Conflict`]. So a read, a computation and an update lose nothing.
//! - G4. [`Refused::Conflict`] is for every error that a retry of the transaction resolves:
//!   deadlocks, write conflicts, lock timeouts, serialization failures, and a duplicate key within
//!   a transaction, since workloads insert keys they found absent. The transaction is over then, as
//!   after [`TableClient::abort`]. Every other error is [`Refused::Failed`].
//! - G5. Commits have the durability of the run. Reading never waits for the disk to sync.
//! - G6. Statements are prepared once for each client; nothing is parsed for each row. Values are
//!   read back as they were written: types, nulls, and every bit of a double.
//! - G7. Ranges are in the order of T2 (see [`super::table`]), by the named index and no other
//!   (with a hint if the target may choose).
//! - G8. A target rejects what it cannot express when the plan is made, or else when its tables are
//!   requested; it never omits anything silently.

use lab_report::error::{Error, Result};

use super::table::{Row, Table, Value};

/// The error of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A conflict with another transaction, which a retry resolves. This transaction has ended.
    Conflict,
    /// Any other error.
    Failed(Error),
}

impl Refused {
    /// A failure of the target, with a message that states what to do next.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Refused {
        Refused::Failed(Error::target(message))
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Failed(error)
    }
}

/// The result of a [`TableClient`] operation.
pub type Answer<T> = Result<T, Refused>;

/// The access of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Read only.
    Read,
    /// Read and write.
    Write,
}

/// Whether a row is read for an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The row is only read.
    None,
    /// This transaction will change the row (see G3). Outside of a transaction this is the same as
    /// `None`.
    Update,
}

/// The access path of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The primary key.
    Key,
    /// The secondary index at this position.
    Index(usize),
}

/// A range query: which rows it reads, and in what order.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// Position of the table among the created tables.
    pub table: usize,
    /// The access path.
    pub by: By,
    /// The first columns of the key or index must equal these values; empty for all rows.
    pub equal: &'a [Value],
    /// The next column must be at least this value.
    pub from: Option<&'a Value>,
    /// The next column must be at most this value.
    pub to: Option<&'a Value>,
    /// Whether rows are read from the last to the first.
    pub backward: bool,
    /// Maximum number of rows; 0 for no limit.
    pub limit: u64,
    /// Only columns that the index contains are needed: its own, those stored with it and those of
    /// the primary key. Other columns may be null in the returned rows. Has no effect for the
    /// primary key.
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

    /// The same range with a maximum number of rows.
    #[must_use]
    pub fn limit(self, limit: u64) -> Range<'a> {
        Range { limit, ..self }
    }

    /// The same range in descending order.
    #[must_use]
    pub fn backward(self) -> Range<'a> {
        Range {
            backward: true,
            ..self
        }
    }

    /// The same range, with the next column from `from` to `to`, both included.
    #[must_use]
    pub fn between(self, from: &'a Value, to: &'a Value) -> Range<'a> {
        Range {
            from: Some(from),
            to: Some(to),
            ..self
        }
    }

    /// The same range, for the columns that the index contains only.
    #[must_use]
    pub fn covered(self) -> Range<'a> {
        Range {
            covered: true,
            ..self
        }
    }
}

/// A target with tables, shared by all clients; the module documentation has the requirements.
pub trait Tables: Send + Sync {
    /// Create these tables, empty. Later calls refer to them by their positions.
    ///
    /// # Errors
    /// A message for the user.
    fn create(&self, tables: &[Table]) -> Result<()>;

    /// Open these existing tables, after the target was reopened. Later calls refer to them by
    /// their positions.
    ///
    /// # Errors
    /// A message for the user; also if one of them is missing.
    fn attach(&self, tables: &[Table]) -> Result<()>;

    /// Drop the tables.
    ///
    /// # Errors
    /// A message for the user.
    fn drop_all(&self) -> Result<()>;

    /// Open a connection for one client to the tables created so far.
    ///
    /// # Errors
    /// A message for the user.
    fn client(&self) -> Result<Box<dyn TableClient + '_>>;
}

/// One client: at most one transaction at a time, on one thread.
pub trait TableClient {
    /// Begin a transaction.
    ///
    /// # Errors
    /// `Failed`.
    fn begin(&mut self, mode: Mode) -> Answer<()>;

    /// Commit the transaction. It has ended afterwards, whatever the result.
    ///
    /// # Errors
    /// `Conflict`, `Failed`.
    fn commit(&mut self) -> Answer<()>;

    /// Roll the transaction back. Has no effect if no transaction is open.
    fn abort(&mut self);

    /// Read the row with primary key `key` into `row`; false if it does not exist.
    ///
    /// # Errors
    /// `Conflict`, `Failed`.
    fn get(&mut self, table: usize, key: &[Value], lock: Lock, row: &mut Row) -> Answer<bool>;

    /// Pass the rows of a range, in order, to `visit` until it returns false. Returns the number of
    /// rows passed.
    ///
    /// # Errors
    /// `Conflict`, `Failed`.
    fn range(&mut self, range: &Range<'_>, visit: &mut dyn FnMut(&[Value]) -> bool) -> Answer<u64>;

    /// Insert rows whose keys do not exist. Outside of a transaction this may be a blind write,
    /// which is fast but does not check that the keys are new; loads insert many rows at once in
    /// this way.
    ///
    /// # Errors
    /// `Conflict` for an existing key, within a transaction; `Failed`.
    fn insert(&mut self, table: usize, rows: &[Row]) -> Answer<()>;

    /// Change a row from `old`, as it was read, to `new`. The primary key must not change.
    ///
    /// # Errors
    /// `Conflict`, `Failed`.
    fn update(&mut self, table: usize, old: &[Value], new: &[Value]) -> Answer<()>;

    /// Set one column of the row with primary key `key`, which exists, to a value as long as the
    /// old one. Neither the primary key nor an index has the column. No transaction is open.
    ///
    /// A server does this in one statement. An engine reads the row and writes it back, in a
    /// transaction of its own.
    ///
    /// # Errors
    /// `Conflict`, `Failed`.
    fn set(&mut self, table: usize, key: &[Value], column: usize, value: &Value) -> Answer<()> {
        self.begin(Mode::Write)?;
        let mut old = Row::new();
        if !self.get(table, key, Lock::Update, &mut old)? {
            self.abort();
            return Err(Refused::failed("the row to change does not exist"));
        }
        let mut new = old.clone();
        let place = new.get_mut(column);
        place
            .ok_or_else(|| Error::target("there is no such column"))?
            .clone_from(value);
        self.update(table, &old, &new)?;
        self.commit()
    }

    /// Delete the row `old`, as it was read.
    ///
    /// # Errors
    /// `Conflict`, `Failed`.
    fn delete(&mut self, table: usize, old: &[Value]) -> Answer<()>;
}

//! The interface between the load and every target: a database to which the load connects, which it
//! fills and queries, and whose contents it checks.
//!
//! The insert benchmark and its checks ([`super::check`]) are written once, against these traits:
//! an embedded engine implements them with calls, a server through its driver. A new kind of server
//! is one implementation of both.
//!
//! - D1. A connection belongs to one client of the load; connections share no mutable state.
//! - D2. Rows are numbered; the contents of a row are a pure function of its number, so a
//!   connection receives numbers and generates the rows itself, within [`Meter::generate`],
//!   [`Connection::fill`] or [`Connection::matches`]: that CPU time is the generator's.

use std::ops::Range;
use std::time::Duration;

use kv::EngineStats;
use lab_report::error::{Error, Result};

use crate::protocol::ServerFacts;
use crate::workload::iibench::RowParams;
use crate::workload::tables::Tables;

/// The rows that are present: those numbered `low..high`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// The number of the first row.
    pub low: u64,
    /// The number after that of the last row.
    pub high: u64,
    /// Whether the three indexes are maintained.
    pub indexed: bool,
}

impl Live {
    /// The number of rows.
    #[must_use]
    pub fn rows(self) -> u64 {
        self.high.saturating_sub(self.low)
    }
}

/// The rows, or the entries of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The rows.
    Rows,
    /// The entries of an index, from 0.
    Index(usize),
}

/// The effect of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Number of rows that existed.
    pub found: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// The result of a range query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranged {
    /// Number of entries read.
    pub entries: u64,
    /// Whether they are in the order of the index, none before the start of the query.
    pub in_order: bool,
}

/// A row of a target, compared with the workload's model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Its number; `None` if it has none.
    pub id: Option<u64>,
    /// Whether its contents are those of that number.
    pub right: bool,
    /// The contribution of the row to the digest of each index.
    pub digests: [u64; 3],
}

/// The size and the contents of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Number of rows or entries.
    pub entries: u64,
    /// Sum of the contributions of all rows, see [`Compared::digests`]; 0 if the target has none.
    pub digest: u64,
}

/// Number of `rows` rows that count as indexed once `done` entries of index `index` of `indexes`
/// are inserted: each index is an equal share of a row, so that a rate is comparable whichever of
/// them is being built.
#[must_use]
pub(super) fn indexed_rows(index: usize, indexes: u8, rows: u64, done: Range<u64>) -> u64 {
    let share = |entries: u64| (index as u64 * rows + entries) / u64::from(indexes.max(1));
    share(done.end) - share(done.start)
}

/// Meter the build of an index that a server runs as one statement.
pub(super) fn build_at_once(
    (index, params): (usize, &RowParams),
    rows: u64,
    meter: &dyn Meter,
    create: impl FnOnce() -> Result<()>,
) -> Result<()> {
    meter.begin();
    create()?;
    meter.end();
    let each = params.shape.key_bytes().get(index).copied().unwrap_or(0);
    let share = indexed_rows(index, params.indexes, rows, 0..rows);
    meter.wrote(share, rows * each as u64);
    Ok(())
}

/// How settling ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// No work is pending any more.
    Complete,
    /// The time limit expired first.
    Cut,
    /// The target does not report its pending work, so nothing was waited for.
    Unknown,
}

/// The current state that a target reports about itself.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Counters of the target's engine; empty if the target reports none.
    pub stats: EngineStats,
    /// Size of the target in bytes, if the lab cannot see its files.
    pub file_bytes: Option<u64>,
}

/// An open target.
pub trait Database: Send + Sync {
    /// Whether the target stores what it receives (`null` does not).
    fn keeps(&self) -> bool;

    /// Facts about the server; `None` for an engine in this process.
    fn server(&self) -> Option<ServerFacts> {
        None
    }

    /// Access to the tables that a workload declares, if the target supports tables other than that
    /// of the insert benchmark.
    ///
    /// # Errors
    /// The reason why the target does not support them.
    fn tables(&self) -> Result<&dyn Tables> {
        Err(Error::target(
            "it keeps no tables but that of the insert benchmark",
        ))
    }

    /// A connection for one client of the load.
    ///
    /// # Errors
    /// A message for the user.
    fn connect(&self) -> Result<Box<dyn Connection + '_>>;

    /// Create the three indexes, empty, unless they exist.
    ///
    /// # Errors
    /// A message for the user.
    fn create_indexes(&self) -> Result<()>;

    /// Average bytes of a row and, if `indexed`, of its index entries, as the workload writes them
    /// to this target.
    fn row_bytes(&self, indexed: bool) -> f64;

    /// Let background work catch up, for at most `limit`.
    ///
    /// # Errors
    /// A message for the user.
    fn settle(&self, limit: Duration) -> Result<Settled>;

    /// Rewrite the rows in their most compact form.
    ///
    /// # Errors
    /// A message for the user, also if the target does not support this.
    fn rebuild(&self, _meter: &dyn Meter) -> Result<()> {
        Err(Error::target("its rows cannot be rebuilt from here"))
    }

    /// The current state of the target.
    fn state(&self) -> State;

    /// Close the target. Data that the load wrote to a shared server is removed, unless the request
    /// was to keep it.
    ///
    /// # Errors
    /// A message for the user.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Receives the reports of a client about its long operations.
pub trait Meter {
    /// Whether the step has ended: then stop early.
    fn stopped(&self) -> bool;
    /// Run `make`, which generates rows, and add its CPU time to that of the load generator.
    fn generate(&self, make: &mut dyn FnMut());
    /// A measured operation starts.
    fn begin(&self);
    /// The operation ended.
    fn end(&self);
    /// The operation wrote or indexed `rows` rows (each index counts as a third), and `bytes`
    /// bytes.
    fn wrote(&self, rows: u64, bytes: u64);
    /// The operation read `entries` entries.
    fn met(&self, entries: u64);
}

/// One client's connection to a target.
pub trait Connection {
    /// Generate `rows` in memory, with their index entries if `indexed`, for the next
    /// [`Connection::insert`]. The time counts as the generator's.
    fn fill(&mut self, rows: Range<u64>, indexed: bool);

    /// Insert the generated rows in one transaction or request; returns the bytes written.
    ///
    /// # Errors
    /// A message for the user.
    fn insert(&mut self) -> Result<u64>;

    /// Delete rows as a database would: find them by primary key, remove them and their index
    /// entries.
    ///
    /// # Errors
    /// A message for the user.
    fn delete(&mut self, rows: Range<u64>, indexed: bool) -> Result<Deleted>;

    /// A covered range query of at most `limit` entries on index `index`; `random` and the date of
    /// row `id` determine where it starts.
    ///
    /// # Errors
    /// A message for the user.
    fn range(&mut self, index: usize, random: u64, id: u64, limit: usize) -> Result<Ranged>;

    /// Get row `id`; false if it is missing.
    ///
    /// # Errors
    /// A message for the user.
    fn get(&mut self, id: u64) -> Result<bool>;

    /// Generate row `id` and compare it with the row that [`Connection::get`] returned last. This
    /// is the generator's time.
    fn matches(&mut self, id: u64) -> bool;

    /// Read a part from end to end, in order. Every `piece` entries are one operation. Returns the
    /// number of entries read.
    ///
    /// # Errors
    /// A message for the user.
    fn scan(&mut self, part: Part, piece: u64, meter: &dyn Meter) -> Result<u64>;

    /// Compare every row with the generated one, in the order of the primary key, and pass the
    /// result to `visit` until it returns false.
    ///
    /// # Errors
    /// A message for the user.
    fn rows(&mut self, visit: &mut dyn FnMut(Compared) -> bool) -> Result<()>;

    /// Count a part through itself: an index by reading that index.
    ///
    /// # Errors
    /// A message for the user.
    fn count(&mut self, part: Part) -> Result<Counted>;

    /// Build index `index` from `rows`, as `CREATE INDEX` does.
    ///
    /// # Errors
    /// A message for the user.
    fn build(&mut self, index: usize, rows: Range<u64>, meter: &dyn Meter) -> Result<()>;
}

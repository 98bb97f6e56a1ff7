//! The interface between the load and every target: a database that is connected to, filled,
//! queried and checked.
//!
//! The workload is written once, against these traits: an embedded engine implements them with
//! calls, a server through its driver. A new kind of server is one implementation of both.
//!
//! - D1. A connection belongs to one client of the load; connections share no mutable state.
//! - D2. Rows are numbered; the contents of a row are a pure function of its number, so a
//!   connection receives numbers and generates the rows itself. Rows are generated within
//!   [`Meter::generate`] or [`Connection::fill`], never within the time of an operation.

use std::ops::Range;
use std::time::Duration;

use kv::EngineStats;
use lab_report::record::Integrity;

use crate::protocol::{Audit, ServerFacts, Told};
use crate::workload::tables::Tables;

/// Which rows are there: those numbered `low..high`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// The first.
    pub low: u64,
    /// The one after the last.
    pub high: u64,
    /// Whether the three indexes are maintained.
    pub indexed: bool,
}

impl Live {
    /// How many rows there are.
    #[must_use]
    pub fn rows(self) -> u64 {
        self.high.saturating_sub(self.low)
    }
}

/// How many of `rows` rows count as indexed because entries `done` of index `index` of the three
/// are in: each index is a third of a row, so that a rate shows whichever of them is built.
#[must_use]
pub(super) fn indexed_rows(index: usize, rows: u64, done: Range<u64>) -> u64 {
    let thirds = |entries: u64| (index as u64 * rows + entries) / 3;
    thirds(done.end) - thirds(done.start)
}

/// How settling ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Nothing is owed any more.
    Complete,
    /// Its time was up first.
    Cut,
    /// The target does not say what it owes: nothing was waited for.
    Unknown,
}

/// What a target says of itself at a moment.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Counters of its engine; empty where it has none to tell.
    pub stats: EngineStats,
    /// Its size in bytes, from a target whose files the lab cannot see.
    pub file_bytes: Option<u64>,
}

/// A target that is open.
pub trait Database: Send + Sync {
    /// Whether it keeps what it is given (`null` does not).
    fn keeps(&self) -> bool;

    /// What is known of the server; `None` for an engine in this process.
    fn server(&self) -> Option<ServerFacts> {
        None
    }

    /// The tables a workload declares, where it keeps more than those of the insert benchmark.
    ///
    /// # Errors
    /// Why it cannot.
    fn tables(&self) -> Result<&dyn Tables, String> {
        Err("it keeps no tables but that of the insert benchmark".to_owned())
    }

    /// A connection for one client of the load.
    ///
    /// # Errors
    /// A sentence.
    fn connect(&self) -> Result<Box<dyn Connection + '_>, String>;

    /// Make the three indexes, empty, unless they are there.
    ///
    /// # Errors
    /// A sentence.
    fn create_indexes(&self) -> Result<(), String>;

    /// Bytes of a row and, with `indexed`, its index entries, on average, as the workload gives
    /// them to this target.
    fn row_bytes(&self, indexed: bool) -> f64;

    /// Let background work catch up, for at most `limit`.
    ///
    /// # Errors
    /// A sentence.
    fn settle(&self, limit: Duration) -> Result<Settled, String>;

    /// Write the rows anew into their best form.
    ///
    /// # Errors
    /// A sentence; so too for a target that cannot be asked to.
    fn rebuild(&self, _meter: &dyn Meter) -> Result<(), String> {
        Err("its rows cannot be rebuilt from here".to_owned())
    }

    /// What it says of itself now.
    fn state(&self) -> State;

    /// Compare what a killed process left with what each client had been told.
    ///
    /// # Errors
    /// A sentence; so too for a target whose process is not the lab's to end.
    fn audit(&mut self, told: &[Told]) -> Result<Audit, String> {
        let clients = told.len();
        Err(format!(
            "what was acknowledged to {clients} clients cannot be looked for in a server"
        ))
    }

    /// Compare what is there with what the workload put there.
    fn verify(&self, live: Live) -> Integrity;

    /// Close it; what the load wrote to a server that others use is removed, unless it is to be
    /// kept.
    ///
    /// # Errors
    /// A sentence.
    fn close(self: Box<Self>) -> Result<(), String>;
}

/// Where a client's long operations tell what they do.
pub trait Meter {
    /// Whether the step is over: stop early.
    fn stopped(&self) -> bool;
    /// Run `make`, which makes rows, and count its CPU time as the generator's.
    fn generate(&self, make: &mut dyn FnMut());
    /// An operation whose latency counts begins.
    fn begin(&self);
    /// It ended.
    fn end(&self);
    /// It wrote so many rows, or indexed so many (each index is a third), and so many bytes.
    fn wrote(&self, rows: u64, bytes: u64);
    /// It met so many entries.
    fn met(&self, entries: u64);
    /// An answer was wrong.
    fn wrong(&self, message: String);
}

/// One client's way to a target.
pub trait Connection {
    /// Make rows `rows` in memory, with their index entries where `indexed`, for the next
    /// [`Connection::insert`]. This is the generator's time.
    fn fill(&mut self, rows: Range<u64>, indexed: bool);

    /// Insert what was filled in, in one transaction or request; returns its bytes.
    ///
    /// # Errors
    /// A sentence.
    fn insert(&mut self) -> Result<u64, String>;

    /// Delete rows as a database would: find them by primary key, remove them and their index
    /// entries. Rows that are not there are told to `meter`. Returns the bytes written.
    ///
    /// # Errors
    /// A sentence.
    fn delete(&mut self, rows: Range<u64>, indexed: bool, meter: &dyn Meter)
    -> Result<u64, String>;

    /// A covered range query of at most `limit` entries on index `index`, from where `random` and
    /// the date of row `id` say; returns the entries met.
    ///
    /// # Errors
    /// A sentence.
    fn range(
        &mut self,
        index: usize,
        random: u64,
        id: u64,
        limit: usize,
        meter: &dyn Meter,
    ) -> Result<u64, String>;

    /// Get row `id` and compare it with what it must be; false when it is not there.
    ///
    /// # Errors
    /// A sentence.
    fn point(&mut self, id: u64, meter: &dyn Meter) -> Result<bool, String>;

    /// Read from end to end, in order: the rows (0) or index 1 to 3. Each `piece` entries are an
    /// operation. Returns the entries met.
    ///
    /// # Errors
    /// A sentence.
    fn scan(&mut self, part: usize, piece: u64, meter: &dyn Meter) -> Result<u64, String>;

    /// Build index `index` from rows `rows`, as `CREATE INDEX` does.
    ///
    /// # Errors
    /// A sentence.
    fn build(&mut self, index: usize, rows: Range<u64>, meter: &dyn Meter) -> Result<(), String>;
}

//! Measures the work of one operation in steps, time and memory, and enforces its limits.
//!
//! The meter of an operation belongs to the thread that executes the operation. The operation
//! starts by entering a [`Meter`]; until the guard is dropped, everything that this thread parses,
//! evaluates, compares, matches or sorts is counted. The meter is not passed as an argument, so no
//! code can omit it. A thread without a meter has the memory limit and no deadline.
//!
//! M1: while an expression is evaluated, the bytes charged are at least those of the values that
//!     the evaluation holds. They are charged before they are allocated, and released by scopes.
//! M2: the watch is checked at least every [`LOOK_EVERY`] steps. A step costs about as much as one
//!     call of an operator, or as reading [`STEP_BYTES`] bytes.
//! M3: once the watch has ended the operation, every further step fails.
//!
//! Counting is plain arithmetic on the thread's own cells; atomic operations happen only when the
//! share of the common [`Budget`] grows or shrinks.

mod budget;
mod parsed;
mod processors;
mod size;
mod sort;

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

pub use budget::{Budget, Held, Usage};
pub(crate) use parsed::{Parsing, hold_parsed};
pub use parsed::{parsed_size, parsed_size_of, unreserved};
pub use processors::{Processors, Slots};
pub(crate) use size::{NEW_DOCUMENT, entry};
pub use size::{decoded_size, document_size, size};
pub use sort::sort_by;

use bson::{Bson, Document};

use crate::{Code, Error, Result};
use processors::Turn;

/// Bytes that values of expressions of one operation may hold (MongoDB's limit for operators whose
/// result grows).
pub const MEMORY_LIMIT: usize = 100 << 20;
/// Steps between two checks of the clock and the kill flag: about 100 microseconds.
pub const LOOK_EVERY: usize = 1024;
/// Number of bytes whose reading counts as one step.
pub const STEP_BYTES: usize = 4096;
/// The name, in errors about memory, of the reasons why a document is not valid.
pub(crate) const VALIDATION: &str = "Document validation";
/// Bytes that an operation may use without a reservation, so that small operations need none.
pub(crate) const FREE: usize = 64 << 10;
/// The unit of reservations in the budget.
pub(crate) const CHUNK: usize = 256 << 10;
/// Reserved bytes in excess of those in use that are kept for the next row.
const SLACK: usize = 4 << 20;

/// Decides whether an operation may continue: its deadline and its kill flag.
pub trait Watch: Send + Sync {
    /// Checks the deadline and the kill flag.
    ///
    /// # Errors
    /// `MaxTimeMSExpired`, `Interrupted` and similar codes.
    fn check(&self) -> Result<()>;

    /// The time left for the operation; `None` if it is not limited.
    fn left(&self) -> Option<Duration> {
        None
    }
}

/// The limits of an operation.
#[derive(Clone)]
pub struct Meter {
    watch: Option<Arc<dyn Watch>>,
    budget: Option<Arc<Budget>>,
    processors: Option<Arc<Processors>>,
    limit: usize,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter {
            watch: None,
            budget: None,
            processors: None,
            limit: MEMORY_LIMIT,
        }
    }
}

impl Meter {
    /// Returns this meter with `watch`, which can end the operation.
    #[must_use]
    pub fn with_watch(mut self, watch: Arc<dyn Watch>) -> Meter {
        self.watch = Some(watch);
        self
    }

    /// Returns this meter with reservations in `budget`.
    #[must_use]
    pub fn with_budget(mut self, budget: Option<Arc<Budget>>) -> Meter {
        self.budget = budget;
        self
    }

    /// Returns this meter with time slices: a long operation takes turns with others on
    /// `processors`.
    #[must_use]
    pub fn with_processors(mut self, processors: Option<Arc<Processors>>) -> Meter {
        self.processors = processors;
        self
    }

    /// Returns this meter with a memory limit in bytes; default [`MEMORY_LIMIT`].
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Meter {
        self.limit = limit;
        self
    }

    /// Starts measuring the work of this thread, until the guard is dropped.
    pub fn enter(self) -> Entered {
        let counters = Counters {
            left: LOOK_EVERY,
            bytes: 0,
            limit: self.limit,
            entered: true,
        };
        Entered {
            counters: COUNTERS.replace(counters),
            links: LINKS.replace(Links {
                watch: self.watch,
                held: Held::of(self.budget),
                turn: Turn::of(self.processors),
            }),
            thread: PhantomData,
        }
    }
}

/// When dropped, ends the measurement and restores the previous meter of the thread.
#[must_use = "the operation is measured until this is dropped"]
pub struct Entered {
    counters: Counters,
    links: Links,
    /// Not `Send`: dropping restores the counters of the thread that entered the meter.
    thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        COUNTERS.set(self.counters);
        // The operation's reservation ends when its old links are dropped here.
        drop(LINKS.replace(std::mem::take(&mut self.links)));
    }
}

/// Counters that every step changes.
#[derive(Clone, Copy)]
struct Counters {
    /// Steps until the next check of the watch.
    left: usize,
    /// Bytes charged.
    bytes: usize,
    limit: usize,
    /// Whether the thread is within a meter.
    entered: bool,
}

/// State that only few steps need.
#[derive(Default)]
struct Links {
    watch: Option<Arc<dyn Watch>>,
    held: Held,
    turn: Turn,
}

thread_local! {
    static COUNTERS: Cell<Counters> = const {
        Cell::new(Counters { left: LOOK_EVERY, bytes: 0, limit: MEMORY_LIMIT, entered: false })
    };
    static LINKS: RefCell<Links> = const {
        RefCell::new(Links { watch: None, held: Held::none(), turn: Turn::none() })
    };
}

/// Counts one step.
///
/// # Errors
/// Errors of the watch, when it is checked.
#[inline]
pub fn step() -> Result<()> {
    steps(1)
}

/// Counts steps.
///
/// # Errors
/// As [`step`].
#[inline]
pub fn steps(count: usize) -> Result<()> {
    let mut counters = COUNTERS.get();
    if count < counters.left {
        counters.left -= count;
        COUNTERS.set(counters);
        return Ok(());
    }
    look()
}

/// Counts the reading of `bytes`: one step, and one more for every [`STEP_BYTES`].
#[inline]
pub fn read(bytes: usize) -> Result<()> {
    steps(1 + bytes / STEP_BYTES)
}

/// Counts steps where no error can be returned; the next [`step`] checks the watch if it is due.
#[inline]
pub(crate) fn count(count: usize) {
    let mut counters = COUNTERS.get();
    counters.left = counters.left.saturating_sub(count);
    COUNTERS.set(counters);
}

#[cold]
fn look() -> Result<()> {
    let watch = LINKS.with_borrow(|links| links.watch.clone());
    let check = || watch.as_ref().map_or(Ok(()), |watch| watch.check());
    // An operation that must end must not wait for a slot first.
    let mut outcome = check();
    if outcome.is_ok() && take_turn(watch.as_ref().and_then(|watch| watch.left())) {
        outcome = check();
    }
    let mut counters = COUNTERS.get();
    // M3: after an error, the next step checks the watch again.
    counters.left = if outcome.is_ok() { LOOK_EVERY } else { 0 };
    COUNTERS.set(counters);
    outcome
}

/// Ends the time slice if it is over; returns whether the operation waited for the next one.
fn take_turn(left: Option<Duration>) -> bool {
    let mut turn = LINKS.with_borrow_mut(|links| std::mem::take(&mut links.turn));
    let waited = turn.look(left);
    LINKS.with_borrow_mut(|links| links.turn = turn);
    waited
}

/// Called before the operation of this thread waits for something other than a processor (a lock, a
/// write, the log): it releases its slot, so that other operations can run.
pub fn rest() {
    LINKS.with_borrow_mut(|links| links.turn.rest());
}

/// Charges bytes that the operator or stage `name` is about to allocate. They are released by the
/// innermost [`Scope`].
///
/// # Errors
/// `ExceededMemoryLimit` when the operation would exceed its limit or the budget.
#[inline]
pub(crate) fn charge(name: &str, bytes: usize) -> Result<()> {
    let mut counters = COUNTERS.get();
    let total = counters.bytes.saturating_add(bytes);
    if counters.limit < total {
        return Err(exceeded(name, bytes, counters.limit));
    }
    counters.bytes = total;
    COUNTERS.set(counters);
    if FREE < total {
        return reserve(name, total);
    }
    Ok(())
}

/// Releases charged bytes before the scope ends, when their value is dropped.
pub(crate) fn release(bytes: usize) {
    let mut counters = COUNTERS.get();
    counters.bytes = counters.bytes.saturating_sub(bytes);
    COUNTERS.set(counters);
}

/// Charges bytes until the operation ends, such as those of its reply. Without a meter nothing is
/// charged, because nothing would release it. Must not be called within a scope.
///
/// # Errors
/// `ExceededMemoryLimit` when the operation would exceed its limit or the budget.
pub fn charge_operation(name: &str, bytes: usize) -> Result<()> {
    if COUNTERS.get().entered {
        charge(name, bytes)
    } else {
        Ok(())
    }
}

/// As [`charge_operation`], but leaves at least half of the operation's memory to its expressions.
///
/// # Errors
/// As [`charge_operation`].
pub fn charge_reply(name: &str, bytes: usize) -> Result<()> {
    let counters = COUNTERS.get();
    let half = counters.limit / 2;
    if counters.entered && half < counters.bytes.saturating_add(bytes) {
        return Err(exceeded(name, bytes, half));
    }
    charge_operation(name, bytes)
}

#[cold]
fn reserve(name: &str, total: usize) -> Result<()> {
    let granted = LINKS.with_borrow_mut(|links| links.held.cover(total));
    if granted {
        return Ok(());
    }
    let usage = budget().map(|budget| budget.usage());
    Err(spent(name, usage.unwrap_or_default()))
}

/// The budget of the current operation.
fn budget() -> Option<Arc<Budget>> {
    LINKS.with_borrow(|links| links.held.budget().cloned())
}

/// When dropped, releases the bytes charged since the scope was made.
#[must_use = "charges are released when this is dropped"]
pub(crate) struct Scope {
    mark: usize,
}

/// Begins a scope.
#[inline]
pub(crate) fn scope() -> Scope {
    Scope {
        mark: COUNTERS.get().bytes,
    }
}

impl Scope {
    /// Bytes charged since the scope was made.
    pub(crate) fn charged(&self) -> usize {
        COUNTERS.get().bytes.saturating_sub(self.mark)
    }

    /// Releases the bytes charged since the scope was made.
    #[inline]
    pub(crate) fn release(&self) {
        let mut counters = COUNTERS.get();
        if self.mark < counters.bytes {
            let released = counters.bytes - self.mark;
            counters.bytes = self.mark;
            COUNTERS.set(counters);
            if SLACK < released {
                shrink(self.mark);
            }
        }
    }

    /// Ends the scope: releases all its charges, except `bytes` for its result, which are charged
    /// to the outer scope.
    ///
    /// # Errors
    /// As [`charge`].
    #[inline]
    pub(crate) fn keep(self, name: &str, bytes: usize) -> Result<()> {
        self.release();
        std::mem::forget(self);
        charge(name, bytes)
    }

    /// Ends the scope; its charges move to the outer scope.
    pub(crate) fn keep_all(self) {
        std::mem::forget(self);
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.release();
    }
}

#[cold]
fn shrink(bytes: usize) {
    LINKS.with_borrow_mut(|links| links.held.shrink(bytes, SLACK));
}

/// Copies values that the operator `name` puts into an array, and charges each copy before it is
/// made.
///
/// # Errors
/// Errors of [`step`] and [`charge`].
pub(crate) fn copies<'v>(name: &str, values: impl Iterator<Item = &'v Bson>) -> Result<Vec<Bson>> {
    let mut copies = Vec::new();
    for value in values {
        copies.push(copy(name, value)?);
    }
    Ok(copies)
}

/// Copies a value; the copy is charged before it is made.
///
/// # Errors
/// As [`copies`].
pub(crate) fn copy(name: &str, value: &Bson) -> Result<Bson> {
    let bytes = size(value);
    read(bytes)?;
    charge(name, bytes)?;
    if bytes <= PIECE {
        return Ok(value.clone());
    }
    piecewise(value)
}

/// Values up to this size are copied at once.
const PIECE: usize = 256 << 10;

/// Copies a large value with a step for each value in it. Recursion is bounded by the depth of
/// documents.
fn piecewise(value: &Bson) -> Result<Bson> {
    step()?;
    Ok(match value {
        Bson::Array(items) => {
            let mut copies = Vec::with_capacity(items.len());
            for item in items {
                copies.push(piecewise(item)?);
            }
            Bson::Array(copies)
        }
        Bson::Document(document) => Bson::Document(fields(document)?),
        other => other.clone(),
    })
}

/// Copies a stored document of `bytes` (see [`document_size`]). The copy is not charged: it is
/// bounded by the size of a stored document.
///
/// # Errors
/// Errors of [`step`].
pub(crate) fn copy_stored(document: &Document, bytes: usize) -> Result<Document> {
    read(bytes)?;
    if bytes <= PIECE {
        return Ok(document.clone());
    }
    fields(document)
}

/// Copies a document with a step for each value in it.
fn fields(document: &Document) -> Result<Document> {
    let mut copy = Document::new();
    for (name, value) in document {
        copy.insert(name.as_str(), piecewise(value)?);
    }
    Ok(copy)
}

/// The error of an operator or stage that would exceed the memory limit of the operation.
fn exceeded(name: &str, bytes: usize, limit: usize) -> Error {
    Error::new(
        Code::EXCEEDED_MEMORY_LIMIT,
        format!(
            "{name} would use too much memory ({bytes} more bytes) and cannot spill to disk. \
             Memory limit: {limit} bytes"
        ),
    )
}

/// The error of an operation whose reservation the budget refuses.
fn spent(name: &str, usage: Usage) -> Error {
    Error::new(
        Code::EXCEEDED_MEMORY_LIMIT,
        format!(
            "{name} needs more memory than all queries of this server may use together. In use: \
             {} of {} bytes",
            usage.used, usage.limit
        ),
    )
}

#[cfg(test)]
mod tests;

//! Runaway queries: for each operator, accumulator, window function and stage, a form that would
//! use memory or time without limit, or the reason why it cannot.
//!
//! The test fails if a name of the vocabulary has no entry. Each form runs twice: with a small
//! memory limit, while the allocator measures the memory really used; and with a watch that
//! interrupts it, after which it must end within a few steps. Neither run reads a clock.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod expressions;
mod host;
mod parsing;
mod regexes;
mod stages;
mod walks;
mod windows;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bson::{Bson, Document, bson, doc};
use peak_alloc::PeakAlloc;
use query::meter::{Meter, Watch};
use query::{Code, Error, Result};
use stdx::sync::Mutex;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The allocator measures the whole process, so tests run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Memory limit of an operation, in bytes.
const LIMIT: usize = 4 << 20;
/// The memory really used may exceed the limit by this factor: charges are estimates, vectors grow
/// by doubling, and one value may be copied before the copy is refused.
const FACTOR: usize = 5;
/// Maximum number of checks after the operation was interrupted.
const FURTHER: usize = 16;

/// The entry of a name in a table.
enum Entry {
    /// Its output or temporary data grows: it must either be refused for its memory, or have a
    /// result.
    Grows(Bson),
    /// Its time is proportional to the fields of the document: a watch must be able to interrupt
    /// it.
    Works(Bson),
    /// It does neither, for this reason.
    Bounded(&'static str),
}

/// A watch that interrupts from the check with a given number on, and counts the checks.
struct Stop {
    after: usize,
    looks: AtomicUsize,
}

impl Stop {
    fn after(after: usize) -> Arc<Stop> {
        Arc::new(Stop {
            after,
            looks: AtomicUsize::new(0),
        })
    }

    fn looks(&self) -> usize {
        self.looks.load(Ordering::Relaxed)
    }

    /// Number of checks after the first one that interrupted.
    fn further(&self) -> usize {
        self.looks().saturating_sub(self.after.saturating_add(1))
    }
}

impl Watch for Stop {
    fn check(&self) -> Result<()> {
        if self.looks.fetch_add(1, Ordering::Relaxed) < self.after {
            return Ok(());
        }
        Err(Error::new(Code::INTERRUPTED, "interrupted by the test"))
    }
}

/// Runs a form with the small memory limit; checks the memory used, and the code of an error.
fn limited<T>(what: &str, run: impl FnOnce() -> Result<T>) -> Result<T> {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let entered = Meter::default().with_limit(LIMIT).enter();
    let outcome = run();
    drop(entered);
    let took = ALLOCATOR.peak_usage().saturating_sub(before);
    assert!(took <= FACTOR * LIMIT, "{what} took {took} bytes");
    if let Err(error) = &outcome {
        let refused = [
            Code::EXCEEDED_MEMORY_LIMIT,
            // These have codes of their own: a string above 64 MiB, an array in $lookup, the
            // document of $facet, $graphLookup, and too many documents in $densify.
            Code(13_548),
            Code(4_568),
            Code(4_031_700),
            Code(40_099),
            Code(5_897_900),
            Code::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
        ];
        assert!(refused.contains(&error.code), "{what}: {error:?}");
    }
    outcome
}

/// Runs a form with a watch that interrupts at the first check, which must end it.
fn stopped<T>(what: &str, run: impl FnOnce() -> Result<T>) {
    let watch = Stop::after(0);
    let entered = Meter::default().with_watch(watch.clone()).enter();
    let outcome = run();
    drop(entered);
    match outcome {
        Err(error) => assert_eq!(error.code, Code::INTERRUPTED, "{what}: {error}"),
        Ok(_) => panic!("{what} was not interrupted"),
    }
    let further = watch.further();
    assert!(further <= FURTHER, "{what} made {further} steps more");
}

/// Checks that every name has an entry, and that every entry has a known name.
#[track_caller]
fn complete(words: &[&str], entries: &[(&'static str, Entry)]) {
    let mut named: Vec<&str> = entries.iter().map(|(name, _)| *name).collect();
    named.sort_unstable();
    for word in words {
        assert!(
            named.contains(word),
            "no runaway form, and no reason, for {word}"
        );
    }
    for pair in named.windows(2) {
        assert_ne!(pair.first(), pair.last(), "an entry twice");
    }
    for name in named {
        assert!(words.contains(&name), "{name} is no word of the language");
    }
}

/// A document in which each field takes enough steps for a check of the watch: `a` unsorted
/// numbers, `d` documents, `s` a long text, `p` parts of a text, `o` an object of many fields, `n`
/// nulls, `e` pairs.
fn large() -> Document {
    let mut rng = stdx::Rng::new(1);
    let count = 4_000;
    let number = |_| Bson::Int64(i64::try_from(rng.below(1 << 40)).unwrap());
    let numbers: Vec<Bson> = (0..count).map(number).collect();
    let documents: Vec<Bson> = numbers
        .iter()
        .map(|n| bson!({"k": n.clone(), "v": 1}))
        .collect();
    let pairs: Vec<Bson> = (0..count)
        .map(|n| bson!({"k": format!("f{n}"), "v": n}))
        .collect();
    let object: Document = (0..count)
        .map(|n| (format!("f{n}"), Bson::Int32(n)))
        .collect();
    let nulls: Vec<Bson> = numbers.iter().map(|_| Bson::Null).collect();
    doc! {
        "_id": 1,
        "a": numbers,
        "d": documents,
        "e": pairs,
        "n": nulls,
        "o": object,
        "s": "a".repeat(5 << 20),
        "p": "ab,".repeat(20_000),
    }
}

//! Runaway queries: for each operator, accumulator, function of windows and stage that there is, a
//! form that would take memory or time without end, or the reason why it cannot.
//!
//! A word of the vocabulary without an entry fails the test. Each form is run under a small limit
//! of memory, where the allocator reports what it really took, and with a watch that interrupts it,
//! after which it must end within a few steps. Neither reads a clock.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod expressions;
mod host;
mod regexes;
mod stages;
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

/// The allocator counts for the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Bytes that an operation may hold here.
const LIMIT: usize = 4 << 20;
/// How often the limit may really be allocated: charges are estimates, vectors grow by doubling,
/// and one value may be copied before the copy is refused.
const FACTOR: usize = 5;
/// Steps that an operation may make after it was interrupted.
const FURTHER: usize = 16;

/// What a table says of a word.
enum Entry {
    /// It must be refused for its memory, or have a result: its output or its scratch grows.
    Grows(Bson),
    /// It works in proportion to the fields of the document: a watch must be able to end it.
    Works(Bson),
    /// It can do neither, for this reason.
    Bounded(&'static str),
}

/// Interrupts from a certain check on, and counts the checks.
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

    /// Checks after the first that failed.
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

/// What a form did under the small limit.
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
            // A string beyond 64 MiB, an array in $lookup, the document of $facet, $graphLookup,
            // and too many documents in $densify have codes of their own.
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

/// Runs a form that is interrupted at its first look, which must end it.
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

/// Every word has its entry, and every entry is of a word.
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

/// A document whose fields are worth at least a look each: `a` numbers in disorder, `d` documents,
/// `s` a long text, `p` parts of one, `o` an object of many fields, `n` nulls, `e` pairs.
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

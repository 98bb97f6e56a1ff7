//! Runs laws and reports their results.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::bench::Bench;
use crate::law::{Law, Need};
use crate::list::laws;
use crate::subject::Subject;

/// A law that was not run because the engine lacks a capability.
#[derive(Clone, Copy, Debug)]
pub struct Skipped {
    /// The law.
    pub law: Law,
    /// The missing capability.
    pub need: Need,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "skipped by capability: {} (needs {})",
            self.law, self.need
        )
    }
}

/// A law that the engine breaks.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The law.
    pub law: Law,
    /// The message of the failed assertion.
    pub message: String,
}

/// The results of all laws for one engine.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The laws that passed.
    pub passed: Vec<Law>,
    /// The laws that were skipped.
    pub skipped: Vec<Skipped>,
    /// The laws that failed.
    pub failed: Vec<Failure>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for skipped in &self.skipped {
            writeln!(f, "{skipped}")?;
        }
        for failure in &self.failed {
            writeln!(f, "broken: {}: {}", failure.law, failure.message)?;
        }
        write!(
            f,
            "{} laws kept, {} broken, {} skipped by capability",
            self.passed.len(),
            self.failed.len(),
            self.skipped.len()
        )
    }
}

/// Run every law on `subject`, each in a new directory.
#[must_use]
pub fn check_laws(subject: &Subject) -> Report {
    let mut report = Report::default();
    for &law in laws() {
        if let Some(need) = law.unmet(subject.capabilities(), subject.options()) {
            report.skipped.push(Skipped { law, need });
            continue;
        }
        match catch_unwind(AssertUnwindSafe(|| (law.run)(&mut Bench::new(subject)))) {
            Ok(()) => report.passed.push(law),
            Err(payload) => report.failed.push(Failure {
                law,
                message: panic_text(&*payload),
            }),
        }
    }
    report
}

/// Run one law on `subject`; prints a line if the law is skipped.
///
/// # Panics
/// If the engine breaks the law, or the law does not exist.
pub fn run_law(subject: &Subject, theme: &str, name: &str) {
    let law = laws()
        .iter()
        .find(|law| law.theme == theme && law.name == name)
        .unwrap_or_else(|| panic!("no law {theme}::{name}"));
    match law.unmet(subject.capabilities(), subject.options()) {
        Some(need) => println!("{}", Skipped { law: *law, need }),
        None => (law.run)(&mut Bench::new(subject)),
    }
}

/// Print every law that is skipped for `subject`, and the number of laws that run.
///
/// # Panics
/// If the list has fewer than 120 laws.
pub fn print_skipped(subject: &Subject) {
    const FLOOR: usize = 120;
    let mut skipped = 0;
    for &law in laws() {
        if let Some(need) = law.unmet(subject.capabilities(), subject.options()) {
            println!("{}", Skipped { law, need });
            skipped += 1;
        }
    }
    let count = laws().len();
    println!(
        "{}: {count} laws, {} run, {skipped} skipped by capability",
        subject.factory().name(),
        count - skipped
    );
    assert!(FLOOR <= count, "only {count} laws; at least {FLOOR} stand");
}

pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a text").to_owned()
}

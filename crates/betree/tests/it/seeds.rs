//! The seeds of random histories: `ROMANESCO_SEEDS=N` runs N of each test, `ROMANESCO_SEED=S`
//! begins with S, and runs only that one if N is not given.

use std::env;
use std::ops::Range;

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

/// `count` seeds from `first` on, unless the environment asks for others.
pub(crate) fn seeds(first: u64, count: u64) -> Range<u64> {
    let begin = number("ROMANESCO_SEED");
    let count = number("ROMANESCO_SEEDS").unwrap_or(if begin.is_some() { 1 } else { count });
    let begin = begin.unwrap_or(first);
    begin..begin + count
}

/// Prints what repeats a seed when its test fails.
pub(crate) struct Repeat(pub(crate) u64);

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "repeat it with ROMANESCO_SEED={} and the name of the test",
                self.0
            );
        }
    }
}

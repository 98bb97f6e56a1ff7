//! Regular expressions in the dialect of MongoDB: PCRE2 over UTF-8.

mod pattern;
mod prefix;

pub use pattern::{Captures, Regex};

#[cfg(test)]
mod tests;

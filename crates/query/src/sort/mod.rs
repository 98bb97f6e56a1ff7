//! The order of documents: specifications of sorts, and the keys documents are sorted by.

mod extract;
mod key;
mod spec;

pub use key::SortKey;
pub use spec::{Direction, Sort};

#[cfg(test)]
mod tests;

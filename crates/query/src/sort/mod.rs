//! The order of documents: specifications of sorts, and the keys documents are sorted by.

mod extract;
mod key;
mod spec;

pub use key::SortKey;
pub(crate) use key::collated;
pub use spec::{Direction, Sort};

#[cfg(test)]
mod tests;

//! Updates: replacements, operators and pipelines, applied to one document at a time.
//!
//! Operators form a tree by the paths they change. Building the tree finds conflicting paths;
//! applying it visits every path once, in the order of field names that MongoDB guarantees.

mod apply;
mod array;
mod array_filter;
mod diff;
mod dollar;
mod encoded;
mod field;
mod identical;
mod modifier;
mod number;
mod parse;
mod pull;
mod push;
mod rename;
mod replacement;
mod spec;
#[cfg(test)]
mod tests;
mod tree;
mod upsert;
mod writer;

pub use diff::{DELTA_MAX, Difference, Form, delta, diff};
pub use identical::{identical, identical_values};
pub(crate) use parse::names;
pub use spec::{Position, Update};
pub use upsert::upsert_base;

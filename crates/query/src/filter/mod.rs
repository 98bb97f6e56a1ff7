//! Filters: which documents a query is about.
//!
//! `parse` and `operator` make the tree of `node` from a document, checking everything; `matches`
//! walks raw documents with it and `test` judges single values; `render` writes the tree back.

mod argument;
mod bits;
mod compiled;
mod explain;
mod list;
mod matches;
mod node;
mod operator;
mod parse;
mod render;
mod test;

pub use crate::types::Types;
pub use bits::{Bits, BitsKind};
pub use compiled::{Details, Filter};
pub use list::In;
pub use node::{Node, Test};
pub(crate) use operator::{is_of_fields, names};

#[cfg(test)]
mod tests;

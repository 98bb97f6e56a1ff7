//! Filters: the conditions on documents in a query.
//!
//! `parse` and `operator` make the tree of `node` from a document and check it; `matches` evaluates
//! the tree on raw documents, and `test` evaluates single values; `render` converts the tree back
//! to a document.

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

//! Dotted paths into documents, and the values that they lead to.

mod find;
mod parse;
mod walk;

pub use find::find;
pub(crate) use parse::array_index;
pub use parse::{Component, Path};
pub use walk::{Leaf, Leaves, walk, walk_leaves};

#[cfg(test)]
mod tests;

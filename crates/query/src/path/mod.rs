//! Dotted paths into documents, and walking documents along them.

mod find;
mod parse;
mod walk;

pub use find::find;
pub use parse::{Component, Path};
pub use walk::{Leaf, Leaves, walk, walk_leaves};

#[cfg(test)]
mod tests;

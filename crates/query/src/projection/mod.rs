//! Projections: which fields of a document stay, and which are computed.
//!
//! One engine serves `find`, `$project`, `$addFields` and `$unset`. A specification becomes a tree
//! by the names of fields. Projections that only choose work on bytes; those that compute work on
//! trees, every expression evaluated once against the whole input document.

mod apply;
mod extra;
mod parse;
mod raw;
mod spec;
#[cfg(test)]
mod tests;
mod tree;

pub use spec::Projection;

//! Projections: which fields of a document are kept, and which are computed.
//!
//! One implementation serves `find`, `$project`, `$addFields` and `$unset`. A specification becomes
//! a tree by the names of fields. Projections that only choose fields work on bytes; projections
//! that compute fields work on owned documents and evaluate every expression once, against the
//! input document.

mod apply;
mod extra;
mod parse;
mod raw;
mod spec;
#[cfg(test)]
mod tests;
mod tree;

pub use spec::Projection;

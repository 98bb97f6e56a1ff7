//! Diffs: the form of an update in an oplog entry, `{$v: 2, diff: ...}`, made and applied.
//!
//! A diff of a document has the sections `d` (fields to remove), `u` (fields to set), `i` (fields
//! to append, removed from their old position) and, for each field `f` that is changed below, `sf`
//! with the diff of its value. A diff of an array has `a: true`, optionally `l` for the new length,
//! and for the element with index N the key `uN` (its new value) or `sN` (a diff of its value).
//!
//! ```text
//! before  {_id: 1, a: 1, b: {x: 1, y: 2}, l: [1, 2, 3]}
//! after   {_id: 1, b: {x: 1, y: 5}, l: [1, 7], n: 0}
//! diff    {d: {a: false}, i: {n: 0}, sb: {u: {y: 5}}, sl: {a: true, l: 2, u1: 7}}
//! ```
//!
//! Both directions work on encoded documents: a value that does not change is compared and copied
//! as bytes, and is never decoded.
//!
//! - D1. Diffs are idempotent: applying one to its own result changes nothing. A nested diff whose
//!   value is missing or has another type is ignored.
//! - D2. Applying the diff of two documents to the first gives the second, byte by byte: also the
//!   order of the fields, the types of the numbers and the bits of a NaN.
//! - D3. In the form [`Form::Smallest`] a diff is smaller than the document it leads to.
//! - D4. A name occurs once in a diff. A document that repeats a changed name has no diff.

mod apply;
mod make;
#[cfg(test)]
mod tests;

pub use apply::{DELTA_MAX, delta};
pub use make::{Difference, Form, diff};

/// Maximum nesting that diffs follow: messages are not nested deeper. A value below it is replaced
/// whole.
const DEPTH_MAX: usize = 200;

//! A document and its index entries, put and removed together: all writes come through here.
//!
//! - E1. What is put for a document is what the key generator gives for it, and nothing else; what
//!   is removed for a document is what it gives for the bytes that were stored.
//! - E2. A write that is refused (a duplicate key, arrays that cannot be indexed) leaves nothing of
//!   its document in the transaction: all keys are made before the first is put, and unique ones
//!   are put before all others and taken back.

mod capped;
mod entry;
mod keys;
mod writer;

pub(crate) use entry::Entries;
pub(crate) use keys::Untouched;
pub(crate) use writer::Writer;

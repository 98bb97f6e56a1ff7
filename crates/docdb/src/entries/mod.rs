//! Writes a document together with its index entries: all document writes use this module.
//!
//! - E1. The entries put for a document are exactly those that the key generator makes for it; the
//!   entries removed are those that it makes for the stored bytes.
//! - E2. A rejected write (a duplicate key, arrays that cannot be indexed) leaves no change of its
//!   document in the transaction: all keys are made before the first is put, and unique entries are
//!   put before all others and undone on failure.

mod capped;
mod entry;
mod keys;
mod settle;
mod writer;

pub(crate) use entry::Entries;
pub(crate) use keys::Untouched;
pub(crate) use settle::{Settle, State};
pub(crate) use writer::Writer;

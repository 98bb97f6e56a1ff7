//! Cursors: the state of a query between batches.
//!
//! A cursor holds no view of the store. Each batch reads a view of its own (or the transaction's).
//! Scans continue after the last key they reached: a document that does not move is returned at
//! most once, and a document deleted in the meantime is not returned. Results that were sorted or
//! grouped are returned as they were at that time.

mod alive;
mod batch;
mod get_more;
mod list;
mod open;
mod registry;

pub(crate) use alive::{check_alive, check_indexes, collection_gone, or_killed, or_killed_if};
pub use batch::{BATCH_BYTES, Batch, FIRST_BATCH};
pub(crate) use batch::{Collector, fill};
pub use get_more::GetMore;
pub(crate) use open::{Cursor, Cursors, Next};
pub use registry::{Figures, IdleCursor, Killed, Origin, Owner};

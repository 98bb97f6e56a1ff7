//! Cursors: what is left of a query between batches.
//!
//! A cursor holds no view of the store. Each batch is made from a view of its own (or the
//! transaction's); scans continue beyond the key they have reached, so that a document that does
//! not move is never given twice, and one that is deleted meanwhile is not given. What was sorted
//! or grouped is given as it was.

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

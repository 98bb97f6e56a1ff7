//! The store as applications see it.

mod bulk;
#[cfg(test)]
mod bulk_tests;
mod catalog;
mod commit;
mod core;
mod counters;
mod ddl;
mod debug;
mod expand;
mod gate;
mod handle;
mod health;
mod iter;
mod key_range;
mod memory;
mod open;
mod own_writes;
mod plan;
#[cfg(test)]
mod private_tests;
mod reader;
mod recent;
mod replay;
mod snapshot;
mod snapshots;
mod transaction;
mod tree_handle;
mod tuning;

pub(crate) use self::core::{Committer, Core, DATA_FILE};
#[cfg(test)]
pub(crate) use bulk::{Changes, Chunks};
pub use handle::Db;
pub use iter::Iter;
pub use key_range::AsKeyRange;
pub(crate) use memory::MOST_SLEEP;
#[cfg(test)]
pub(crate) use open::open;
pub use reader::Cursor;
pub(crate) use reader::Reader;
pub use snapshot::Snapshot;
pub use transaction::Transaction;
pub use tree_handle::Tree;

//! The store, as an embedder sees it.

mod catalog;
mod commit;
mod core;
mod counters;
mod ddl;
mod expand;
mod handle;
mod health;
mod memory;
mod open;
mod plan;
mod reader;
mod recent;
mod snapshot;
mod snapshots;
mod transaction;
mod tuning;

pub(crate) use self::core::{Committer, Core};
pub(crate) use counters::Wait as Waited;
pub use handle::Db;
pub use reader::Cursor;
pub(crate) use reader::Reader;
pub use snapshot::Snapshot;
pub use transaction::Transaction;

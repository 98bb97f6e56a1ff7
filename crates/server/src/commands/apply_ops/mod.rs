//! `applyOps`: entries of an oplog, applied as `mongorestore --oplogReplay` and administrators
//! send them.
//!
//! - E1. Entries that change documents only are applied together, all or none. With others among
//!   them they are applied one by one.

mod command;
mod needs;
mod operation;
mod target;

pub(super) use command::ROWS;

//! `applyOps`: entries of an oplog, applied as `mongorestore --oplogReplay` and administrators
//! send them.
//!
//! - O1. Entries that change documents only are applied together, all or none. With others among
//!   them they are applied one by one.

mod command;
mod needs;
mod operation;

pub(super) use command::ROWS;
pub(crate) use needs::needed;

/// How deep `applyOps` may be in `applyOps`, as in MongoDB.
const DEPTH_MAX: usize = 10;

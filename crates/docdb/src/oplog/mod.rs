//! The oplog: entries in MongoDB's shape, and the order in which they become visible.

pub mod entry;
pub mod slots;

//! The oplog: entries in MongoDB's shape.

pub mod entry;

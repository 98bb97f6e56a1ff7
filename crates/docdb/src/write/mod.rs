//! Writes of documents.

mod entries;
mod insert;

pub use insert::{InsertOptions, InsertReply, WriteError};

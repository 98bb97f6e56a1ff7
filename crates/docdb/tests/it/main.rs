//! The same tests of collections on several engines.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod aggregate;
mod change;
mod cursor;
mod ddl;
mod examined;
mod explain;
mod hint;
mod index;
mod insert;
mod intent;
mod lab;
mod long;
mod moment;
mod oplog;
mod oplog_find;
mod power;
mod random;
mod replay;
mod replica;
mod segments;
mod session;
mod stats;
mod transaction;
mod view;
mod write;

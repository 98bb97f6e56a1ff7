//! The laws, one file for each theme.

pub(crate) mod backup;
pub(crate) mod batch;
pub(crate) mod blind;
pub(crate) mod bound;
pub(crate) mod compact;
pub(crate) mod concurrency;
pub(crate) mod conflict;
pub(crate) mod cursor;
pub(crate) mod durability;
pub(crate) mod error;
pub(crate) mod identity;
pub(crate) mod increment;
pub(crate) mod insert;
pub(crate) mod many;
pub(crate) mod point;
pub(crate) mod purge;
pub(crate) mod reopen;
pub(crate) mod scan;
pub(crate) mod seek;
pub(crate) mod size;
pub(crate) mod snapshot;
pub(crate) mod statistics;
pub(crate) mod transaction;
pub(crate) mod tree;
pub(crate) mod upkeep;
pub(crate) mod writer;

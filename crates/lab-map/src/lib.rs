//! Pages of stores as their files hold them: drawn (*map*) and compressed by codecs (*codec*).
//!
//! Only this crate of the laboratory knows the formats of betree, LMDB, RocksDB, WiredTiger and
//! InnoDB.

pub mod codec;
pub mod map;

//! Pages of stores as their files hold them: drawn (*map*) and packed by codecs (*codec*).
//!
//! The formats of betree, LMDB, RocksDB, WiredTiger and InnoDB are known here and nowhere else in
//! the laboratory.

pub mod codec;
pub mod map;

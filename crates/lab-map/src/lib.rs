//! Examines the pages in the files of stores: draws them (*map*), and compresses them with codecs
//! (*codec*).
//!
//! Only this crate of the laboratory knows the formats of betree, LMDB, RocksDB, WiredTiger and
//! InnoDB.

pub mod codec;
pub mod map;

//! The engine as its users meet it: the laws of the API, and what is RocksDB's own.
#![cfg(feature = "rocksdb")]

mod adapter;

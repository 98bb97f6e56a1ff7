//! Tests of the engine through its API: the laws, and properties of RocksDB.
#![cfg(feature = "rocksdb")]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod adapter;
mod codecs;
mod laws;

//! The engine as its users meet it: the laws of the API, and what is RocksDB's own.
#![cfg(feature = "rocksdb")]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod adapter;
mod codecs;
mod laws;
